// Who waits for locks, and who holds them: deadlocks, and holders that ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/process/process_story.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = FindingKind;

TEST(ProcessLocks, TwoThreadsThatHoldWhatTheOtherWantsAreADeadlockForCertain) {
  const ProcessFinding finding = Only(Abba().Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  EXPECT_THAT(finding.threads, ElementsAre(11, 12));
  EXPECT_THAT(finding.victims, ElementsAre(10));
  EXPECT_EQ(finding.summary, "deadlock, 2 of 3 threads wait for each other");
  EXPECT_THAT(LinesOf(Abba()),
              ElementsAre(HasSubstr("11  waits 41.0 s for mutex lock_b, held by 12"),
                          HasSubstr("12  waits 41.0 s for mutex lock_a, held by 11")));
  EXPECT_TRUE(finding.doubts.empty());
  EXPECT_THAT(finding.evidence, ElementsAre("each of these waits is the same in 2 looks, 50 ms "
                                            "apart, and nobody in it ran meanwhile"));
}

TEST(ProcessLocks, ALockThatIsTriedForATimeOnlyEndsByItself) {
  World world;
  world.Locks(10, 10, "lock_b", 11);
  world.Locks(10, 11, "lock_a", 10).wait.has_timeout = true;
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessLocks, AThreadMayWaitForItself) {
  World world;
  world.Locks(10, 10, "lock", 10);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.summary, "deadlock, a thread waits for itself");
  EXPECT_THAT(LinesOf(world), ElementsAre(HasSubstr("mutex lock, which it holds itself")));
}

TEST(ProcessLocks, AHandlerMayEndTheWaitOfPythonsMainThread) {
  const auto confidence = [](int first, uint64_t handled) {
    World world;
    world.Process(10, "python3").caught_signals = handled;
    for (const auto& [thread, owner] : {std::pair(first, 12), std::pair(12, first)})
      world.Locks(10, thread, "", owner).stack = {
          {1, "PyThread_acquire_lock_timed", "", "python3.11"}};
    return Only(world.Judge()).confidence;
  };
  EXPECT_EQ(confidence(10, kTerm), Confidence::kLikely);
  EXPECT_EQ(confidence(10, 0), Confidence::kCertain);
  EXPECT_EQ(confidence(11, kTerm), Confidence::kCertain);
}

TEST(ProcessLocks, AHolderThatWorksWillLetGo) {
  World world;
  world.Locks(10, 10, "lock", 11);
  world.Thread(10, 11, WaitKind::kNone).state = ThreadState::kRunning;
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessLocks, OfAHolderInTheKernelOrOutOfSightNothingIsConcluded) {
  World world;
  world.Locks(10, 10, "lock", 11);
  world.Locks(10, 11, "other", 10).state = ThreadState::kDiskSleep;
  EXPECT_TRUE(IsSilent(world.Judge()));
  World elsewhere;
  elsewhere.Locks(10, 10, "lock", 4711);
  EXPECT_TRUE(IsSilent(elsewhere.Judge()));
}

TEST(ProcessLocks, AnIdlePoolBesideADeadlockIsNoFindingOfItsOwn) {
  World world = Abba();
  world.Signals(10, 13, "work");
  world.Signals(10, 14, "work");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  EXPECT_THAT(finding.victims, ElementsAre(10, 13, 14));
}

TEST(ProcessLocks, WhoJoinsAnIdleThreadBesideADeadlockIsAVictim) {
  World world = Abba();
  world.Signals(10, 13, "work");
  world.Joins(10, 14, 13);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_THAT(finding.victims, ElementsAre(10, 13, 14));
}

