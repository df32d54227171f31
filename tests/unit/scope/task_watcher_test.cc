// The same of the tasks of a target, and of a core by what its tasks do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/scope/watcher_story.h"

namespace hangscope {
namespace {

// Tasks: their records have the sequences; odd numbers are changes under way.
class TaskWatcherTest : public WatcherTest {
 protected:
  void Tasks(uint32_t count) {
    sample_.cores.resize(1);
    sample_.tasks.resize(count);
    sample_.running_tasks = {1};
    claims_.resize(1 + count);
    for (uint32_t i = 0; i < count; ++i) {
      sample_.tasks[i].in_use = true;
      sample_.tasks[i].record.index = i;
      sample_.tasks[i].record.task = i + 1;
      sample_.tasks[i].record.sequence = 4;
    }
  }
  TaskWait& task(uint32_t index) { return sample_.tasks[index].record; }
  void TaskWaits(uint32_t index, uint32_t resource, ResourceKind kind,
                 std::optional<uint32_t> holder = {}) {
    TaskWait& t = task(index);
    t.sequence += 2;
    t.state = TaskState::kWaiting;
    t.resource = resource;
    t.kind = kind;
    t.holder = holder;
  }
  void TaskIsReady(uint32_t index) {
    task(index).sequence += 2;
    task(index).state = TaskState::kReady;
  }
  void Runs(uint32_t index) { sample_.running_tasks = {task(index).task}; }
};

TEST_F(TaskWatcherTest, TwoTasksThatHoldWhatTheOtherWantsAreADeadlock) {
  Tasks(3);
  sample_.cores[0].in_use = true;
  TaskWaits(0, 10, ResourceKind::kExclusive, 2);
  TaskWaits(1, 20, ResourceKind::kExclusive, 1);
  Run(5 * kStall, [&] { Runs(2); });
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kDeadlock);
  EXPECT_EQ(found_[0].confidence, Confidence::kCertain);
  EXPECT_EQ(found_[0].subjects, (std::vector<SubjectId>{Task(0), Task(1)}));
}

TEST_F(TaskWatcherTest, ATaskThatIsGoneGivesNoLockBack) {
  Tasks(3);
  sample_.tasks[1].in_use = false;
  TaskWaits(0, 10, ResourceKind::kExclusive, 2);
  Run(5 * kStall, [&] { Runs(2); });
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kStarved);
  EXPECT_EQ(found_[0].confidence, Confidence::kCertain);
  EXPECT_EQ(found_[0].subjects, (std::vector<SubjectId>{Task(0)}));
  EXPECT_EQ(found_[0].partners, (std::vector<SubjectId>{Task(1)}));
}

TEST_F(TaskWatcherTest, ATaskThatIsGonePostsNothing) {
  Tasks(3);
  sample_.tasks[1].in_use = false;
  claims_[2].provides = {10};
  TaskWaits(0, 10, ResourceKind::kChannel);
  Run(5 * kStall, [&] { Runs(2); });
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kStarved);
  EXPECT_EQ(found_[0].partners, (std::vector<SubjectId>{Task(1)}));
}

TEST_F(TaskWatcherTest, AnIdThatIsUsedAgainIsTheNewTasks) {
  Tasks(3);
  task(2).task = task(1).task;
  sample_.tasks[2].in_use = false;
  TaskWaits(0, 10, ResourceKind::kExclusive, task(1).task);
  Run(5 * kStall, [&] {
    Runs(1);
    TaskIsReady(1);
  });
  EXPECT_TRUE(found_.empty());
}

TEST_F(TaskWatcherTest, ARecordThatWasNeverUsedProvidesNothing) {
  Tasks(3);
  sample_.tasks[1].in_use = false;
  task(1).sequence = 0;
  claims_[2].provides = {10};
  TaskWaits(0, 10, ResourceKind::kChannel);
  Run(5 * kStall, [&] { Runs(2); });
  EXPECT_TRUE(Bad().empty());
}

TEST_F(TaskWatcherTest, ACoreIsNotSilentBecauseItsTasksWait) {
  Tasks(1);
  sample_.cores[0].in_use = true;
  sample_.cores[0].heartbeat = 1;
  Run(5 * kStall, [&] { ++sample_.cores[0].heartbeat; });
  TaskWaits(0, 10, ResourceKind::kOutside);
  Run(100 * kStall);
  EXPECT_TRUE(found_.empty());
}

