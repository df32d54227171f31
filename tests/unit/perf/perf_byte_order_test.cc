// The same recording, as machines of either byte order write it, reads as the same.
#include "perf/perf_byte_order.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "fakes/perf_story.h"
#include "perf/perf_side_band.h"
#include "perf/perf_sorter.h"
#include "why/why_perf.h"

namespace hangscope {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What writes bytes while this lives writes those of the other order.
class Turned {
 public:
  explicit Turned(bool turned) { PerfBytesTurned() = turned; }
  ~Turned() { PerfBytesTurned() = false; }
};

class PerfByteOrderTest : public ::testing::Test {
 protected:
  std::string Why(const std::string& bytes, bool json) {
    EXPECT_TRUE(WriteWholeFile(files_, "perf.data", bytes).ok());
    WhyPerfOptions options;
    options.path = "perf.data";
    options.json = json;
    FakeClock clock;
    auto report = AskWhyPerf(files_, clock, options);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? report->text : "";
  }
  static void Tell(PerfStory* story) {
    story->WholeMachine();
    story->Comm(7, "worker");
    story->Mapped(kSecond - 5, 1, 7);
    story->Fork(kSecond - 1, 1, 8, 7);
    story->Switch(kSecond, 0, 0, 0, 7);
    story->Call(kSecond + 10, 0, 7, 202, 0x1234'5678'9abc'def0);
    story->Switch(kSecond + 20, 0, 7, 1, 8);
    story->Lost(kSecond + 25, 0, 4);
    story->Wake(kSecond + 30, 1, 8, 7);
    story->Comes(kSecond + 31, 1, 9);
    story->Return(kSecond + 40, 1, 7, 202);
    story->Exit(kSecond + 50, 1, 8);
    story->LostInAll(1, 6);
    story->Command({"perf", "record", "worker"});
    story->image.features[kPerfFeatureHost] = PerfSizedText("box");
    story->image.features[kPerfFeatureArchitecture] = PerfSizedText("s390x");
  }
  // Of the story in this byte order.
  static std::string Bytes(bool turned, bool pipe, bool compressed) {
    const Turned order(turned);
    PerfStory story;
    Tell(&story);
    if (compressed) story.image.records = PerfCompressed(story.image.records, 100);
    return pipe ? story.image.Pipe() : story.image.File();
  }

  FakeFileSystem files_;
};

TEST_F(PerfByteOrderTest, TellsTheSame) {
  for (const bool pipe : {false, true}) {
    for (const bool compressed : {false, true}) {
      for (const bool json : {false, true}) {
        const std::string ours = Why(Bytes(false, pipe, compressed), json);
        EXPECT_EQ(Why(Bytes(true, pipe, compressed), json), ours);
        EXPECT_THAT(ours, HasSubstr("worker"));
        EXPECT_THAT(ours, HasSubstr("s390x"));
        EXPECT_THAT(ours, HasSubstr("id=202 ret=0"));
      }
    }
  }
}

TEST_F(PerfByteOrderTest, SortsTheSame) {
  std::vector<std::string> told[2];
  for (const bool turned : {false, true}) {
    ASSERT_TRUE(WriteWholeFile(files_, "perf.data", Bytes(turned, false, false)).ok());
    auto file = PerfFile::Open(files_, "perf.data");
    ASSERT_TRUE(file.ok());
    PerfSorter sorter(**file);
    Status added;
    ASSERT_TRUE((*file)
                    ->ForEachPlaced([&](const PerfRecord& record, const PerfRecordPlace& place,
                                        std::string_view bytes) {
                      added = sorter.Add(record, place, bytes);
                      return added.ok();
                    })
                    .ok());
    ASSERT_TRUE(added.ok()) << added.message();
    PerfRecord record;
    while (sorter.Next(&record).value_or(false))
      told[turned].push_back(fmt::format("{} {} {} {} {} {}", record.type, record.time, record.pid,
                                         record.tid, record.cpu, record.body));
  }
  EXPECT_GT(told[0].size(), 8u);
  EXPECT_EQ(told[0], told[1]);
}

TEST_F(PerfByteOrderTest, GoesOnBehindADamage) {
  std::string told[2];
  for (const bool turned : {false, true}) {
    const Turned order(turned);
    PerfStory story;
    Tell(&story);
    for (int i = 0; i < 10; ++i) story.Wake(kSecond + 60 + i, 1, 8, 7);
    story.image.records[5] = std::string(24, '\0');
    told[turned] = Why(story.image.File(), true);
  }
  EXPECT_THAT(told[0], HasSubstr("24 bytes are skipped"));
  EXPECT_EQ(told[0], told[1]);
}

// A record of each kind, field by field.
TEST_F(PerfByteOrderTest, TurnsEachKindOfRecord) {
  PerfEvent event;
  event.attr.type = PERF_TYPE_SOFTWARE;
  event.attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                           PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
                           PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |
                           PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  event.attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED;
  event.attr.sample_id_all = 1;
  event.ids = {5};
  const std::vector<PerfEvent> events = {event};
  const auto records = [] {
    const std::string trailer = PerfIds(3, 4) + PerfWord(99) + PerfBytes(2u, 0u) + PerfWord(5);
    const std::string text = PerfText("some text");
    const auto words = [](int count) {
      std::string all;
      for (int i = 0; i < count; ++i)
        all += PerfWord(0x0102'0304'0506'0708 + static_cast<uint64_t>(i));
      return all;
    };
    const uint16_t has_build_id = 1 << 14;
    return std::vector<std::string>{
        PerfRecordOf(PERF_RECORD_MMAP, PerfIds(1, 2) + words(3) + text + trailer),
        PerfRecordOf(PERF_RECORD_LOST, words(2) + trailer),
        PerfRecordOf(PERF_RECORD_COMM, PerfIds(1, 2) + text + trailer, 1 << 13),
        PerfRecordOf(PERF_RECORD_EXIT, PerfIds(1, 2) + PerfIds(3, 4) + words(1) + trailer),
        PerfRecordOf(PERF_RECORD_FORK, PerfIds(1, 2) + PerfIds(3, 4) + words(1) + trailer),
        PerfRecordOf(PERF_RECORD_THROTTLE, words(3) + trailer),
        PerfRecordOf(PERF_RECORD_READ, PerfIds(1, 2) + words(2) + trailer),
        PerfRecordOf(PERF_RECORD_MMAP2, PerfIds(1, 2) + words(3) + PerfBytes(8u, 9u) + words(2) +
                                            PerfBytes(5u, 6u) + text + trailer),
        PerfRecordOf(PERF_RECORD_MMAP2,
                     PerfIds(1, 2) + words(3) + "\x14" + std::string(23, 'b') + PerfBytes(5u, 6u) +
                         text + trailer,
                     has_build_id),
        PerfRecordOf(PERF_RECORD_AUX, words(3) + trailer),
        PerfRecordOf(PERF_RECORD_ITRACE_START, PerfIds(1, 2) + trailer),
        PerfRecordOf(PERF_RECORD_LOST_SAMPLES, words(1) + trailer),
        PerfRecordOf(PERF_RECORD_SWITCH, trailer),
        PerfRecordOf(PERF_RECORD_SWITCH_CPU_WIDE, PerfIds(1, 2) + trailer),
        PerfRecordOf(PERF_RECORD_NAMESPACES, PerfIds(1, 2) + words(5) + trailer),
        PerfRecordOf(PERF_RECORD_KSYMBOL,
                     words(1) + PerfBytes(7u, uint16_t{1}, uint16_t{2}) + text + trailer),
        PerfRecordOf(PERF_RECORD_BPF_EVENT,
                     PerfBytes(uint16_t{1}, uint16_t{2}, 7u) + "tagbytes" + trailer),
        PerfRecordOf(PERF_RECORD_CGROUP, words(1) + text + trailer),
        PerfRecordOf(PERF_RECORD_TEXT_POKE,
                     words(1) + PerfBytes(uint16_t{1}, uint16_t{2}) + "1234" + trailer),
        PerfRecordOf(kPerfAuxOutputHardwareId, words(1) + trailer),
        PerfRecordOf(PERF_RECORD_SAMPLE, PerfWord(5) + words(1) + PerfIds(3, 4) + PerfWord(77) +
                                             PerfBytes(2u, 0u) + words(1) + PerfWord(2) + words(1) +
                                             words(4) + PerfWord(3) + words(3) + PerfBytes(4u) +
                                             "rawb" + words(7)),
        PerfRecordOf(kPerfAuxtraceInfo, PerfBytes(3u, 0u) + words(4)),
        PerfRecordOf(kPerfAuxtrace, words(3) + PerfBytes(1u, 2, 3, 0u)),
        PerfRecordOf(kPerfThreadMap, PerfWord(2) + PerfWord(7) + std::string(16, 'n') +
                                         PerfWord(8) + std::string(16, 'm')),
        PerfRecordOf(kPerfEventUpdate, words(2) + text),
        PerfRecordOf(kPerfHeaderFeature, PerfWord(3) + text),
        PerfRecordOf(kPerfFinishedRound, ""),
        PerfRecordOf(kPerfStat, words(1) + PerfBytes(1u, 2u) + words(3)),
    };
  };
  const std::vector<std::string> ours = records();
  const Turned order(true);
  const std::vector<std::string> theirs = records();
  PerfRecordTurner turner(events);
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(turner.Turn(theirs[i]), ours[i]) << "record " << i;
    // Cut anywhere it is turned as far as it goes.
    for (size_t cut = 0; cut < theirs[i].size(); ++cut)
      EXPECT_EQ(turner.Turn(theirs[i].substr(0, cut)).size(), cut);
  }
}

TEST_F(PerfByteOrderTest, FindsTheFeaturesOfAMachineOf32Bits) {
  PerfHeader header;
  header.Set(kPerfFeatureHost);
  header.Set(kPerfFeatureCommand);
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  for (size_t at = offsetof(PerfHeader, features); at < bytes.size(); at += 4)
    std::reverse(bytes.begin() + static_cast<ptrdiff_t>(at),
                 bytes.begin() + static_cast<ptrdiff_t>(at + 4));
  const std::string turned = TurnPerfHeader(bytes);
  EXPECT_EQ(turned.substr(offsetof(PerfHeader, features)),
            std::string(reinterpret_cast<const char*>(&header), sizeof header)
                .substr(offsetof(PerfHeader, features)));
}

}  // namespace
}  // namespace hangscope