TEST(ProcessLocks, ALockWhoseHolderEndedIsNeverReleased) {
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

TEST(ProcessLocks, OfALockWithoutARecordedHolderTheWaiterIsNotSaidToHoldIt) {
  World world;
  world.Thread(10, 11, WaitKind::kRwLock).wait.variable = "table";
  world.Joins(10, 10, 11);
  EXPECT_EQ(Only(world.Judge()).summary,
            "deadlock, 1 of 2 threads waits for rwlock table, and every thread that could hold it "
            "waits");
}

TEST(ProcessLocks, ALockThatForkCopiedHasNoOwnerAmongTheThreadsOfTheChild) {
  World world;
  world.Process(10, "parent");
  world.Thread(10, 10, WaitKind::kChild).wait.children = {20};
  world.Process(20, "child");
  world.Locks(20, 20, "table", 10).wait.owner_copied = true;
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kCopiedLock);
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  EXPECT_THAT(finding.threads, ElementsAre(20));
  EXPECT_THAT(finding.victims, ElementsAre(10));
  EXPECT_THAT(finding.partners, ElementsAre());
  EXPECT_EQ(finding.summary,
            "copied lock, the only thread of process 20 (child) waits for mutex table, held by 10 "
            "when fork() copied it");
  EXPECT_THAT(finding.evidence,
              testing::Contains(
                  "10 is no thread of process 20 (child), whose copy of the lock is its own"));
}

// It may be the copy of the thread that had the lock.
TEST(ProcessLocks, TheMainThreadOfAChildMayUnlockWhatForkCopied) {
  const auto judge = [](WaitKind main_waits_for) {
    World world;
    world.Thread(20, 20, main_waits_for).wait.thread = 21;
    world.Locks(20, 21, "table", 10).wait.owner_copied = true;
    return world.Judge();
  };
  EXPECT_TRUE(IsSilent(judge(WaitKind::kTime)));
  EXPECT_EQ(Only(judge(WaitKind::kJoin)).confidence, Confidence::kCertain);
}

TEST(ProcessLocks, ALockOfAFileMayBeGivenBackByAnyThreadOfItsProcess) {
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
  EXPECT_THAT(LinesOf(world),
              testing::Contains(HasSubstr("the lock of /var/lib/db (fd 3), held by 20")));
  world.Signals(20, 21, "work");
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
  world.Thread(20, 22, WaitKind::kNone).state = ThreadState::kRunning;
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessLocks, ALockOfAFileMayBeGivenBackByAnyoneWhoInheritedIt) {
  World world;
  const auto wants = [&](int pid, int holder, int heir) {
    WaitFile file;
    file.fd = 9, file.kind = FileKind::kFile, file.name = "/run/backup.lock";
    file.others = {{holder, 9}, {heir, 9}};
    world.Thread(pid, pid, WaitKind::kFileLock).wait.files.push_back(file);
  };
  // Two shells, each of which waits for the one that it told to take the other's lock.
  for (const int shell : {10, 20})
    world.Thread(shell, shell, WaitKind::kChild).wait.children = {shell + 1};
  wants(11, 20, 21);
  wants(21, 10, 11);
  EXPECT_EQ(Only(world.Judge()).kind, Kind::kDeadlock);
  EXPECT_THAT(LinesOf(world),
              testing::Contains(HasSubstr("the lock of /run/backup.lock (fd 9), held by 20")));
  world.Thread(20, 22, WaitKind::kNone).state = ThreadState::kRunning;
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessLocks, NothingThatMovesBesideThemHidesThreadsThatWaitForEachOther) {
  const std::pair<const char*, std::function<void(World*)>> others[] = {
      {"a ticker", [](World* w) { w->Thread(10, 13, WaitKind::kTime).wait.has_timeout = true; }},
      {"a server", [](World* w) { w->Thread(10, 13, WaitKind::kAccept); }},
      {"one who works",
       [](World* w) { w->Thread(10, 13, WaitKind::kNone).state = ThreadState::kRunning; }},
      {"a child that sleeps",
       [](World* w) {
         w->Thread(10, 13, WaitKind::kChild).wait.children = {20};
         w->Thread(20, 20, WaitKind::kTime).wait.has_timeout = true;
       }},
      {"a pool", [](World* w) { w->Signals(10, 13, "work"); }},
  };
  for (const auto& [what, add] : others) {
    SCOPED_TRACE(what);
    World owned = Abba();
    add(&owned);
    EXPECT_EQ(Only(owned.Judge()).confidence, Confidence::kCertain);
    World pipes;
    pipes.Reads(10, 10, {30});
    pipes.Reads(30, 30, {10});
    pipes.Thread(40, 40, WaitKind::kTime).wait.has_timeout = true;
    EXPECT_EQ(Only(pipes.Judge()).confidence, Confidence::kCertain);
    World unowned;
    unowned.Thread(10, 11, WaitKind::kRwLock).wait.variable = "table";
    unowned.Thread(10, 12, WaitKind::kRwLock).wait.variable = "index";
    add(&unowned);
    const ProcessFinding finding = Only(unowned.Judge());
    EXPECT_EQ(finding.kind, Kind::kDeadlock);
    EXPECT_THAT(finding.threads, ElementsAre(11, 12));
  }
}