TEST_F(TaskWatcherTest, AReadyTaskThatNeverRunsIsStarvedByTheOneThatDoes) {
  Tasks(3);
  TaskWaits(1, 10, ResourceKind::kExclusive, 1);  // for the lock of task 1, which never runs
  TaskIsReady(0);
  Run(3 * kStall, [&] { Runs(2); });
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kStarved);
  EXPECT_EQ(found_[0].confidence, Confidence::kLikely);
  EXPECT_EQ(found_[0].subjects, (std::vector<SubjectId>{Task(0)}));
  EXPECT_EQ(found_[0].partners, (std::vector<SubjectId>{Task(2)}));
  ASSERT_EQ(watcher_.standing().size(), 1u);
  EXPECT_EQ(watcher_.standing()[0].victims, (std::vector<SubjectId>{Task(1)}));
}

TEST_F(TaskWatcherTest, ReadyTasksThatTakeTurnsAreNotStarved) {
  Tasks(2);
  TaskIsReady(0);
  TaskIsReady(1);
  int look = 0;
  Run(20 * kStall, [&] { Runs(++look / 5 % 2); });
  EXPECT_TRUE(found_.empty());
}

// Looks at 100 ms see the same task in each of the slices of a kernel's 50 ms.
TEST_F(TaskWatcherTest, ATaskThatRunsBetweenLooksIsNotStarved) {
  Tasks(3);
  TaskIsReady(0);
  TaskIsReady(1);
  TaskWaits(2, 7, ResourceKind::kOutside);
  news_.switched_in = {1, 2};
  Run(20 * kStall, [&] { Runs(0); });
  EXPECT_TRUE(found_.empty());
  // Then the first keeps the core for itself.
  news_.switched_in = {};
  Run(kStall + kStall / 4, [&] { Runs(0); });
  ASSERT_EQ(Bad().size(), 1u);
  EXPECT_EQ(Bad()[0].subjects, (std::vector<SubjectId>{Task(1)}));
}

TEST_F(TaskWatcherTest, WhereNoRingTellsWhoRunsStarvationIsOnlyPossible) {
  Tasks(3);
  TaskIsReady(0);
  TaskWaits(1, 7, ResourceKind::kOutside);
  news_.tells_switches = false;
  Run(20 * kStall, [&] { Runs(2); });
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].confidence, Confidence::kPossible);
}

// What runs the target gets a tenth of a processor.
TEST_F(TaskWatcherTest, TimeWithoutAProcessorStarvesNoTask) {
  Tasks(3);
  TaskIsReady(0);
  TaskWaits(1, 7, ResourceKind::kOutside);
  int look = 0;
  held_up_.push_back(0);
  Run(9 * kStall, [&] {
    Runs(2);
    if (++look % 10 != 0) held_up_.push_back(now_);
  });
  EXPECT_TRUE(found_.empty());
  Run(3 * kStall, [&] { Runs(2); });
  ASSERT_EQ(Bad().size(), 1u);
  EXPECT_EQ(Bad()[0].subjects, (std::vector<SubjectId>{Task(0)}));
  EXPECT_THAT(Bad()[0].evidence,
              testing::Contains(testing::HasSubstr("not counted: 8.1 s of these")));
}

// Nobody knows who runs it.
TEST_F(TaskWatcherTest, TimeWithoutATickStarvesATaskPerhaps) {
  Tasks(3);
  sample_.rings = {{100, 50}};
  TaskIsReady(0);
  TaskWaits(1, 7, ResourceKind::kOutside);
  int look = 0;
  Run(3 * kStall, [&] {
    Runs(2);
    sample_.rings[0].ticks += ++look % 5 == 0;
  });
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kStarved);
  EXPECT_EQ(found_[0].confidence, Confidence::kPossible);
  EXPECT_THAT(found_[0].evidence, testing::Contains(testing::HasSubstr("no tick was counted for")));
  EXPECT_THAT(found_[0].doubts,
              testing::Contains("what runs the target may have had no processor"));
  found_.clear();
  Run(5 * kStall, [&] { ++sample_.rings[0].ticks; });
  EXPECT_EQ(Bad().size(), 1u);
}

