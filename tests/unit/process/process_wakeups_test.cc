// Signals that nobody is left to give, and handlers that may give them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/process/process_story.h"

namespace hangscope {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = FindingKind;

TEST(ProcessWakeups, APoolThatWaitsForOneSignalIsTheReasonAsAWhole) {
  World world;
  world.Joins(10, 10, 13);
  for (const int tid : {11, 12, 13}) world.Signals(10, tid, "work_came");
  for (const auto& [tid, other] : {std::pair(14, "a"), {15, "b"}, {16, "c"}})
    world.Signals(10, tid, other);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_THAT(finding.threads, ElementsAre(11, 12, 13));
  EXPECT_THAT(finding.victims, ElementsAre(10, 14, 15, 16));
  EXPECT_THAT(finding.summary, HasSubstr("3 of 7 threads wait for condition work_came"));
}

TEST(ProcessWakeups, OfFewDifferentSignalsEachMayBeTheReason) {
  World world;
  world.Joins(10, 10, 11);
  world.Signals(10, 11, "not_full");
  world.Signals(10, 12, "not_empty");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_THAT(finding.threads, ElementsAre(11, 12));
  EXPECT_THAT(finding.summary, HasSubstr("wait for condition not_empty, condition not_full, and"));
}

TEST(ProcessWakeups, WhoeverCouldSignalAndWantsAHeldLockIsNamed) {
  World world;
  world.Joins(10, 10, 11);
  world.Signals(10, 11, "not_empty");
  world.Locks(10, 12, "table", 11);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.threads, ElementsAre(11));
  EXPECT_THAT(finding.partners, ElementsAre(12));
  EXPECT_EQ(finding.summary,
            "deadlock, 1 of 3 threads waits for condition not_empty, and another one wants a lock "
            "that this one holds");
}

TEST(ProcessWakeups, AllWhoWaitForOneBarrierAreTheReason) {
  for (const WaitKind kind : {WaitKind::kBarrier, WaitKind::kFutex, WaitKind::kSemaphore}) {
    World world;
    world.Joins(10, 10, 13);
    for (const int tid : {11, 12, 13}) world.Thread(10, tid, kind).wait.variable = "phase";
    const ProcessFinding finding = Only(world.Judge());
    EXPECT_THAT(finding.threads, ElementsAre(11, 12, 13));
    EXPECT_THAT(finding.victims, ElementsAre(10));
  }
}

TEST(ProcessWakeups, ASignalThatNobodyIsLeftToGiveIsLost) {
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

TEST(ProcessWakeups, AnIdlePoolOfWhichOneWaitsForTheOutsideIsAtWork) {
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

TEST(ProcessWakeups, AHandlerMayPostASemaphoreButNoCondition) {
  World world;
  world.Process(10).caught_signals = kTerm;
  world.Thread(10, 10, WaitKind::kSemaphore);
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible);
  World other;
  other.Process(10).caught_signals = kTerm;
  other.Signals(10, 10, "work");
  const ProcessFinding finding = Only(other.Judge());
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.doubts, ::testing::Contains(HasSubstr("handles signals")));
}

TEST(ProcessWakeups, WhereOneOfThemMayBeWokenByAHandlerNoneIsStuckForSure) {
  World world;
  world.Process(10).caught_signals = kTerm;
  world.Thread(10, 10, WaitKind::kSemaphore);
  world.Signals(10, 11, "work");
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
  EXPECT_EQ(
      finding.summary,
      "lost wakeup, 2 of 2 threads wait for 2 different signals, and nobody is left to give one");
}

