// Why a process hangs, from looks at it that were written down by hand.
#include "process/process_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "process/process_words.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Kind = FindingKind;

constexpr int kFutex = 202;
constexpr int kReadCall = 0;

// One process or more; threads are made asleep in the same wait in both looks.
class World {
 public:
  World() { look_.begin = 100 * kSecond, look_.end = look_.begin + kMillisecond; }

  ProcessFacts& Process(int pid, const char* name = "program") {
    look_.processes.push_back({});
    ProcessFacts& process = look_.processes.back();
    process.pid = pid, process.parent = 1, process.name = name,
    process.state = ThreadState::kSleeping;
    return process;
  }
  ThreadFacts& Thread(int pid, int tid, WaitKind kind, const char* name = "") {
    ProcessFacts& process = Of(pid);
    process.threads.push_back({});
    ThreadFacts& thread = process.threads.back();
    thread.pid = pid, thread.tid = tid, thread.name = name, thread.state = ThreadState::kSleeping;
    thread.system_call = kind == WaitKind::kRead ? kReadCall : kFutex;
    thread.wait.kind = kind, thread.wait.address = 0x1000, thread.voluntary_switches = 7;
    thread.since = look_.end - 41 * kSecond;
    return thread;
  }
  ThreadFacts& Locks(int pid, int tid, const char* lock, int owner) {
    ThreadFacts& thread = Thread(pid, tid, WaitKind::kMutex);
    thread.wait.variable = lock, thread.wait.owner = owner;
    return thread;
  }
  ThreadFacts& Joins(int pid, int tid, int whom) {
    ThreadFacts& thread = Thread(pid, tid, WaitKind::kJoin);
    thread.wait.thread = whom;
    return thread;
  }
  ThreadFacts& Reads(int pid, int tid, std::vector<int> writers) {
    ThreadFacts& thread = Thread(pid, tid, WaitKind::kRead);
    WaitFile file;
    file.fd = 3, file.kind = FileKind::kPipe, file.name = "pipe:[1]";
    for (const int writer : writers) file.others.emplace_back(writer, 4);
    thread.wait.files.push_back(file);
    return thread;
  }
  ThreadFacts& Signals(int pid, int tid, const char* condition) {
    ThreadFacts& thread = Thread(pid, tid, WaitKind::kCondition);
    thread.wait.variable = condition;
    return thread;
  }
  ThreadFacts& Spins(int pid, int tid) {
    ThreadFacts& thread = Thread(pid, tid, WaitKind::kNone);
    thread.state = ThreadState::kRunning, thread.system_call = -1;
    thread.spin = ThreadFacts::Spin{};
    thread.spin->steps = 5000, thread.spin->period = 2, thread.spin->polls = {0x4010},
    thread.spin->polled_variable = "ready";
    return thread;
  }
  ThreadFacts& Stopped(int pid, int tid, ThreadState state = ThreadState::kStopped) {
    ThreadFacts& thread = Thread(pid, tid, WaitKind::kNone);
    thread.state = state;
    return thread;
  }

  // Two looks, the first of which was `otherwise`.
  ProcessJudgement Judge(const std::function<void(SystemSample*)>& otherwise = nullptr) const {
    SystemSample first = look_;
    first.begin -= 50 * kMillisecond, first.end -= 50 * kMillisecond;
    if (otherwise) otherwise(&first);
    return JudgeProcess({first, look_});
  }
  ProcessJudgement JudgeOnce() const { return JudgeProcess({look_}); }
  const SystemSample& look() const { return look_; }

 private:
  ProcessFacts& Of(int pid) {
    for (ProcessFacts& process : look_.processes) {
      if (process.pid == pid) return process;
    }
    return Process(pid);
  }
  SystemSample look_;
};

World Abba() {
  World world;
  world.Joins(10, 10, 11);
  world.Locks(10, 11, "lock_b", 12);
  world.Locks(10, 12, "lock_a", 11);
  return world;
}

