// The code of a recorded program, here of this one: found by path, build id and folder, and never
// another's.
#include "perf/code/recorded_code.h"

#include <elf.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/json_text.h"
#include "fakes/perf_bytes.h"
#include "fakes/small_elf.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

extern "C" __attribute__((noinline)) int hangscope_test_recorded_function(int number) {
  return number * 17 + 3;
}

// Of the program itself: the first object.
int FindBuildId(dl_phdr_info* info, size_t, void* to) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    for (const char* end = at + segment.p_memsz; at < end;) {
      const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
      const char* text = at + sizeof *note + (note->n_namesz + 3) / 4 * 4;
      if (note->n_type == NT_GNU_BUILD_ID)
        *static_cast<std::string*>(to) = std::string(text, note->n_descsz);
      at = text + (note->n_descsz + 3) / 4 * 4;
    }
  }
  return 1;
}

class RecordedCodeTest : public ::testing::Test {
 protected:
  RecordedCodeTest() {
    dl_iterate_phdr(FindBuildId, &id_);
    path_ = std::filesystem::read_symlink("/proc/self/exe");
    std::ifstream maps("/proc/self/maps");
    const auto function = reinterpret_cast<uint64_t>(&hangscope_test_recorded_function);
    for (std::string line; std::getline(maps, line);) {
      unsigned long long begin, end, offset;
      if (sscanf(line.c_str(), "%llx-%llx %*s %llx", &begin, &end, &offset) == 3 &&
          begin <= function && function < end)
        map_ = {begin, end - begin, offset};
    }
  }
  PerfRecord Map(TimeNs time, const std::string& path,
                 uint32_t protection = PROT_READ | PROT_EXEC) {
    bytes_ = PerfRecordOf(PERF_RECORD_MMAP2, PerfIds(7, 7) + PerfWord(map_.begin) +
                                                 PerfWord(map_.bytes) + PerfWord(map_.offset) +
                                                 std::string(24, '\0') + PerfBytes(protection, 2u) +
                                                 PerfText(path));
    PerfRecord record = PerfRecordParser(events_).Parse(bytes_).value_or(PerfRecord());
    record.time = time;
    return record;
  }
  static std::string Read(RecordedCode& code, int pid, TimeNs time) {
    std::string bytes(16, '\0');
    bytes.resize(code.CodeOf(pid, time)(
        reinterpret_cast<uint64_t>(&hangscope_test_recorded_function), bytes));
    return bytes;
  }
  static std::string Truth() {
    return {reinterpret_cast<const char*>(&hangscope_test_recorded_function), 16};
  }

  struct {
    uint64_t begin = 0, bytes = 0, offset = 0;
  } map_;
  std::string id_, path_, bytes_;
  std::vector<PerfEvent> events_ = {PerfEvent()};
  PerfFileFacts facts_;
};

TEST_F(RecordedCodeTest, ReadsTheFileWhoseBuildIdWasRecorded) {
  ASSERT_FALSE(id_.empty());
  facts_.build_ids = {{path_, id_}};
  RecordedCode code(facts_);
  code.Add(Map(100, path_));
  EXPECT_EQ(Read(code, 7, 100), Truth());
  EXPECT_EQ(Read(code, 7, 99), "") << "it was not mapped yet";
  EXPECT_EQ(Read(code, 8, 100), "") << "another process";
  EXPECT_THAT(
      code.PlaceOf(7, 100, reinterpret_cast<uint64_t>(&hangscope_test_recorded_function) + 1),
      MatchesRegex("hangscope_test_recorded_function\\+0x1 recorded_code_test.cc:[0-9]+"));
  EXPECT_EQ(code.PlaceOf(7, 100, 8), "");
  EXPECT_THAT(code.warnings(), IsEmpty());
}

