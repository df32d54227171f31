// Numbers of events: each rule beside the case in which it must not speak.
#include "stats/event_stats.h"

#include <gtest/gtest.h>

#include "fakes/scope_writer.h"
#include "hangscope/abi/kernel_events.h"
#include "scope/event_reader.h"
#include "scope/scope_catalog.h"
#include "scope/scope_reader.h"
#include "scope/watch_names.h"
#include "stats/event_tables.h"

namespace hangscope {
namespace {

constexpr uint32_t kUserEvent = 77;

// Events are written into a ring in memory and read as any target's are: tasks are inferred.
class EventStatsTest : public ::testing::Test {
 protected:
  explicit EventStatsTest(uint32_t cores = 1) { Make(cores, 256); }

  void Make(uint32_t cores, uint32_t capacity) { writer_.emplace(&target_, cores, capacity); }

  static uint32_t IdOf(std::string_view name) {
    static const ScopeCatalog catalog;
    uint32_t id = 0;
    EXPECT_NE(catalog.FindName(name, &id), nullptr) << name;
    return id;
  }
  void At(uint64_t time, std::string_view event, uint32_t first = 0, uint32_t second = 0) {
    writer_->Write(core_, IdOf(event), time, first, second);
  }
  void Lose() { (void)writer_->Reserve(core_); }
  void User(uint64_t time) { writer_->Write(core_, kUserEvent, time); }

  EventStats Stats(std::function<std::string(uint32_t)> name_of = {}) {
    auto scope = ScopeReader::Open(target_, std::nullopt);
    EXPECT_TRUE(scope.ok()) << scope.status().message();
    std::vector<EventOrLoss> items;
    std::vector<ScopeCore> cores;
    for (uint32_t core = 0; core < scope->layout().core_count; ++core) {
      EventReader reader(*scope, core);
      EXPECT_TRUE(reader.Poll(true).ok());
      while (auto item = reader.Next()) items.push_back(*item);
      cores.push_back(reader.core());
    }
    std::stable_sort(items.begin(), items.end(), [](const EventOrLoss& a, const EventOrLoss& b) {
      const auto time = [](const EventOrLoss& item) {
        return std::visit([](const auto& each) { return each.time; }, item);
      };
      return time(a) < time(b);
    });
    return ComputeEventStats({items, cores, compare_, std::move(name_of)});
  }

  static TaskNumbers Of(const EventStats& stats, uint32_t task) {
    for (const TaskNumbers& each : stats.tasks) {
      if (each.task == task) return each;
    }
    ADD_FAILURE() << "nothing of task " << task;
    return {};
  }