TEST(ProcessWakeups, WhatALibraryWaitsForIsCalledByItsName) {
  const auto waits = [](World* world, int tid, std::vector<std::string> functions) {
    ThreadFacts& thread = world->Thread(10, tid, WaitKind::kFutex);
    thread.wait.address = 0x1000u * static_cast<uint64_t>(tid);
    for (const std::string& function : functions) thread.stack.push_back({1, function, "", "libx"});
    thread.stack.front().module = "libc.so.6";
    thread.stack.push_back({2, "Wait", "own.cc:1", "program"});
    for (StackFrame& frame : thread.stack) frame.of_system = frame.source.empty();
  };
  const auto of = [&](std::vector<std::string> functions) {
    World world;
    waits(&world, 10, std::move(functions));
    return Only(world.Judge()).summary;
  };
  EXPECT_EQ(of({"syscall", "std::__future_base::_State_baseV2::wait()"}),
            "lost wakeup, its only thread waits for std::future at 0xa000, and nobody is left to "
            "set it");
  EXPECT_EQ(of({"syscall", "g_cond_wait", "g_async_queue_pop"}),
            "lost wakeup, its only thread waits for an item of a GAsyncQueue, and nobody is left "
            "to push it");
  EXPECT_EQ(of({"syscall", "std::thread::park", "std::sync::mpsc::Receiver<T>::recv"}),
            "lost wakeup, its only thread waits for a message of a channel, and nobody is left to "
            "send it");
  EXPECT_EQ(of({"syscall"}),
            "lost wakeup, its only thread waits for futex at 0xa000, and nobody is left to signal "
            "it");
  World two;
  for (const int tid : {10, 11}) waits(&two, tid, {"syscall", "std::future<int>::get()"});
  EXPECT_EQ(Only(two.Judge()).summary,
            "lost wakeup, 2 of 2 threads wait for 2 different std::futures, and nobody is left to "
            "set one");
  World others;
  waits(&others, 10, {"syscall", "std::future<int>::get()"});
  waits(&others, 11, {"syscall"});
  EXPECT_THAT(Only(others.Judge()).summary, HasSubstr("2 different signals, and nobody is left to "
                                                      "give one"));
}

TEST(ProcessWakeups, WhoeverAHandlerMayWakeMaySignalTheOthers) {
  World world;
  world.Process(10).caught_signals = kTerm;
  world.Thread(10, 10, WaitKind::kSemaphore);
  world.Signals(10, 11, "work");
  world.Joins(10, 12, 11);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_THAT(finding.threads, ElementsAre(10, 11));
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
}

TEST(ProcessWakeups, PythonRunsHandlersInTheLocksOfItsMainThreadOnly) {
  const std::vector<StackFrame> stack = {{1, "sem_wait", "", "libc.so.6"},
                                         {2, "PyThread_acquire_lock_timed", "", "python3"}};
  World waits_for_stop;
  waits_for_stop.Process(10).caught_signals = kTerm;
  waits_for_stop.Thread(10, 10, WaitKind::kSemaphore).stack = stack;
  EXPECT_EQ(Only(waits_for_stop.Judge()).confidence, Confidence::kPossible);
  World main_elsewhere;
  main_elsewhere.Process(10).caught_signals = kTerm;
  main_elsewhere.Thread(10, 11, WaitKind::kSemaphore).stack = stack;
  EXPECT_EQ(Only(main_elsewhere.Judge()).confidence, Confidence::kLikely);
}

TEST(ProcessWakeups, RubyRunsHandlersInItsMainThreadOnly) {
  const auto confidence = [](int tid) {
    World world;
    world.Process(10, "ruby3.1").caught_signals = kTerm;
    world.Signals(10, tid, "Queue").stack = {
        {0, "take_job", "worker.rb:3", "/srv/worker.rb", FrameLanguage::kRuby}};
    return Only(world.Judge()).confidence;
  };
  EXPECT_EQ(confidence(10), Confidence::kPossible);
  EXPECT_EQ(confidence(11), Confidence::kLikely);
}

TEST(ProcessWakeups, PythonsOwnHandlerForInterruptsEndsNoWait) {
  World world;
  world.Process(10).caught_signals = SignalBit(SIGINT);
  world.Thread(10, 10, WaitKind::kSemaphore).stack = {
      {1, "sem_wait", "", "libc.so.6"}, {2, "PyThread_acquire_lock_timed", "", "python3.11"}};
  EXPECT_FALSE(Only(world.Judge()).IsBad());  // it is the program's
  world.Of(10).runtime_signals = SignalBit(SIGINT);
  EXPECT_TRUE(Only(world.Judge()).IsBad());
  world.Of(10).caught_signals |= kTerm;
  EXPECT_FALSE(Only(world.Judge()).IsBad());
}

