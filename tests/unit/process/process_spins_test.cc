// Loops that only others can end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>

#include "unit/process/process_story.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = FindingKind;

TEST(ProcessSpins, WhoSpinsComesBeforeEventLoopsThatIdle) {
  World world;
  world.Reads(10, 10, {10});
  world.Spins(10, 11).spin->polled_variable.clear();
  const auto findings = world.Judge().findings;
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].kind, Kind::kSpin);
  EXPECT_EQ(findings[0].confidence, findings[1].confidence);
}

TEST(ProcessSpins, ASpinThatNobodyIsLeftToEndIsForEver) {
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

TEST(ProcessSpins, ASpinThatOthersMayEndIsPossibleOnly) {
  World world;
  world.Spins(10, 10);
  world.Thread(10, 11, WaitKind::kTime);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kSpin);
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
  EXPECT_THAT(finding.doubts, ElementsAre("it may be ended by 11 (waits 41.0 s for time to pass)"));
}

// As clone(2) makes them; of one that was not looked at nobody knows what it does.
TEST(ProcessSpins, WhoHasTheSameMemoryMayEndIt) {
  World world;
  world.Spins(10, 10);
  world.Of(10).shares_memory_with = {20};
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible);
  world.Thread(20, 20, WaitKind::kTime);
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible);
  world.Of(20).threads[0].wait.kind = WaitKind::kChild;
  world.Of(20).threads[0].wait.children = {10};
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kCertain) << "it waits for this one";
}

// A system call writes to the memory of others, and leaves no trace there.
TEST(ProcessSpins, WhoMayWriteToItsMemoryFromOutsideMayEndIt) {
  World idles;
  idles.Spins(10, 10).spin->writers = {20};
  idles.Of(10).threads[0].spin->others = {20};
  idles.Thread(20, 20, WaitKind::kTime);
  EXPECT_EQ(Only(idles.Judge()).confidence, Confidence::kPossible);
  World stuck;
  stuck.Spins(10, 10).spin->writers = {20};
  stuck.Of(10).threads[0].spin->others = {20};
  stuck.Reads(20, 20, {10});
  const ProcessFinding finding = Only(stuck.Judge());
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.doubts,
              ElementsAre("process 20 (program) can write to its memory from outside"));
  EXPECT_THAT(finding.summary, HasSubstr("spins for ready, and nobody is known to end that"));
}

TEST(ProcessSpins, ACopyOfTheProcessThatHangsTooIsNoDoubt) {
  World copied;
  copied.Spins(10, 10).spin->relatives = {20};
  const ProcessFinding finding = Only(copied.Judge());
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.doubts,
              ElementsAre("process 20 was copied by fork() from the same memory, and may know how "
                          "to write to this one's from outside"));
  World both;
  both.Spins(10, 10).spin->relatives = {20};
  both.Spins(20, 20).spin->relatives = {10};
  for (const int pid : {10, 20}) {
    ThreadFacts::Spin& spin = *both.Of(pid).threads[0].spin;
    spin.others = {30 - pid};
  }
  EXPECT_EQ(Only(both.Judge()).confidence, Confidence::kCertain);
}

TEST(ProcessSpins, AWordThatHasNoNameIsToldByItsPlace) {
  World world;
  world.Spins(10, 10).spin->polled_variable = "on the stack of thread 11";
  EXPECT_THAT(Only(world.Judge()).summary,
              HasSubstr("spins for a word on the stack of thread 11, and"));
}

TEST(ProcessSpins, ASpinIsLessSureWhereTheWordOrTheHandlersAreUnknown) {
  World unnamed;
  unnamed.Spins(10, 10).spin->polled_variable.clear();
  EXPECT_EQ(Only(unnamed.Judge()).confidence, Confidence::kLikely);
  const auto bit = [](int number) { return uint64_t{1} << (number - 1); };
  for (const int number : {SIGALRM, SIGUSR1, SIGRTMIN + 1}) {
    World works;
    works.Process(10).caught_signals = bit(number);
    works.Spins(10, 10);
    EXPECT_EQ(Only(works.Judge()).confidence, Confidence::kPossible) << number;
  }
  World shared;
  shared.Spins(10, 10).spin->polls_shared = true;
  EXPECT_EQ(Only(shared.Judge()).confidence, Confidence::kPossible);
  World several;
  ThreadFacts& spinning = several.Spins(10, 10);
  spinning.spin->polls = {0x1000, 0x1008, 0x1010};
  spinning.spin->polled_variable.clear();
  EXPECT_THAT(Only(several.Judge()).summary,
              HasSubstr("its only thread spins while 3 words stay the same"));
}