::testing::AssertionResult IsSilent(const ProcessJudgement& judgement) {
  if (judgement.findings.empty()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << judgement.findings[0].summary << " ("
                                       << ConfidenceName(judgement.findings[0].confidence) << ")";
}

// The only finding.
ProcessFinding Only(const ProcessJudgement& judgement) {
  EXPECT_EQ(judgement.findings.size(), 1u);
  for (const ProcessFinding& finding : judgement.findings) SCOPED_TRACE(finding.summary);
  return judgement.findings.empty() ? ProcessFinding{} : judgement.findings[0];
}

TEST(ProcessVerdict, TwoThreadsThatHoldWhatTheOtherWantsAreADeadlockForCertain) {
  const ProcessFinding finding = Only(Abba().Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  EXPECT_THAT(finding.threads, ElementsAre(11, 12));
  EXPECT_THAT(finding.victims, ElementsAre(10));
  EXPECT_EQ(finding.summary, "deadlock, 2 of 3 threads wait for each other");
  EXPECT_THAT(finding.lines,
              ElementsAre(HasSubstr("11  waits 41.0 s for mutex lock_b, held by 12"),
                          HasSubstr("12  waits 41.0 s for mutex lock_a, held by 11")));
  EXPECT_TRUE(finding.doubts.empty());
  EXPECT_THAT(finding.evidence, ElementsAre("each of these waits is the same in 2 looks, 50 ms "
                                            "apart, and nobody in it ran meanwhile"));
}

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

TEST(ProcessVerdict, ALockThatIsTriedForATimeOnlyEndsByItself) {
  World world;
  world.Locks(10, 10, "lock_b", 11);
  world.Locks(10, 11, "lock_a", 10).wait.has_timeout = true;
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessVerdict, AThreadMayWaitForItself) {
  World world;
  world.Locks(10, 10, "lock", 10);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.summary, "deadlock, a thread waits for itself");
  EXPECT_THAT(finding.lines, ElementsAre(HasSubstr("mutex lock, which it holds itself")));
}

TEST(ProcessVerdict, AHolderThatWorksWillLetGo) {
  World world;
  world.Locks(10, 10, "lock", 11);
  world.Thread(10, 11, WaitKind::kNone).state = ThreadState::kRunning;
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessVerdict, OfAHolderInTheKernelOrOutOfSightNothingIsConcluded) {
  World world;
  world.Locks(10, 10, "lock", 11);
  world.Locks(10, 11, "other", 10).state = ThreadState::kDiskSleep;
  EXPECT_TRUE(IsSilent(world.Judge()));
  World elsewhere;
  elsewhere.Locks(10, 10, "lock", 4711);
  EXPECT_TRUE(IsSilent(elsewhere.Judge()));
}

TEST(ProcessVerdict, AnIdlePoolBesideADeadlockIsNoFindingOfItsOwn) {
  World world = Abba();
  world.Signals(10, 13, "work");
  world.Signals(10, 14, "work");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  EXPECT_THAT(finding.victims, ElementsAre(10, 13, 14));
}

TEST(ProcessVerdict, WhoJoinsAnIdleThreadBesideADeadlockIsAVictim) {
  World world = Abba();
  world.Signals(10, 13, "work");
  world.Joins(10, 14, 13);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_THAT(finding.victims, ElementsAre(10, 13, 14));
}

TEST(ProcessVerdict, ALockWhoseHolderEndedIsNeverReleased) {
  World world;
  for (const int tid : {10, 12}) {
    ThreadFacts& thread = world.Locks(10, tid, "table", 11);
    thread.wait.owner_died = true;
  }
  world.Joins(10, 13, 12);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kOwnerDied);
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  EXPECT_THAT(finding.threads, ElementsAre(10, 12));
  EXPECT_THAT(finding.partners, ElementsAre(11));
  EXPECT_THAT(finding.victims, ElementsAre(13));
  EXPECT_THAT(finding.summary, HasSubstr("mutex table, held by 11, which ended"));
}