TEST(ProcessWakeups, AHandlerInPythonsMainThreadMaySignalWhatItsWorkersWaitFor) {
  World world;
  world.Process(10).caught_signals = kTerm;
  const std::vector<StackFrame> stack = {
      {2, "PyThread_acquire_lock_timed", "", "python3.11"},
      {0, "serve", "app.py:7", "/srv/app.py", FrameLanguage::kPython}};
  world.Joins(10, 10, 11).stack = stack;
  world.Signals(10, 11, "came").stack = stack;
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible);
  world.Of(10).caught_signals = 0;
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
}

// A worker waits for the lock of its queue, which another one has who reads from their parent.
World Workers(uint64_t parent_handles) {
  World world;
  for (const int pid : {20, 21, 10}) world.Process(pid, "python3").parent = pid == 10 ? 1 : 10;
  world.Ask({10, 20, 21});
  world.Of(10).caught_signals = parent_handles;
  ThreadWait& lock = world.Thread(20, 20, WaitKind::kSemaphore).wait;
  lock.shared = true;
  lock.sharers = {10, 20, 21};
  world.Reads(21, 21, {10, 20, 21});
  return world;
}

TEST(ProcessWakeups, WorkersOfAProcessThatAHandlerWakesMayIdle) {
  const auto judge = [](uint64_t handles) {
    World world = Workers(handles);
    world.Thread(10, 10, WaitKind::kSemaphore);
    for (const ProcessFinding& finding : world.Judge().findings) {
      if (finding.IsBad()) return true;
    }
    return false;
  };
  EXPECT_TRUE(judge(0));
  EXPECT_FALSE(judge(kTerm));
}

TEST(ProcessWakeups, AHandlerOfPythonMayGiveThemWorkWhileItWaitsForTheirEnd) {
  const auto judge = [](uint64_t handles, FrameLanguage language) {
    World world = Workers(handles);
    ThreadFacts& parent = world.Thread(10, 10, WaitKind::kChild);
    parent.wait.children = {20};
    parent.stack = {{0, "serve", "app.py:7", "/srv/app.py", language}};
    for (const ProcessFinding& finding : world.Judge().findings) {
      if (finding.IsBad()) return true;
    }
    return false;
  };
  EXPECT_TRUE(judge(0, FrameLanguage::kPython));
  EXPECT_TRUE(judge(kTerm, FrameLanguage::kNative));
  EXPECT_FALSE(judge(kTerm, FrameLanguage::kPython));
}

TEST(ProcessWakeups, WhatAThreadRaisesItselfEndsNoWait) {
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPIPE}) {
    World world;
    world.Process(10).caught_signals = SignalBit(number);
    world.Thread(10, 10, WaitKind::kFutex);
    EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely) << number;
    World pipe;
    pipe.Process(10).caught_signals = SignalBit(number);
    pipe.Reads(10, 10, {10});
    EXPECT_EQ(Only(pipe.Judge()).confidence, Confidence::kCertain) << number;
  }
}

// As make does: it reads its own pipe, and a child that ends writes it, by way of the handler.
TEST(ProcessWakeups, ChildrenEndTheWaitsOfThoseWhoHandleTheirSignal) {
  World world;
  world.Process(10, "make").caught_signals = kChild | kTerm;
  world.Reads(10, 10, {10}).wait.children = {20, 30};
  world.Process(20, "job");
  world.Thread(20, 20, WaitKind::kTime).wait.has_timeout = true;
  world.Locks(30, 30, "lock", 30);
  EXPECT_EQ(Only(world.Judge()).threads, std::vector<int>{30});
  World hung;
  hung.Process(10, "make").caught_signals = kChild | kTerm;
  hung.Reads(10, 10, {10}).wait.children = {30};
  hung.Locks(30, 30, "lock", 30);
  const ProcessFinding finding = hung.Judge().findings[0];
  EXPECT_EQ(finding.kind, Kind::kDeadlock);
  EXPECT_THAT(finding.victims, ElementsAre(10));
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
}

