// The CPUs' rings of a run on their way into snapshots, from a recorder that says what a test says.
#include "snapshot/cpu_recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fakes/fake_cpu_recorder.h"
#include "fakes/fake_file_system.h"
#include "perf/perf_file.h"
#include "verdict/text.h"

namespace hangscope {
namespace {

class CpuRecordingTest : public ::testing::Test {
 protected:
  void Start(const std::string& window = "coherent") {
    auto recorder = std::make_unique<FakeCpuRecorder>([this] { return taken_; });
    recording_ =
        std::make_unique<CpuRecording>(disk_, std::move(recorder), std::vector<std::string>{"fw"});
    windows_.emplace(disk_, *ParseWindowChoice("--window", window));
  }
  // A snapshot at `time` of what happened so far.
  Manifest Snapshot(TimeNs time, bool since_last = false) {
    taken_ = cpus_.Take(time);
    Manifest manifest;
    EXPECT_TRUE(recording_->Capture().ok());
    const Status status = recording_->Write("snapshot", since_last, {}, 0, &*windows_, &manifest);
    EXPECT_TRUE(status.ok()) << status.message();
    return manifest;
  }
  // The times of the records in the file, by CPU.
  std::vector<std::pair<int, TimeNs>> Records() {
    std::vector<std::pair<int, TimeNs>> records;
    auto file = PerfFile::Open(disk_, "snapshot/cpu.perf.data");
    if (!file.ok()) {
      ADD_FAILURE() << file.status().message();
      return records;
    }
    EXPECT_TRUE((*file)
                    ->ForEach([&](const PerfRecord& record) {
                      if (record.type == PERF_RECORD_SAMPLE)
                        records.emplace_back(record.cpu, record.time);
                      return true;
                    })
                    .ok());
    return records;
  }
  static const RingCoverage& Ring(const Manifest& manifest, int cpu) {
    for (const RingCoverage& ring : manifest.window->rings) {
      if (ring.ring.kind == RingKind::kCpu && ring.ring.number == cpu) return ring;
    }
    throw std::out_of_range("no ring of that CPU");
  }