TEST(ProcessVerdict, APoolThatWaitsForOneSignalIsTheReasonAsAWhole) {
  World world;
  world.Joins(10, 10, 13);
  for (const int tid : {11, 12, 13}) world.Signals(10, tid, "work_came");
  world.Signals(10, 14, "another");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_THAT(finding.threads, ElementsAre(11, 12, 13));
  EXPECT_THAT(finding.victims, ElementsAre(10, 14));
  EXPECT_THAT(finding.summary, HasSubstr("3 of 5 threads wait for condition work_came"));
}

TEST(ProcessVerdict, ASignalThatNobodyIsLeftToGiveIsLost) {
  World world;
  world.Joins(10, 10, 11);
  world.Signals(10, 11, "work_came");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kLostWakeup);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.threads, ElementsAre(11));
  EXPECT_THAT(finding.victims, ElementsAre(10));
  EXPECT_EQ(
      finding.summary,
      "lost wakeup, 1 of 2 threads waits for condition work_came, and nobody is left to signal it");
}

TEST(ProcessVerdict, AnIdlePoolOfWhichOneWaitsForTheOutsideIsAtWork) {
  const struct {
    const char* what;
    std::function<void(World*)> other;
  } cases[] = {
      {"accepts", [](World* w) { w->Thread(10, 10, WaitKind::kAccept); }},
      {"waits for a signal", [](World* w) { w->Thread(10, 10, WaitKind::kSignal); }},
      {"sleeps", [](World* w) { w->Thread(10, 10, WaitKind::kTime).wait.has_timeout = true; }},
      {"runs", [](World* w) { w->Thread(10, 10, WaitKind::kNone).state = ThreadState::kRunning; }},
      {"is in a system call that nobody knows",
       [](World* w) { w->Thread(10, 10, WaitKind::kOther); }},
      {"cannot be looked into", [](World* w) { w->Thread(10, 10, WaitKind::kNone); }},
      {"waits for the disk",
       [](World* w) { w->Thread(10, 10, WaitKind::kNone).state = ThreadState::kDiskSleep; }},
      {"polls a listening socket",
       [](World* w) {
         WaitFile file;
         file.kind = FileKind::kSocket, file.listening = true, file.others = {{10, 4}};
         w->Thread(10, 10, WaitKind::kPoll).wait.files = {file};
       }},
      {"reads a socket of the network",
       [](World* w) {
         WaitFile file;
         file.kind = FileKind::kSocket, file.outside = true, file.others = {{10, 4}};
         w->Thread(10, 10, WaitKind::kRead).wait.files = {file};
       }},
      {"reads what nobody knows", [](World* w) { w->Thread(10, 10, WaitKind::kRead); }},
      {"reads a terminal",
       [](World* w) {
         WaitFile file;
         file.kind = FileKind::kTerminal, file.outside = true;
         w->Thread(10, 10, WaitKind::kRead).wait.files = {file};
       }},
      {"waits with a timeout",
       [](World* w) { w->Signals(10, 10, "tick").wait.has_timeout = true; }},
      {"reads a pipe whose writers are not known",
       [](World* w) { w->Reads(10, 10, {10}).wait.files[0].others_unknown = true; }},
      {"waits for a child that runs",
       [](World* w) {
         w->Thread(10, 10, WaitKind::kChild).wait.children = {20};
         w->Thread(20, 20, WaitKind::kNone).state = ThreadState::kRunning;
       }},
      {"waits for a child that was not looked at",
       [](World* w) { w->Thread(10, 10, WaitKind::kChild).wait.children = {20}; }},
      {"waits for a word that others have, too",
       [](World* w) { w->Thread(10, 10, WaitKind::kSemaphore).wait.shared = true; }},
  };
  for (const auto& c : cases) {
    World world;
    world.Process(10);
    c.other(&world);
    world.Signals(10, 11, "work");
    world.Signals(10, 12, "work");
    EXPECT_TRUE(IsSilent(world.Judge())) << "the other one " << c.what;
  }
}

TEST(ProcessVerdict, AHandlerMayPostASemaphoreButNoCondition) {
  World world;
  world.Process(10).handles_signals = true;
  world.Thread(10, 10, WaitKind::kSemaphore);
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible);
  World other;
  other.Process(10).handles_signals = true;
  other.Signals(10, 10, "work");
  const ProcessFinding finding = Only(other.Judge());
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.doubts, ::testing::Contains(HasSubstr("handles signals")));
}

