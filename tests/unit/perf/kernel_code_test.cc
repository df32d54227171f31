// The kernel of a recording: found by what was named, beside the file, in perf's cache, on this
// machine; moved to where it lay; and never another's.
#include "perf/code/kernel_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "fakes/etm_bytes.h"
#include "fakes/perf_bytes.h"
#include "fakes/small_elf.h"
#include "perf/code/recorded_code.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kLinked = 0xffff800008000000;  // where the kernel was linked to
constexpr uint64_t kLay = 0xffffa00012000000;     // where it lay
const std::string kId(20, '\x5a');

class KernelCodeTest : public ::testing::Test {
 protected:
  KernelCodeTest() {
    std::string name = testing::TempDir() + "kernel-XXXXXX";
    folder_ = mkdtemp(name.data());
    facts_.build_ids = {{"[kernel.kallsyms]", kId}};
    places_.notes = places_.own_kcore = places_.own_kallsyms = folder_ + "/none";
  }
  ~KernelCodeTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& bytes) {
    const std::filesystem::path path = folder_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  static std::string Code() { return {reinterpret_cast<const char*>(kA64Code), sizeof kA64Code}; }
  static SmallElf Kernel(uint64_t address, const std::string& id = kId) {
    SmallElf elf;
    elf.build_id = id;
    elf.segments = {{address, std::string(0x1000, '\0') + Code()}};
    elf.functions = {{"_text", address},
                     {"count", address + 0x1000},
                     {"$x", address + 0x1004},
                     {"leave", address + 0x1018}};
    return elf;
  }
  static std::string Kallsyms(uint64_t address) {
    return "0000000000000000 A irq_stack\n" + Line(address, "T _text") + Line(address, "D data") +
           Line(address + 0x1000, "t counts") + Line(address + 0x1018, "t leave\t[mod]") + "odd\n";
  }
  static std::string Line(uint64_t address, const std::string& rest) {
    char text[32];
    snprintf(text, sizeof text, "%016llx ", static_cast<unsigned long long>(address));
    return text + rest + "\n";
  }
  // As perf writes it.
  PerfMap Map() const { return {-1, 0, kLay, 0x10000, kLay, true, {}, "[kernel.kallsyms]_text"}; }
  std::unique_ptr<KernelCode> Open() {
    auto code = std::make_unique<KernelCode>(facts_, places_);
    code->Add(Map());
    return code;
  }
  static std::string Read(KernelCode& code) {
    std::string bytes(sizeof kA64Code, '\0');
    bytes.resize(code.Read(kLay + 0x1000, bytes));
    return bytes;
  }

  std::string folder_;
  PerfFileFacts facts_;
  KernelPlaces places_;
};

TEST_F(KernelCodeTest, TakesTheVmlinuxOfTheRecordedBuildToWhereItLay) {
  places_.vmlinux = Write("vmlinux", Kernel(kLinked).File());
  const auto code = Open();
  EXPECT_TRUE(code->Covers(kLay + 0x1000));
  EXPECT_FALSE(code->Covers(kLinked));
  EXPECT_EQ(Read(*code), Code());
  EXPECT_EQ(code->PlaceOf(kLay + 0x1004), "count+0x4");
  EXPECT_EQ(code->PlaceOf(kLay + 0x1018), "leave+0x0");
  EXPECT_THAT(code->warnings(), IsEmpty());
}

TEST_F(KernelCodeTest, NeverTakesAnotherKernel) {
  places_.vmlinux = Write("vmlinux", Kernel(kLinked, std::string(20, 'x')).File());
  const auto code = Open();
  EXPECT_EQ(Read(*code), "");
  EXPECT_EQ(code->PlaceOf(kLay + 0x1004), "[kernel.kallsyms]_text+0x1004");
  EXPECT_THAT(code->warnings(), ElementsAre(HasSubstr("its build id is 7878")));
}

TEST_F(KernelCodeTest, BelievesWhatWasNamedWhereNoBuildIdWasRecorded) {
  facts_.build_ids.clear();
  places_.vmlinux = Write("vmlinux", Kernel(kLinked, "").File());
  EXPECT_EQ(Read(*Open()), Code());
}

TEST_F(KernelCodeTest, RefusesWhatIsNoKernelInASentence) {
  places_.vmlinux = Write("vmlinux", "text");
  const auto code = Open();
  EXPECT_EQ(Read(*code), "");
  EXPECT_THAT(code->warnings(), ElementsAre(HasSubstr("is no vmlinux, and no kcore")));
  places_.vmlinux = folder_;
  const auto empty = Open();
  EXPECT_EQ(Read(*empty), "");
  EXPECT_THAT(empty->warnings(), ElementsAre(HasSubstr("has no kcore in it")));
}

TEST_F(KernelCodeTest, SaysWhereAVmlinuxHasNoSymbolToMoveItBy) {
  SmallElf elf = Kernel(kLinked);
  elf.functions.erase(elf.functions.begin());
  places_.vmlinux = Write("vmlinux", elf.File());
  const auto code = Open();
  EXPECT_EQ(Read(*code), "");
  EXPECT_THAT(code->warnings(), ElementsAre(HasSubstr("has no symbol _text")));
}

TEST_F(KernelCodeTest, ReadsAnImageOfItsMemoryAsItLies) {
  SmallElf memory = Kernel(kLay, "");
  memory.type = ET_CORE;
  memory.functions.clear();
  Write("kcore_dir/kcore", memory.File());
  Write("kcore_dir/kallsyms", Kallsyms(kLay));
  places_.beside = folder_;
  const auto code = Open();
  EXPECT_EQ(Read(*code), Code());
  EXPECT_EQ(code->PlaceOf(kLay + 0x1004), "counts+0x4");
  EXPECT_EQ(code->PlaceOf(kLay + 0x1018), "leave [mod]+0x0");
}

