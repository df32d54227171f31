// Processes that are stopped, or have ended, and who waits for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/process/process_story.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = FindingKind;

TEST(ProcessStops, AStoppedChildIsWaitedForInVain) {
  World world;
  world.Process(10, "make");
  world.Process(20, "job");
  world.Thread(10, 10, WaitKind::kChild).wait.children = {20};
  world.Stopped(20, 20);
  world.Stopped(20, 21);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kStoppedChild);
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  EXPECT_THAT(finding.threads, ElementsAre(10));
  EXPECT_THAT(finding.partners, ElementsAre(20));
  EXPECT_EQ(finding.summary,
            "stopped child, its only thread waits for process 20 (job), which is stopped");
}

TEST(ProcessStops, WhoHoldsItMayLetItGoOn) {
  const auto judge = [](const auto& change) {
    World world;
    world.Process(10, "make");
    world.Process(20, "job");
    world.Thread(10, 10, WaitKind::kChild).wait.children = {20};
    change(&world);
    return Only(world.Judge()).confidence;
  };
  EXPECT_EQ(judge([](World* world) {
              world->Of(20).tracer = 30;
              world->Stopped(20, 20, ThreadState::kTraced);
            }),
            Confidence::kPossible);
  EXPECT_EQ(judge([](World* world) {
              world->Of(20).tracer = 10;
              world->Stopped(20, 20, ThreadState::kTraced);
            }),
            Confidence::kCertain)
      << "that one waits for it";
}

// A supervisor closes the pipe that its child reads once it is told to end.
TEST(ProcessStops, AHandlerMayLetGoOfAChildThatReads) {
  const auto judge = [](uint64_t caught) {
    World world;
    world.Process(20, "child");
    world.Thread(10, 10, WaitKind::kChild).wait.children = {20};
    world.Reads(20, 20, {10});
    world.Of(10).caught_signals = caught;
    return Only(world.Judge()).confidence;
  };
  EXPECT_EQ(judge(0), Confidence::kCertain);
  EXPECT_EQ(judge(kTerm), Confidence::kPossible);
  EXPECT_EQ(judge(SignalBit(SIGINT)), Confidence::kLikely) << "as shells have one";
  EXPECT_EQ(judge(kTerm | SignalBit(SIGHUP) | SignalBit(SIGINT) | SignalBit(SIGQUIT)),
            Confidence::kLikely)
      << "it cleans up";
}

TEST(ProcessStops, WhoStoppedItIsSaid) {
  ProcessFacts process;
  EXPECT_EQ(StandsStill(process, ThreadState::kStopped), "is stopped");
  process.stop_signal = SIGSTOP;
  EXPECT_EQ(StandsStill(process, ThreadState::kStopped), "is stopped by SIGSTOP");
  process.stop_signal = SIGTTIN;
  EXPECT_EQ(StandsStill(process, ThreadState::kStopped), "is stopped by SIGTTIN");
  process.stopped_in_background = true;
  EXPECT_EQ(StandsStill(process, ThreadState::kStopped),
            "is stopped by its terminal: it is in the background and reads it");
  process.stop_signal = SIGTTOU;
  EXPECT_EQ(StandsStill(process, ThreadState::kStopped),
            "is stopped by its terminal: it is in the background and writes or changes it");
  EXPECT_EQ(StandsStill(process, ThreadState::kTraced), "is held by a debugger");
  process.tracer = 4711, process.tracer_name = "gdb";
  EXPECT_EQ(StandsStill(process, ThreadState::kTraced), "is held by 4711 gdb, which traces it");
  EXPECT_EQ(StandsStill(process, ThreadState::kFrozen), "is frozen by its control group");
  process.frozen_by = "/sys/fs/cgroup/job/cgroup.freeze";
  EXPECT_EQ(StandsStill(process, ThreadState::kFrozen),
            "is frozen by its control group: /sys/fs/cgroup/job/cgroup.freeze");
}

TEST(ProcessStops, WhomItsTerminalStoppedGoesOnInTheForeground) {
  World world;
  world.Process(20, "cat");
  world.Of(20).stop_signal = SIGTTIN, world.Of(20).stopped_in_background = true;
  world.Stopped(20, 20);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.summary,
            "stopped, process 20 (cat) is stopped by its terminal: it is in the background and "
            "reads it");
  EXPECT_THAT(
      finding.evidence,
      ElementsAre("the shell's fg lets it go on; after kill -CONT alone it would stop again"));
}

