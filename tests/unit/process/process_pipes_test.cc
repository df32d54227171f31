// Who reads and writes what others, or nobody, have the other end of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/process/process_story.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Kind = FindingKind;

// An event loop of Python is woken over a pipe of its own, and its tasks tell what for.
TEST(ProcessPipes, WhoRunsTasksThatWaitSaysWhatFor) {
  World world;
  ThreadFacts& loop = world.Reads(10, 10, {10});
  loop.stack = {{1, "BaseEventLoop.run_forever", "base_events.py:607", "asyncio"}};
  loop.stack[0].language = FrameLanguage::kPython;
  loop.tasks.resize(1);
  loop.tasks[0].name = "crawl";
  loop.tasks[0].waits_for = "queue jobs";
  EXPECT_EQ(Only(world.Judge()).summary,
            "no writer, its only thread runs task crawl, which waits for queue jobs, and nobody is "
            "left to end that");
  world.Of(10).threads[0].tasks.resize(3);
  EXPECT_EQ(Only(world.Judge()).summary,
            "no writer, its only thread runs 3 tasks, which all wait, and nobody is left to end "
            "that");
}

TEST(ProcessPipes, ReadingAPipeThatOnlyOneselfCouldWriteNeverEnds) {
  World world;
  world.Reads(10, 10, {10});
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kNoWriter);
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  EXPECT_THAT(finding.threads, ElementsAre(10));
  EXPECT_THAT(LinesOf(world), ElementsAre(HasSubstr("data from a pipe (fd 3) written by itself")));
}

TEST(ProcessPipes, APipeWithinAProcessThatAnotherThreadMayWrite) {
  World world;
  world.Reads(10, 10, {10});
  world.Signals(10, 11, "work");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kNoWriter);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.victims, ElementsAre(11));
  world.Thread(10, 12, WaitKind::kNone).state = ThreadState::kRunning;
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessPipes, AReaderWithHandlersMayBeInterrupted) {
  World world;
  world.Process(10).caught_signals = kTerm;
  world.Reads(10, 10, {10});
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible);
  // Who handles each signal that ends a program removes its files then, as sort does.
  for (const int number : {SIGHUP, SIGXCPU, SIGPROF, SIGALRM, SIGVTALRM})
    world.Of(10).caught_signals |= SignalBit(number);
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
}

TEST(ProcessPipes, APipeThatProcessesOutOfSightMayWriteIsPossibleOnly) {
  World world;
  WaitFile& file = world.Reads(10, 10, {10}).wait.files[0];
  file.others_unknown = file.others_hidden = true;
  const ProcessJudgement judgement = world.Judge();
  EXPECT_EQ(Only(judgement).kind, Kind::kNoWriter);
  EXPECT_EQ(Only(judgement).confidence, Confidence::kPossible);
  EXPECT_THAT(Only(judgement).doubts,
              testing::Contains(HasSubstr("might have the other end open")));
  EXPECT_FALSE(judgement.IsBad());
  file.others_hidden = false;
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessPipes, ANamedPipeOrAnEventMayBeServedByThoseWhoAreNotThereYet) {
  World world;
  WaitFile& file = world.Reads(10, 10, {20}).wait.files[0];
  world.Reads(20, 20, {10});
  file.name = "/run/commands";
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible);
  EXPECT_THAT(LinesOf(world)[0], HasSubstr("/run/commands (fd 3) written by 20"));
  file.name = "/run/commands (deleted)";
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kCertain);
  file.kind = FileKind::kEvent;
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
}

// The handler of a shell for SIGINT ends neither its child nor the lock that this waits for.
TEST(ProcessPipes, HandlersOfAProcessWhoseEndOthersWaitForRaiseNoDoubt) {
  const auto judge = [](uint64_t holder_handles, uint64_t shell_handles) {
    World world;
    for (const int pid : {10, 20}) {  // flock, its shell, and what that runs
      world.Process(pid, "flock").caught_signals = holder_handles;
      world.Thread(pid, pid, WaitKind::kChild).wait.children = {pid + 1};
      world.Process(pid + 1, "sh").caught_signals = shell_handles;
      world.Thread(pid + 1, pid + 1, WaitKind::kChild).wait.children = {pid + 2};
      world.Process(pid + 2, "flock");
      world.Thread(pid + 2, pid + 2, WaitKind::kFileLock).wait.owner = 30 - pid;
    }
    return Only(world.Judge()).confidence;
  };
  EXPECT_EQ(judge(0, SignalBit(SIGINT)), Confidence::kCertain);
  EXPECT_EQ(judge(SignalBit(SIGINT), 0), Confidence::kLikely);  // it may give its lock back
}