TEST(ProcessVerdict, WhereOneOfThemMayBeWokenByAHandlerNoneIsStuckForSure) {
  World world;
  world.Process(10).handles_signals = true;
  world.Thread(10, 10, WaitKind::kSemaphore);
  world.Signals(10, 11, "work");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
  EXPECT_EQ(
      finding.summary,
      "lost wakeup, 2 of 2 threads wait for 2 different signals, and nobody is left to give one");
}

TEST(ProcessVerdict, WhoeverAHandlerMayWakeMaySignalTheOthers) {
  World world;
  world.Process(10).handles_signals = true;
  world.Thread(10, 10, WaitKind::kSemaphore);
  world.Signals(10, 11, "work");
  world.Joins(10, 12, 11);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_THAT(finding.threads, ElementsAre(11));
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
}

TEST(ProcessVerdict, PythonHandlesSignalsInNoneOfItsLocks) {
  World world;
  world.Process(10).handles_signals = true;
  world.Thread(10, 10, WaitKind::kSemaphore).stack = {
      {1, "sem_wait", "", "libc.so.6"}, {2, "PyThread_acquire_lock_timed", "", "python3"}};
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
}

TEST(ProcessVerdict, ReadingAPipeThatOnlyOneselfCouldWriteNeverEnds) {
  World world;
  world.Reads(10, 10, {10});
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kNoWriter);
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  EXPECT_THAT(finding.threads, ElementsAre(10));
  EXPECT_THAT(finding.lines, ElementsAre(HasSubstr("data from a pipe (fd 3) written by itself")));
}

TEST(ProcessVerdict, APipeWithinAProcessThatAnotherThreadMayWrite) {
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

TEST(ProcessVerdict, AReaderWithHandlersMayBeInterrupted) {
  World world;
  world.Process(10).handles_signals = true;
  world.Reads(10, 10, {10});
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
}

TEST(ProcessVerdict, APipeThatProcessesOutOfSightMayWriteIsPossibleOnly) {
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

TEST(ProcessVerdict, ANamedPipeOrAnEventMayBeServedByThoseWhoAreNotThereYet) {
  World world;
  WaitFile& file = world.Reads(10, 10, {20}).wait.files[0];
  world.Reads(20, 20, {10});
  file.name = "/run/commands";
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
  EXPECT_THAT(Only(world.Judge()).lines[0], HasSubstr("/run/commands (fd 3) written by 20"));
  file.name = "/run/commands (deleted)";
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kCertain);
  file.kind = FileKind::kEvent;
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
}

TEST(ProcessVerdict, ALockOfAFileMayBeGivenBackByAnyThreadOfItsProcess) {
  World world;
  const auto wants = [&](int pid, int owner) {
    ThreadFacts& thread = world.Thread(pid, pid, WaitKind::kFileLock);
    thread.wait.owner = owner;
    WaitFile file;
    file.fd = 3, file.kind = FileKind::kFile, file.name = "/var/lib/db";
    thread.wait.files.push_back(file);
  };
  wants(10, 20);
  wants(20, 10);
  EXPECT_EQ(Only(world.Judge()).kind, Kind::kDeadlock);
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kCertain);
  EXPECT_THAT(Only(world.Judge()).lines,
              testing::Contains(HasSubstr("the lock of /var/lib/db (fd 3), held by 20")));
  world.Signals(20, 21, "work");
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
  world.Thread(20, 22, WaitKind::kNone).state = ThreadState::kRunning;
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessVerdict, TwoProcessesThatReadFromEachOtherAreADeadlock) {
  World world;
  world.Reads(10, 10, {20});
  world.Reads(20, 20, {10});
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  EXPECT_THAT(finding.threads, UnorderedElementsAre(10, 20));
  EXPECT_EQ(finding.summary, "deadlock, 2 threads of 2 processes wait for each other");
}