TEST(ProcessSpins, WhatComputesOrReadsTheClockOrAsksTheKernelDoesNotSpin) {
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
  thread.spin->calls.push_back({"sched_yield", 0, {}, {}});
  EXPECT_EQ(Only(yields.Judge()).kind, Kind::kSpin);
}

// A call that asks about a pipe whose other ends `writers` have.
ThreadFacts::Spin::Call Asks(const char* name, int64_t result, std::vector<int> writers) {
  ThreadFacts::Spin::Call call;
  call.name = name, call.result = result, call.wait.kind = WaitKind::kPoll;
  if (call.name == "read") call.wait.kind = WaitKind::kRead;
  WaitFile file;
  file.fd = 4, file.kind = FileKind::kPipe, file.name = "pipe:[1]";
  for (const int writer : writers) file.others.emplace_back(writer, 5);
  call.wait.files.push_back(file);
  return call;
}

ThreadFacts& SpinsThrough(World* world, int pid, ThreadFacts::Spin::Call call) {
  ThreadFacts& thread = world->Spins(pid, pid);
  thread.spin->polls.clear(), thread.spin->polled_variable.clear();
  thread.spin->calls.push_back(std::move(call));
  return thread;
}

TEST(ProcessSpins, WhoAsksAPipeOfItsOwnSpins) {
  World world;
  SpinsThrough(&world, 10, Asks("read", -EAGAIN, {10}));
  EXPECT_EQ(Only(world.Judge()).summary,
            "spin, its only thread spins through read of fd 4 (a pipe written by itself), which "
            "has nothing, and nobody is left to end that");
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
  World ready;
  ThreadFacts::Spin::Call call = Asks("epoll_wait", 1, {10});
  call.ready = {4};
  SpinsThrough(&ready, 10, call);
  EXPECT_THAT(Only(ready.Judge()).summary,
              HasSubstr("spins through epoll_wait: fd 4 (a pipe written by itself) is ready and is "
                        "not read"));
}

TEST(ProcessSpins, WhoAsksForWhatAnotherProcessMayGiveSpinsOnlyWhileThatStandsStill) {
  World world;
  SpinsThrough(&world, 10, Asks("poll", 0, {20}));
  world.Reads(20, 20, {10});
  EXPECT_EQ(Only(world.Judge()).kind, Kind::kSpin);
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
  EXPECT_THAT(Only(world.Judge()).summary,
              HasSubstr("poll: fd 4 (a pipe written by 20 program) is not ready"));
  World moves;
  SpinsThrough(&moves, 10, Asks("poll", 0, {20}));
  moves.Thread(20, 20, WaitKind::kTime);
  EXPECT_FALSE(moves.Judge().IsBad());
  World unknown;
  SpinsThrough(&unknown, 10, Asks("poll", 0, {20}));
  EXPECT_FALSE(unknown.Judge().IsBad()) << "it was not looked at";
}

TEST(ProcessSpins, WhoAsksTheOutsidePollsByDesign) {
  for (const FileKind kind : {FileKind::kTerminal, FileKind::kFile, FileKind::kDevice}) {
    World world;
    ThreadFacts& thread = SpinsThrough(&world, 10, Asks("poll", 0, {}));
    thread.spin->calls[0].wait.files[0].kind = kind;
    EXPECT_TRUE(IsSilent(world.Judge()));
  }
  World network;
  ThreadFacts& thread = SpinsThrough(&network, 10, Asks("recvfrom", -EAGAIN, {}));
  thread.spin->calls[0].wait.files[0].outside = true;
  EXPECT_TRUE(IsSilent(network.Judge()));
}

