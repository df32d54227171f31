#include "cpu/task_ends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_cpu_recorder.h"
#include "model/perf_format.h"
#include "perf/perf_record.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;

// The threads that the samples of a ring say they are of.
std::vector<int> ThreadsIn(const CpuCapture& capture, const PerfRing& ring) {
  const PerfRecordParser parser(capture.events);
  std::vector<int> threads;
  std::string_view records = ring.records;
  while (const size_t bytes = PerfRecordBytes(records)) {
    const auto record = parser.Parse(records.substr(0, bytes));
    if (!record) break;
    threads.push_back(record->tid);
    records.remove_prefix(bytes);
  }
  return threads;
}

TEST(TaskEnds, TheLastUpToATimeIsFoundAlsoWhereANumberIsGivenAnew) {
  FakeCpus cpus;
  cpus.Ends(1, 7000, 12).Ends(0, 2000, 12).Ends(0, 3000, 11);
  const TaskEnds ends(cpus.Take(9000).side_band);
  EXPECT_EQ(ends.Last(12, 1999), nullptr);
  ASSERT_NE(ends.Last(12, 2000), nullptr);
  EXPECT_EQ(ends.Last(12, 6999)->time, 2000);
  EXPECT_EQ(ends.Last(12, 9000)->time, 7000);
  EXPECT_EQ(ends.Last(12, 9000)->cpu, 1);
  EXPECT_EQ(ends.Last(12, 9000)->process, FakeCpus::kPid);
  EXPECT_EQ(ends.Last(13, 9000), nullptr);
}

TEST(TaskEnds, ATaskLeavesTheCpuSoonAfterItsEnd) {
  FakeCpus cpus;
  cpus.Ends(0, 2000, 12);
  const TaskEnds ends(cpus.Take(9000).side_band);
  EXPECT_EQ(ends.Before(12, 1999), nullptr);
  EXPECT_NE(ends.Before(12, 2000 + kSecond), nullptr);
  EXPECT_EQ(ends.Before(12, 2001 + kSecond), nullptr) << "somebody else by now";
}

TEST(TaskEnds, TornSideBandEndsThem) {
  FakeCpus cpus;
  cpus.Ends(0, 2000, 12).Ends(0, 3000, 13);
  const std::string whole = cpus.Take(9000).side_band;
  const size_t record = whole.size() / 2;
  for (size_t bytes = 0; bytes <= whole.size(); ++bytes)
    EXPECT_EQ(TaskEnds(whole.substr(0, bytes)).all().size(), bytes / record) << bytes;
}

// When it leaves, its numbers may be given away: then the kernel's sample says -1.
TEST(TaskEnds, SamplesOfEndedTasksGetTheirThreadAgain) {
  FakeCpus cpus;
  cpus.WithLastSwitches().Ends(0, 2000, 12);
  cpus.Call(0, 1000, 12, 1, 0).SwitchLast(0, 2100, 12, -1).SwitchLast(0, 2200, 99, -1);
  CpuCapture capture = cpus.Take(9000);
  NameEndedTasks(capture.events, TaskEnds(capture.side_band), &capture.rings[0]);
  EXPECT_THAT(ThreadsIn(capture, capture.rings[0]), ElementsAre(12, 12, -1));
}

TEST(TaskEnds, LastSwitchesOfOthersAreTakenOutAndNothingElse) {
  FakeCpus cpus;
  cpus.WithLastSwitches().Ends(0, 2000, 12);
  cpus.SwitchLast(0, 900, 98, 98).Call(0, 1000, 12, 1, 0).SwitchLast(0, 2100, 12, 12);
  cpus.Switch(0, 2150, 99, 0).SwitchLast(0, 2200, 99, -1);
  CpuCapture capture = cpus.Take(9000);
  DropEndsOfOthers(capture.events, TaskEnds(capture.side_band), &capture.rings[0]);
  EXPECT_THAT(ThreadsIn(capture, capture.rings[0]), ElementsAre(12, 12, 99));
  capture.rings[0].records.resize(capture.rings[0].records.size() - 1);  // torn: it is left so
  const std::string torn = capture.rings[0].records;
  DropEndsOfOthers(capture.events, TaskEnds(capture.side_band), &capture.rings[0]);
  EXPECT_EQ(capture.rings[0].records, torn);
}

TEST(TaskEnds, AreMissedWhereEventsAreInheritedAndNoneIsOfEnds) {
  FakeCpus cpus;
  EXPECT_FALSE(MissesEnds(cpus.Take(1).events)) << "everybody is recorded";
  cpus.OfOneProgram();
  EXPECT_TRUE(MissesEnds(cpus.Take(1).events));
  cpus.WithLastSwitches();
  EXPECT_FALSE(MissesEnds(cpus.Take(1).events));
}

}  // namespace
}  // namespace hangscope
