// Why a process hangs, from looks at it that were written down by hand: which looks and which
// processes count.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/process/process_story.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using Kind = FindingKind;

TEST(ProcessVerdict, OneLookMakesNothingCertain) {
  const ProcessFinding finding = Only(Abba().JudgeOnce());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.doubts, ElementsAre("it was looked at once only"));
}

TEST(ProcessVerdict, WhoRanBetweenTheLooksIsNotStuck) {
  const auto change = [](const std::function<void(ThreadFacts*)>& how) {
    return Abba().Judge([&](SystemSample* first) { how(&first->processes[0].threads[1]); });
  };
  EXPECT_TRUE(IsSilent(change([](ThreadFacts* t) { t->voluntary_switches = 6; })));
  EXPECT_TRUE(IsSilent(change([](ThreadFacts* t) {
    t->involuntary_switches = 1;
    t->wait.address = 0x1000;
  })));
  EXPECT_TRUE(IsSilent(change([](ThreadFacts* t) { t->state = ThreadState::kRunning; })));
  EXPECT_TRUE(IsSilent(change([](ThreadFacts* t) { t->wait.address = 0x2000; })));
  EXPECT_TRUE(IsSilent(change([](ThreadFacts* t) { t->system_call = 1; })));
  EXPECT_TRUE(IsSilent(change([](ThreadFacts* t) { t->tid = 99; })));
}

World DeadlockOfTwentyBeside(WaitKind other) {
  World world;
  world.Process(10, "make");
  world.Process(20, "job");
  world.Process(30, "other");
  world.Locks(20, 21, "lock_b", 22);
  world.Locks(20, 22, "lock_a", 21);
  world.Thread(20, 20, other);
  world.Thread(30, 30, WaitKind::kTime).wait.has_timeout = true;
  return world;
}

TEST(ProcessVerdict, ACertainDeadlockOfAProcessThatIsWaitedForIsThatOnesHang) {
  World world = DeadlockOfTwentyBeside(WaitKind::kAccept);
  world.Thread(10, 10, WaitKind::kChild).wait.children = {20, 30};
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  EXPECT_EQ(finding.summary,
            "deadlock, 2 of 3 threads of process 20 (job) wait for each other (mutex lock_a, mutex "
            "lock_b)");
  EXPECT_THAT(finding.evidence,
              testing::Contains("process 10 (make) waits for it, and for 1 more"));
}

TEST(ProcessVerdict, SoIsOneThatIsWaitedForOverOthersForATimeOrBySignals) {
  World over = DeadlockOfTwentyBeside(WaitKind::kAccept);
  over.Thread(10, 10, WaitKind::kChild).wait.children = {40};
  over.Process(40, "sh");
  ThreadFacts& polls = over.Thread(40, 40, WaitKind::kPoll);
  polls.wait.children = {20}, polls.wait.has_timeout = true;
  EXPECT_THAT(Only(over.Judge()).evidence,
              testing::IsSupersetOf(
                  {"process 40 (sh) waits for it", "process 10 (make) waits for that one"}));
  World timeout = DeadlockOfTwentyBeside(WaitKind::kAccept);
  ThreadFacts& thread = timeout.Thread(10, 10, WaitKind::kSignal);
  thread.wait.signals = kChild | kTerm, thread.wait.children = {20};
  EXPECT_EQ(Only(timeout.Judge()).confidence, Confidence::kCertain);
}

TEST(ProcessVerdict, WhoShowsItsChildOnATerminalOfItsOwnWaitsForThatChild) {
  const auto judge = [](const char* terminal) {
    World script = DeadlockOfTwentyBeside(WaitKind::kAccept);
    ThreadWait& wait = script.Thread(10, 10, WaitKind::kPoll).wait;
    wait.children = {20};
    wait.files.resize(2);
    wait.files[0].kind = FileKind::kSignals, wait.files[0].signals = kChild | kTerm;
    wait.files[1].kind = FileKind::kDevice, wait.files[1].outside = true;
    wait.files[1].name = terminal;
    return Only(script.Judge()).confidence;
  };
  EXPECT_EQ(judge("/dev/ptmx"), Confidence::kCertain);
  EXPECT_EQ(judge("/dev/pts/3"), Confidence::kPossible);  // somebody types there
}

TEST(ProcessVerdict, AHangThatTheAskedProcessDoesNotWaitForIsItsOwnAffair) {
  // A shell: its job hangs, and it waits for who types.
  World world = DeadlockOfTwentyBeside(WaitKind::kAccept);
  ThreadFacts& thread = world.Thread(10, 10, WaitKind::kPoll);
  WaitFile file;
  file.kind = FileKind::kTerminal, file.outside = true;
  thread.wait.files = {file}, thread.wait.children = {20};
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
  EXPECT_THAT(finding.doubts, ElementsAre("no thread of process 10 (make) waits for these alone"));
}

TEST(ProcessVerdict, EachOfThousandsOfThreadsIsJudgedInTime) {
  World world;
  for (int i = 0; i < 20000; ++i) world.Signals(10, 10 + i, "work");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.threads.size(), 20000u);
  EXPECT_LE(LinesOf(world).size(), 16u);
}

TEST(ProcessVerdict, NothingIsSaidOfNothing) {
  EXPECT_TRUE(IsSilent(JudgeProcess({})));
  EXPECT_TRUE(IsSilent(JudgeProcess({SystemSample{}})));
  World world;
  world.Process(10);
  EXPECT_TRUE(IsSilent(world.Judge()));
}

}  // namespace
}  // namespace hangscope