TEST_F(KernelCodeTest, FindsAnImageInPerfsCacheByItsBuildId) {
  SmallElf memory = Kernel(kLay, "");
  memory.type = ET_CORE;
  places_.cache = folder_;
  Write("[kernel.kcore]/" + std::string(40, '0') + "/2026/kcore", memory.File());
  EXPECT_EQ(Read(*Open()), "") << "another kernel's";
  std::string id;
  for (int i = 0; i < 20; ++i) id += "5a";
  Write("[kernel.kcore]/" + id + "/2026/kcore", memory.File());
  EXPECT_EQ(Read(*Open()), Code());
}

TEST_F(KernelCodeTest, FindsAVmlinuxAndNamesInPerfsCacheByTheirBuildId) {
  places_.cache = folder_;
  std::string rest;
  for (int i = 1; i < 20; ++i) rest += "5a";
  const std::string kept = ".build-id/5a/" + rest + "/";
  Write(kept + "elf", Kernel(kLinked, std::string(20, 'x')).File());
  const auto other = Open();
  EXPECT_EQ(Read(*other), "") << "perf kept another kernel's";
  EXPECT_THAT(other->warnings(), IsEmpty());
  Write(kept + "elf", Kernel(kLinked).File());
  const auto code = Open();
  EXPECT_EQ(Read(*code), Code());
  EXPECT_EQ(code->PlaceOf(kLay + 0x1004), "count+0x4");
  std::filesystem::remove(folder_ + "/" + kept + "elf");
  Write(kept + "kallsyms", Kallsyms(kLinked));
  EXPECT_EQ(Open()->PlaceOf(kLay + 0x1004), "counts+0x4");
}

TEST_F(KernelCodeTest, TakesThisMachinesOnlyOfTheSameBuildAndItsMemoryOnlyOfTheSameBoot) {
  SmallElf memory = Kernel(kLay, "");
  memory.type = ET_CORE;
  places_.own_kcore = Write("own_kcore", memory.File());
  places_.own_kallsyms = Write("own_kallsyms", Kallsyms(kLay));
  const std::string note = PerfBytes(4u, 20u, 3u) + std::string("GNU\0", 4);
  places_.notes = Write("notes", PerfBytes(4u, 3u, 1u) + "Xen" + std::string(5, '\0') + note + kId);
  const auto same = Open();
  EXPECT_EQ(Read(*same), Code());
  EXPECT_EQ(same->PlaceOf(kLay + 0x1004), "counts+0x4");
  Write("own_kallsyms", Kallsyms(kLinked));
  const auto other_boot = Open();
  EXPECT_EQ(Read(*other_boot), "");
  EXPECT_EQ(other_boot->PlaceOf(kLay + 0x1004), "counts+0x4") << "names move with it";
  Write("notes", note + std::string(20, 'x'));
  const auto other_build = Open();
  EXPECT_EQ(other_build->PlaceOf(kLay + 0x1004), "[kernel.kallsyms]_text+0x1004");
}

TEST_F(KernelCodeTest, SaysWhereTheKernelHidesItsAddresses) {
  places_.kallsyms = Write("kallsyms", "0000000000000000 T _text\n0000000000000000 t count\n");
  const auto code = Open();
  EXPECT_EQ(code->PlaceOf(kLay + 4), "[kernel.kallsyms]_text+0x4");
  EXPECT_THAT(code->warnings(), ElementsAre(HasSubstr("CAP_SYSLOG")));
}

// As a tool does that has no offset for it.
TEST_F(KernelCodeTest, TakesTheBeginOfAMappingForItsSymbol) {
  places_.vmlinux = Write("vmlinux", Kernel(kLinked).File());
  KernelCode code(facts_, places_);
  PerfMap map = Map();
  map.file_offset = 0;
  code.Add(map);
  EXPECT_EQ(Read(code), Code());
}

// A trace of the kernel's side, through its code, to its names.
TEST_F(KernelCodeTest, FollowsATraceOfTheKernel) {
  places_.vmlinux = Write("vmlinux", Kernel(kLinked).File());
  RecordedCode code(facts_, {"", places_});
  const std::string bytes =
      PerfRecordOf(PERF_RECORD_MMAP, PerfIds(-1, 0) + PerfWord(kLay) + PerfWord(0x10000) +
                                         PerfWord(kLay) + PerfText("[kernel.kallsyms]_text"));
  const std::vector<PerfEvent> events = {PerfEvent()};
  code.Add(PerfRecordParser(events).Parse(bytes).value_or(PerfRecord()));
  EtmBytes trace;
  trace.Sync().On().Enter(kLay + 0x1000).Atoms("EENEE").Address(kLay + 0x1010).Atoms("EE");
  auto decoder = OpenInstructionTrace(EtmV4Info(1), 0);
  ASSERT_TRUE(decoder.ok());
  TraceDecodeOptions options;
  options.raw = true;
  options.read_code = code.CodeOf(7, 100);
  const TraceSummary summary = (*decoder)->Decode(trace.bytes, options);
  EXPECT_EQ(summary.instructions, 12u);
  EXPECT_EQ(summary.branches, 6u);
  EXPECT_EQ(code.PlaceOf(7, 100, summary.last_branches[3].to), "leave+0x0");
  EXPECT_THAT(code.warnings(), IsEmpty());
}

}  // namespace
}  // namespace hangscope