TEST(ProcessVerdict, ACycleThroughAPipeIsFoundThoughOtherThreadsOfTheWriterIdle) {
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

TEST(ProcessVerdict, ACycleThroughLocksAndPipes) {
  World world;
  world.Reads(10, 10, {20});        // from 20, which waits
  world.Locks(20, 20, "lock", 21);  // for a lock of 21,
  world.Reads(20, 21, {10});        // which reads from 10
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_THAT(finding.threads, UnorderedElementsAre(10, 21));
  EXPECT_THAT(finding.victims, ElementsAre(20));
}

TEST(ProcessVerdict, WhoeverReadsFromAWriterThatLivesWaitsByDesign) {
  World world;
  world.Reads(10, 10, {10, 20});
  world.Thread(20, 20, WaitKind::kAccept);
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessVerdict, ReadsFromAProcessThatHangsItself) {
  World world;
  world.Reads(10, 10, {20});
  world.Signals(20, 20, "work");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kLostWakeup);
  EXPECT_THAT(finding.threads, ElementsAre(20));
  EXPECT_THAT(finding.victims, ElementsAre(10));
  EXPECT_TRUE(finding.IsBad());
}

TEST(ProcessVerdict, ReadsFromAProcessWhoseThreadsAllIdle) {
  World world;
  world.Reads(10, 10, {20});
  world.Signals(20, 20, "work");
  world.Signals(20, 21, "work");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_THAT(finding.threads, ElementsAre(20, 21));
  EXPECT_THAT(finding.victims, ElementsAre(10));
}

TEST(ProcessVerdict, AHangThatTheAskedProcessDoesNotWaitForIsItsOwnAffair) {
  World world;
  world.Reads(10, 10, {20});
  world.Locks(20, 21, "lock_b", 22);
  world.Locks(20, 22, "lock_a", 21);
  world.Thread(20, 20, WaitKind::kAccept);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
  EXPECT_THAT(finding.doubts,
              ElementsAre("no thread of process 10 (program) waits for these alone"));
}

TEST(ProcessVerdict, AStoppedChildIsWaitedForInVain) {
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

TEST(ProcessVerdict, OfTwoChildrenOneThatRunsIsEnough) {
  World world;
  world.Thread(10, 10, WaitKind::kChild).wait.children = {20, 30};
  world.Stopped(20, 20);
  world.Thread(30, 30, WaitKind::kTime);
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessVerdict, AWriterThatIsStoppedHoldsItsReader) {
  World world;
  world.Reads(10, 10, {20});
  world.Stopped(20, 20, ThreadState::kTraced);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kHeld);
  EXPECT_THAT(finding.threads, ElementsAre(10));
  EXPECT_THAT(finding.partners, ElementsAre(20));
}

TEST(ProcessVerdict, AProcessThatIsStoppedItself) {
  World world;
  world.Stopped(10, 10);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kStopped);
  EXPECT_EQ(finding.summary, "stopped, process 10 (program) is stopped by a signal");
  EXPECT_THAT(finding.evidence, ElementsAre("kill -CONT 10 lets it go on"));
}

TEST(ProcessVerdict, AThreadThatADebuggerHoldsIsNotTheWholeProcess) {
  World world;
  world.Stopped(10, 10, ThreadState::kTraced);
  world.Thread(10, 11, WaitKind::kNone).state = ThreadState::kRunning;
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessVerdict, AZombieIsItsParentsAffair) {
  World world;
  world.Process(10).state = ThreadState::kZombie;
  world.Thread(10, 10, WaitKind::kNone).state = ThreadState::kZombie;
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kZombie);
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  EXPECT_THAT(finding.partners, ElementsAre(1));
}

TEST(ProcessVerdict, ASpinThatNobodyIsLeftToEndIsForEver) {
  World world;
  world.Spins(10, 10);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kSpin);
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  EXPECT_EQ(finding.summary,
            "spin, its only thread spins for ready, and nobody is left to end that");
  world.Signals(10, 11, "work");
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kCertain);
  EXPECT_THAT(Only(world.Judge()).victims, ElementsAre(11));
}