// Of one that has a name, `outside` says that anybody may write more.
TEST(ProcessSpins, WhoReadsBehindTheEndOfAFileWaitsForThoseWhoHaveItOpen) {
  const auto reads = [](World* world, FileKind kind) -> WaitFile& {
    WaitFile& file = SpinsThrough(world, 10, Asks("read", 0, {})).spin->calls[0].wait.files[0];
    file.kind = kind, file.name = "/tmp/x (deleted)";
    return file;
  };
  for (const FileKind kind : {FileKind::kFile, FileKind::kDevice}) {
    World world;
    reads(&world, kind);
    EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
    EXPECT_THAT(Only(world.Judge()).summary, HasSubstr("which is at its end, and nobody is left"));
    World named;
    reads(&named, kind).outside = true;
    EXPECT_TRUE(IsSilent(named.Judge()));
  }
  World unknown;
  reads(&unknown, FileKind::kFile).others_unknown = true;
  EXPECT_FALSE(unknown.Judge().IsBad());
  World written;
  reads(&written, FileKind::kFile).others = {{20, 3}};
  written.Thread(20, 20, WaitKind::kTime);
  EXPECT_FALSE(written.Judge().IsBad());
}

TEST(ProcessSpins, WhoAsksForAChildWaitsForItAndWhoAsksAnythingElseIsPossibleOnly) {
  const auto of_child = [] {
    ThreadFacts::Spin::Call call;
    call.name = "wait4", call.wait.kind = WaitKind::kChild, call.wait.children = {20};
    return call;
  };
  World world;
  SpinsThrough(&world, 10, of_child());
  world.Reads(20, 20, {10});
  EXPECT_TRUE(Only(world.Judge()).IsBad());
  EXPECT_THAT(Only(world.Judge()).summary,
              HasSubstr("spins through wait4: the end of child 20 program has not come"));
  World works;
  SpinsThrough(&works, 10, of_child());
  works.Thread(20, 20, WaitKind::kNone).state = ThreadState::kRunning;
  EXPECT_FALSE(works.Judge().IsBad());
  World other;
  ThreadFacts::Spin::Call semaphore;
  semaphore.name = "semop", semaphore.result = -EAGAIN, semaphore.wait.kind = WaitKind::kOther;
  SpinsThrough(&other, 10, semaphore);
  EXPECT_EQ(Only(other.Judge()).confidence, Confidence::kPossible);
}

TEST(ProcessSpins, ThreadsThatSpinForEachOtherAreToldTogether) {
  World world;
  world.Spins(10, 10).spin->polled_variable = "tx_lock";
  world.Spins(10, 11).spin->polled_variable = "rx_lock";
  EXPECT_EQ(
      Only(world.Judge()).summary,
      "spin, 2 of 2 threads spin for rx_lock and for tx_lock, and nobody is left to end that");
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kCertain);
}

// A lock that is taken and given back for a moment may be met free.
TEST(ProcessSpins, WhoPollsWhatAnotherSpinnerChangesMayGetOut) {
  World world;
  world.Spins(10, 10).spin->polls = {0x4014};
  world.Spins(10, 11).spin->flickers = {0x4010};
  for (const ProcessFinding& finding : world.Judge().findings)
    EXPECT_EQ(finding.confidence, Confidence::kPossible) << finding.summary;
  World apart;
  apart.Spins(10, 10).spin->polls = {0x4018};
  apart.Spins(10, 11).spin->flickers = {0x4010};
  EXPECT_TRUE(apart.Judge().IsBad());
}

// Two that take turns with a lock spin, too, but never at one time.
TEST(ProcessSpins, SpinnersThatWereNotHeldAtOneTimeMayTakeTurns) {
  World world;
  world.Spins(10, 10);
  world.Spins(10, 11).spin->held_with_others = false;
  EXPECT_FALSE(world.Judge().IsBad());
  World alone;
  alone.Spins(10, 10).spin->held_with_others = false;
  EXPECT_TRUE(alone.Judge().IsBad());
}

