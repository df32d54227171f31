// Tasks of an event loop that wait for each other, whatever the loop itself waits for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/process/process_story.h"

namespace hangscope {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::StartsWith;

TaskFacts Task(const char* name, std::vector<size_t> tasks) {
  TaskFacts task;
  task.name = name;
  task.stack = {{0, "Lock.acquire", "locks.py:110", "/usr/lib/python3.11/asyncio/locks.py",
                 FrameLanguage::kPython},
                {0, "update", "tables.py:7", "/srv/tables.py", FrameLanguage::kPython}};
  task.waits_for = "lock table";
  task.tasks = std::move(tasks);
  return task;
}

// A loop that listens.
World Server(std::vector<TaskFacts> tasks) {
  World world;
  ThreadFacts& thread = world.Thread(10, 10, WaitKind::kPoll);
  WaitFile file;
  file.kind = FileKind::kSocket, file.listening = true;
  thread.wait.files = {file};
  thread.tasks = std::move(tasks);
  return world;
}

TEST(ProcessTasks, ThatWaitForEachOtherAreADeadlockBesideAServer) {
  const ProcessFinding finding =
      Only(Server({Task("main", {1}), Task("left", {2}), Task("right", {1})}).Judge());
  EXPECT_EQ(finding.kind, FindingKind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_EQ(finding.summary, "deadlock, 2 of 3 tasks of 10 wait for each other");
  EXPECT_THAT(finding.threads, ElementsAre(10));
  EXPECT_THAT(finding.evidence, Contains("task left waits for lock table   update  tables.py:7"));
  EXPECT_THAT(finding.evidence, Not(Contains(StartsWith("task main"))));
}

TEST(ProcessTasks, ThatATimerOrAnotherTaskMayCancelAreOnePerhaps) {
  World world = Server({Task("left", {1}), Task("right", {0})});
  world.Of(10).threads[0].wait.may_be_interrupted = true;
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible);
}

TEST(ProcessTasks, OneThatWaitsForItselfIsOne) {
  EXPECT_EQ(Only(Server({Task("one", {0})}).Judge()).summary,
            "deadlock, 1 of 1 tasks of 10 waits for itself");
}

TEST(ProcessTasks, ARowOfThemOrATimeLimitIsNone) {
  EXPECT_TRUE(IsSilent(Server({Task("a", {1}), Task("b", {2}), Task("c", {})}).Judge()));
  TaskFacts limited = Task("b", {0});
  limited.has_timeout = true;
  EXPECT_TRUE(IsSilent(Server({Task("a", {1}), limited}).Judge()));
  EXPECT_TRUE(IsSilent(Server({Task("a", {7})}).Judge()));  // no such task
}

TEST(ProcessTasks, OfALoopThatRanNothingIsConcluded) {
  const World world = Server({Task("a", {1}), Task("b", {0})});
  EXPECT_TRUE(IsSilent(world.Judge(
      [](SystemSample* first) { first->processes[0].threads[0].voluntary_switches = 6; })));
}

TEST(ProcessTasks, ThoseOfALoopThatNobodyWakesAreToldBesideIt) {
  World world;
  world.Reads(10, 10, {10}).tasks = {Task("main", {})};
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, FindingKind::kNoWriter);
  EXPECT_THAT(finding.evidence, Contains(StartsWith("task main waits for lock table")));
}

TaskFacts OfGo(const char* name, const char* mutex, std::vector<size_t> tasks) {
  TaskFacts task;
  task.name = name;
  task.is_goroutine = true;
  task.stack = {{0x4010, "main.rebuild", "index.go:31", "index", FrameLanguage::kNative}};
  task.waits_for = mutex;
  task.tasks = std::move(tasks);
  return task;
}

TEST(ProcessTasks, GoroutinesAreADeadlockOnceTheyHaveStoodForASecondWhateverThreadsDo) {
  World world;
  ThreadFacts& thread = world.Thread(10, 10, WaitKind::kFutex);
  thread.state = ThreadState::kRunning;
  thread.tasks = {OfGo("goroutine 5", "mutex main.index", {1}),
                  OfGo("goroutine 6", "mutex main.table", {0}), OfGo("goroutine 7", "sleep", {})};
  const auto earlier = [](TimeNs by) {
    return [by](SystemSample* first) { first->begin -= by, first->end -= by; };
  };
  EXPECT_TRUE(IsSilent(world.Judge()));
  EXPECT_TRUE(IsSilent(world.Judge(earlier(900 * kMillisecond))));
  const ProcessFinding finding = Only(world.Judge(earlier(kSecond)));
  EXPECT_EQ(finding.summary, "deadlock, 2 of 3 goroutines of 10 wait for each other");
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_TRUE(finding.of_goroutines);
  EXPECT_THAT(finding.evidence,
              Contains("goroutine 5 waits for mutex main.index   main.rebuild  index.go:31"));
  for (const char* other : {"mutex main.journal", ""}) {
    EXPECT_TRUE(IsSilent(world.Judge([&](SystemSample* first) {
      earlier(2 * kSecond)(first);
      first->processes[0].threads[0].tasks[1].waits_for = other;
    })));
  }
  EXPECT_TRUE(IsSilent(world.Judge([&](SystemSample* first) {
    earlier(2 * kSecond)(first);
    first->processes[0].threads[0].tasks[0].stack[0].pc = 0x4020;
  })));
}