TEST(ProcessLocks, ALockWithoutAHolderIsNeverSilence) {
  World world;
  world.Thread(10, 10, WaitKind::kAccept, "server");
  world.Thread(10, 11, WaitKind::kRwLock).wait.variable = "table";
  world.Thread(10, 12, WaitKind::kRwLock).wait.variable = "index";
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
  EXPECT_EQ(finding.summary,
            "deadlock, 2 of 3 threads wait for rwlock index, rwlock table, and who holds these is "
            "not recorded");
  EXPECT_THAT(finding.doubts,
              ElementsAre("it may be held by 10 server (waits 41.0 s for a connection)"));
  World rust;
  rust.Thread(10, 10, WaitKind::kAccept);
  rust.Thread(10, 11, WaitKind::kFutex).stack = {
      {1, "std::sys::sync::mutex::futex::Mutex::lock_contended", "", "server"}};
  EXPECT_EQ(Only(rust.Judge()).kind, Kind::kDeadlock);
}

TEST(ProcessLocks, SemaphoresAreLocksWhereThreadsWaitForDifferentOnesWithNames) {
  const auto beside_server = [](const char* first, const char* second) {
    World world;
    world.Thread(10, 10, WaitKind::kAccept);
    world.Thread(10, 11, WaitKind::kSemaphore).wait.variable = first;
    world.Thread(10, 12, WaitKind::kSemaphore).wait.variable = second;
    return world.Judge();
  };
  EXPECT_EQ(Only(beside_server("disk", "net")).confidence, Confidence::kPossible);
  EXPECT_TRUE(IsSilent(beside_server("work", "work")));
  EXPECT_TRUE(IsSilent(beside_server("slots", "slots+32")));
  EXPECT_TRUE(IsSilent(beside_server("", "on the stack of thread 10")));
}

TEST(ProcessLocks, AShortWaitForALockWithoutAHolderIsNone) {
  World world;
  world.Thread(10, 10, WaitKind::kAccept);
  world.Thread(10, 11, WaitKind::kRwLock).since = world.look().end - 500 * kMillisecond;
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessLocks, ALockHeldForReadingByOneOfThoseThatWait) {
  World world;
  world.Thread(10, 10, WaitKind::kRwLock).wait.variable = "table";
  world.Thread(10, 11, WaitKind::kRwLock).wait.variable = "index";
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.threads, ElementsAre(10, 11));
}

TEST(ProcessLocks, ALibrarysLocksTakenCrosswiseAreADeadlock) {
  for (const char* function :
       {"g_mutex_lock", "QBasicMutex::lockInternal()", "absl::lts_20220623::Mutex::Lock()",
        "omp_set_lock", "GOMP_critical_name_start", "boost::shared_mutex::lock_shared()",
        "std::sys::sync::mutex::futex::Mutex::lock_contended",
        "parking_lot::raw_mutex::RawMutex::lock_slow", "app::SpinLock<int>::lock(int)"}) {
    SCOPED_TRACE(function);
    World world;
    world.Joins(10, 10, 11);
    for (const int tid : {11, 12}) {
      ThreadFacts& thread = world.Thread(10, tid, WaitKind::kFutex);
      thread.wait.address = 0x1000 * static_cast<uint64_t>(tid);
      thread.stack = {{1, "syscall", "", "libc.so.6"}, {2, function, "", "lib.so"}};
    }
    const ProcessFinding finding = Only(world.Judge());
    EXPECT_EQ(finding.kind, Kind::kDeadlock);
    EXPECT_EQ(finding.confidence, Confidence::kLikely);
    EXPECT_THAT(finding.threads, ElementsAre(11, 12));
    EXPECT_THAT(finding.summary, HasSubstr("and every thread that could hold these waits"));
  }
  for (const char* function : {"wait_for_work", "Clock::lock_step", "Queue::lock(int)", "flock"}) {
    SCOPED_TRACE(function);
    World world;
    world.Joins(10, 10, 11);
    world.Thread(10, 11, WaitKind::kFutex).stack = {{1, function, "", "app"}};
    EXPECT_EQ(Only(world.Judge()).kind, Kind::kLostWakeup);
  }
}