TEST(ProcessSpins, ProcessesThatSpinOnSharedWordsHangTogetherOnlyWhereAllWhoHaveItAreKnown) {
  const auto shared = [](World* world, int pid, int other, bool known) {
    ThreadFacts::Spin& spin = *world->Spins(pid, pid).spin;
    spin.polls_shared = true, spin.sharers = {other}, spin.sharers_known = known;
  };
  World world;
  shared(&world, 10, 20, true), shared(&world, 20, 10, true);
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
  EXPECT_THAT(Only(world.Judge()).threads, ElementsAre(10, 20));
  World hidden;
  shared(&hidden, 10, 20, false), shared(&hidden, 20, 10, false);
  EXPECT_FALSE(hidden.Judge().IsBad());
  World moves;
  shared(&moves, 10, 20, true);
  moves.Thread(20, 20, WaitKind::kTime);
  EXPECT_FALSE(moves.Judge().IsBad());
}

TEST(ProcessSpins, WhoPollsAVariableThatAHandlerMaySetIsPossibleOnly) {
  World world;
  world.Process(10).caught_signals = kTerm;
  world.Spins(10, 10);
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible);
  World stripped;
  stripped.Process(10).caught_signals = kTerm;
  stripped.Spins(10, 10).spin->polled_variable.clear();
  EXPECT_EQ(Only(stripped.Judge()).confidence, Confidence::kPossible);
  World limited;  // a spin uses up the time whose end raises it
  limited.Process(10).caught_signals = SignalBit(SIGXCPU);
  ThreadFacts::Spin& spin = *limited.Spins(10, 10).spin;
  spin.polls.clear();
  spin.polled_variable.clear();
  EXPECT_EQ(Only(limited.Judge()).confidence, Confidence::kPossible);
  World elsewhere;  // a field of an object: a handler has no way to it
  elsewhere.Process(10).caught_signals = kTerm;
  elsewhere.Spins(10, 10).spin->polled_variable = "the lock of a queue";
  EXPECT_EQ(Only(elsewhere.Judge()).confidence, Confidence::kLikely);
}

TEST(ProcessSpins, WhoSpinsForAThreadThatWaitsForItIsWhy) {
  World world;
  world.Spins(10, 10);
  world.Signals(10, 11, "work");
  world.Joins(10, 12, 11);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kSpin);
  EXPECT_THAT(finding.threads, ElementsAre(10));
  EXPECT_THAT(finding.victims, ElementsAre(11, 12));
}

// Two who wait for each other's mutex with time limits, as `looks` saw them: `otherwise` changes
// one of these.
ProcessJudgement JudgeRetries(size_t looks,
                              const std::function<void(size_t, SystemSample*)>& otherwise) {
  World world;
  world.Locks(10, 10, "lock_b", 11).wait.has_timeout = true;
  world.Locks(10, 11, "lock_a", 10).wait.has_timeout = true;
  std::vector<SystemSample> all;
  for (size_t i = 0; i < looks; ++i) {
    SystemSample look = world.look();
    look.begin += static_cast<TimeNs>(i) * 100 * kMillisecond;
    look.end += static_cast<TimeNs>(i) * 100 * kMillisecond;
    for (ThreadFacts& thread : look.processes[0].threads) thread.voluntary_switches += 5 * i;
    if (otherwise) otherwise(i, &look);
    all.push_back(std::move(look));
  }
  return JudgeProcess(all);
}

TEST(ProcessRetries, WhoWaitForEachOtherWithTimeLimitsAgainAndAgainAreDeadlocked) {
  const ProcessFinding finding = Only(JudgeRetries(11, nullptr));
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_EQ(finding.summary, "deadlock, 2 of 2 threads wait for each other, each time anew");
  EXPECT_THAT(finding.evidence, ElementsAre("what has a time limit here is begun again each time: "
                                            "the same in 11 looks over 1.0 s"));
}

TEST(ProcessRetries, WhoGetsThroughOrWorksOrWaitsOnceOnlyIsNone) {
  EXPECT_TRUE(IsSilent(JudgeRetries(2, nullptr))) << "too few looks";
  const auto second = [](SystemSample* look) -> ThreadFacts& {
    return look->processes[0].threads[1];
  };
  const std::function<void(size_t, SystemSample*)> cases[] = {
      [&](size_t i, auto* look) {
        if (i == 4) second(look).wait = {}, second(look).wait.kind = WaitKind::kTime;
      },
      [&](size_t i, auto* look) {
        if (i == 4) second(look).wait.owner = 12;
      },
      [&](size_t i, auto* look) {
        if (i == 4) second(look).wait.address = 0x2000;
      },
      [&](size_t i, auto* look) { second(look).cpu_time = 50 * kMillisecond * (i + 1); },
      [&](size_t, auto* look) { second(look).voluntary_switches = 7; },
      [&](size_t, auto* look) { second(look).state = ThreadState::kRunning; },
  };
  for (const auto& change : cases) EXPECT_TRUE(IsSilent(JudgeRetries(11, change)));
}

