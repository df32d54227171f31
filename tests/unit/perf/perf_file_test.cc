// perf.data: of another's making, and built by hand in either form, compressed, cut at every byte
// and with bits turned over. What is before the damage is read, and the damage is told.
#include "perf/perf_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "fakes/fake_file_system.h"
#include "fakes/perf_image.h"
#include "fakes/tick_image.h"
#include "perf/perf_side_band.h"

namespace hangscope {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PerfFileTest : public ::testing::Test {
 protected:
  PerfFileTest() {
    const PerfEvent tick = TickImage::TickEvent();
    PerfEvent other = tick;
    other.name = "cycles:u";
    other.attr.type = PERF_TYPE_HARDWARE;
    other.attr.sample_type &= ~uint64_t{PERF_SAMPLE_RAW};
    other.ids = {20};
    image_.events = {tick, other};
    image_.features = {{kPerfFeatureHost, PerfSizedText("box")},
                       {kPerfFeatureCommand,
                        PerfBytes(uint32_t{2}) + PerfSizedText("perf") + PerfSizedText("record")},
                       {kPerfFeatureEventDescription, image_.EventNames()},
                       {kPerfFeatureTracingData, PerfTracingData("made", {"broken", kTickFormat})}};
  }
  // One of the first event's samples: its count tells which.
  static std::string Tick(int count) { return TickImage::Tick(count); }
  static std::string Auxtrace(uint64_t said_bytes, const std::string& bytes, uint64_t offset = 0) {
    return PerfRecordOf(kPerfAuxtrace, PerfWord(said_bytes) + PerfWord(offset) + PerfWord(5) +
                                           PerfBytes(3u, 44, 6, 0u)) +
           bytes;
  }
  Status Open(const std::string& bytes) {
    EXPECT_TRUE(WriteWholeFile(files_, "perf.data", bytes).ok());
    auto file = PerfFile::Open(files_, "perf.data");
    if (!file.ok()) return file.status();
    file_ = std::move(*file);
    return {};
  }
  void MustOpen(const std::string& bytes) {
    const Status status = Open(bytes);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  // The counts of all ticks that can be read.
  std::vector<int> Ticks() {
    std::vector<int> counts;
    const auto format = TracepointFormat::Parse(kTickFormat);
    EXPECT_TRUE(file_
                    ->ForEach([&](const PerfRecord& record) {
                      if (record.type == PERF_RECORD_SAMPLE && record.event == 0)
                        counts.push_back(
                            static_cast<int>(format->Number(record.raw, "count").value_or(-1)));
                      return true;
                    })
                    .ok());
    return counts;
  }
  static std::vector<int> UpTo(int end) {
    std::vector<int> counts;
    for (int i = 0; i < end; ++i) counts.push_back(i);
    return counts;
  }
  const std::vector<std::string>& Warnings() { return file_->facts().warnings; }

  FakeFileSystem files_;
  PerfImage image_;
  std::unique_ptr<PerfFile> file_;
};

TEST_F(PerfFileTest, TellsWhatPerfTellsOfARecordingOfCoreSight) {
  auto file = PerfFile::Open(PosixFileSystem(), TEST_DATA "/perf/etm.data");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ((*file)->facts().architecture, "aarch64");
  EXPECT_THAT((*file)->facts().command, HasSubstr("record -e cs-etm:u"));
  EXPECT_EQ((*file)->facts().auxtrace_info.size(), 0x2a8u - 8);
  std::map<uint32_t, int> count;
  std::vector<std::string> aux;
  ASSERT_TRUE((*file)
                  ->ForEach([&](const PerfRecord& record) {
                    ++count[record.type];
                    if (const auto a = ParsePerfAux(record))
                      aux.push_back(fmt::format("{} {} {:#x} {:#x} {}", record.cpu, record.time,
                                                a->offset, a->bytes, a->flags));
                    return true;
                  })
                  .ok());
  EXPECT_EQ(count, (std::map<uint32_t, int>{{PERF_RECORD_COMM, 2},
                                            {PERF_RECORD_EXIT, 1},
                                            {PERF_RECORD_MMAP2, 59},
                                            {PERF_RECORD_AUX, 4},
                                            {PERF_RECORD_ITRACE_START, 2},
                                            {70, 1},
                                            {71, 1}}));
  EXPECT_THAT(aux, ElementsAre("7 1118687117325 0x0 0x50 0", "7 1118688029825 0x50 0x50 0",
                               "7 1118688983262 0xa0 0x50 0", "7 1118693749982 0xf0 0x90 0"));
  ASSERT_THAT((*file)->aux(), SizeIs(1));
  const AuxTrace trace = (*file)->aux()[0];
  EXPECT_EQ(trace.file_offset, 0x26a8u + 0x30);
  EXPECT_EQ(trace.bytes, 0x180u);
  EXPECT_EQ(trace.cpu, 7);
  const auto bytes = (*file)->ReadAux(trace, 0x10, 0x1000);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(bytes.value().size(), 0x170u);
  EXPECT_THAT((*file)->facts().warnings, IsEmpty());
}

TEST_F(PerfFileTest, ReadsTheSameInEitherForm) {
  for (int i = 0; i < 5; ++i) image_.records.push_back(Tick(i));
  for (const bool pipe : {false, true}) {
    MustOpen(pipe ? image_.Pipe() : image_.File());
    EXPECT_EQ(file_->facts().pipe, pipe);
    EXPECT_EQ(file_->facts().host, "box");
    EXPECT_EQ(file_->facts().command, "perf record");
    ASSERT_THAT(file_->events(), SizeIs(2));
    EXPECT_EQ(file_->events()[0].name, "made:tick");
    EXPECT_EQ(file_->events()[0].system, "made");
    EXPECT_EQ(file_->events()[0].format, kTickFormat);
    EXPECT_EQ(file_->events()[1].name, "cycles:u");
    EXPECT_THAT(file_->events()[0].ids, ElementsAre(10, 11));
    EXPECT_EQ(Ticks(), UpTo(5));
    EXPECT_THAT(Warnings(), IsEmpty());
  }
}

TEST_F(PerfFileTest, StopsWhereItIsAskedTo) {
  for (int i = 0; i < 5; ++i) image_.records.push_back(Tick(i));
  MustOpen(image_.File());
  int seen = 0;
  ASSERT_TRUE(file_->ForEach([&](const PerfRecord&) { return ++seen < 3; }).ok());
  EXPECT_EQ(seen, 3);
  image_.records = PerfCompressed(image_.records, 10000);
  MustOpen(image_.File());
  seen = 0;
  ASSERT_TRUE(file_->ForEach([&](const PerfRecord&) { return ++seen < 3; }).ok());
  EXPECT_EQ(seen, 3);
}

TEST_F(PerfFileTest, InflatesOneStreamThatIsCutAnywhere) {
  for (int i = 0; i < 300; ++i) image_.records.push_back(Tick(i));
  const std::vector<std::string> plain = image_.records;
  for (const size_t piece : {1u, 7u, 56u, 1000u, 1000000u}) {
    image_.records = PerfCompressed(plain, piece);
    for (const bool pipe : {false, true}) {
      MustOpen(pipe ? image_.Pipe() : image_.File());
      EXPECT_TRUE(file_->facts().compressed);
      EXPECT_EQ(Ticks(), UpTo(300)) << piece;
      EXPECT_THAT(Warnings(), IsEmpty());
    }
  }
}

TEST_F(PerfFileTest, ReadsCompressedRecordsUpToTheDamage) {
  for (int i = 0; i < 300; ++i) image_.records.push_back(Tick(i));
  image_.records = PerfCompressed(image_.records, 560);  // ten of them
  for (char& byte : image_.records[20])
    byte = static_cast<char>(&byte < &image_.records[20][8] ? byte : ~byte);
  image_.records.push_back(Tick(4711));
  MustOpen(image_.File());
  const std::vector<int> ticks = Ticks();
  ASSERT_GE(ticks.size(), 201u);
  EXPECT_EQ(std::vector<int>(ticks.begin(), ticks.begin() + 200), UpTo(200));
  EXPECT_EQ(ticks.back(), 4711) << "what is not compressed can still be read";
  EXPECT_THAT(Warnings(),
              testing::Contains(HasSubstr(
                  "is damaged: what was compressed from there on, 10 records, is not read")));
}

TEST_F(PerfFileTest, StopsInflatingWhereNoRecordIs) {
  image_.records = PerfCompressed({Tick(0), std::string(16, '\0'), Tick(1)}, 1000);
  MustOpen(image_.File());
  EXPECT_EQ(Ticks(), UpTo(1));
  EXPECT_THAT(Warnings(), ElementsAre(HasSubstr("is damaged")));
}

TEST_F(PerfFileTest, TellsOfACompressedRecordWhoseRestIsMissing) {
  for (int i = 0; i < 10; ++i) image_.records.push_back(Tick(i));
  image_.records = PerfCompressed(image_.records, 60);
  image_.records.pop_back();
  MustOpen(image_.File());
  EXPECT_THAT(Ticks(), SizeIs(9));
  EXPECT_THAT(Warnings(), ElementsAre(HasSubstr("end in the middle of a record")));
}

TEST_F(PerfFileTest, StepsOverTheBytesOfTraces) {
  const std::string trace(64, 'x');
  image_.records = {Tick(0),
                    PerfRecordOf(kPerfAuxtraceInfo, PerfWord(3) + PerfWord(9)),
                    Auxtrace(64, trace, 128),
                    Tick(1),
                    Auxtrace(0, ""),
                    Tick(2)};
  uint64_t at = 0;
  const std::string bytes = image_.File(&at);
  MustOpen(bytes);
  EXPECT_EQ(Ticks(), UpTo(3));
  EXPECT_EQ(file_->facts().auxtrace_info, PerfWord(3) + PerfWord(9));
  ASSERT_THAT(file_->aux(), SizeIs(2));
  const AuxTrace& aux = file_->aux()[0];
  EXPECT_EQ(aux.offset, 128u);
  EXPECT_EQ(aux.reference, 5u);
  EXPECT_EQ(aux.index, 3u);
  EXPECT_EQ(aux.tid, 44);
  EXPECT_EQ(aux.cpu, 6);
  EXPECT_EQ(aux.missing_bytes, 0u);
  EXPECT_EQ(file_->ReadAux(aux, 60, 100).value_or(""), "xxxx");
  EXPECT_EQ(file_->ReadAux(aux, 64, 100).value_or("?"), "");
  image_.records.resize(2);
  image_.records.push_back(Auxtrace(~uint64_t{0} - 7, trace));
  image_.features.clear();
  MustOpen(image_.File());
  ASSERT_THAT(file_->aux(), SizeIs(1));
  EXPECT_EQ(file_->aux()[0].bytes, 64u);
  EXPECT_THAT(Warnings(), ElementsAre(HasSubstr("only 64 are there")));
}

// The end of the file may be anywhere; each whole record before it is there.
TEST_F(PerfFileTest, ReadsEachWholeRecordBeforeTheCut) {
  for (int i = 0; i < 6; ++i) image_.records.push_back(Tick(i));
  const size_t each = image_.records[0].size();
  for (const bool pipe : {false, true}) {
    uint64_t begin = 0;
    std::string whole = image_.File(&begin);
    if (pipe) {
      whole = image_.Pipe();
      begin = whole.size() - 6 * each;
    }
#ifdef __SANITIZE_THREAD__
    constexpr size_t kStep = 7;  // 40 s for all, in which there is no second thread
#else
    constexpr size_t kStep = 1;
#endif
    for (size_t cut = 0; cut < whole.size(); cut += kStep) {
      const Status status = Open(whole.substr(0, cut));
      if (!status.ok()) {
        ASSERT_LT(cut, begin) << status.message();
        ASSERT_THAT(status.message(),
                    AllOf(HasSubstr("'perf.data'"),
                          testing::AnyOf(HasSubstr("can be read"), HasSubstr("is no perf.data"),
                                         HasSubstr("tells no events"))))
            << cut;
        continue;
      }
      const size_t records = cut < begin ? 0 : std::min<size_t>((cut - begin) / each, 6);
      ASSERT_EQ(Ticks(), UpTo(static_cast<int>(records))) << cut;
      // A stream may end behind any record.
      const bool within = !pipe || (cut > begin && (cut - begin) % each != 0);
      ASSERT_TRUE(!within || !Warnings().empty()) << cut;
    }
  }
}

TEST_F(PerfFileTest, TellsWhereTheFileWasCut) {
  for (int i = 0; i < 3; ++i) image_.records.push_back(Tick(i));
  uint64_t begin = 0;
  const std::string whole = image_.File(&begin);
  MustOpen(whole.substr(0, begin + image_.records[0].size() + 20));
  EXPECT_EQ(Ticks(), UpTo(1));
  const std::string where =
      fmt::format("the record at offset {} is not whole", begin + image_.records[0].size());
  EXPECT_THAT(Warnings(), testing::Contains(HasSubstr(where)));
  EXPECT_THAT(Warnings(), testing::Contains(HasSubstr("it was cut")));
}

TEST_F(PerfFileTest, ReadsAFileWhoseRecorderWasKilled) {
  for (int i = 0; i < 3; ++i) image_.records.push_back(Tick(i));
  image_.features.clear();
  std::string bytes = image_.File();
  bytes.replace(48, 8, PerfWord(0));
  MustOpen(bytes);
  EXPECT_EQ(Ticks(), UpTo(3));
  EXPECT_THAT(Warnings(), ElementsAre(HasSubstr("as when perf was killed")));
}

TEST_F(PerfFileTest, LeavesOutRecordsThatContradictThemselves) {
  image_.records = {Tick(0), PerfRecordOf(PERF_RECORD_SAMPLE, PerfWord(11)), Tick(1),
                    PerfRecordOf(50, PerfWord(1) + PerfWord(2) + PerfWord(3) + PerfWord(4)),
                    Tick(2)};
  uint64_t begin = 0;
  MustOpen(image_.File(&begin));
  for (int again = 0; again < 2; ++again) EXPECT_EQ(Ticks(), UpTo(3));
  const uint64_t first = begin + image_.records[0].size();
  EXPECT_THAT(
      Warnings(),
      testing::UnorderedElementsAre(
          HasSubstr(fmt::format(
              "1 records contradict their own sizes, the first, of type 9, at offset {}", first)),
          HasSubstr(fmt::format(
              "1 records are of types that are not known, the first, of type 50, at offset {}",
              first + 16 + image_.records[2].size()))));
}

TEST_F(PerfFileTest, TellsWhereNoRecordIs) {
  image_.records = {Tick(0), PerfBytes(9u, uint16_t{0}, uint16_t{4}) + PerfWord(0), Tick(1)};
  uint64_t begin = 0;
  MustOpen(image_.File(&begin));
  EXPECT_EQ(Ticks(), UpTo(2));
  EXPECT_THAT(Warnings(), ElementsAre(HasSubstr(fmt::format("at offset {} is no record: 16 bytes",
                                                            begin + image_.records[0].size()))));
}

TEST_F(PerfFileTest, TellsWhereNoRecordIsUpToTheEnd) {
  image_.records = {Tick(0), std::string(160, 'x')};
  uint64_t begin = 0;
  MustOpen(image_.File(&begin));
  EXPECT_EQ(Ticks(), UpTo(1));
  EXPECT_THAT(
      Warnings(),
      ElementsAre(HasSubstr(fmt::format("at offset {} is no record: the 160 bytes from there on",
                                        begin + image_.records[0].size()))));
}

// Bits turned over, one at a time: no crash, no endless loop, and never more than there was.
TEST_F(PerfFileTest, BearsAnyBitTurnedOver) {
  image_.records = {
      Tick(0), Auxtrace(16, std::string(16, 'x')), Tick(1),
      PerfRecordOf(PERF_RECORD_COMM, PerfIds(1, 2) + PerfText("name") + std::string(40, 't'))};
  const auto compressed = PerfCompressed({Tick(2), Tick(3)}, 50);
  image_.records.insert(image_.records.end(), compressed.begin(), compressed.end());
  std::mt19937 random(1);
#if defined(__SANITIZE_THREAD__)
  constexpr int kRounds = 200;
#elif defined(__SANITIZE_ADDRESS__)
  constexpr int kRounds = 500;
#else
  constexpr int kRounds = 3000;
#endif
  for (const bool pipe : {false, true}) {
    const std::string whole = pipe ? image_.Pipe() : image_.File();
    int opened = 0;
    int troubled = 0;
    for (int i = 0; i < kRounds; ++i) {
      std::string bytes = whole;
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
      const Status status = Open(bytes);
      if (!status.ok()) continue;
      ++opened;
      EXPECT_LE(Ticks().size(), 20u);
      for (const AuxTrace& trace : file_->aux())
        EXPECT_LE(file_->ReadAux(trace, 0, 1 << 20).value_or("").size(), bytes.size());
      troubled += !Warnings().empty();
    }
    EXPECT_GT(opened, kRounds * 2 / 3);
    EXPECT_GT(troubled, kRounds / 30);
  }
}

TEST_F(PerfFileTest, RefusesWhatItCannotRead) {
  EXPECT_THAT(Open("").message(), HasSubstr("does not begin with PERFILE2"));
  EXPECT_THAT(Open("2ELIFREP" + image_.File().substr(8)).message(), HasSubstr("which cannot be"));
  EXPECT_THAT(Open("PERFFILE" + image_.File().substr(8)).message(),
              HasSubstr("before Linux 2.6.37"));
  EXPECT_THAT(Open("PERFILE2" + PerfWord(16)).message(), HasSubstr("tells no events"));
  EXPECT_THAT(Open("PERFILE2" + PerfWord(104)).message(), HasSubstr("no whole header"));
  std::string bytes = image_.File();
  bytes.replace(16, 8, PerfWord(1 << 30));
  EXPECT_THAT(Open(bytes).message(), HasSubstr("1073741824 bytes, which cannot be"));
  EXPECT_THAT(PerfFile::Open(PosixFileSystem(), TEST_DATA).status().message(),
              HasSubstr("is a folder, and has no file 'data'"));
  EXPECT_THAT(PerfFile::Open(PosixFileSystem(), "/none/such").status().message(),
              HasSubstr("No such file"));
}

TEST_F(PerfFileTest, DoesNotBelieveIdsThatLieOutsideTheFile) {
  image_.records = {Tick(0)};
  std::string bytes = image_.File();
  const uint64_t second_ids = kPerfHeaderBytes + 24 + 2 * sizeof(perf_event_attr) + 16;
  bytes.replace(second_ids, 16, PerfWord(kPerfHeaderBytes) + PerfWord(uint64_t{1} << 40));
  MustOpen(bytes);
  EXPECT_THAT(Warnings(), ElementsAre(HasSubstr("1099511627776 bytes, which cannot be")));
  EXPECT_EQ(Ticks(), UpTo(1));
}

}  // namespace
}  // namespace hangscope