// A switch to it may be among what one of the looks could not read.
TEST_F(TaskWatcherTest, EventsThatWereLostAtAnyLookAreADoubt) {
  Tasks(3);
  TaskIsReady(0);
  TaskWaits(1, 7, ResourceKind::kOutside);
  news_.switched_in = {3, 4};
  news_.lost = true;
  Run(kStall / 2, [&] { Runs(2); });
  news_.lost = false;
  Run(kStall, [&] { Runs(2); });
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].confidence, Confidence::kPossible);
  Run(3 * kStall, [&] { Runs(2); });
  EXPECT_EQ(Bad().size(), 1u);
}

TEST_F(TaskWatcherTest, RingsAreReadOnlyWhileAReadyTaskIsNotSeenToRun) {
  Tasks(2);
  TaskWaits(0, 10, ResourceKind::kOutside);
  Run(8 * kStall, [&] { Runs(1); });
  EXPECT_EQ(news_asked_, 0);
  TaskIsReady(0);
  Run(8 * kStall, [&] { Runs(1); });
  EXPECT_GT(news_asked_, 30);
  EXPECT_LT(news_asked_, 70);
}

// The last one that ran halted its core: the others are ready, and nobody keeps them from it.
TEST_F(TaskWatcherTest, OnAHaltedCoreNoTaskIsStarved) {
  Tasks(3);
  TaskIsReady(0);
  sample_.cores[0].in_use = true;
  Run(kStall / 2, [&] { Runs(1); });
  sample_.cores[0].fault = FaultType::kHardware;
  Run(20 * kStall, [&] { Runs(1); });
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kFault);
  EXPECT_THAT(found_[0].evidence, testing::Contains("task 2 had the core"));
}

TEST_F(TaskWatcherTest, WhoHadAHaltedCoreIsCalledByItsName) {
  options_.call = [](const SubjectId& subject) {
    return subject.kind == SubjectId::Kind::kTask
               ? "task of record " + std::to_string(subject.index)
               : "core";
  };
  watcher_ = Watcher(options_);
  Tasks(3);
  sample_.cores[0].in_use = true;
  Run(kStall / 2, [&] { Runs(1); });
  sample_.cores[0].fault = FaultType::kAssert;
  Run(kStall, [&] { Runs(1); });
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_THAT(found_[0].evidence, testing::Contains("task of record 1 had the core"));
}

// What they wait for comes from nobody who is known; a circle is one all the same.
TEST_F(TaskWatcherTest, OnAHaltedCoreOnlyACircleOfTasksIsAFindingOfItsOwn) {
  Tasks(4);
  sample_.cores[0].in_use = true;
  TaskWaits(0, 10, ResourceKind::kChannel);
  Run(kStall / 2, [&] { Runs(1); });
  sample_.cores[0].fault = FaultType::kHardware;
  Run(20 * kStall, [&] { Runs(1); });
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kFault);
  TaskWaits(2, 20, ResourceKind::kExclusive, 4);
  TaskWaits(3, 30, ResourceKind::kExclusive, 3);
  Run(20 * kStall, [&] { Runs(1); });
  ASSERT_EQ(found_.size(), 2u);
  EXPECT_EQ(found_[1].kind, FindingKind::kDeadlock);
}

TEST_F(TaskWatcherTest, OnAPausedCoreNoTaskIsStarved) {
  Tasks(3);
  TaskIsReady(0);
  sample_.cores[0].in_use = true;
  sample_.cores[0].paused = PausedState::kByHost;
  Run(20 * kStall, [&] { Runs(1); });
  EXPECT_TRUE(found_.empty());
}

TEST_F(TaskWatcherTest, EvidenceCallsATaskByItsId) {
  Tasks(3);
  task(0).task = 71;
  TaskIsReady(0);
  TaskWaits(1, 7, ResourceKind::kOutside);
  Run(3 * kStall, [&] { Runs(2); });
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_THAT(found_[0].evidence[0], testing::StartsWith("task 71 is ready"));
  EXPECT_FALSE(watcher_.subjects()[1].has_core);
  EXPECT_TRUE(watcher_.subjects()[3].has_core);
}