// Two processes each of which has the database that the other one wants.
ProcessJudgement JudgeDatabases(std::optional<TimeNs> limit,
                                const std::function<void(size_t, SystemSample*)>& otherwise) {
  World world;
  for (const auto& [pid, other] : {std::pair(10, 20), std::pair(20, 10)}) {
    ThreadWait& wait = world.Thread(pid, pid, WaitKind::kFileLock).wait;
    wait.has_timeout = true, wait.timeout = limit, wait.object_type = "database";
    WaitFile file;
    file.fd = 4, file.kind = FileKind::kFile, file.name = pid == 10 ? "b.db" : "a.db";
    file.others = {{other, -1}};
    wait.files = {file};
  }
  std::vector<SystemSample> all;
  for (size_t i = 0; i < 11; ++i) {
    SystemSample look = world.look();
    look.begin += static_cast<TimeNs>(i) * 100 * kMillisecond;
    look.end += static_cast<TimeNs>(i) * 100 * kMillisecond;
    for (ProcessFacts& process : look.processes) process.threads[0].voluntary_switches += 5 * i;
    if (otherwise) otherwise(i, &look);
    all.push_back(std::move(look));
  }
  return JudgeProcess(all);
}

TEST(ProcessRetries, WhoNapForEachOthersDatabasesAreDeadlocked) {
  const ProcessFinding finding = Only(JudgeDatabases(600 * kSecond, nullptr));
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.threads, ElementsAre(10, 20));
  EXPECT_THAT(finding.doubts,
              ::testing::Contains(HasSubstr("gives up with SQLITE_BUSY after 10 m")));
  EXPECT_EQ(Only(JudgeDatabases(std::nullopt, nullptr)).confidence, Confidence::kLikely);
}

TEST(ProcessRetries, WhoGivesUpSoonMayBeNone) {
  const ProcessFinding finding = Only(JudgeDatabases(5 * kSecond, nullptr));
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
}

TEST(ProcessRetries, WhoseDatabaseIsHeldByAnotherInBetweenIsNone) {
  EXPECT_TRUE(IsSilent(JudgeDatabases(600 * kSecond, [](size_t i, SystemSample* look) {
    if (i == 4) look->processes[1].threads[0].wait.files[0].others = {{30, -1}};
  })));
  EXPECT_TRUE(IsSilent(JudgeDatabases(600 * kSecond, [](size_t, SystemSample* look) {
    look->processes[1].threads[0].wait = {};
    look->processes[1].threads[0].wait.kind = WaitKind::kTime;
  }))) << "the holder naps";
}

// Two processes that nap, and look whether the other one still has the lock of its file.
World NapsForEachOthersLocks() {
  World world;
  for (const auto& [pid, other] : {std::pair(10, 20), std::pair(20, 10)}) {
    ThreadFacts& thread = world.Thread(pid, pid, WaitKind::kTime);
    thread.wait.has_timeout = true, thread.wait.timeout = 100 * kMillisecond;
    thread.spin = ThreadFacts::Spin{};
    thread.spin->steps = 63, thread.spin->period = 19;
    thread.spin->naps = thread.spin->in_part = true;
    ThreadFacts::Spin::Call call{"flock", -EAGAIN, {}, {}};
    call.wait.kind = WaitKind::kFileLock;
    WaitFile file;
    file.fd = 4, file.kind = FileKind::kFile, file.name = pid == 10 ? "/b.lock" : "/a.lock";
    file.others = {{other, 3}};
    call.wait.files = {file};
    thread.spin->calls = {call};
  }
  return world;
}