  FakeTarget target_;
  std::optional<ScopeWriter> writer_;
  uint32_t core_ = 0;
  bool compare_ = true;
};

class TwoCoreStatsTest : public EventStatsTest {
 protected:
  TwoCoreStatsTest() : EventStatsTest(2) {}
};

TEST_F(EventStatsTest, RunTimeIsThatBetweenSwitchesAndBeforeTheFirstIsItsPrevious) {
  User(100);
  At(110, "task_switch", 4, 5);
  At(140, "task_switch", 5, 4);
  User(150);
  const EventStats stats = Stats();
  EXPECT_EQ(Of(stats, 4).ran, 10u + 10u);
  EXPECT_EQ(Of(stats, 5).ran, 30u);
  EXPECT_EQ(Of(stats, 5).switches, 1u);
  EXPECT_EQ(stats.cores.at(0).unknown, 0u);
  EXPECT_EQ(stats.cores.at(0).span(), 50u);
}

TEST_F(EventStatsTest, WhereACoreWasSaysNothingOfTasks) {
  writer_->Write(0, HANGSCOPE_ID_WAYPOINT, 100, 0x57425243, 0);
  EXPECT_TRUE(Stats().cores.empty());
  At(110, "task_switch", 4, 5);
  writer_->Write(0, HANGSCOPE_ID_WAIT_BEGIN, 120, 7, 2);
  User(140);
  EXPECT_EQ(Of(Stats(), 5).ran, 30u);
  EXPECT_EQ(Stats().cores.at(0).span(), 30u);
}

TEST_F(EventStatsTest, TimeAroundAMissingRecordIsNobodys) {
  At(100, "task_switch", 4, 5);
  User(110);
  Lose();
  User(150);
  At(160, "task_switch", 7, 5);
  User(165);
  const EventStats stats = Stats();
  EXPECT_EQ(Of(stats, 5).ran, 10u + 5u);
  EXPECT_EQ(Of(stats, 7).ran, 10u);
  EXPECT_EQ(stats.cores.at(0).unknown, 40u);
  EXPECT_EQ(stats.cores.at(0).lost, 1u);
}

TEST_F(EventStatsTest, TimeBetweenSwitchesThatContradictEachOtherIsNobodys) {
  At(100, "task_switch", 4, 5);
  User(110);
  At(120, "task_switch", 6, 5);
  At(150, "task_switch", 7, 5);
  User(155);
  const EventStats stats = Stats();
  EXPECT_EQ(Of(stats, 5).ran, 5u);
  EXPECT_EQ(stats.cores.at(0).unknown, 50u);
}

TEST_F(EventStatsTest, RunTimeGoesOnOverAWrapOfTheClock) {
  const uint64_t wrap = uint64_t{1} << 32;
  writer_->Put(0, offsetof(hangscope_ring, epoch), 3);
  writer_->Write(0, HANGSCOPE_ID_ANCHOR, wrap - 100, 3, 0);
  At(wrap - 50, "task_switch", 4, 5);
  writer_->Write(0, HANGSCOPE_ID_ANCHOR, wrap + 10, 4, 3);
  writer_->Put(0, offsetof(hangscope_ring, epoch), 4);
  At(wrap + 50, "task_switch", 5, 4);
  const EventStats stats = Stats();
  EXPECT_EQ(Of(stats, 5).ran, 100u);
  EXPECT_EQ(stats.doubtful, 0u);
}

TEST_F(EventStatsTest, WakeUpIsFromThePostToTheSwitchOfTheOnlyWaiter) {
  for (uint32_t i = 0; i < 3; ++i) {
    const uint64_t t = 1000 * i;
    At(t + 100, "task_switch", 4, 5);
    At(t + 110, "semaphore_wait", 0x20, static_cast<uint32_t>(-1));
    At(t + 120, "task_switch", 5, 4);
    At(t + 200, "semaphore_post", 0x20, 0);
    At(t + 210 + 10 * i, "task_switch", 4, 5);
    At(t + 250, "task_switch", 5, 4);
  }
  const TaskNumbers task = Of(Stats(), 5);
  EXPECT_EQ(task.wakes, 3u);
  EXPECT_EQ(task.measured, 3u);
  EXPECT_EQ(task.shortest, 10u);
  EXPECT_EQ(task.median, 20u);
  EXPECT_EQ(task.longest.length, 30u);
  EXPECT_EQ(task.longest.at, 2200u);
}

TEST_F(EventStatsTest, WakeUpThatNoRecordTellsIsSeenAndNotMeasured) {
  At(100, "task_switch", 4, 5);
  At(110, "semaphore_wait", 0x20, static_cast<uint32_t>(-1));
  At(120, "task_switch", 5, 4);
  At(210, "task_switch", 4, 5);  // gave up
  At(220, "task_delay", 3);
  At(230, "task_switch", 5, 4);
  At(300, "task_switch", 4, 5);
  const TaskNumbers task = Of(Stats(), 5);
  EXPECT_EQ(task.wakes, 2u);
  EXPECT_EQ(task.measured, 0u);
}

TEST_F(EventStatsTest, PreemptedTaskIsNotWoken) {
  At(100, "task_switch", 4, 5);
  At(120, "task_switch", 5, 4);
  At(200, "semaphore_post", 0x20, 1);
  At(210, "task_switch", 4, 5);
  EXPECT_EQ(Of(Stats(), 5).wakes, 0u);
}

TEST_F(EventStatsTest, OfTwoWaitersNoneHasAKnownMoment) {
  At(100, "task_switch", 4, 5);
  At(110, "semaphore_wait", 0x20, static_cast<uint32_t>(-1));
  At(120, "task_switch", 5, 6);
  At(130, "semaphore_wait", 0x20, static_cast<uint32_t>(-2));
  At(140, "task_switch", 6, 4);
  At(150, "semaphore_post", 0x20, static_cast<uint32_t>(-1));
  At(160, "semaphore_post", 0x20, 0);
  At(170, "task_switch", 4, 6);
  At(180, "task_switch", 6, 5);
  const EventStats stats = Stats();
  EXPECT_EQ(Of(stats, 5).wakes + Of(stats, 6).wakes, 2u);
  EXPECT_EQ(Of(stats, 5).measured + Of(stats, 6).measured, 0u);
}

TEST_F(EventStatsTest, ResumeWakesWhoWasSuspendedAndNotWhoWaitsBesides) {
  At(100, "task_switch", 4, 5);
  At(110, "task_suspend", 5);
  At(120, "task_switch", 5, 6);
  At(130, "semaphore_wait", 0x20, static_cast<uint32_t>(-1));
  At(140, "task_switch", 6, 4);
  At(150, "task_suspend", 6);
  At(160, "task_resume", 6);  // goes on to wait for the semaphore
  At(170, "task_resume", 5);
  At(180, "task_switch", 4, 5);
  At(190, "semaphore_post", 0x20, 0);
  At(200, "task_switch", 5, 6);
  const EventStats stats = Stats();
  EXPECT_EQ(Of(stats, 5).longest.length, 10u);
  EXPECT_EQ(Of(stats, 6).longest.length, 10u);
  EXPECT_EQ(Of(stats, 6).longest.at, 190u);
}

TEST_F(EventStatsTest, WhoIsWokenAndNotRunUntilTheEndLastsAtLeastSoLong) {
  At(100, "task_switch", 4, 5);
  At(110, "task_suspend", 5);
  At(120, "task_switch", 5, 4);
  At(130, "task_resume", 5);
  User(400);
  const TaskNumbers task = Of(Stats(), 5);
  EXPECT_EQ(task.measured, 0u);
  ASSERT_TRUE(task.not_run);
  EXPECT_EQ(task.not_run->length, 270u);
}

TEST_F(EventStatsTest, MissingRecordEndsWhatIsKnownOfWaits) {
  At(100, "task_switch", 4, 5);
  At(110, "semaphore_wait", 0x20, static_cast<uint32_t>(-1));
  At(120, "task_switch", 5, 4);
  Lose();
  At(200, "semaphore_post", 0x20, 0);
  At(210, "task_switch", 4, 5);
  const TaskNumbers task = Of(Stats(), 5);
  EXPECT_EQ(task.wakes, 0u);
  EXPECT_EQ(task.measured, 0u);
}

TEST_F(EventStatsTest, NestedInterruptsAreMatchedFromTheInnermost) {
  At(100, "isr_enter", 7);
  At(110, "isr_enter", 9);
  At(120, "isr_exit", 9);
  At(150, "isr_exit", 7);
  At(200, "isr_enter", 7);
  At(210, "isr_exit", 7);
  const EventStats stats = Stats();
  ASSERT_EQ(stats.interrupts.size(), 2u);
  EXPECT_EQ(stats.interrupts[0].lengths.measured, 2u);
  EXPECT_EQ(stats.interrupts[0].lengths.longest->length, 50u);
  EXPECT_EQ(stats.interrupts[0].lengths.longest->at, 100u);
  EXPECT_EQ(stats.interrupts[1].lengths.longest->length, 10u);
  EXPECT_EQ(stats.interrupts[0].lengths.cut + stats.interrupts[1].lengths.cut, 0u);
}

TEST_F(EventStatsTest, InterruptThatNeverEndsLastsAtLeastToTheLastRecord) {
  At(100, "isr_enter", 7);
  At(110, "isr_enter", 9);
  User(300);
  const EventStats stats = Stats();
  ASSERT_EQ(stats.interrupts.size(), 2u);
  EXPECT_EQ(stats.interrupts[0].lengths.measured, 0u);
  EXPECT_EQ(stats.interrupts[0].lengths.longest_cut->length, 200u);
  EXPECT_EQ(stats.interrupts[1].lengths.longest_cut->length, 190u);
}

TEST_F(EventStatsTest, InterruptWhoseExitIsMissingIsNotGivenAnothersExit) {
  At(100, "isr_enter", 7);
  At(110, "isr_enter", 9);
  At(150, "isr_exit", 7);
  User(160);
  At(170, "isr_exit", 3);  // began before the ring does
  const EventStats stats = Stats();
  ASSERT_EQ(stats.interrupts.size(), 3u);
  EXPECT_EQ(stats.interrupts[0].interrupt, 3u);
  EXPECT_EQ(stats.interrupts[0].lengths.longest_cut->length, 70u);
  EXPECT_EQ(stats.interrupts[1].lengths.longest->length, 50u);
  EXPECT_EQ(stats.interrupts[2].lengths.cut, 1u);
  EXPECT_FALSE(stats.interrupts[2].lengths.longest_cut);
}

TEST_F(EventStatsTest, InterruptAcrossAMissingRecordIsCutOff) {
  At(100, "isr_enter", 7);
  User(120);
  Lose();
  User(190);
  At(200, "isr_exit", 7);
  const Lengths lengths = Stats().interrupts.at(0).lengths;
  EXPECT_EQ(lengths.measured, 0u);
  EXPECT_EQ(lengths.cut, 2u);
  EXPECT_EQ(lengths.longest_cut->length, 20u);
}

TEST_F(EventStatsTest, MutexIsHeldFromLockToUnlockByItsTask) {
  At(90, "task_switch", 4, 5);
  At(100, "mutex_lock", 0x30, 5);
  At(130, "mutex_unlock", 0x30);
  At(140, "mutex_lock", 0x30, 5);
  User(200);
  const Lengths held = Stats().mutexes.at(0).held;
  EXPECT_EQ(held.measured, 1u);
  EXPECT_EQ(held.longest->length, 30u);
  EXPECT_EQ(held.longest->task, 5u);
  EXPECT_EQ(held.cut, 1u);
  EXPECT_EQ(held.longest_cut->length, 60u);
}

TEST_F(EventStatsTest, MutexThatIsHandedOverIsTheWaitersFromTheUnlock) {
  At(90, "task_switch", 4, 5);
  At(100, "mutex_lock", 0x30, 5);
  At(110, "task_switch", 5, 6);
  At(120, "mutex_lock", 0x30, 5);
  At(130, "task_switch", 6, 5);
  At(150, "mutex_unlock", 0x30);
  At(160, "task_switch", 5, 6);
  At(250, "mutex_unlock", 0x30);
  const EventStats stats = Stats();
  const Lengths held = stats.mutexes.at(0).held;
  EXPECT_EQ(held.measured, 2u);
  EXPECT_EQ(held.longest->length, 100u);
  EXPECT_EQ(held.longest->task, 6u);
  EXPECT_EQ(held.longest->at, 150u);
  EXPECT_EQ(Of(stats, 6).longest.length, 10u);
  EXPECT_EQ(stats.contended, 1u);
}

TEST_F(EventStatsTest, MutexThatAnotherTaskUnlocksIsNotMeasured) {
  At(90, "task_switch", 4, 5);
  At(100, "mutex_lock", 0x30, 5);
  At(110, "task_switch", 5, 6);
  At(120, "mutex_unlock", 0x30);
  const Lengths held = Stats().mutexes.at(0).held;
  EXPECT_EQ(held.measured, 0u);
  EXPECT_EQ(held.cut, 1u);
}

// 1 (the least urgent) has the mutex, 3 waits for it, 2 runs meanwhile.
TEST_F(EventStatsTest, InversionIsTheTimeOfTheThirdWhileTheHolderDoesNotRun) {
  for (uint32_t task = 1; task <= 3; ++task) At(task, "task_create", task, 10 * task);
  At(90, "task_switch", 2, 1);
  At(100, "mutex_lock", 0x30, 1);
  At(110, "task_switch", 1, 3);
  At(120, "mutex_lock", 0x30, 1);
  At(130, "task_switch", 3, 2);
  At(200, "task_switch", 2, 1);
  At(210, "mutex_unlock", 0x30);
  At(220, "task_switch", 1, 3);
  const EventStats stats = Stats();
  ASSERT_EQ(stats.inversions.size(), 1u);
  EXPECT_EQ(stats.inversions[0].waiter, 3u);
  EXPECT_EQ(stats.inversions[0].holder, 1u);
  EXPECT_EQ(stats.inversions[0].runner, 2u);
  EXPECT_EQ(stats.inversions[0].total, 70u);
  EXPECT_EQ(stats.inversions[0].waits, 1u);
  EXPECT_EQ(stats.not_judged, 0u);
}

TEST_F(EventStatsTest, NoInversionWhereTheHolderRunsOrTheThirdIsMoreUrgentOrUnknown) {
  for (const uint32_t third : {30u, 0u}) {
    Make(1, 256);
    At(1, "task_create", 1, 10);
    At(2, "task_create", 3, 20);
    if (third != 0) At(3, "task_create", 2, third);
    At(90, "task_switch", 2, 1);
    At(100, "mutex_lock", 0x30, 1);
    At(110, "task_switch", 1, 3);
    At(120, "mutex_lock", 0x30, 1);
    At(130, "task_switch", 3, 2);
    At(200, "task_switch", 2, 1);
    At(210, "mutex_unlock", 0x30);
    At(220, "task_switch", 1, 3);
    EXPECT_TRUE(Stats().inversions.empty()) << third;
  }
}

TEST_F(TwoCoreStatsTest, NoInversionWhileTheHolderRunsOnAnotherCore) {
  for (uint32_t task = 1; task <= 3; ++task) At(task, "task_create", task, 10 * task);
  core_ = 1;
  At(5, "task_switch", 9, 1);
  At(100, "mutex_lock", 0x30, 1);
  core_ = 0;
  At(110, "task_switch", 2, 3);
  At(120, "mutex_lock", 0x30, 1);
  At(130, "task_switch", 3, 2);
  User(200);
  EXPECT_TRUE(Stats().inversions.empty());
  EXPECT_EQ(Stats().contended, 1u);
}

TEST_F(TwoCoreStatsTest, WakeUpCrossesCoresOnlyWhereTheirClocksCompareAndNothingIsMissing) {
  const auto story = [&](bool lost) {
    Make(2, 256);
    core_ = 0;
    At(100, "task_switch", 4, 5);
    At(110, "task_suspend", 5);
    At(120, "task_switch", 5, 4);
    At(130, "task_resume", 5);
    core_ = 1;
    if (lost) Lose();
    At(140, "task_switch", 8, 5);
  };
  story(false);
  EXPECT_EQ(Of(Stats(), 5).longest.length, 10u);
  story(true);
  EXPECT_EQ(Of(Stats(), 5).measured, 0u);
  story(false);
  compare_ = false;
  const EventStats apart = Stats();
  EXPECT_EQ(Of(apart, 5).measured, 0u);
  EXPECT_TRUE(apart.clocks_are_apart);
}

TEST_F(TwoCoreStatsTest, WhatIsMissingOnOneCoreMayHaveBeenAWakeUpOfTheOthers) {
  const auto wake = [&] {
    core_ = 0;
    At(100, "task_switch", 4, 5);
    At(110, "task_suspend", 5);
    At(120, "task_switch", 5, 4);
    At(130, "task_resume", 5);
    At(140, "task_switch", 4, 5);
  };
  wake();
  core_ = 1;
  User(50);
  User(200);
  EXPECT_EQ(Of(Stats(), 5).measured, 1u);

  Make(2, 256);
  wake();
  core_ = 1;
  User(50);
  Lose();
  User(200);
  EXPECT_EQ(Of(Stats(), 5).measured, 0u) << "lost between two records";

  Make(2, 8);
  wake();
  core_ = 1;
  for (uint64_t i = 0; i < 20; ++i) User(50 + 10 * i);
  EXPECT_EQ(Of(Stats(), 5).measured, 0u) << "overwritten";
}

TEST_F(EventStatsTest, WhoIsWokenBeforeItIsSwitchedAwayDoesNotWait) {
  At(100, "task_switch", 4, 5);
  At(110, "semaphore_wait", 0x20, static_cast<uint32_t>(-1));
  At(112, "isr_enter", 7);
  At(115, "semaphore_post", 0x20, 0);
  At(117, "isr_exit", 7);
  At(120, "task_switch", 5, 4);
  At(200, "task_switch", 4, 5);
  EXPECT_EQ(Of(Stats(), 5).wakes, 0u);
}

TEST_F(EventStatsTest, IdleIsTheTaskThatAloneIsLeastUrgentAndSaysNothing) {
  At(10, "task_create", 5, 3);
  At(20, "task_create", 1, 0);
  At(100, "task_switch", 0, 5);
  At(140, "task_switch", 5, 1);
  At(200, "isr_enter", 7);
  At(210, "isr_exit", 7);
  At(210, "task_switch", 1, 5);
  EventStats stats = Stats();
  EXPECT_EQ(stats.idle.tasks, std::vector<uint32_t>{1});
  EXPECT_EQ(stats.cores.at(0).idle, 70u);

  At(220, "task_switch", 5, 1);
  User(230);
  stats = Stats();
  EXPECT_FALSE(stats.idle.known()) << stats.idle.why;
  EXPECT_NE(stats.idle.why.find("records events of its own"), std::string::npos);
}

TEST_F(EventStatsTest, IdleIsNotGuessedWithoutPrioritiesButKnownByNameOrWhereNobodyRuns) {
  At(100, "task_switch", 4, 5);
  At(140, "task_switch", 5, 4);
  EXPECT_FALSE(Stats().idle.known());
  const EventStats named = Stats([](uint32_t task) { return task == 4 ? "IDLE" : "worker"; });
  EXPECT_EQ(named.idle.tasks, std::vector<uint32_t>{4});
  At(150, "task_switch", 4, 0);
  At(170, "task_switch", 0, 5);
  const EventStats stats = Stats();
  EXPECT_TRUE(stats.idle.nobody);
  EXPECT_EQ(stats.cores.at(0).idle, 20u);
}

TEST_F(EventStatsTest, TablesSayTicksWhereTheClocksRateIsNotKnownAndWhatIsMasked) {
  writer_->header().clock_hz = 0;
  writer_->PutHeader();
  At(100, "task_switch", 4, 5);
  At(1600, "task_switch", 5, 4);
  writer_->Put(0, offsetof(hangscope_ring, mask), kTaskClass | kIsrClass);
  const EventStats stats = Stats();
  const auto scope = ScopeReader::Open(target_, std::nullopt);
  const ScopeCatalog catalog;
  const WatchNames names(catalog, nullptr, 0);
  const std::string text = TablesText(EventTables(stats, scope->layout(), names));
  EXPECT_NE(text.find("1500 ticks"), std::string::npos) << text;
  EXPECT_NE(text.find("does not record class SYNC now"), std::string::npos) << text;
  EXPECT_NE(text.find("The load is not known"), std::string::npos) << text;
  writer_->header().clock_hz = 1'000'000;
  writer_->PutHeader();
  const auto timed = ScopeReader::Open(target_, std::nullopt);
  const std::string times = TablesText(EventTables(stats, timed->layout(), names));
  EXPECT_NE(times.find("1.500 ms"), std::string::npos) << times;
  EXPECT_EQ(times.find("ticks"), std::string::npos) << times;
}

}  // namespace
}  // namespace hangscope