TEST(ProcessWakeups, WhoWaitsForTheSignalOfItsChildrenWaitsForThem) {
  const auto waits = [](uint64_t signals) {
    World world;
    ThreadFacts& thread = world.Thread(10, 10, WaitKind::kSignal);
    thread.wait.signals = signals, thread.wait.children = {20};
    world.Locks(20, 20, "lock", 20);
    return world.Judge().findings[0].victims;
  };
  EXPECT_THAT(waits(kChild), ElementsAre(10));
  EXPECT_THAT(waits(kChild | SignalBit(SIGSEGV)), ElementsAre(10));
  EXPECT_THAT(waits(kChild | kTerm), ElementsAre());
  const auto polls = [](uint64_t signals) {
    World world;
    ThreadFacts& thread = world.Thread(10, 10, WaitKind::kPoll);
    WaitFile file;
    file.kind = FileKind::kSignals, file.signals = signals;
    thread.wait.files = {file}, thread.wait.children = {20};
    world.Locks(20, 20, "lock", 20);
    return world.Judge().findings[0].victims;
  };
  EXPECT_THAT(polls(kChild), ElementsAre(10));
  EXPECT_THAT(polls(kChild | kTerm), ElementsAre());
}

TEST(ProcessWakeups, WhoLetsNoSignalInWaitsForNone) {
  World world;
  ThreadFacts& thread = world.Thread(10, 10, WaitKind::kSignal, "idle");
  EXPECT_TRUE(IsSilent(world.Judge()));
  thread.wait.no_signal_comes = true;
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kLostWakeup);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_EQ(finding.summary,
            "lost wakeup, its only thread waits for a signal, and blocks or ignores all of them");
  EXPECT_THAT(LinesOf(world),
              ElementsAre(HasSubstr("for a signal, of which it blocks or ignores all")));
  // Another thread takes the signals, or works until the process ends.
  World beside = world;
  beside.Thread(10, 11, WaitKind::kSignal);
  EXPECT_TRUE(IsSilent(beside.Judge()));
  world.Of(10).threads[0].stack = {{0x1000, "Main", "main.cc:7", "program"}};
  ThreadFacts& ticker = world.Thread(10, 12, WaitKind::kTime);
  ticker.wait.has_timeout = true, ticker.since = world.look().end - kSecond;
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessWakeups, WhatTheProgramWaitsForComesBeforeEventLoopsThatIdle) {
  World world;
  world.Process(10, "node").caught_signals = kTerm;
  ThreadFacts& loop = world.Reads(10, 10, {10});
  loop.wait.kind = WaitKind::kPoll, loop.stack = {{0, "uv__io_poll", "", "node"}};
  world.Signals(10, 11, "pool").stack = {{0, "worker", "", "node"}};
  for (const int tid : {12, 13})
    world.Signals(10, tid, tid == 12 ? "x" : "y").stack = {{0, "FutexEmulation", "", "node"},
                                                           {0, "uv__io_poll", "", "node"}};
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kLostWakeup);
  EXPECT_THAT(finding.threads, ElementsAre(12, 13));
  EXPECT_THAT(finding.victims, ElementsAre(10, 11));
  EXPECT_EQ(finding.confidence,
            Confidence::kPossible);  // the loop may run a handler, and wake them
  World idle;
  idle.Process(10, "node");
  ThreadFacts& only = idle.Reads(10, 10, {10});
  only.wait.kind = WaitKind::kPoll, only.stack = {{0, "uv__io_poll", "", "node"}};
  idle.Signals(10, 11, "pool").stack = {{0, "worker", "", "node"}};
  EXPECT_EQ(Only(idle.Judge()).kind, Kind::kNoWriter);
}