// One waits for the end of the other, which waits for room in its pipe; the end of a third one
// makes a handler run, which may read that.
TEST(ProcessPipes, AChildWhoseEndIsHandledMayEndTheWaitForAnother) {
  const auto judge = [](uint64_t handles, WaitKind child_waits) {
    World world;
    world.Process(10).caught_signals = handles;
    world.Thread(10, 10, WaitKind::kChild).wait.children = {20};
    world.Process(20).parent = 10;
    world.Reads(20, 20, {10});
    world.Process(30).parent = 10;
    if (child_waits == WaitKind::kRead)
      world.Reads(30, 30, {10});
    else
      world.Thread(30, 30, child_waits);
    return world.Judge().findings[0].confidence;
  };
  EXPECT_EQ(judge(0, WaitKind::kTime), Confidence::kCertain);
  EXPECT_EQ(judge(kChild, WaitKind::kTime), Confidence::kPossible);
  EXPECT_EQ(judge(kChild, WaitKind::kRead), Confidence::kCertain);  // it does not end either
}

// sort removes its temporary files in handlers of whatever would end it; make prints more, or less.
TEST(ProcessPipes, HandlersThatCleanUpBringNoWork) {
  constexpr uint64_t kEnds = SignalBit(SIGHUP) | SignalBit(SIGTERM) | SignalBit(SIGXCPU) |
                             SignalBit(SIGPROF) | SignalBit(SIGALRM) | SignalBit(SIGVTALRM);
  const auto judge = [](const char* name, uint64_t signals) {
    World world;
    world.Process(10, name).caught_signals = signals;
    world.Reads(10, 10, {20});
    world.Reads(20, 20, {10});
    return Only(world.Judge()).confidence;
  };
  EXPECT_EQ(judge("sort", kEnds | SignalBit(SIGIO)), Confidence::kLikely);
  EXPECT_EQ(judge("sort", kEnds & ~SignalBit(SIGXCPU)), Confidence::kPossible);
  EXPECT_EQ(judge("worker", kEnds | SignalBit(SIGUSR1)), Confidence::kPossible);
  EXPECT_EQ(judge("make", SignalBit(SIGUSR1) | kTerm), Confidence::kLikely);
  EXPECT_EQ(judge("maker", SignalBit(SIGUSR1) | kTerm), Confidence::kPossible);
}

TEST(ProcessPipes, TwoProcessesThatReadFromEachOtherAreADeadlock) {
  World world;
  world.Reads(10, 10, {20});
  world.Reads(20, 20, {10});
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  EXPECT_THAT(finding.threads, UnorderedElementsAre(10, 20));
  EXPECT_EQ(finding.summary, "deadlock, 2 threads of 2 processes wait for each other");
}

TEST(ProcessPipes, ACycleThroughAPipeIsFoundThoughOtherThreadsOfTheWriterIdle) {
  World world;
  world.Reads(10, 10, {20});
  world.Reads(20, 20, {10});
  world.Signals(20, 21, "work");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.threads, UnorderedElementsAre(10, 20));
  EXPECT_THAT(finding.victims, ElementsAre(21));
}

TEST(ProcessPipes, ACycleThroughLocksAndPipes) {
  World world;
  world.Reads(10, 10, {20});        // from 20, which waits
  world.Locks(20, 20, "lock", 21);  // for a lock of 21,
  world.Reads(20, 21, {10});        // which reads from 10
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_THAT(finding.threads, UnorderedElementsAre(10, 21));
  EXPECT_THAT(finding.victims, ElementsAre(20));
}