TEST_F(TaskWatcherTest, TheIdleTaskIsReadyAndNobodyMissesIt) {
  Tasks(2);
  task(0).sequence = 2;  // made, and never waited
  Run(100 * kStall, [&] { Runs(1); });
  EXPECT_TRUE(Bad().empty());
}

TEST_F(TaskWatcherTest, ALostPostStarvesTheTaskWhoseProviderGoesOn) {
  Tasks(2);
  claims_[1].provides = {10};  // row 1: task record 0
  const auto round = [&] {
    TaskWaits(0, 77, ResourceKind::kTime);
    Runs(0);
  };
  TaskWaits(1, 10, ResourceKind::kChannel);
  Run(5 * kStall, [&] {
    round();
    TaskWaits(1, 10, ResourceKind::kChannel);
  });
  Run(10 * kStall, round);
  ASSERT_EQ(Bad().size(), 1u);
  EXPECT_EQ(Bad()[0].kind, FindingKind::kStarved);
  EXPECT_EQ(Bad()[0].subjects, (std::vector<SubjectId>{Task(1)}));
  EXPECT_EQ(Bad()[0].partners, (std::vector<SubjectId>{Task(0)}));
}

TEST_F(TaskWatcherTest, ARecordThatIsBeingChangedIsNoWait) {
  Tasks(2);
  TaskWaits(0, 10, ResourceKind::kExclusive, 2);
  TaskWaits(1, 20, ResourceKind::kExclusive, 1);
  task(1).sequence |= 1;
  Run(20 * kStall, [&] { task(1).sequence += 2; });
  EXPECT_TRUE(Bad().empty());
}

// An OS of three tasks on one core: the first sleeps, the second works, the third idles.
class StillCoreTest : public TaskWatcherTest {
 protected:
  StillCoreTest() {
    Tasks(3);
    TaskWaits(0, 0, ResourceKind::kTime);
    task(1).state = task(2).state = TaskState::kReady;
    task(2).sequence = 2;  // made, and never waited
    sample_.rings = {{100, 50}};
    Runs(1);
  }
  // The second waits for the outside, and the third has the core.
  void Idle() {
    TaskWaits(1, 7, ResourceKind::kOutside);
    Runs(2);
  }
  // The first wakes and sleeps again each 300 ms, the tick counts.
  void Live(TimeNs time, bool ticks = true) {
    Run(time, [&] {
      sample_.rings[0].ticks += ticks;
      if (++look_ % 3 != 0) return;
      ++sample_.rings[0].emitted;
      TaskWaits(0, 0, ResourceKind::kTime);
    });
  }
  std::vector<ScopeFinding> Silent() const {
    std::vector<ScopeFinding> silent;
    for (const ScopeFinding& finding : found_) {
      if (finding.kind == FindingKind::kSilent) silent.push_back(finding);
    }
    return silent;
  }
  int look_ = 0;
};

TEST_F(StillCoreTest, ACoreWhoseSleepersDoNotWakeIsSilent) {
  Live(4 * kStall);
  EXPECT_TRUE(Bad().empty());
  Run(4 * kStall);
  ASSERT_EQ(Bad().size(), 1u);
  EXPECT_EQ(Bad()[0].kind, FindingKind::kSilent);
  EXPECT_EQ(Bad()[0].confidence, Confidence::kLikely);
  EXPECT_EQ(Bad()[0].subjects, (std::vector<SubjectId>{Core(0)}));
  EXPECT_EQ(Bad()[0].victims, (std::vector<SubjectId>{Task(0)}));
  EXPECT_EQ(watcher_.subjects()[0].activity, Activity::kSilent);
  found_.clear();
  Live(kStall);
  EXPECT_TRUE(Silent().empty());
  EXPECT_NE(watcher_.subjects()[0].activity, Activity::kSilent);
}

TEST_F(StillCoreTest, TimeWithoutAProcessorIsNoSilence) {
  Live(4 * kStall);
  held_up_.push_back(0);
  EXPECT_TRUE(Bad().empty());
  Run(4 * kStall, [&] { held_up_.push_back(now_); });
  EXPECT_TRUE(Bad().empty());
  EXPECT_TRUE(Silent().empty());
  Run(4 * kStall);
  ASSERT_EQ(Bad().size(), 1u);
  EXPECT_EQ(Bad()[0].kind, FindingKind::kSilent);
}