TaskFacts Stranded(const char* name, std::vector<size_t> tasks, const char* known_to) {
  TaskFacts task = OfGo(name, "chan send", std::move(tasks));
  task.is_stranded = true, task.known_to = known_to;
  return task;
}

// The findings once they have stood for a second.
ProcessJudgement JudgeTasks(std::vector<TaskFacts> tasks) {
  World world;
  ThreadFacts& thread = world.Thread(10, 10, WaitKind::kFutex);
  thread.state = ThreadState::kRunning;
  thread.tasks = std::move(tasks);
  return world.Judge([](SystemSample* first) { first->begin -= kSecond, first->end -= kSecond; });
}

TEST(ProcessTasks, StrandedGoroutinesThatNobodyMissesAreLeftBehindOnly) {
  const TaskFacts beats = OfGo("goroutine 9", "sleep", {});
  EXPECT_TRUE(IsSilent(JudgeTasks({Stranded("goroutine 5", {}, ""), beats})));
  EXPECT_TRUE(IsSilent(JudgeTasks(
      {Stranded("goroutine 5", {1}, "goroutine 6"), Stranded("goroutine 6", {}, ""), beats})));
}

TEST(ProcessTasks, OneThatIsAwaitedTakesAlongWhoCouldGiveWhatItWantsButNobodyElse) {
  TaskFacts main = Stranded("goroutine 1", {1}, "goroutine 6");
  main.is_awaited = true;
  const ProcessFinding finding =
      Only(JudgeTasks({main, Stranded("goroutine 6", {}, ""), Stranded("goroutine 7", {}, "")}));
  EXPECT_EQ(finding.summary,
            "deadlock, 2 of 3 goroutines of 10 wait for what nobody else can give");
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.evidence,
              Contains("goroutine 6 waits for chan send, known to nobody else   main.rebuild  "
                       "index.go:31"));
  EXPECT_THAT(finding.evidence,
              Contains(StartsWith("goroutine 1 waits for chan send, known only to goroutine 6")));
  EXPECT_THAT(finding.evidence, Not(Contains(StartsWith("goroutine 7"))));
}

TEST(ProcessTasks, StrandedGoroutinesInACircleAreADeadlockWithWhoeverElseHasWhatTheyWant) {
  const ProcessFinding finding = Only(JudgeTasks(
      {Stranded("goroutine 5", {1, 2}, "goroutines 6 and 7"),
       Stranded("goroutine 6", {0}, "goroutine 5"), Stranded("goroutine 7", {0}, "goroutine 5")}));
  EXPECT_EQ(finding.summary, "deadlock, 3 of 3 goroutines of 10 wait for each other");
}

TEST(ProcessTasks, AMainGoroutineThatNobodyElseCouldWakeMayBeMeantToStay) {
  const auto judge = [](const char* waits_for, const char* function, std::vector<size_t> tasks) {
    TaskFacts main = Stranded("goroutine 1", std::move(tasks), "");
    main.waits_for = waits_for;
    main.is_awaited = true;
    main.stack.insert(main.stack.begin(), {0x5010, function, "", "go", FrameLanguage::kNative});
    main.stack.push_back({0x5020, "runtime.main", "", "go", FrameLanguage::kNative});
    return Only(JudgeTasks({main, Stranded("goroutine 6", {}, "")})).confidence;
  };
  EXPECT_EQ(judge("chan receive", "runtime.chanrecv1", {}), Confidence::kPossible);
  EXPECT_EQ(judge("wait group at 0x1000", "sync.(*WaitGroup).Wait", {}), Confidence::kPossible);
  EXPECT_EQ(judge("chan receive", "runtime.chanrecv2", {}), Confidence::kLikely);
  EXPECT_EQ(judge("chan send", "runtime.chansend1", {}), Confidence::kLikely);
  EXPECT_EQ(judge("wait group at 0x1000", "sync.(*WaitGroup).Wait", {1}), Confidence::kLikely);
}

TEST(ProcessTasks, WhoWasNotStrandedASecondAgoIsNotYet) {
  World world;
  TaskFacts main = Stranded("goroutine 1", {}, "");
  main.is_awaited = true;
  ThreadFacts& thread = world.Thread(10, 10, WaitKind::kFutex);
  thread.state = ThreadState::kRunning;
  thread.tasks = {main};
  const auto judge = [&](bool stranded) {
    return world.Judge([&](SystemSample* first) {
      first->begin -= kSecond, first->end -= kSecond;
      first->processes[0].threads[0].tasks[0].is_stranded = stranded;
    });
  };
  EXPECT_TRUE(IsSilent(judge(false)));
  EXPECT_EQ(Only(judge(true)).summary,
            "deadlock, 1 of 1 goroutines of 10 waits for what nobody else can give");
}

}  // namespace
}  // namespace hangscope