TEST(ProcessPipes, WhoeverReadsFromAWriterThatLivesWaitsByDesign) {
  World world;
  world.Reads(10, 10, {10, 20});
  world.Thread(20, 20, WaitKind::kAccept);
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessPipes, ReadsFromAProcessThatHangsItself) {
  World world;
  world.Reads(10, 10, {20});
  world.Signals(20, 20, "work");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kLostWakeup);
  EXPECT_THAT(finding.threads, ElementsAre(20));
  EXPECT_THAT(finding.victims, ElementsAre(10));
  EXPECT_TRUE(finding.IsBad());
}

TEST(ProcessPipes, ReadsFromAProcessWhoseThreadsAllIdle) {
  World world;
  world.Reads(10, 10, {20});
  world.Signals(20, 20, "work");
  world.Signals(20, 21, "work");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_THAT(finding.threads, ElementsAre(20, 21));
  EXPECT_THAT(finding.victims, ElementsAre(10));
}

TEST(ProcessPipes, WhoOpensANamedPipeWaitsForWhoeverOpensItsOtherEnd) {
  World world;
  WaitFile pipe;
  pipe.kind = FileKind::kPipe, pipe.name = "orders", pipe.others_unknown = true;
  world.Thread(10, 10, WaitKind::kOpen).wait.files = {pipe};
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kNoWriter);
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
  EXPECT_EQ(finding.summary,
            "no writer, its only thread waits for somebody to open orders for writing");
}

// A file that only its own process has the other side of.
ThreadFacts& WaitsForOwn(World* world, WaitKind wait, FileKind kind, const char* name) {
  ThreadFacts& thread = world->Thread(10, 10, wait);
  WaitFile file;
  file.fd = 3, file.kind = kind, file.name = name, file.others = {{10, 9}};
  thread.wait.files = {file};
  return thread;
}

TEST(ProcessPipes, WhoWaitsForALockOfAFileThatItHasItselfIsADeadlock) {
  World world;
  WaitsForOwn(&world, WaitKind::kFileLock, FileKind::kFile, "/run/db.lock");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  EXPECT_EQ(finding.summary,
            "deadlock, its only thread waits for the lock of /run/db.lock (fd 3), which it holds "
            "itself through fd 9");
  world.Signals(10, 11, "work");
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
  EXPECT_THAT(Only(world.Judge()).victims, ElementsAre(11));
  EXPECT_THAT(Only(world.Judge()).doubts,
              ElementsAre(HasSubstr("any thread of a process may give back its lock of a file")));
  world.Thread(10, 12, WaitKind::kTime);
  EXPECT_TRUE(IsSilent(world.Judge())) << "that thread may give it back";
}

// What flock -w does.
TEST(ProcessPipes, AnAlarmMayEndTheWaitForALockOfItsOwn) {
  World world;
  world.Process(10).caught_signals = SignalBit(SIGALRM);
  WaitsForOwn(&world, WaitKind::kFileLock, FileKind::kFile, "/run/db.lock");
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible);
}

TEST(ProcessPipes, WhoConnectsToItsOwnFullBacklogIsADeadlock) {
  World world;
  WaitFile& file =
      WaitsForOwn(&world, WaitKind::kConnect, FileKind::kSocket, "unix '@x'").wait.files[0];
  file.backlog = true;
  EXPECT_EQ(Only(world.Judge()).kind, Kind::kDeadlock);
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kCertain);
  EXPECT_EQ(
      Only(world.Judge()).summary,
      "deadlock, its only thread waits for a free place in the backlog of unix '@x', which it "
      "holds itself through fd 9");
  file.others.emplace_back(20, 4);
  EXPECT_TRUE(IsSilent(world.Judge())) << "nothing is known of 20";
  world.Thread(20, 20, WaitKind::kTime).wait.has_timeout = true;
  EXPECT_TRUE(IsSilent(world.Judge()));
  EXPECT_THAT(WaitedFor(world.Of(10).threads[0], world.look()),
              testing::EndsWith("in the backlog of unix '@x', held by itself, 20 program"));
  file.queued = 2;
  EXPECT_EQ(WaitedFor(world.Of(10).threads[0], world.look()).find("an answer from unix '@x'"), 0u);
}