TEST_F(RecordedCodeTest, ReadsNoOtherFile) {
  facts_.build_ids = {{path_, std::string(20, 'x')}};
  RecordedCode code(facts_);
  code.Add(Map(0, path_));
  EXPECT_EQ(Read(code, 7, 100), "");
  EXPECT_THAT(code.warnings(), ElementsAre(HasSubstr("its build id is another")));
  EXPECT_THAT(code.PlaceOf(7, 100, map_.begin),
              HasSubstr(std::filesystem::path(path_).filename().string() + "+0x"));
}

TEST_F(RecordedCodeTest, BelievesAFileWithoutAnIdOnlyInTheFolderThatWasNamed) {
  RecordedCode here(facts_);
  here.Add(Map(0, path_));
  EXPECT_EQ(Read(here, 7, 100), "");
  EXPECT_THAT(here.warnings(), ElementsAre(HasSubstr("only files in --binaries")));
  RecordedCode by_name(facts_, CodePlaces{std::filesystem::path(path_).parent_path()});
  by_name.Add(Map(0, "/data/elsewhere/" + std::filesystem::path(path_).filename().string()));
  EXPECT_EQ(Read(by_name, 7, 100), Truth());
  RecordedCode by_path(facts_, CodePlaces{"/."});
  by_path.Add(Map(0, path_));
  EXPECT_EQ(Read(by_path, 7, 100), Truth());
}

TEST_F(RecordedCodeTest, KeepsOfALargeFileOnlyItsCode) {
  SmallElf elf;
  elf.segments = {{0x1000, "sixteen of these"}};
  const auto file =
      std::filesystem::temp_directory_path() / fmt::format("hangscope_recorded_code_{}", getpid());
  std::ofstream(file) << elf.File();
  std::filesystem::resize_file(file, 600u << 20);  // sparse
  map_ = {0x1000, 16, sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr)};
  RecordedCode code(facts_, CodePlaces{file.parent_path()});
  code.Add(Map(0, file));
  std::string bytes(16, '\0');
  bytes.resize(code.CodeOf(7, 100)(0x1000, bytes));
  std::filesystem::remove(file);
  EXPECT_EQ(bytes, "sixteen of these");
  EXPECT_THAT(code.warnings(), IsEmpty());
}

// Of a sink that CPUs share.
TEST_F(RecordedCodeTest, KnowsWhoseCodeRanOnACpu) {
  const auto record = [&](uint32_t type, const std::string& body) {
    bytes_ = PerfRecordOf(type, body);
    return PerfRecordParser(events_).Parse(bytes_).value_or(PerfRecord());
  };
  RecordedCode code(facts_);
  PerfAuxSpan span;
  span.pid = 7;
  span.shares = {{0, 0x10, 1, {7}, {}}, {1, 0x12, 1, {80, 81}, {}}, {2, 0x14, 1, {7, 80}, {}},
                 {3, 0x16, 1, {}, {}},  {4, 0x18, 1, {80, 99}, {}}, {5, 0x1a, 1, {8}, {}}};
  code.Add(Map(0, path_));
  EXPECT_EQ(code.ProcessOf(span, 3), 7) << "no other program was recorded";
  code.Add(record(PERF_RECORD_COMM, PerfIds(7, 7) + PerfText("seven")));
  code.Add(record(PERF_RECORD_COMM, PerfIds(8, 8) + PerfText("eight")));
  code.Add(record(PERF_RECORD_FORK, PerfIds(8, 8) + PerfIds(80, 8) + PerfWord(1)));
  code.Add(record(PERF_RECORD_ITRACE_START, PerfIds(8, 81)));
  EXPECT_THAT(code.warnings(), IsEmpty());
  EXPECT_EQ(code.ProcessOf(span, -1), 7) << "whose span it is";
  EXPECT_EQ(code.ProcessOf(span, 9), 7) << "it has nothing there";
  EXPECT_EQ(code.ProcessOf(span, 0), 7);
  EXPECT_EQ(code.ProcessOf(span, 1), 8);
  EXPECT_EQ(code.ProcessOf(span, 5), 8);
  EXPECT_EQ(code.ProcessOf(span, 2), -1) << "two ran there";
  EXPECT_EQ(code.ProcessOf(span, 2), -1);
  EXPECT_EQ(code.ProcessOf(span, 4), -1) << "nobody says whose 99 is";
  EXPECT_THAT(
      code.warnings(),
      ElementsAre("of the trace of CPU 2 in a shared sink it is not known whose code it was: "
                  "several programs ran there",
                  HasSubstr("CPU 4")));
}