TEST(ProcessRetries, WhoNapForEachOthersLocksOfFilesAreDeadlocked) {
  World world = NapsForEachOthersLocks();
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.threads, ElementsAre(10, 20));
  EXPECT_EQ(finding.summary,
            "deadlock, 2 threads of 2 processes wait for each other, each time anew");
  EXPECT_THAT(finding.evidence, ElementsAre(HasSubstr("asleep again for the same after 19"),
                                            HasSubstr("system call: flock")));
  EXPECT_EQ(DoesWhat(world.Of(10).threads[0], world.look()),
            "naps 100 ms and looks again through flock for the lock of /b.lock (fd 4), held by 20 "
            "program");
  world.Of(10).caught_signals = SignalBit(SIGALRM);
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible) << "a timer's handler";
}

TEST(ProcessRetries, WhoNapsForALockOfAFileThatAnotherOneMayGiveBackIsNone) {
  World world = NapsForEachOthersLocks();
  world.Thread(20, 21, WaitKind::kTime).wait.has_timeout = true;
  EXPECT_TRUE(IsSilent(world.Judge())) << "any thread of the holder may";
  World third = NapsForEachOthersLocks();
  third.Of(20).threads[0].spin->calls[0].wait.files[0].others = {{30, 3}};
  third.Process(30);
  third.Thread(30, 30, WaitKind::kTime).wait.has_timeout = true;
  EXPECT_TRUE(IsSilent(third.Judge())) << "who has it naps";
  World unknown = NapsForEachOthersLocks();
  unknown.Of(20).threads[0].spin->calls[0].wait.files[0].others_unknown = true;
  EXPECT_TRUE(IsSilent(unknown.Judge()));
}

// One that is blocked for good and one that tries again: py-gil's half.
TEST(ProcessRetries, OneMayWaitWithoutALimit) {
  const auto judgement = JudgeRetries(11, [](size_t, SystemSample* look) {
    ThreadFacts& thread = look->processes[0].threads[0];
    thread.wait.has_timeout = false, thread.voluntary_switches = 7;
  });
  EXPECT_EQ(Only(judgement).kind, Kind::kDeadlock);
  EXPECT_EQ(Only(judgement).confidence, Confidence::kLikely);
}

// Sleeps for a time, and was followed from one such sleep to the next.
ThreadFacts& Naps(World* world, int pid, int tid, const char* variable) {
  ThreadFacts& thread = world->Spins(pid, tid);
  thread.state = ThreadState::kSleeping, thread.wait.kind = WaitKind::kTime;
  thread.wait.has_timeout = true, thread.wait.timeout = 2 * kMillisecond;
  thread.spin->naps = thread.spin->in_part = true, thread.spin->polled_variable = variable;
  return thread;
}

TEST(ProcessNaps, WhoNapsAndLooksForWhatNobodyIsLeftToGiveDoesSoForEver) {
  World world;
  Naps(&world, 10, 10, "ready");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kSpin);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_EQ(finding.summary,
            "spin, its only thread naps 2 ms and looks again for ready, and nobody is left to end "
            "that");
  Naps(&world, 10, 11, "done");
  EXPECT_EQ(Only(world.Judge()).summary,
            "spin, 2 of 2 threads nap and look again for done and for ready, and nobody is left to "
            "end that");
}

TEST(ProcessNaps, WhomSomebodyMayGiveThatIsLeftAlone) {
  World beside;
  Naps(&beside, 10, 10, "ready");
  beside.Thread(10, 11, WaitKind::kAccept);
  EXPECT_TRUE(beside.Judge().findings.empty()) << "who waits for the outside";
  World timed;
  Naps(&timed, 10, 10, "ready");
  timed.Thread(10, 11, WaitKind::kTime);
  EXPECT_TRUE(timed.Judge().findings.empty()) << "who sleeps for a time, and was not followed";
  World handles;
  handles.Process(10).caught_signals = kTerm;
  Naps(&handles, 10, 10, "ready");
  EXPECT_TRUE(handles.Judge().findings.empty()) << "a handler of a signal";
  World shared;
  ThreadFacts& thread = Naps(&shared, 10, 10, "ready");
  thread.spin->polls_shared = thread.spin->sharers_known = true;
  EXPECT_TRUE(shared.Judge().findings.empty()) << "who has the memory, too";
  World works;
  Naps(&works, 10, 10, "ready").spin->writes_memory = true;
  EXPECT_TRUE(works.Judge().findings.empty()) << "it does something";
}