// As timeout does, whose command its terminal has stopped.
TEST(ProcessStops, WhoWaitsForSignalsWaitsForAStoppedChildInVain) {
  World world;
  world.Process(10, "timeout");
  world.Process(20, "cat");
  ThreadFacts& thread = world.Thread(10, 10, WaitKind::kSignal);
  thread.wait.signals = kChild | kTerm, thread.wait.children = {20};
  EXPECT_TRUE(IsSilent(world.Judge()));
  world.Stopped(20, 20);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kStoppedChild);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_EQ(finding.summary,
            "stopped child, its only thread waits for process 20 (cat), which is stopped");
  EXPECT_TRUE(world.Judge().standing.outside.empty());
  world.Of(10).threads[0].wait.children.push_back(30);
  world.Thread(30, 30, WaitKind::kTime).wait.has_timeout = true;
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessStops, OfTwoChildrenOneThatRunsIsEnough) {
  World world;
  world.Thread(10, 10, WaitKind::kChild).wait.children = {20, 30};
  world.Stopped(20, 20);
  world.Thread(30, 30, WaitKind::kTime);
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessStops, AWriterThatIsStoppedHoldsItsReader) {
  World world;
  world.Reads(10, 10, {20});
  world.Stopped(20, 20, ThreadState::kTraced);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kHeld);
  EXPECT_THAT(finding.threads, ElementsAre(10));
  EXPECT_THAT(finding.partners, ElementsAre(20));
}

TEST(ProcessStops, WhoIsFrozenExcusesWhoWaitsForIt) {
  World world;
  world.Process(10, "make");
  world.Process(20, "job");
  world.Ask({10, 20});
  world.Thread(10, 10, WaitKind::kChild).wait.children = {20};
  world.Stopped(20, 20, ThreadState::kFrozen);
  world.Stopped(20, 21, ThreadState::kFrozen);
  const ProcessJudgement judgement = world.Judge();
  EXPECT_TRUE(IsSilent(judgement));
  EXPECT_THAT(judgement.standing.halted, ElementsAre("20 is frozen by its control group",
                                                     "21 is frozen by its control group"));
  World itself;
  itself.Stopped(10, 10, ThreadState::kFrozen);
  const ProcessFinding finding = Only(itself.Judge());
  EXPECT_EQ(finding.kind, Kind::kStopped);
  EXPECT_THAT(finding.summary, HasSubstr("frozen by its control group"));
}

TEST(ProcessStops, AProcessThatIsStoppedItself) {
  World world;
  world.Stopped(10, 10);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kStopped);
  EXPECT_EQ(finding.summary, "stopped, process 10 (program) is stopped by a signal");
  EXPECT_THAT(finding.evidence, ElementsAre("kill -CONT 10 lets it go on"));
}

TEST(ProcessStops, AThreadThatADebuggerHoldsIsNotTheWholeProcess) {
  World world;
  world.Stopped(10, 10, ThreadState::kTraced);
  world.Thread(10, 11, WaitKind::kNone).state = ThreadState::kRunning;
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessStops, AZombieIsItsParentsAffair) {
  World world;
  world.Process(10).state = ThreadState::kZombie;
  world.Thread(10, 10, WaitKind::kNone).state = ThreadState::kZombie;
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kZombie);
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  EXPECT_THAT(finding.partners, ElementsAre(1));
}

// As gdb -batch, gcore or another look do.
TEST(ProcessStops, WhoeverHoldsAProcessForAMomentIsNoHang) {
  World world;
  world.Stopped(10, 10, ThreadState::kTraced);
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kCertain);
  world.Of(10).threads[0].since = world.look().end - 900 * kMillisecond;
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kStopped);
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
  EXPECT_THAT(finding.doubts, ElementsAre(HasSubstr("for less than a second")));
  world.Of(10).threads[0].since.reset();
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kCertain) << "since when is not known";
}

TEST(ProcessStops, WhoWaitsForAChildThatIsStoppedForAMomentDoesNotHang) {
  World world;
  world.Thread(10, 10, WaitKind::kChild).wait.children = {20};
  world.Stopped(20, 20).since = world.look().end - 100 * kMillisecond;
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kStoppedChild);
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
}

}  // namespace
}  // namespace hangscope