// One reads what any thread may write, and has the lock that the writer wants; a server goes on.
TEST(ProcessLocks, WhoeverReadsWithALockThatOthersWantIsPerhapsADeadlock) {
  const auto world = [](bool holds, TimeNs lasts) {
    World program;
    program.Thread(10, 10, WaitKind::kAccept);
    ThreadFacts& reader = program.Reads(10, 11, {10});
    reader.since = program.look().end - lasts;
    program.Locks(10, 12, "lock_a", holds ? 11 : 10);
    return program.Judge();
  };
  const ProcessFinding finding = Only(world(true, 41 * kSecond));
  EXPECT_EQ(finding.kind, FindingKind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
  EXPECT_THAT(finding.threads, ::testing::ElementsAre(11, 12));
  EXPECT_THAT(finding.summary, ::testing::HasSubstr("another one wants a lock that it holds"));
  EXPECT_TRUE(IsSilent(world(false, 41 * kSecond)));
  EXPECT_TRUE(IsSilent(world(true, 100 * kMillisecond)));
}

// A word of the program's own is no lock that only its holder gives back, for all that is known.
TEST(ProcessLocks, BesideWhoMovesAWordOfTheProgramsOwnMayBeGivenBackByOthers) {
  const auto judge = [](const char* function, bool beside_server) {
    World world;
    if (beside_server) world.Thread(10, 10, WaitKind::kAccept);
    for (const int tid : {11, 12}) {
      ThreadFacts& thread = world.Thread(10, tid, WaitKind::kFutex);
      thread.wait.variable = tid == 11 ? "word_b" : "word_a";
      thread.wait.owner = tid == 11 ? 12 : 11;
      thread.wait.owner_by_code = true;
      thread.stack = {{1, "syscall", "", "libc.so.6"}, {2, function, "own.cc:1", "program"}};
    }
    return Only(world.Judge());
  };
  EXPECT_EQ(judge("TakeToken(int*)", true).confidence, Confidence::kPossible);
  EXPECT_EQ(judge("BlockOnClock(int*)", true).confidence, Confidence::kPossible);
  EXPECT_EQ(judge("TakeToken(int*)", false).confidence, Confidence::kLikely);
  EXPECT_EQ(judge("own::Mutex::lock()", true).confidence, Confidence::kLikely);
  EXPECT_EQ(judge("LockWord(int*)", true).confidence, Confidence::kLikely) << "it says so itself";
  EXPECT_EQ(judge("spin_lock(int*)", true).confidence, Confidence::kLikely);
  EXPECT_EQ(judge("TakeToken(int*)", true).kind, FindingKind::kDeadlock);
}

// The barrier's waiters are told, too: one of them may have it.
TEST(ProcessLocks, BesideALockWithoutAnOwnerABarrierIsTold) {
  World world;
  ThreadFacts& locks = world.Thread(10, 10, WaitKind::kFutex);
  locks.wait.variable = "omp_a";
  locks.stack = {{1, "omp_set_lock", "", "libgomp.so.1"}, {2, "Add", "own.cc:1", "program"}};
  locks.stack[0].of_system = true;
  ThreadFacts& comes = world.Thread(10, 11, WaitKind::kFutex);
  comes.wait.address = 0x2000;
  comes.stack = {{1, "GOMP_barrier", "", "libgomp.so.1"}, {2, "Reduce", "own.cc:2", "program"}};
  comes.stack[0].of_system = true;
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_THAT(finding.threads, ::testing::ElementsAre(10, 11));
  EXPECT_EQ(finding.summary,
            "deadlock, 2 of 2 threads wait for OpenMP barrier at 0x2000, OpenMP lock omp_a, and "
            "every thread that could end these waits");
}

}  // namespace
}  // namespace hangscope