TEST(ProcessNaps, WhoNapsForWhoSpinsMayDoSoByTurns) {
  World world;
  Naps(&world, 10, 10, "ready");
  world.Spins(10, 11);
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible);
}

TEST(ProcessNaps, WhoTriesALockAgainAndAgainIsToldByThat) {
  World world;
  ThreadFacts& thread = Naps(&world, 10, 10, "");
  thread.wait.kind = WaitKind::kMutex, thread.wait.variable = "lock_a", thread.wait.owner = 9;
  thread.wait.owner_died = true, thread.naps_again = true;
  EXPECT_EQ(DoesWhat(world.look().processes[0].threads[0], world.look()),
            "waits for mutex lock_a, held by 9, which ended, again and again");
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
}

TEST(ProcessSpins, WhoKeepsTheTimeBesideWhatDecidesIsLikelyToSpin) {
  World world;
  world.Spins(10, 10).spin->in_part = true;
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
  World others;
  others.Spins(10, 10).spin->in_part = true;
  others.Spins(10, 11);
  EXPECT_EQ(Only(others.Judge()).confidence, Confidence::kPossible) << "perhaps by turns";
  world.Thread(10, 11, WaitKind::kTime);
  EXPECT_TRUE(world.Judge().findings.empty()) << "it may compute for as long";
}

TEST(ProcessSpins, APipeWithoutAnotherEndWillNeverHaveOne) {
  ThreadFacts::Spin::Call poll;
  poll.name = "poll", poll.result = 1, poll.wait.kind = WaitKind::kPoll, poll.ready = {3};
  WaitFile pipe;
  pipe.fd = 3, pipe.kind = FileKind::kPipe, pipe.name = "pipe:[1]";
  poll.wait.files = {pipe};
  World world;
  SpinsThrough(&world, 10, poll);
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
  EXPECT_THAT(Only(world.Judge()).summary, HasSubstr("fd 3 (a pipe) has no other end any more"));
  poll.wait.files[0].others_unknown = true;
  World unknown;
  SpinsThrough(&unknown, 10, poll);
  EXPECT_EQ(Only(unknown.Judge()).confidence, Confidence::kPossible);
}

TEST(ProcessSpins, WhoAsksWhetherAProcessIsThereWaitsForItsEnd) {
  ThreadFacts::Spin::Call kill;
  kill.name = "kill", kill.wait.kind = WaitKind::kRead;
  WaitFile end;
  end.kind = FileKind::kProcess, end.others = {{20, -1}};
  kill.wait.files = {end};
  World world;
  SpinsThrough(&world, 10, kill);
  world.Reads(20, 20, {10});
  EXPECT_THAT(Only(world.Judge()).summary,
              HasSubstr("spins through kill: the end of process 20 program has not come"));
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
  World works;
  SpinsThrough(&works, 10, kill);
  works.Thread(20, 20, WaitKind::kTime);
  EXPECT_FALSE(works.Judge().IsBad());
}

TEST(ProcessRetries, WhoNapsAtOnePlaceIsSaidToDoSoAgainAndAgain) {
  World world;
  ThreadFacts& thread = world.Thread(10, 10, WaitKind::kTime);
  thread.wait.has_timeout = true, thread.wait.timeout = 5 * kMillisecond;
  thread.stack_pointer = 0x7000;
  thread.stack = {{1, "clock_nanosleep", "", "libc.so.6"}, {2, "poll_again", "", "program"}};
  SystemSample now = world.look();
  SystemSample before = now;
  NoteNaps(before, &now);
  EXPECT_FALSE(now.processes[0].threads[0].naps_again) << "it has not woken";
  before.processes[0].threads[0].voluntary_switches -= 3;
  NoteNaps(before, &now);
  EXPECT_EQ(DoesWhat(now.processes[0].threads[0], now), "naps 5 ms in poll_again, again and again");
  SystemSample elsewhere = world.look();
  before.processes[0].threads[0].stack_pointer = 0x7100;
  NoteNaps(before, &elsewhere);
  EXPECT_FALSE(elsewhere.processes[0].threads[0].naps_again);
}

}  // namespace
}  // namespace hangscope