// Whoever comes late: the ring says how long the sleep was to be.
TEST_F(StillCoreTest, ARingTellsHowLongASleepWasToBe) {
  news_.sleeps[1] = kStall / 5;
  Idle();
  Run(kStall + 4 * kInterval);
  ASSERT_EQ(Bad().size(), 1u);
  EXPECT_EQ(Bad()[0].kind, FindingKind::kSilent);
  EXPECT_EQ(Bad()[0].subjects, (std::vector<SubjectId>{Core(0)}));
}

TEST_F(StillCoreTest, ASleepThatIsNotOverIsAwaited) {
  news_.sleeps[1] = 30 * kStall;
  Idle();
  Run(30 * kStall);
  EXPECT_TRUE(Bad().empty());
}

TEST_F(StillCoreTest, AnOsThatIdlesWithoutATickIsNotSilent) {
  Idle();
  Live(4 * kStall, false);
  // It sleeps for longer than ever before; then nobody sleeps, and it waits for the outside.
  Run(20 * kStall);
  EXPECT_TRUE(Bad().empty());
  TaskWaits(0, 7, ResourceKind::kOutside);
  Run(20 * kStall);
  EXPECT_TRUE(Bad().empty());
}

TEST_F(StillCoreTest, ATaskThatComputesWhileTheTickCountsIsNotSilent) {
  Run(20 * kStall, [&] { ++sample_.rings[0].ticks; });
  EXPECT_TRUE(Silent().empty());
}

TEST_F(StillCoreTest, ATaskThatComputesWhileNobodySleepsIsPerhapsSilent) {
  TaskWaits(0, 7, ResourceKind::kOutside);
  Run(20 * kStall);
  ASSERT_EQ(Silent().size(), 1u);
  EXPECT_EQ(Silent()[0].confidence, Confidence::kPossible);
}

// A timer that died: neither of the two ever waited, and they take turns as long as it ticks.
TEST_F(StillCoreTest, ACoreOfTasksThatNeverWaitedIsPerhapsSilentWhereItsTickEnds) {
  TaskWaits(0, 7, ResourceKind::kOutside);
  task(1).sequence = 2;
  Run(4 * kStall, [&] {
    ++sample_.rings[0].ticks;
    ++sample_.rings[0].emitted;
    Runs(1 + look_++ % 2);
  });
  EXPECT_TRUE(found_.empty());
  Run(20 * kStall);
  ASSERT_EQ(found_.size(), 1u) << "of the tasks nothing is told that is as sure";
  EXPECT_EQ(found_[0].kind, FindingKind::kSilent);
  EXPECT_EQ(found_[0].confidence, Confidence::kPossible);
  EXPECT_EQ(found_[0].subjects, (std::vector<SubjectId>{Core(0)}));
  EXPECT_THAT(found_[0].evidence, testing::Contains(testing::HasSubstr("is ready, too")));
}

TEST_F(StillCoreTest, AnIdleTaskThatHasTheCoreAloneIsNotSilentWhereItsTickEnds) {
  TaskWaits(0, 7, ResourceKind::kOutside);
  Idle();
  Run(20 * kStall);
  EXPECT_TRUE(found_.empty());
}

TEST_F(StillCoreTest, AReadyTaskBehindACoreThatIsPerhapsSilentIsStarved) {
  TaskWaits(0, 7, ResourceKind::kOutside);
  task(2).sequence = 4;  // it has waited before
  held_up_ = {0};        // that the tick stands still is not the host
  Run(20 * kStall);
  ASSERT_EQ(Bad().size(), 1u);
  EXPECT_EQ(Bad()[0].kind, FindingKind::kStarved);
  EXPECT_EQ(Bad()[0].subjects, (std::vector<SubjectId>{Task(2)}));
  EXPECT_EQ(Silent().size(), 1u);
}

TEST_F(StillCoreTest, OfAHolderThatIsReadyItIsSaidThatItDidNotRun) {
  TaskWaits(0, 10, ResourceKind::kExclusive, 3);  // the third, which is ready
  Run(20 * kStall);
  ASSERT_EQ(Bad().size(), 1u);
  EXPECT_THAT(Bad()[0].evidence,
              testing::Contains(testing::MatchesRegex("task 3 is ready, and did not run for .*")));
}