TEST(ProcessWakeups, TimersAndTheDebuggerOfNodeRunNoHandlerOfTheProgram) {
  World world;
  world.Process(10, "node").caught_signals = kTerm;
  world.Signals(10, 10, "x").stack = {{0, "FutexEmulation", "", "node"}};
  ThreadFacts& loop = world.Reads(10, 11, {10});
  loop.wait.kind = WaitKind::kPoll;
  loop.stack = {{0, "uv__io_poll", "", "node"}, {0, "DelayedTaskScheduler::Start()", "", "node"}};
  ThreadFacts& debugger = world.Thread(10, 12, WaitKind::kSemaphore);
  debugger.stack = {{0, "uv_sem_wait", "", "node"}, {0, "StartIoThreadMain", "", "node"}};
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_THAT(finding.threads, ElementsAre(10));
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
}

// The main thread waits for a signal beside a heartbeat, in a program with lines.
World BesideHeartbeat() {
  World world;
  world.Signals(10, 10, "done").stack = {{1, "main", "wait.c:12", "wait"}};
  ThreadFacts& heartbeat = world.Thread(10, 11, WaitKind::kTime, "heartbeat");
  heartbeat.wait.has_timeout = true;
  heartbeat.since = world.look().end - 300 * kMillisecond;
  return world;
}

TEST(ProcessWakeups, ALostOneBesideAHeartbeatIsNeverSilence) {
  const ProcessFinding finding = Only(BesideHeartbeat().Judge());
  EXPECT_EQ(finding.kind, Kind::kLostWakeup);
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
  EXPECT_EQ(finding.summary,
            "lost wakeup, 1 of 2 threads waits for condition done, and the others have slept and "
            "woken meanwhile");
  EXPECT_THAT(finding.doubts, ElementsAre(HasSubstr("it may yet be given by 11 heartbeat")));
}

TEST(ProcessWakeups, BesideAHeartbeatNothingIsSaidOfWhatMayWell) {
  const struct {
    const char* what;
    std::function<void(World*)> change;
  } cases[] = {
      {"has not slept for long",
       [](World* w) { w->Of(10).threads[0].since = w->look().end - kSecond; }},
      {"has a ticker that has not woken since",
       [](World* w) { w->Of(10).threads[1].since = w->look().end - 41 * kSecond; }},
      {"has no lines", [](World* w) { w->Of(10).threads[0].stack[0].source = ""; }},
      {"handles signals", [](World* w) { w->Of(10).caught_signals = kTerm; }},
      {"accepts connections, too", [](World* w) { w->Thread(10, 12, WaitKind::kAccept); }},
      {"computes, too",
       [](World* w) { w->Thread(10, 12, WaitKind::kNone).state = ThreadState::kRunning; }},
      {"waits for a ticker's end",
       [](World* w) {
         w->Of(10).threads[0].wait.kind = WaitKind::kJoin;
         w->Of(10).threads[0].wait.thread = 11;
       }},
      {"has a pool that idles, but a main thread that works",
       [](World* w) {
         w->Of(10).threads[0].wait.kind = WaitKind::kTime;
         w->Of(10).threads[0].wait.has_timeout = true;
         w->Signals(10, 12, "work").stack = {{1, "work", "wait.c:30", "wait"}};
       }},
  };
  for (const auto& c : cases) {
    World world = BesideHeartbeat();
    c.change(&world);
    EXPECT_TRUE(IsSilent(world.Judge())) << "a program that " << c.what;
  }
}

// Of shared memory that nobody else can come to, all who have it are known.
TEST(ProcessWakeups, OfAWordWhoseSharersAreKnownEachMayGiveIt) {
  World world;
  ThreadFacts& waiter = world.Thread(10, 10, WaitKind::kSemaphore);
  waiter.wait.shared = true;
  waiter.wait.shared_name = "/dev/zero (deleted)+0x0";
  EXPECT_TRUE(IsSilent(world.Judge()));
  waiter.wait.sharers = {10};
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
  world.Of(10).threads[0].wait.sharers = {10, 20};
  EXPECT_TRUE(IsSilent(world.Judge()));  // who that is, nobody knows
  world.Thread(20, 20, WaitKind::kTime).wait.has_timeout = true;
  EXPECT_TRUE(IsSilent(world.Judge()));
  world.Of(20).threads[0].wait = world.Of(10).threads[0].wait;
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, FindingKind::kLostWakeup);
  EXPECT_THAT(finding.threads, ::testing::UnorderedElementsAre(10, 20));
}