TEST(ProcessPipes, WhoWaitsForItsOwnEndIsADeadlock) {
  World world;
  ThreadFacts& thread =
      WaitsForOwn(&world, WaitKind::kPoll, FileKind::kProcess, "anon_inode:[pidfd]");
  EXPECT_EQ(Only(world.Judge()).summary,
            "deadlock, its only thread waits for the end of its own process (fd 3)");
  thread.wait.files[0].others = {{20, -1}};
  world.Process(20, "worker");
  EXPECT_EQ(WaitedFor(world.Of(10).threads[0], world.look()),
            "the end of process 20 worker (fd 3)");
}

TEST(ProcessPipes, WhatIsNoPipeIsCalledWhatItIs) {
  const auto summary = [](FileKind kind, const char* name) {
    World world;
    ThreadFacts& thread = WaitsForOwn(&world, WaitKind::kRead, kind, name);
    thread.wait.files[0].is_idle = kind != FileKind::kEvent;
    return Only(world.Judge()).summary;
  };
  EXPECT_EQ(summary(FileKind::kEvent, "anon_inode:[eventfd]"),
            "no writer, its only thread reads an eventfd that only this process has, and nobody "
            "there can write");
  EXPECT_EQ(summary(FileKind::kTimer, "anon_inode:[timerfd]"),
            "no writer, its only thread waits for a timer that is not armed and that only this "
            "process has, and nobody there can arm it");
  EXPECT_EQ(summary(FileKind::kEpoll, "anon_inode:[eventpoll]"),
            "no writer, its only thread waits for an epoll that watches no file and that only this "
            "process has, and nobody there can add one");
  EXPECT_EQ(summary(FileKind::kNotify, "anon_inode:inotify"),
            "no writer, its only thread waits for an inotify that watches no file and that only "
            "this process has, and nobody there can add one");
}

TEST(ProcessPipes, ATimerThatIsArmedOrOneOfSeveralFilesIsTheOutside) {
  World world;
  ThreadFacts& thread =
      WaitsForOwn(&world, WaitKind::kPoll, FileKind::kTimer, "anon_inode:[timerfd]");
  EXPECT_TRUE(IsSilent(world.Judge()));
  thread.wait.files[0].is_idle = true;
  EXPECT_FALSE(IsSilent(world.Judge()));
  thread.wait.files.push_back(thread.wait.files[0]);
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessPipes, OneLivePeerOfManyIsEnough) {
  const auto polls = [](bool second_hangs) {
    World world;
    ThreadFacts& thread = world.Reads(10, 10, {20});
    thread.wait.kind = WaitKind::kPoll;
    WaitFile other = thread.wait.files[0];
    other.fd = 5, other.others = {{30, 4}};
    thread.wait.files.push_back(other);
    world.Locks(20, 20, "lock", 20);
    if (second_hangs)
      world.Locks(30, 30, "lock", 30);
    else
      world.Thread(30, 30, WaitKind::kTime).wait.has_timeout = true;
    return world.Judge();
  };
  EXPECT_THAT(polls(false).findings[0].victims, ElementsAre());
  EXPECT_THAT(polls(true).findings[0].victims, ElementsAre(10));
}

// Whose lock of a file has a process that reads what nobody writes.
TEST(ProcessPipes, WhatTheAskedProcessWaitsForElsewhereIsTold) {
  World world;
  ThreadFacts& thread = world.Thread(10, 10, WaitKind::kFileLock, "first");
  WaitFile lock;
  lock.fd = 3, lock.kind = FileKind::kFile, lock.name = "/run/a.lock", lock.others = {{20, 4}};
  thread.wait.files = {lock};
  world.Process(20, "second");
  world.Reads(20, 20, {20});
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kNoWriter);
  EXPECT_THAT(finding.threads, ElementsAre(20));
  EXPECT_THAT(finding.evidence,
              testing::Contains("10 first waits for the lock of /run/a.lock (fd 3), held by 20 "
                                "second"));
}

}  // namespace
}  // namespace hangscope