// A folder as perf keeps one of what it recorded.
class PerfsCache {
 public:
  PerfsCache() {
    std::string name = testing::TempDir() + "cache-XXXXXX";
    places.kernel.cache = mkdtemp(name.data());
  }
  ~PerfsCache() { std::filesystem::remove_all(places.kernel.cache); }
  // `name`: in the folder of the id; empty: the id is the file, as with old perfs.
  void Keep(const std::string& file, const std::string& id, const std::string& name) {
    const std::string hex = HexText(id);
    std::filesystem::path path = places.kernel.cache;
    path /= ".build-id/" + hex.substr(0, 2) + "/" + hex.substr(2);
    if (!name.empty()) path /= name;
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::create_symlink(file, path);
  }

  CodePlaces places;
};

TEST_F(RecordedCodeTest, FindsInPerfsCacheWhatIsNoLongerWhereItWas) {
  for (const char* name : {"elf", ""}) {
    PerfsCache cache;
    cache.Keep(path_, id_, name);
    facts_.build_ids = {{"/none/such/program", id_}};
    RecordedCode code(facts_, cache.places);
    code.Add(Map(100, "/none/such/program"));
    EXPECT_EQ(Read(code, 7, 100), Truth()) << name;
    EXPECT_THAT(code.warnings(), IsEmpty());
  }
}

TEST_F(RecordedCodeTest, SaysNothingOfANewerFileWherePerfsCacheHasTheRecordedOne) {
  PerfsCache cache;
  cache.Keep(path_, id_, "elf");
  cache.places.binaries = "/bin";
  facts_.build_ids = {{"/recorded/ls", id_}};
  RecordedCode code(facts_, cache.places);
  code.Add(Map(100, "/recorded/ls"));
  EXPECT_EQ(Read(code, 7, 100), Truth());
  EXPECT_THAT(code.warnings(), IsEmpty());
}

TEST_F(RecordedCodeTest, FindsTheVdsoInPerfsCache) {
  PerfsCache cache;
  cache.Keep(path_, id_, "vdso");
  facts_.build_ids = {{"[vdso]", id_}};
  RecordedCode code(facts_, cache.places);
  code.Add(Map(100, "[vdso]"));
  EXPECT_EQ(Read(code, 7, 100), Truth());
}

TEST_F(RecordedCodeTest, TakesOfPerfsCacheNothingWithAnotherBuildId) {
  PerfsCache cache;
  const std::string other(20, 'x');
  cache.Keep(path_, other, "elf");
  facts_.build_ids = {{"/none/such/program", other}};
  RecordedCode code(facts_, cache.places);
  code.Add(Map(100, "/none/such/program"));
  EXPECT_EQ(Read(code, 7, 100), "");
  facts_.build_ids.clear();
  RecordedCode without(facts_, cache.places);
  without.Add(Map(100, "/none/such/program"));
  EXPECT_EQ(Read(without, 7, 100), "");
}

TEST_F(RecordedCodeTest, TakesTheNewestMappingAndNoData) {
  facts_.build_ids = {{path_, id_}};
  RecordedCode code(facts_);
  code.Add(Map(100, path_));
  code.Add(Map(200, "/none/such"));
  code.Add(Map(300, "/not/code", PROT_READ));
  EXPECT_EQ(Read(code, 7, 150), Truth());
  EXPECT_EQ(Read(code, 7, 250), "");
  EXPECT_EQ(code.PlaceOf(7, 350, map_.begin).substr(0, 4), "such");
}

}  // namespace
}  // namespace hangscope