  FakeFileSystem disk_;
  FakeCpus cpus_;
  Result<CpuCapture> taken_ = CpuCapture{};
  std::unique_ptr<CpuRecording> recording_;
  std::optional<WindowFinder> windows_;
};

TEST_F(CpuRecordingTest, FileHasAllRecordsAndTheWindowBeginsWithTheRecording) {
  Start();
  cpus_.Call(0, 1000, 4711, 1, 0).Call(1, 1500, 4712, 2, 0).Call(0, 2000, 4711, 3, 0);
  const Manifest manifest = Snapshot(3000);
  EXPECT_THAT(Records(), ::testing::UnorderedElementsAre(std::pair(0, 1000), std::pair(0, 2000),
                                                         std::pair(1, 1500)));
  ASSERT_TRUE(manifest.window.has_value());
  EXPECT_EQ(manifest.window->time.to, 3000);
  EXPECT_TRUE(manifest.window->from_the_start);
  EXPECT_TRUE(manifest.window->gaps.empty());
  EXPECT_EQ(manifest.cpu.file, "cpu.perf.data");
  EXPECT_EQ(manifest.cpu.rings, 2u);
}

TEST_F(CpuRecordingTest, RingThatOverwroteItselfLimitsTheWindowAndOlderRecordsOfOthersAreStale) {
  Start();
  for (TimeNs time = 1000; time <= 5000; time += 1000)
    cpus_.Call(0, time, 4711, 1, 0).Call(1, time + 10, 4712, 1, 0);
  cpus_.Overwrite(1, 3);
  const Manifest manifest = Snapshot(6000);
  EXPECT_EQ(manifest.window->time.from, 4010);
  EXPECT_FALSE(manifest.window->from_the_start);
  EXPECT_FALSE(Ring(manifest, 0).stale.empty());
  EXPECT_TRUE(Ring(manifest, 1).stale.empty());
  EXPECT_EQ(Records().size(), 7u);  // what is stale is kept
}

TEST_F(CpuRecordingTest, LastTimeLeavesOutWhatIsOlderAndSaysWhereLessIsThere) {
  Start("2ms");
  constexpr TimeNs kMs = kMillisecond;
  for (TimeNs time = kMs; time <= 5 * kMs; time += kMs)
    cpus_.Call(0, time, 4711, 1, 0).Call(1, time + 10, 4712, 1, 0);
  cpus_.Overwrite(1, 4);
  const Manifest manifest = Snapshot(5 * kMs + 500'000);
  EXPECT_EQ(manifest.window->length(), 2 * kMs);
  EXPECT_THAT(Records(),
              ::testing::UnorderedElementsAre(std::pair(0, 4 * kMs), std::pair(0, 5 * kMs),
                                              std::pair(1, 5 * kMs + 10)));
  ASSERT_EQ(manifest.window->gaps.size(), 1u);
  EXPECT_EQ(manifest.window->gaps[0].reason, GapReason::kOverwritten);
  EXPECT_EQ(manifest.window->gaps[0].time, (TimeSpan{3 * kMs + 500'000, 5 * kMs + 10}));
}

TEST_F(CpuRecordingTest, SinceLastSharesNoByteWithTheSnapshotBefore) {
  Start("since-last");
  cpus_.Call(0, 1000, 4711, 1, 0).Call(1, 1100, 4712, 1, 0);
  Snapshot(2000);
  EXPECT_EQ(Records().size(), 2u);
  cpus_.Call(0, 1900, 4711, 2, 0);  // read before it came, though it is older than the trigger
  cpus_.Call(0, 3000, 4711, 3, 0);
  const Manifest second = Snapshot(4000);
  EXPECT_THAT(Records(), ::testing::UnorderedElementsAre(std::pair(0, 1900), std::pair(0, 3000)));
  EXPECT_EQ(second.window->policy, WindowPolicy::kSinceLast);
  Snapshot(5000);
  EXPECT_TRUE(Records().empty());
}

// The kernel writes on while one ring is read after the other.
TEST_F(CpuRecordingTest, WindowsSinceTheLastTouchAndEachRecordIsInTheOneOfItsTime) {
  Start("since-last");
  for (int cpu = 0; cpu < 2; ++cpu) cpus_.Ring(cpu).recording_since = 500;
  std::vector<std::pair<int, TimeNs>> all;
  TimeNs last_end = 500;
  for (TimeNs trigger = 2000; trigger <= 6000; trigger += 2000) {
    cpus_.Call(0, trigger - 900, 4711, 1, 0).Call(1, trigger - 800, 4712, 1, 0);
    cpus_.Call(0, trigger, 4711, 1, 0).Call(0, trigger + 100, 4711, 1, 0);  // the next one's
    cpus_.Call(1, trigger + 200, 4712, 1, 0).Call(1, trigger + 300, 4712, 1, 0);
    const Manifest manifest = Snapshot(trigger);
    EXPECT_EQ(manifest.window->time, (TimeSpan{last_end, trigger}));
    EXPECT_TRUE(manifest.window->gaps.empty());
    for (const auto& record : Records()) {
      EXPECT_GT(record.second, last_end);
      EXPECT_LE(record.second, trigger);
      all.push_back(record);
    }
    last_end = trigger;
  }
  EXPECT_EQ(all.size(), 6 * 3u - 3u) << "but for those after the last trigger";
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
}

TEST_F(CpuRecordingTest, FirstWindowSinceTheLastBeginsWithTheRecording) {
  Start();
  cpus_.Ring(0).recording_since = 5000;
  cpus_.Call(0, 6000, 4711, 1, 0);
  const Manifest manifest = Snapshot(7000, true);
  EXPECT_EQ(manifest.window->time, (TimeSpan{5000, 7000}));
  EXPECT_TRUE(manifest.window->from_the_start);
  EXPECT_TRUE(manifest.window->gaps.empty());
}

TEST_F(CpuRecordingTest, LastEventsOfATaskAreAGapWhereTheyAreNotRecorded) {
  Start();
  cpus_.OfOneProgram().Named(1, 4712, "worker");
  cpus_.Call(0, 1000, 4712, 1, 0).Ends(0, 1500, 4712).Call(0, 3000, 4713, 1, 0);
  const Manifest manifest = Snapshot(4000);
  const Window& window = *manifest.window;
  ASSERT_EQ(window.gaps.size(), 1u);
  EXPECT_EQ(window.gaps[0].reason, GapReason::kLastEvents);
  EXPECT_EQ(window.gaps[0].time, (TimeSpan{1500, 1500}));
  EXPECT_EQ(window.gaps[0].task, 4712);
  EXPECT_EQ(window.gaps[0].amount, 1u) << "its switch";
  ASSERT_EQ(window.tasks.size(), 2u);
  EXPECT_FALSE(window.tasks[0].continuous);
  EXPECT_TRUE(window.tasks[0].ended);
  EXPECT_THAT(window.tasks[0].ran, ::testing::ElementsAre(TimeSpan{1000, 1501}))
      << "and not until somebody else came";
  EXPECT_TRUE(window.tasks[1].continuous);
  EXPECT_FALSE(window.tasks[1].ended);
}

TEST_F(CpuRecordingTest, LastSwitchesOfATaskEndItsRunAndThoseOfOthersStayOut) {
  Start();
  cpus_.OfOneProgram().WithLastSwitches();
  cpus_.Call(0, 1000, 4712, 1, 0).Ends(0, 1500, 4712);
  cpus_.SwitchLast(0, 1600, 4712, 4712).SwitchLast(0, 1700, 99, 99).Call(0, 3000, 4713, 1, 0);
  const Manifest manifest = Snapshot(4000);
  EXPECT_TRUE(manifest.window->gaps.empty());
  EXPECT_THAT(manifest.window->tasks[0].ran, ::testing::ElementsAre(TimeSpan{1000, 1600}));
  EXPECT_TRUE(manifest.window->tasks[0].continuous);
  EXPECT_TRUE(manifest.window->tasks[0].ended);
  EXPECT_THAT(Records(),
              ::testing::ElementsAre(std::pair(0, 1000), std::pair(0, 1600), std::pair(0, 3000)));
  EXPECT_EQ(manifest.cpu.events.size(), 3u) << "none is named twice";
}

TEST_F(CpuRecordingTest, ThreadsThatAreNotRecordedAreInTheManifest) {
  Start();
  CpuCapture capture = cpus_.Call(0, 1000, 4711, 1, 0).Take(2000);
  capture.threads_at_start = 1100;
  capture.threads_not_recorded = 103;
  taken_ = capture;
  Manifest manifest;
  ASSERT_TRUE(recording_->Capture().ok());
  ASSERT_TRUE(recording_->Write("snapshot", false, {}, 0, &*windows_, &manifest).ok());
  EXPECT_EQ(manifest.cpu.threads_at_start, 1100u);
  EXPECT_EQ(manifest.cpu.threads_not_recorded, 103u);
  EXPECT_THAT(ReportText(manifest), ::testing::HasSubstr("103 of 1 100 threads are not recorded"));
}

TEST_F(CpuRecordingTest, WhatWasOverwrittenWhileItWasReadIsInTheWindow) {
  Start();
  for (TimeNs time = 1000; time <= 5000; time += 1000) cpus_.Call(0, time, 4711, 1, 0);
  cpus_.Call(1, 5500, 4712, 1, 0).Overwrite(0, 4);
  cpus_.Ring(0).discarded_bytes = 3 * cpus_.Ring(0).records.size();
  const Manifest manifest = Snapshot(6000);
  EXPECT_EQ(Ring(manifest, 0).bytes_discarded, cpus_.Ring(0).discarded_bytes);
  EXPECT_EQ(Ring(manifest, 1).bytes_discarded, 0u);
  EXPECT_THAT(ReportText(manifest), ::testing::HasSubstr("  CPU 0 events: "));
  EXPECT_THAT(ReportText(manifest), ::testing::HasSubstr(" were overwritten while they were read"));
}

TEST_F(CpuRecordingTest, WhatTheKernelLostIsAGapSinceTheSnapshotBefore) {
  Start();
  cpus_.Call(0, 1000, 4711, 1, 0);
  Snapshot(2000);
  cpus_.Lost(0, 5).Call(0, 3000, 4711, 1, 0);
  const Manifest manifest = Snapshot(4000);
  ASSERT_EQ(manifest.window->gaps.size(), 1u);
  EXPECT_EQ(manifest.window->gaps[0].reason, GapReason::kNoRoom);
  EXPECT_EQ(manifest.window->gaps[0].amount, 5u);
  EXPECT_EQ(manifest.window->gaps[0].time, (TimeSpan{2000, 4000}));
  EXPECT_TRUE(Snapshot(5000).window->gaps.empty());  // told once
}

TEST_F(CpuRecordingTest, TasksRunWhereTheirSwitchesSay) {
  Start();
  cpus_.Named(1, 4711, "server");
  cpus_.Run(0, 1000, 4711, false).Call(0, 1500, 4711, 1, 0).Run(0, 2000, 4711, true);
  cpus_.Run(1, 2100, 4711, false).Switch(1, 2600, 4711, 0);
  cpus_.Call(1, 3000, 4712, 1, 0);  // nothing says since when: it ran then
  const Manifest manifest = Snapshot(4000);
  ASSERT_EQ(manifest.window->tasks.size(), 2u);
  EXPECT_EQ(manifest.window->tasks[0].name, "server");
  EXPECT_THAT(manifest.window->tasks[0].ran,
              ::testing::ElementsAre(TimeSpan{1000, 2000}, TimeSpan{2100, 2600}));
  EXPECT_THAT(manifest.window->tasks[1].ran, ::testing::ElementsAre(TimeSpan{3000, 4000}));
  EXPECT_TRUE(manifest.window->tasks[0].continuous);
}

// While an earlier snapshot was copied.
TEST_F(CpuRecordingTest, TimesInWhichARingWasOffAreGaps) {
  Start();
  cpus_.Call(0, 1000, 4711, 1, 0).Call(0, 2000, 4711, 1, 0).Call(0, 3000, 4711, 1, 0);
  cpus_.Ring(0).blind = {{1200, 1300}, {2100, 2400}};
  const Manifest manifest = Snapshot(4000);
  std::vector<TimeSpan> blind;
  for (const Gap& gap : manifest.window->gaps) {
    if (gap.reason == GapReason::kBlind) blind.push_back(gap.time);
  }
  EXPECT_THAT(blind, ::testing::ElementsAre(TimeSpan{1200, 1300}, TimeSpan{2100, 2400}));
}

TEST_F(CpuRecordingTest, DamagedRecordIsAGapAndNotSilence) {
  Start();
  cpus_.Call(0, 1000, 4711, 1, 0).Call(0, 2000, 4711, 1, 0);
  PerfRing& ring = cpus_.Ring(0);
  ring.records += std::string(64, '\0');  // a record of no bytes
  ring.head += 64;
  const Manifest manifest = Snapshot(3000);
  ASSERT_EQ(manifest.window->gaps.size(), 1u);
  EXPECT_EQ(manifest.window->gaps[0].reason, GapReason::kUnreadable);
  EXPECT_EQ(manifest.window->gaps[0].time, (TimeSpan{2000, 3000}));
}

TEST_F(CpuRecordingTest, FailureOfTheRecorderAndOfTheDiskAreTold) {
  Start();
  taken_ = Status::Io("the rings are gone");
  EXPECT_EQ(recording_->Capture().message(), "the rings are gone");
  taken_ = cpus_.Call(0, 1000, 4711, 1, 0).Take(2000);
  ASSERT_TRUE(recording_->Capture().ok());
  disk_.capacity = 100;
  Manifest manifest;
  EXPECT_FALSE(recording_->Write("snapshot", false, {}, 0, &*windows_, &manifest).ok());
  EXPECT_FALSE(manifest.window.has_value());
}

TEST(WindowChoiceTest, IsATimeASizeOrAWord) {
  EXPECT_EQ(ParseWindowChoice("--window", "2s")->length, 2 * kSecond);
  EXPECT_EQ(ParseWindowChoice("--window", "300ms")->policy, WindowPolicy::kLastTime);
  EXPECT_EQ(ParseWindowChoice("--window", "16M")->bytes, 16u << 20);
  EXPECT_EQ(ParseWindowChoice("--window", "all")->policy, WindowPolicy::kEverything);
  EXPECT_EQ(ParseWindowChoice("--window", "since-last")->policy, WindowPolicy::kSinceLast);
  EXPECT_EQ(ParseWindowChoice("--window", "coherent")->policy, WindowPolicy::kCoherent);
  const auto wrong = ParseWindowChoice("--window", "sometimes");
  EXPECT_THAT(
      wrong.status().message(),
      ::testing::HasSubstr("--window 'sometimes': a time, a size, all, since-last or coherent"));
}

}  // namespace
}  // namespace hangscope