// A thread of Python that waits for an event, and holds what another one wants.
World EventWithALock() {
  World world;
  ThreadFacts& main = world.Signals(10, 10, "stop");
  main.stack = {{1, "PyThread_acquire_lock_timed", "", "python3"},
                {2, "<module>", "leader.py:9", "/srv/leader.py"}};
  main.stack[1].language = FrameLanguage::kPython;
  world.Locks(10, 11, "port_lock", 10);
  return world;
}

TEST(ProcessWakeups, AnEventThatAHandlerMaySetEndsADeadlock) {
  World world = EventWithALock();
  EXPECT_EQ(Only(world.Judge()).kind, FindingKind::kDeadlock);
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
  world.Of(10).caught_signals = kTerm;
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible);
  EXPECT_THAT(Only(world.Judge()).doubts,
              ::testing::Contains(HasSubstr("a handler may signal what 10 waits for")));
}

// The same over a server: who holds the lock waits for all of its client, whose main thread that
// is.
TEST(ProcessWakeups, AnEventThatAHandlerMaySetEndsADeadlockOverOthers) {
  const auto judge = [](uint64_t caught) {
    World world = EventWithALock();
    world.Of(10).threads.pop_back();
    world.Reads(10, 11, {30});
    world.Process(20, "server");
    world.Reads(20, 20, {10});
    world.Process(30, "server");
    world.Locks(30, 30, "table", 20);
    world.Of(10).caught_signals = caught;
    return Only(world.Judge());
  };
  EXPECT_EQ(judge(0).kind, FindingKind::kDeadlock);
  EXPECT_EQ(judge(0).confidence, Confidence::kLikely);
  EXPECT_EQ(judge(kTerm).confidence, Confidence::kPossible);
}

// Of a stripped libuv, beside which the pool of the program's works waits.
World BesideALoop(const char* function, const char* module) {
  World world;
  ThreadFacts& loop = world.Reads(10, 10, {10});
  loop.wait.kind = WaitKind::kPoll;
  loop.stack = {{1, "epoll_wait", "", "libc.so.6"},
                {2, "", "", module},
                {3, function, "", module},
                {4, "main", "app.c:9", "app"}};
  return world;
}

TEST(ProcessWakeups, WorksThatWaitComeBeforeTheLoopThatIdles) {
  for (const auto& [function, module] :
       {std::pair("uv_run", "libuv.so.1"), {"g_main_loop_run", "libglib-2.0.so.0"}}) {
    World world = BesideALoop(function, module);
    for (const int tid : {11, 12}) {
      ThreadFacts& work = world.Thread(10, tid, WaitKind::kBarrier);
      work.wait.variable = "phase";
      work.stack = {{1, "pthread_barrier_wait", "", "libc.so.6"}, {2, "work", "app.c:6", "app"}};
    }
    const ProcessFinding finding = Only(world.Judge());
    EXPECT_EQ(finding.kind, Kind::kLostWakeup);
    EXPECT_THAT(finding.threads, ElementsAre(11, 12));
  }
}

TEST(ProcessWakeups, ALoopThatHandlesSignalsIdles) {
  for (const auto& [function, module] :
       {std::pair("uv_run", "libuv.so.1"), {"g_main_loop_run", "libglib-2.0.so.0"}}) {
    World world = BesideALoop(function, module);
    world.Signals(10, 11, "").stack = {{1, "pthread_cond_wait", "", "libc.so.6"},
                                       {2, "", "", module},
                                       {3, "start_thread", "", "libc.so.6"}};
    EXPECT_EQ(Only(world.Judge()).kind, Kind::kNoWriter);
    world.Of(10).caught_signals = kTerm;
    EXPECT_TRUE(IsSilent(world.Judge()));
  }
}

