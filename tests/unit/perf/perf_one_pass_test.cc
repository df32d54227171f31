// A perf.data is read once, unless it says late what its events are; and tells the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/counted_files.h"
#include "fakes/fake_clock.h"
#include "fakes/perf_story.h"
#include "why/why_perf.h"

namespace hangscope {
namespace {

using ::testing::HasSubstr;

class PerfOnePassTest : public ::testing::Test {
 protected:
  PerfOnePassTest() {
    story_.Comm(7, "worker");
    for (int i = 0; i < 30'000; ++i) story_.Wake(kSecond + i, i % 2, 8, 7);
    story_.Switch(2 * kSecond, 0, 7, 1, 8);
  }
  std::string Why(const std::string& bytes, bool json = false) {
    CountedFiles files("perf.data", bytes);
    FakeClock clock;
    WhyPerfOptions options;
    options.path = "perf.data";
    options.json = json;
    auto report = AskWhyPerf(files, clock, options);
    EXPECT_TRUE(report.ok()) << report.status().message();
    bytes_read_ = files.bytes_read();
    return report.ok() ? report->text : "";
  }

  PerfStory story_;
  uint64_t bytes_read_ = 0;
};

TEST_F(PerfOnePassTest, ReadsEachByteOnce) {
  for (const bool pipe : {false, true}) {
    const std::string bytes = pipe ? story_.image.Pipe() : story_.image.File();
    EXPECT_THAT(Why(bytes), HasSubstr("7 worker"));
    EXPECT_LT(bytes_read_, bytes.size() * 105 / 100) << pipe;
  }
}

// The same with an event that is told only behind the first records.
TEST_F(PerfOnePassTest, ReadsAFileAgainThatTellsItsEventsLate) {
  PerfEvent late = story_.image.events[1];
  late.ids = {99};
  late.attr.config = 4711;
  const std::string attr =
      PerfRecordOf(kPerfHeaderAttr, PerfImage::Attribute(late) + PerfImage::Ids(late));
  auto& records = story_.image.records;
  for (const bool json : {false, true}) {
    records.insert(records.begin(), attr);
    const std::string early = Why(story_.image.Pipe(), json);
    records.erase(records.begin());
    records.insert(records.begin() + 1000, attr);
    const std::string bytes = story_.image.Pipe();
    EXPECT_EQ(Why(bytes, json), early);
    EXPECT_GT(bytes_read_, bytes.size() * 2) << "it cannot be known at once";
    records.erase(records.begin() + 1000);
  }
}

// What the traces say is wanted by those who decode them: here nobody can.
TEST_F(PerfOnePassTest, ReadsAFileWithHardwareTracesOnce) {
  constexpr uint64_t kTraceBytes = 4u << 20;
  PerfStory traced;
  traced.AuxtraceInfo(PerfBytes(99u, 0u));
  traced.image.records.insert(traced.image.records.end(), story_.image.records.begin(),
                              story_.image.records.end());
  traced.Aux(2 * kSecond + 1, 0, 7, 0, kTraceBytes);
  traced.Auxtrace(0, 0, kTraceBytes);
  traced.Wake(2 * kSecond + 2, 0, 8, 7);
  for (const bool pipe : {false, true}) {
    const std::string bytes = pipe ? traced.image.Pipe() : traced.image.File();
    EXPECT_THAT(Why(bytes), HasSubstr("1 spans of traces in 1 rings, 4.00 MiB held"));
    EXPECT_LT(bytes_read_, (bytes.size() - kTraceBytes) * 105 / 100 + (512u << 10)) << pipe;
  }
}

TEST_F(PerfOnePassTest, ReadsAFileAgainThatTellsLateOfHardwareTraces) {
  story_.image.records.insert(story_.image.records.begin() + 5,
                              PerfRecordOf(kPerfAuxtraceInfo, PerfBytes(3u, 0u)));
  CountedFiles files("perf.data", story_.image.File());
  auto file = PerfFile::Open(files, "perf.data", PerfOpen::kDefinitions);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->ForEach([](const PerfRecord&) { return true; }).ok());
  EXPECT_TRUE((*file)->came_late());
  auto all = PerfFile::Open(files, "perf.data");
  ASSERT_TRUE(all.ok());
  ASSERT_TRUE((*all)->ForEach([](const PerfRecord&) { return true; }).ok());
  EXPECT_FALSE((*all)->came_late());
}

TEST_F(PerfOnePassTest, TellsOfDamageOnce) {
  story_.image.records[10] = std::string(16, '\0');
  CountedFiles files("perf.data", story_.image.File());
  auto file = PerfFile::Open(files, "perf.data", PerfOpen::kDefinitions);
  ASSERT_TRUE(file.ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE((*file)->ForEach([](const PerfRecord&) { return true; }).ok());
    EXPECT_THAT((*file)->facts().warnings, testing::ElementsAre(HasSubstr("16 bytes are skipped")));
  }
}

}  // namespace
}  // namespace hangscope