TEST(ProcessVerdict, ASpinThatOthersMayEndIsLikelyOnly) {
  World world;
  world.Spins(10, 10);
  world.Thread(10, 11, WaitKind::kTime);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kSpin);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.doubts, ElementsAre("other threads move, and one of them may end it"));
}

TEST(ProcessVerdict, ASpinIsLessSureWhereTheWordOrTheHandlersAreUnknown) {
  World unnamed;
  unnamed.Spins(10, 10).spin->polled_variable.clear();
  EXPECT_EQ(Only(unnamed.Judge()).confidence, Confidence::kLikely);
  World handler;
  handler.Process(10).handles_signals = true;
  handler.Spins(10, 10);
  EXPECT_EQ(Only(handler.Judge()).confidence, Confidence::kLikely);
}

TEST(ProcessVerdict, WhatComputesOrReadsTheClockOrAsksTheKernelDoesNotSpin) {
  const std::function<void(ThreadFacts::Spin*)> cases[] = {
      [](auto* spin) { spin->period = 0; },
      [](auto* spin) { spin->writes_memory = true; },
      [](auto* spin) { spin->reads_clock = true; },
      [](auto* spin) { spin->calls_kernel = true; },
  };
  for (const auto& change : cases) {
    World world;
    change(&*world.Spins(10, 10).spin);
    EXPECT_TRUE(IsSilent(world.Judge()));
  }
  World yields;
  ThreadFacts& thread = yields.Spins(10, 10);
  thread.spin->calls_kernel = true, thread.system_call_name = "sched_yield";
  EXPECT_EQ(Only(yields.Judge()).kind, Kind::kSpin);
}

TEST(ProcessVerdict, WhoSpinsForAThreadThatWaitsForItIsWhy) {
  World world;
  world.Spins(10, 10);
  world.Signals(10, 11, "work");
  world.Joins(10, 12, 11);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kSpin);
  EXPECT_THAT(finding.threads, ElementsAre(10));
  EXPECT_THAT(finding.victims, ElementsAre(11, 12));
}

TEST(ProcessVerdict, ALockHeldForReadingByOneOfThoseThatWait) {
  World world;
  world.Thread(10, 10, WaitKind::kRwLock).wait.variable = "table";
  world.Thread(10, 11, WaitKind::kRwLock).wait.variable = "index";
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.threads, ElementsAre(10, 11));
}

TEST(ProcessVerdict, EachOfThousandsOfThreadsIsJudgedInTime) {
  World world;
  for (int i = 0; i < 20000; ++i) world.Signals(10, 10 + i, "work");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.threads.size(), 20000u);
  EXPECT_LE(finding.lines.size(), 16u);
}

TEST(ProcessVerdict, NothingIsSaidOfNothing) {
  EXPECT_TRUE(IsSilent(JudgeProcess({})));
  EXPECT_TRUE(IsSilent(JudgeProcess({SystemSample{}})));
  World world;
  world.Process(10);
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessWords, NamesOfTargetsCannotReachTheTerminal) {
  World world;
  ThreadFacts& thread = world.Locks(10, 10, "lock\x1b[2J", 10);
  thread.name = "a\nb";
  EXPECT_EQ(ThreadLabel(thread), "10 a\\nb");
  EXPECT_EQ(WaitedFor(thread, world.look()), "mutex lock\\x1b[2J, which it holds itself");
}

TEST(ProcessWords, WhereAThreadIsIsInItsProgramAndNotInTheLibraryBelow) {
  ThreadFacts thread;
  thread.stack = {{1, "__lll_lock_wait", "", "libc.so.6"},
                  {2, "std::mutex::lock", "std_mutex.h:100", "abba"},
                  {3, "Transfer", "abba.cc:20", "abba"}};
  EXPECT_EQ(FrameText(OwnFrame(thread)), "Transfer  abba.cc:20");
  thread.stack.resize(1);
  EXPECT_EQ(FrameText(OwnFrame(thread)), "__lll_lock_wait  libc.so.6");
  thread.stack.clear();
  EXPECT_EQ(FrameText(OwnFrame(thread)), "");
}

}  // namespace
}  // namespace hangscope