// A heartbeat, of whose code is known that it comes to nothing that wakes anybody.
TEST(ProcessWakeups, WhoNapsAndWakesNobodyIsNobodyWhoCould) {
  World world;
  world.Joins(10, 10, 11);
  world.Signals(10, 11, "came");
  ThreadFacts& napper = world.Thread(10, 12, WaitKind::kTime, "metrics");
  napper.wait.has_timeout = true, napper.since = world.look().end - kMillisecond;
  EXPECT_TRUE(IsSilent(world.Judge()));
  world.Of(10).threads[2].wakes_nobody = true;
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kLostWakeup);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.threads, ElementsAre(11));
  EXPECT_THAT(finding.doubts, Contains(HasSubstr("is read from the code: 12 metrics")));
  world.Of(10).threads[0].wait = {};
  world.Of(10).threads[0].wait.kind = WaitKind::kTime;
  world.Of(10).threads[0].wait.has_timeout = true;
  EXPECT_TRUE(IsSilent(world.Judge())) << "the main thread may give it";
}

// Of a main thread that naps for ever nothing says that it wants what the others wait for: a pool
// without work idles so.
TEST(ProcessWakeups, AMainThreadThatNapsBesideAPoolIsPossibleOnly) {
  World world;
  ThreadFacts& main = world.Thread(10, 10, WaitKind::kTime);
  main.wait.has_timeout = true, main.wakes_nobody = true;
  main.since = world.look().end - kMillisecond;
  StackFrame own;
  own.function = "AwaitWork", own.source = "work.cc:7";
  world.Signals(10, 11, "came").stack = {own};
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
  World without_lines = world;
  without_lines.Of(10).threads[1].stack[0].source.clear();
  EXPECT_EQ(Only(without_lines.Judge()).confidence, Confidence::kPossible);
  world.Signals(10, 12, "came").stack = {own};
  const ProcessFinding pool = Only(world.Judge());
  EXPECT_EQ(pool.confidence, Confidence::kPossible);
  EXPECT_THAT(pool.doubts, Contains(HasSubstr("threads without work idle so")));
  world.Of(10).threads[2].wait.variable = "gone", world.Of(10).threads[2].wait.address = 0x2000;
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely) << "each waits for another one";
}

TEST(ProcessWakeups, WhoNapsAndUsesNoFilesEndsNoWaitForAPipe) {
  World world;
  world.Joins(10, 10, 11);
  world.Reads(10, 11, {10});
  ThreadFacts& napper = world.Thread(10, 12, WaitKind::kTime, "metrics");
  napper.wait.has_timeout = true, napper.wakes_nobody = true;
  napper.since = world.look().end - kMillisecond;
  EXPECT_TRUE(IsSilent(world.Judge())) << "it may write it";
  const int writer = world.Of(10).threads[1].wait.files[0].others[0].second;
  world.Of(10).threads[2].uses_descriptors = {writer};
  EXPECT_TRUE(IsSilent(world.Judge())) << "it writes it";
  world.Of(10).threads[2].uses_descriptors = {writer + 1};
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely) << "it writes another one";
  world.Of(10).threads[2].uses_descriptors.reset();
  world.Of(10).threads[2].uses_no_files = true;
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kNoWriter);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.doubts, Contains(HasSubstr("uses their files is read from the code")));
}

// What it stores may end what others read, and what it writes.
TEST(ProcessWakeups, WhoNapsAndWakesNobodyMayStillWrite) {
  World world;
  world.Reads(10, 10, {10});
  world.Thread(10, 11, WaitKind::kMutex).wait.variable = "plain_lock";
  ThreadFacts& napper = world.Thread(10, 12, WaitKind::kTime, "metrics");
  napper.wait.has_timeout = true, napper.wakes_nobody = true;
  napper.since = world.look().end - kMillisecond;
  for (const ProcessFinding& finding : world.Judge().findings) EXPECT_FALSE(finding.IsBad());
}

}  // namespace
}  // namespace hangscope