TEST_F(StillCoreTest, OfAHolderThatHasTheCoreItIsNotSaidThatItGoesOn) {
  TaskWaits(0, 10, ResourceKind::kExclusive, 2);
  Run(20 * kStall, [&] { ++sample_.rings[0].ticks; });
  ASSERT_EQ(Bad().size(), 1u);
  EXPECT_THAT(Bad()[0].evidence,
              testing::Contains(testing::MatchesRegex("task 2 has not waited for .*")));
}

// Two cores, each with tasks of its own: the first goes on, the second has the tasks of
// StillCoreTest.
class OneOfTwoCoresTest : public StillCoreTest {
 protected:
  OneOfTwoCoresTest() {
    sample_.cores.resize(2);
    claims_.resize(6);
    sample_.tasks.resize(4);
    sample_.tasks[3] = sample_.tasks[1];
    task(3).index = 3, task(3).task = 4;
    sample_.rings = {{100, 50}, {100, 50}};
    Has(1);
  }
  // Which task the second core has.
  void Has(uint32_t index) { sample_.running_tasks = {task(3).task, task(index).task}; }
  void Idles() {
    TaskWaits(1, 7, ResourceKind::kOutside);
    Has(2);
  }
  void First() {
    ++sample_.rings[0].ticks;
    ++sample_.rings[0].emitted;
    task(3).sequence += 4;
  }
  void Both(TimeNs time) {
    Run(time, [&] {
      First();
      ++sample_.rings[1].ticks;
      if (++look_ % 3 != 0) return;
      ++sample_.rings[1].emitted;
      TaskWaits(0, 0, ResourceKind::kTime);
    });
  }
  void OnlyFirst(TimeNs time) {
    Run(time, [&] { First(); });
  }
};

TEST_F(OneOfTwoCoresTest, TheOneWhoseSleepersDoNotWakeIsSilent) {
  Both(4 * kStall);
  EXPECT_TRUE(Bad().empty());
  OnlyFirst(4 * kStall);
  ASSERT_EQ(Bad().size(), 1u);
  EXPECT_EQ(Bad()[0].kind, FindingKind::kSilent);
  EXPECT_EQ(Bad()[0].confidence, Confidence::kLikely);
  EXPECT_EQ(Bad()[0].subjects, (std::vector<SubjectId>{Core(1)}));
  EXPECT_EQ(Bad()[0].victims, (std::vector<SubjectId>{Task(0)}));
  EXPECT_THAT(Bad()[0].evidence[0], testing::HasSubstr("while core 0 goes on"));
  EXPECT_EQ(watcher_.subjects()[1].activity, Activity::kSilent);
  found_.clear();
  Both(kStall);
  EXPECT_TRUE(Silent().empty());
  EXPECT_NE(watcher_.subjects()[1].activity, Activity::kSilent);
}

TEST_F(OneOfTwoCoresTest, TheRingTellsItOfOneThatIdles) {
  news_.sleeps[1] = kStall / 5;
  Idles();
  OnlyFirst(2 * kStall);
  ASSERT_EQ(Bad().size(), 1u);
  EXPECT_EQ(Bad()[0].subjects, (std::vector<SubjectId>{Core(1)}));
}

TEST_F(OneOfTwoCoresTest, OneThatIdlesWithoutATickIsNotSilent) {
  Idles();
  Both(4 * kStall);
  OnlyFirst(20 * kStall);  // the first of its tasks sleeps for longer than ever before
  EXPECT_TRUE(found_.empty());
}

TEST_F(OneOfTwoCoresTest, OneThatComputesWhileItsTickCountsIsNotSilent) {
  Both(4 * kStall);
  Run(20 * kStall, [&] {
    First();
    ++sample_.rings[1].ticks;
  });
  EXPECT_TRUE(Silent().empty());
}

TEST_F(OneOfTwoCoresTest, OneThatComputesWhileNobodySleepsIsPerhapsSilent) {
  TaskWaits(0, 7, ResourceKind::kOutside);
  OnlyFirst(20 * kStall);
  ASSERT_EQ(Silent().size(), 1u);
  EXPECT_EQ(Silent()[0].confidence, Confidence::kPossible);
}

}  // namespace
}  // namespace hangscope
