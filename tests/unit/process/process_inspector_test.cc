// Looking at real little programs from outside.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <pty.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "fakes/started_program.h"
#include "proc/child_process.h"
#include "proc/open_files.h"
#include "proc/thread_reader.h"
#include "proc/thread_stop.h"
#include "process/linux_inspector.h"
#include "process/process_look.h"
#include "process/process_words.h"
#include "process/spin_loop.h"
#include "process/stack_walker.h"

namespace hangscope {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr TimeNs kGenerous = 60 * kSecond;

SystemClock system_clock;

// However busy the machine is: what a look leaves out for want of time has tests of its own.
SystemSample Inspect(int pid, InspectOptions options = {}) {
  if (options.budget == InspectOptions().budget) options.budget = kGenerous;
  auto inspector = OpenLinuxInspector(system_clock);
  auto look = (*inspector)->Inspect(pid, options);
  EXPECT_TRUE(look.ok()) << look.status().message();
  return look.value_or(SystemSample());
}

// Once the thread is back in its system call: between a stop's end and that it is in none for a
// moment.
bool SleepsInACall(int pid, int tid) {
  const ProcFolder proc("/proc");
  const TimeNs end = system_clock.Monotonic() + kGenerous;
  while (system_clock.Monotonic() < end) {
    // Whom a stop has just let go of still has its call there, until it runs and begins that again.
    const auto stat = proc.Stat(tid);
    const auto call = proc.Read(fmt::format("{}/task/{}/syscall", pid, tid));
    const bool in_call = call.has_value() && !call->empty() &&
                         std::isdigit(static_cast<unsigned char>(call->front())) != 0;
    if (in_call && stat && stat->state == ThreadState::kSleeping) return true;
    system_clock.Sleep(kMillisecond);
  }
  return false;
}

// Once all threads of the program sleep in system calls.
SystemSample SampleWhenAllWait(const StartedProgram& program, const InspectOptions& options = {}) {
  const TimeNs end = system_clock.Monotonic() + kGenerous;
  SystemSample look;
  do {
    look = Inspect(program.pid(), options);
    bool all = !look.processes.empty();
    for (const ThreadFacts& thread :
         look.processes.empty() ? std::vector<ThreadFacts>() : look.processes[0].threads) {
      all = all && thread.state == ThreadState::kSleeping && thread.wait.kind != WaitKind::kNone;
    }
    if (all) return look;
    system_clock.Sleep(10 * kMillisecond);
  } while (system_clock.Monotonic() < end);
  ADD_FAILURE() << "not all threads have come to wait";
  return look;
}

struct Expected {
  const char* name;
  WaitKind kind;
  const char* variable = "";
  const char* owner = "";  // the name of a thread; "?": one that has ended
  const char* function = nullptr;
};

const Expected kZoo[] = {
    {"holder", WaitKind::kSignal, "", "", "HoldForEver"},
    {"joined", WaitKind::kSignal, "", "", "SleepForEver"},
    {"mutex", WaitKind::kMutex, "plain_mutex", "holder", "WaitMutex()"},
    {"timed-mutex", WaitKind::kMutex, "plain_mutex", "holder", "WaitTimedMutex()"},
    {"recursive", WaitKind::kMutex, "recursive_mutex", "holder", "WaitRecursive()"},
    {"robust", WaitKind::kMutex, "robust_mutex", "holder", "WaitRobust()"},
    {"priority", WaitKind::kMutex, "priority_mutex", "holder", "WaitPriority()"},
    {"abandoned", WaitKind::kMutex, "abandoned_mutex", "?", "WaitAbandoned()"},
    {"shared", WaitKind::kMutex, "", "stopped-child", "WaitShared()"},
    {"std-mutex", WaitKind::kMutex, "standard_mutex", "holder", "WaitStandardMutex()"},
    {"condition", WaitKind::kCondition, "condition", "", "WaitCondition()"},
    {"timed-condition", WaitKind::kCondition, "condition", "", "WaitTimedCondition()"},
    {"std-condition", WaitKind::kCondition, "standard_condition", "", "WaitStandardCondition()"},
    {"rwlock-read", WaitKind::kRwLock, "written_lock", "holder", "WaitWrittenLock()"},
    {"rwlock-write", WaitKind::kRwLock, "read_lock", "", "WaitReadLock()"},
    {"barrier", WaitKind::kBarrier, "barrier", "", "WaitBarrier()"},
    {"semaphore", WaitKind::kSemaphore, "semaphore", "", "WaitSemaphore()"},
    {"shared-sem", WaitKind::kSemaphore, "", "", "WaitSharedSemaphore()"},
    {"join", WaitKind::kJoin, "", "", "WaitJoin()"},
    {"futex", WaitKind::kFutex, "raw_word", "", "WaitRawFutex()"},
    {"pipe", WaitKind::kRead, "", "", "WaitPipe()"},
    {"full-pipe", WaitKind::kWrite, "", "", "WaitFullPipe()"},
    {"unix", WaitKind::kRead, "", "", "WaitUnix()"},
    {"accept", WaitKind::kAccept, "", "", "WaitAccept()"},
    {"tcp", WaitKind::kRead, "", "", "WaitTcp()"},
    {"udp", WaitKind::kRead, "", "", "WaitUdp()"},
    {"poll", WaitKind::kPoll, "", "", "WaitPoll()"},
    {"select", WaitKind::kPoll, "", "", "WaitSelect()"},
    {"epoll", WaitKind::kPoll, "", "", "WaitEpoll()"},
    {"event", WaitKind::kRead, "", "", "WaitEvent()"},
    {"sleep", WaitKind::kTime, "", "", "WaitNanosleep()"},
    {"pause", WaitKind::kSignal, "", "", "WaitPause()"},
    {"signal", WaitKind::kSignal, "", "", "WaitSignal()"},
    {"child", WaitKind::kChild, "", "", "WaitChild()"},
    {"flock", WaitKind::kFileLock, "", "", "WaitFlock()"},  // whoever has it open
    {"record-lock", WaitKind::kFileLock, "", "stopped-child", "WaitRecordLock()"},
};

class WaitZoo : public testing::TestWithParam<const char*> {
 protected:
  WaitZoo() : program(GetParam()) {}
  void SetUp() override { ASSERT_TRUE(program.is_ready()); }
  const ThreadFacts& Thread(const SystemSample& look, const std::string& name) {
    const ThreadFacts* const thread = FindThread(look, program.Tid(name));
    if (thread == nullptr) ADD_FAILURE() << "there is no thread " << name;
    static const ThreadFacts kNone;
    return thread != nullptr ? *thread : kNone;
  }
  const WaitFile& OnlyFile(const SystemSample& look, const std::string& name) {
    const ThreadFacts& thread = Thread(look, name);
    EXPECT_EQ(thread.wait.files.size(), 1u) << name;
    static const WaitFile kNone;
    return thread.wait.files.empty() ? kNone : thread.wait.files[0];
  }

  const TimeNs started = system_clock.Monotonic();
  StartedProgram program;
};

TEST_P(WaitZoo, SaysOfEachThreadWhatItWaitsForAndWhoHoldsIt) {
  const SystemSample look = SampleWhenAllWait(program);
  for (const Expected& expected : kZoo) {
    const ThreadFacts& thread = Thread(look, expected.name);
    EXPECT_EQ(thread.name, expected.name);
    EXPECT_EQ(WaitKindName(thread.wait.kind), WaitKindName(expected.kind)) << expected.name;
    const std::string variable = *expected.variable != '\0'
                                     ? std::string("(anonymous namespace)::") + expected.variable
                                     : "";
    if (!variable.empty()) {
      EXPECT_EQ(thread.wait.variable, variable) << expected.name;
    }
    const std::string owner = expected.owner;
    EXPECT_EQ(thread.wait.owner.has_value(), !owner.empty()) << expected.name;
    EXPECT_EQ(thread.wait.owner_died, owner == "?") << expected.name;
    if (!owner.empty() && owner != "?") {
      EXPECT_EQ(thread.wait.owner.value_or(0), program.Tid(owner)) << expected.name;
    }
  }
  EXPECT_EQ(Thread(look, "join").wait.thread, program.Tid("joined"));
  EXPECT_THAT(Thread(look, "child").wait.children,
              testing::ElementsAre(program.Tid("stopped-child")));
  EXPECT_TRUE(Thread(look, "shared").wait.shared);
  EXPECT_THAT(Thread(look, "shared").wait.shared_name, HasSubstr("+0x28"));
  EXPECT_THAT(Thread(look, "shared-sem").wait.shared_name, HasSubstr("+0x400"));
  EXPECT_FALSE(Thread(look, "mutex").wait.shared);
}

TEST_P(WaitZoo, FindsTheOtherEnds) {
  const SystemSample look = SampleWhenAllWait(program);
  const auto ends_here = [&](const std::string& name) {
    std::set<int> processes;
    for (const auto& [process, fd] : OnlyFile(look, name).others) processes.insert(process);
    return processes;
  };
  const std::set<int> both = {program.pid(), program.Tid("stopped-child")};
  for (const char* name :
       {"pipe", "full-pipe", "unix", "tcp", "poll", "select", "epoll", "event"}) {
    EXPECT_EQ(ends_here(name), both) << name;
    EXPECT_FALSE(OnlyFile(look, name).outside) << name;
  }
  // The end that is waited on does not end the wait.
  for (const char* name : {"pipe", "full-pipe", "unix", "tcp", "poll", "select", "epoll"}) {
    EXPECT_THAT(OnlyFile(look, name).others,
                Not(Contains(testing::Pair(program.pid(), OnlyFile(look, name).fd))))
        << name;
  }
  EXPECT_EQ(ends_here("flock"), std::set<int>{program.Tid("stopped-child")}) << "who has it open";
  EXPECT_EQ(OnlyFile(look, "full-pipe").wants_read, false);
  EXPECT_EQ(OnlyFile(look, "pipe").kind, FileKind::kPipe);
  EXPECT_EQ(OnlyFile(look, "tcp").kind, FileKind::kSocket);
  EXPECT_THAT(OnlyFile(look, "tcp").name, HasSubstr("tcp 127.0.0.1:"));
  EXPECT_EQ(OnlyFile(look, "event").kind, FileKind::kEvent);
  EXPECT_TRUE(OnlyFile(look, "accept").listening);
  EXPECT_TRUE(OnlyFile(look, "udp").outside);
}

TEST_P(WaitZoo, KnowsWhichWaitsEndByThemselvesAndSinceWhenAllWait) {
  const SystemSample look = SampleWhenAllWait(program);
  EXPECT_TRUE(Thread(look, "sleep").wait.has_timeout);
  EXPECT_EQ(Thread(look, "sleep").wait.timeout, 3600 * kSecond);
  EXPECT_EQ(Thread(look, "poll").wait.timeout, 3600 * kSecond);
  EXPECT_TRUE(Thread(look, "timed-mutex").wait.has_timeout);
  EXPECT_TRUE(Thread(look, "timed-condition").wait.has_timeout);
  for (const char* name : {"mutex", "condition", "pipe", "select", "epoll", "signal", "child"}) {
    EXPECT_FALSE(Thread(look, name).wait.has_timeout) << name;
  }
  constexpr TimeNs kPause = 400 * kMillisecond;
  // The clocks' comparison may drift by what interrupts and other machines take.
  constexpr TimeNs kDrift = 150 * kMillisecond;
  system_clock.Sleep(kPause);
  const SystemSample later = SampleWhenAllWait(program);
  if (!Thread(later, "mutex").since)
    GTEST_SKIP() << "this kernel has no /proc/PID/sched, which tells when a thread last ran";
  for (const Expected& expected : kZoo) {
    const TimeNs first = Thread(look, expected.name).since.value_or(0);
    const TimeNs second = Thread(later, expected.name).since.value_or(0);
    EXPECT_LE(std::abs(first - second), kDrift) << expected.name;
    EXPECT_GE(first, started - kDrift) << expected.name;
    EXPECT_GE(later.begin - second, kPause - kDrift) << expected.name;
  }
}

TEST_P(WaitZoo, FollowsStacksFromTheWaitToWhereTheThreadBeganWithoutAnyStop) {
  const SystemSample look = SampleWhenAllWait(program);
  EXPECT_EQ(look.longest_stop, 0);
  for (const Expected& expected : kZoo) {
    const ThreadFacts& thread = Thread(look, expected.name);
    EXPECT_FALSE(thread.stack_incomplete) << expected.name << ": " << thread.stack_warning;
    bool found = false;
    for (const StackFrame& frame : thread.stack) {
      if (frame.function.find(expected.function) == std::string::npos) continue;
      found = true;
      EXPECT_THAT(frame.source, HasSubstr("wait_zoo.cc:")) << expected.name;
    }
    // Compiled for speed, a function may end by jumping to the one that it calls.
    const bool may_be_gone = std::string(GetParam()).ends_with("_fast");
    EXPECT_TRUE(found || may_be_gone) << expected.name;
    ASSERT_FALSE(thread.stack.empty());
    EXPECT_THAT(thread.stack[0].module, HasSubstr("libc.so")) << expected.name;
  }
}

TEST_P(WaitZoo, IsNotDisturbedByStopsAndGivesTheSameStacksThen) {
  const SystemSample look = SampleWhenAllWait(program);
  const ProcFolder proc("/proc");
  const auto maps = proc.Read(std::to_string(program.pid()) + "/maps");
  ASSERT_TRUE(maps.has_value());
  const ProcessMemory memory(program.pid());
  auto walker = StackWalker::Open("/proc", program.pid(), ParseMemoryMappings(*maps),
                                  [&](uint64_t address, void* into, size_t bytes) {
                                    return memory.ReadInto(address, into, bytes);
                                  });
  ASSERT_TRUE(walker.ok()) << walker.status().message();
  size_t stopped = 0;
  for (const Expected& expected : kZoo) {
    const ThreadFacts& thread = Thread(look, expected.name);
    if (!StopIsHarmlessIn(thread.system_call)) continue;
    ThreadImage image;
    for (int times = 0; times < 3; ++times) {
      ASSERT_TRUE(SleepsInACall(program.pid(), thread.tid)) << expected.name;
      auto stop = ThreadStop::Stop(system_clock, thread.tid, kGenerous);
      ASSERT_TRUE(stop.ok()) << stop.status().message();
      auto registers = (*stop)->Registers();
      ASSERT_TRUE(registers.ok()) << registers.status().message();
      EXPECT_NE((*stop)->interrupted_call(), -1) << expected.name;
      image.registers = *registers;
    }
    ++stopped;
    image.tid = thread.tid;
    image.stack_begin = image.registers.stack_pointer();
    const StackWalk walk = (*walker)->Walk(image, 64);
    ASSERT_EQ(walk.frames.size(), thread.stack.size()) << expected.name;
    for (size_t i = 0; i < walk.frames.size(); ++i)
      EXPECT_EQ(walk.frames[i].function, thread.stack[i].function) << expected.name;
  }
  EXPECT_GE(stopped, 20u);
  // Interrupted sleeps go on under another number; they are still what they were.
  const SystemSample later = SampleWhenAllWait(program);
  EXPECT_EQ(Thread(later, "sleep").system_call_name, Thread(look, "sleep").system_call_name);
  EXPECT_EQ(Thread(later, "poll").wait.kind, WaitKind::kPoll);
  EXPECT_EQ(program.Printed(), "");
}

// The main thread's memory, mappings and descriptors are gone with it; those of the others are the
// same.
TEST(Looks, SeeThreadsThatOutliveTheMainOne) {
  static pthread_mutex_t left_locked = PTHREAD_MUTEX_INITIALIZER;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    pthread_mutex_lock(&left_locked);
    std::thread([] { pthread_mutex_lock(&left_locked); }).detach();
    syscall(SYS_exit, 0);
  }
  ThreadFacts waiting;
  const TimeNs end = system_clock.Monotonic() + kGenerous;
  while (waiting.wait.kind != WaitKind::kMutex && system_clock.Monotonic() < end) {
    system_clock.Sleep(10 * kMillisecond);
    const SystemSample look = Inspect(child);
    for (const ThreadFacts& thread :
         look.processes.empty() ? std::vector<ThreadFacts>() : look.processes[0].threads) {
      if (thread.wait.kind == WaitKind::kMutex) waiting = thread;
    }
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(waiting.wait.kind, WaitKind::kMutex);
  EXPECT_TRUE(waiting.wait.owner_died);
  EXPECT_FALSE(waiting.stack.empty());
}

TEST_P(WaitZoo, LeadsToTheProcessThatOthersWaitFor) {
  const SystemSample look = SampleWhenAllWait(program);
  ASSERT_GE(look.processes.size(), 2u);
  EXPECT_EQ(look.processes[0].pid, program.pid());
  const ThreadFacts* const child = FindThread(look, program.Tid("stopped-child"));
  ASSERT_NE(child, nullptr);
  EXPECT_EQ(child->state, ThreadState::kStopped);
  InspectOptions alone;
  alone.follow = false;
  EXPECT_EQ(Inspect(program.pid(), alone).processes.size(), 1u);
}

TEST(ProcessInspector, AsksTheWholeTreeAndThoseWhoseParentsHaveEnded) {
  ChildOptions command;
  command.command = {"sh", "-c", "(sleep 1000 &); sleep 1001 & sh -c 'sleep 1002; :'; :"};
  auto child = StartChild(command);
  ASSERT_TRUE(child.ok()) << child.status().message();
  const auto names = [](const SystemSample& look) {
    std::multiset<std::string> text;
    for (const int pid : look.asked) text.insert(FindProcess(look, pid)->command);
    return text;
  };
  const std::multiset<std::string> whole = {command.command[0] + " -c " + command.command[2],
                                            "sh -c sleep 1002; :", "sleep 1000", "sleep 1001",
                                            "sleep 1002"};
  InspectOptions options;
  options.descendants = true;
  SystemSample look;
  const TimeNs end = system_clock.Monotonic() + kGenerous;
  do {
    options.also.clear();
    for (const int pid : (*child)->Activity().ids) {
      const auto stat = ProcFolder("/proc").Stat(pid);
      if (stat && stat->parent == getpid() && pid != (*child)->pid()) options.also.push_back(pid);
    }
    look = Inspect((*child)->pid(), options);
  } while (names(look) != whole && system_clock.Monotonic() < end);
  EXPECT_EQ(names(look), whole);
  EXPECT_TRUE(look.asked_are_all);
  EXPECT_EQ(look.processes[0].pid, (*child)->pid());
  EXPECT_THAT(Inspect((*child)->pid()).asked, testing::ElementsAre((*child)->pid()));
  (*child)->SignalDescendants(SIGKILL);
  while (!(*child)->Poll()) system_clock.Sleep(kMillisecond);
}

TEST_P(WaitZoo, SharesItsMemoryWithTheProcessesThatMapIt) {
  const ProcFolder proc("/proc");
  const SystemSample look = SampleWhenAllWait(program);
  const auto mappings =
      ParseMemoryMappings(proc.Read(std::to_string(program.pid()) + "/maps").value_or(""));
  const MemoryMapping* const shared =
      FindMapping(mappings, Thread(look, "shared-sem").wait.address);
  ASSERT_NE(shared, nullptr);
  const OpenFiles files(proc);
  bool all_seen = false;
  EXPECT_THAT(files.ProcessesThatMap(shared->device, shared->inode, &all_seen),
              testing::UnorderedElementsAre(program.pid(), program.Tid("stopped-child")));
  EXPECT_THAT(files.ProcessesThatMap(shared->device, shared->inode + 1'000'000'007, &all_seen),
              IsEmpty());
}

TEST(OpenFilesOfLinux, AskASocketHowLongItsCallsBlock) {
  int ends[2] = {};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const timeval limit = {3, 500'000};
  ASSERT_EQ(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  EXPECT_EQ(OpenFiles::SocketTimeout(getpid(), ends[0], true), 3500 * kMillisecond);
  EXPECT_EQ(OpenFiles::SocketTimeout(getpid(), ends[0], false), std::nullopt);
  EXPECT_EQ(OpenFiles::SocketTimeout(getpid(), ends[1], true), std::nullopt);
  close(ends[0]);
  close(ends[1]);
  EXPECT_EQ(OpenFiles::SocketTimeout(getpid(), ends[0], true), std::nullopt);
}

TEST(OpenFilesOfLinux, AskATerminalHowLongItsReadsBlock) {
  int master = -1;
  int slave = -1;
  ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  const auto limit = [&](cc_t least, cc_t tenths, bool raw) {
    termios settings = {};
    tcgetattr(slave, &settings);
    if (raw) cfmakeraw(&settings);
    settings.c_cc[VMIN] = least, settings.c_cc[VTIME] = tenths;
    tcsetattr(slave, TCSANOW, &settings);
    return OpenFiles::TerminalTimeout(getpid(), slave);
  };
  EXPECT_EQ(limit(0, 100, false), std::nullopt) << "it waits for a line";
  EXPECT_EQ(limit(0, 100, true), 10 * kSecond);
  EXPECT_EQ(limit(1, 100, true), std::nullopt) << "the time begins with the first byte";
  EXPECT_EQ(limit(0, 0, true), std::nullopt) << "it does not block";
  close(slave);
  EXPECT_EQ(OpenFiles::TerminalTimeout(getpid(), slave), std::nullopt);
  close(master);
}

INSTANTIATE_TEST_SUITE_P(, WaitZoo, testing::Values(WAIT_ZOO, WAIT_ZOO "_fast"),
                         [](const auto& zoo) {
                           return std::string(zoo.param).ends_with("_fast") ? "Fast" : "Plain";
                         });

// The thread that spins, once it is seen in its loop.
ThreadFacts SampleSpinner(const StartedProgram& program, const char* function,
                          bool goes_in_circles = false) {
  EXPECT_TRUE(program.is_ready());
  const TimeNs end = system_clock.Monotonic() + kGenerous;
  while (program.is_ready() && system_clock.Monotonic() < end) {
    const SystemSample look = Inspect(program.pid());
    const ThreadFacts* const thread = FindThread(look, program.pid());
    if (thread == nullptr || !thread->spin) continue;
    // On a busy machine the time for steps may be over before the circle is closed.
    if (goes_in_circles && thread->spin->period == 0) continue;
    for (const StackFrame& frame : thread->stack) {
      if (frame.function.find(function) != std::string::npos) return *thread;
    }
  }
  ADD_FAILURE() << "it was not seen in " << function;
  return {};
}

TEST(Steps, ShowThatASpinComesBackToItsStateAndWhatItReads) {
  struct Way {
    const char* name;
    const char* function;
    const char* variable;
    bool yields;
  };
  for (const Way& way :
       {Way{"flag", "SpinOnFlag", "flag", false}, Way{"lock", "SpinOnLock", "spin_lock", false},
        Way{"yield", "YieldOnFlag", "flag", true}}) {
    const StartedProgram program(SPINNER, way.name);
    const ThreadFacts thread = SampleSpinner(program, way.function, true);
    ASSERT_TRUE(thread.spin.has_value()) << way.name;
    EXPECT_EQ(thread.state, ThreadState::kRunning);
    EXPECT_GT(thread.spin->period, 0u) << way.name;
    EXPECT_FALSE(thread.spin->writes_memory) << way.name;
    EXPECT_FALSE(thread.spin->calls_kernel) << way.name;
    ASSERT_EQ(thread.spin->calls.size(), way.yields ? 1u : 0u) << way.name;
    if (way.yields) {
      EXPECT_EQ(thread.spin->calls[0].name, "sched_yield");
    }
    EXPECT_EQ(thread.spin->polled_variable, way.variable);
    EXPECT_LT(thread.spin->begin, thread.spin->end);
  }
}

#if defined(__x86_64__)
TEST(Steps, ManyReadsAreNoWrites) {
  // mov (%rdi), %rax; mov %rax, (%rdi); syscall
  const std::map<uint64_t, std::string> code = {
      {0x1000, "\x48\x8b\x07"}, {0x2000, "\x48\x89\x07"}, {0x3000, "\x0f\x05"}};
  const ReadMemory read = [&](uint64_t address, void* into, size_t bytes) {
    const auto at = code.find(address);
    if (at == code.end() || at->second.size() != bytes) return false;
    memcpy(into, at->second.data(), bytes);
    return true;
  };
  const auto examine = [&](uint64_t pc, uint64_t rax) {
    std::vector<StepState> states(300);
    for (size_t i = 0; i < states.size(); ++i) {
      states[i].pc = pc;
      states[i].general[0] = rax;
      states[i].general[5] = 0x5000 + 8 * i;
    }
    return ExamineSteps(states, read);
  };
  EXPECT_TRUE(examine(0x1000, 0).understood);
  EXPECT_TRUE(examine(0x1000, 0).writes.empty());
  EXPECT_FALSE(examine(0x2000, 0).understood);
  EXPECT_TRUE(examine(0x3000, SYS_sched_yield).yields);
  EXPECT_FALSE(examine(0x3000, SYS_sched_yield).calls_kernel);
  EXPECT_FALSE(examine(0x3000, SYS_read).calls_kernel);
  EXPECT_TRUE(examine(0x3000, SYS_mmap).calls_kernel);
}
#endif

TEST(Steps, SeeThatASpinReadsNothing) {
  const StartedProgram program(SPINNER, "nothing");
  const ThreadFacts thread = SampleSpinner(program, "SpinOnNothing", true);
  ASSERT_TRUE(thread.spin.has_value());
  EXPECT_FALSE(thread.spin->writes_memory);
  EXPECT_EQ(thread.spin->polled_variable, "");
}

TEST(Steps, DoNotTakeAComputationForASpin) {
  ThreadFacts::Spin circle;
  circle.period = 1;
  const StartedProgram compute(SPINNER, "compute");
  EXPECT_EQ(SampleSpinner(compute, "Compute").spin.value_or(circle).period, 0u);
  const StartedProgram in_vectors(SPINNER, "float");
  EXPECT_EQ(SampleSpinner(in_vectors, "ComputeFloat").spin.value_or(circle).period, 0u);
  const StartedProgram count(SPINNER, "count");
  const ThreadFacts counting = SampleSpinner(count, "Count");
  ASSERT_TRUE(counting.spin.has_value());
  EXPECT_TRUE(counting.spin->period == 0 || counting.spin->writes_memory);
}

TEST(Stops, AreShortAndLeftOutWhereNotWanted) {
  const StartedProgram program(SPINNER, "flag");
  ASSERT_TRUE(program.is_ready());
  InspectOptions no_stop;
  no_stop.stop = false;
  const SystemSample look = Inspect(program.pid(), no_stop);
  EXPECT_EQ(look.longest_stop, 0);
  const ThreadFacts* const thread = FindThread(look, program.pid());
  ASSERT_NE(thread, nullptr);
  EXPECT_FALSE(thread->spin.has_value());
  EXPECT_GT(Inspect(program.pid()).longest_stop, 0);
}

// Whoever writes to so many words works: no need to see more of it.
TEST(Stops, EndSoonerWhereAThreadIsSeenToWork) {
  const StartedProgram program(SPINNER, "fill");
  ASSERT_TRUE(program.is_ready());
  InspectOptions patient;
  patient.step_time = 5 * kSecond;
  patient.long_step_time = 5 * kSecond;
  std::optional<ThreadFacts::Spin> spin;
  const TimeNs end = system_clock.Monotonic() + kGenerous;
  TimeNs took = 0;
  while (!spin && system_clock.Monotonic() < end) {
    const TimeNs begin = system_clock.Monotonic();
    const SystemSample look = Inspect(program.pid(), patient);
    took = system_clock.Monotonic() - begin;
    const ThreadFacts* const thread = FindThread(look, program.pid());
    ASSERT_NE(thread, nullptr);
    spin = thread->spin;
  }
  ASSERT_TRUE(spin.has_value());
  EXPECT_EQ(spin->period, 0u);
  EXPECT_LT(took, patient.step_time / 2);
}

// Whatever is found out of it: a twin is stepped. On a busy machine who holds it may have to wait
// now and then, but not each time.
// A sanitizer makes slow what is done while a thread is held, but the steps of any of these take
// far longer than this, too.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr TimeNs kLongestStop = 10 * kMillisecond;
#else
constexpr TimeNs kLongestStop = kMillisecond;
#endif

TEST(Stops, LastForAMomentHoweverLongTheStepsTake) {
  for (const char* const way : {"flag", "list", "compute", "read", "both"}) {
    const StartedProgram program(SPINNER, way);
    ASSERT_TRUE(program.is_ready());
    TimeNs least = kGenerous;
    for (int i = 0; i < 10 && least >= kLongestStop; ++i) {
      const SystemSample look = Inspect(program.pid());
      EXPECT_GT(look.longest_stop, 0) << way;
      least = std::min(least, look.longest_stop);
    }
    EXPECT_LT(least, kLongestStop) << way;
  }
}

bool IsRunning(int pid, TimeNs more) {
  const ProcFolder proc("/proc");
  const auto ran = [&] {
    const auto thread = ReadThread(proc, pid, pid);
    return thread ? thread->run_time.ran : 0;
  };
  const TimeNs before = ran();
  const TimeNs end = system_clock.Monotonic() + kGenerous;
  while (ran() < before + more && system_clock.Monotonic() < end) system_clock.Sleep(kMillisecond);
  return ran() >= before + more;
}

TEST(Stops, EndWhenWhoStoppedIsKilled) {
  const StartedProgram program(SPINNER, "flag");
  ASSERT_TRUE(program.is_ready());
  const pid_t watcher = fork();
  if (watcher == 0) {
    auto stop = ThreadStop::Stop(system_clock, program.pid(), kGenerous);
    if (stop.ok()) raise(SIGKILL);
    _exit(1);
  }
  int status = 0;
  waitpid(watcher, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_TRUE(IsRunning(program.pid(), 20 * kMillisecond));
}

// Has Ctrl-Z pressed while a thread is held.
class SuspendingClock final : public Clock {
 public:
  explicit SuspendingClock(int held) : held_(held) {}
  TimeNs Monotonic() override {
    const auto text = ProcFolder("/proc").Read(std::to_string(held_) + "/status");
    const auto status = text ? ParseTaskStatus(*text) : std::nullopt;
    if (status && status->tracer != 0 && !pressed.exchange(true)) kill(getpid(), SIGTSTP);
    return system_clock.Monotonic();
  }
  TimeNs Wall() override { return system_clock.Wall(); }
  void Sleep(TimeNs time) override { system_clock.Sleep(time); }
  std::atomic<bool> pressed = false;

 private:
  const int held_;
};

TEST(Stops, EndBeforeCtrlZStopsTheInspector) {
  const StartedProgram program(SPINNER, "flag");
  ASSERT_TRUE(program.is_ready());
  const pid_t watcher = fork();
  if (watcher == 0) {
    setpgid(0, 0);  // the shell of this job is the test
    SuspendingClock clock(program.pid());
    auto inspector = OpenLinuxInspector(clock);
    InspectOptions options;
    options.step_running = false;
    for (int i = 0; i < 20 && !clock.pressed; ++i)
      (void)(*inspector)->Inspect(program.pid(), options).ok();
    _exit(clock.pressed ? 0 : 1);
  }
  setpgid(watcher, watcher);
  int status = 0;
  waitpid(watcher, &status, WUNTRACED);
  if (WIFEXITED(status)) GTEST_SKIP() << "Ctrl-Z stops nobody here";
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_TRUE(IsRunning(program.pid(), 20 * kMillisecond)) << "it is stopped until fg";
  kill(watcher, SIGCONT);
  waitpid(watcher, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Stops, DoNoHarmWhenTheInspectorIsKilledAtAnyInstant) {
  // A computation is stepped for as long as the steps may take.
  const StartedProgram program(SPINNER, "compute");
  ASSERT_TRUE(program.is_ready());
  for (int i = 0; i < 12; ++i) {
    const pid_t watcher = fork();
    if (watcher == 0) {
      setpgid(0, 0);
      auto inspector = OpenLinuxInspector(system_clock);
      for (;;) (void)(*inspector)->Inspect(program.pid(), {}).ok();
    }
    setpgid(watcher, watcher);
    system_clock.Sleep((40 + 7 * i) * kMillisecond);
    kill(-watcher, SIGKILL);  // and whoever is of its group
    waitpid(watcher, nullptr, 0);
  }
  EXPECT_TRUE(IsRunning(program.pid(), 20 * kMillisecond));
}

// A process of the test's own that ends with it.
class Child {
 public:
  explicit Child(const std::function<void()>& does) : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    does();
    _exit(0);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  int pid() const { return pid_; }

  // Once it sleeps in a wait of that kind.
  ThreadFacts WhenItWaits(WaitKind kind) const {
    const TimeNs end = system_clock.Monotonic() + kGenerous;
    do {
      const SystemSample look = Inspect(pid_);
      const ThreadFacts* const thread = FindThread(look, pid_);
      if (thread != nullptr && thread->wait.kind == kind) return *thread;
      system_clock.Sleep(10 * kMillisecond);
    } while (system_clock.Monotonic() < end);
    ADD_FAILURE() << "it has not come to wait";
    return {};
  }

 private:
  const pid_t pid_;
};

// A thread that ran when it was to be stopped may sleep by then, in whatever call.
TEST(Stops, AreNotSeenByCallsThatSignalsWouldEnd) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "this kernel has decided that the call ends before the stop";
#endif
  const Child sleeper([] {
    signal(SIGUSR1, [](int) {});
    epoll_event event;
    const int got = epoll_wait(epoll_create1(0), &event, 1, -1);
    _exit(got < 0 && errno == EINTR ? 42 : 1);
  });
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(sleeper.WhenItWaits(WaitKind::kPoll).tid, sleeper.pid());
    auto stop = ThreadStop::Stop(system_clock, sleeper.pid(), kGenerous);
    ASSERT_TRUE(stop.ok()) << stop.status().message();
    ASSERT_TRUE((*stop)->Registers().ok());
    EXPECT_GE((*stop)->interrupted_call(), 0);
    // The last time a signal comes, too: what its handler ends stays ended.
    if (i == 2) kill(sleeper.pid(), SIGUSR1);
  }
  siginfo_t end = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(sleeper.pid()), &end, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(end.si_status, 42);
}

// Of a child's copy of a lock nobody but the child's threads can be the owner.
TEST(Looks, TellALockThatForkCopiedFromOneWhoseHolderEnded) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  const Child child([&] { pthread_mutex_lock(&mutex); });
  pthread_mutex_unlock(&mutex);
  const ThreadWait copied = child.WhenItWaits(WaitKind::kMutex).wait;
  EXPECT_TRUE(copied.owner_copied);
  EXPECT_FALSE(copied.owner_died);
  EXPECT_EQ(copied.owner.value_or(0), gettid());

  std::promise<void> is_locked;
  std::promise<void> is_copied;
  std::thread holder([&] {
    pthread_mutex_lock(&mutex);
    is_locked.set_value();
    is_copied.get_future().wait();
  });
  is_locked.get_future().wait();
  const Child of_ended([&] { pthread_mutex_lock(&mutex); });
  is_copied.set_value();
  holder.join();
  const ThreadWait ended = of_ended.WhenItWaits(WaitKind::kMutex).wait;
  EXPECT_FALSE(ended.owner_copied);
  EXPECT_TRUE(ended.owner_died);
}

void LockPart(int fd, off_t from) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_start = from;
  lock.l_len = 10;
  fcntl(fd, F_SETLKW, &lock);
}

TEST(Looks, TellWhoHasThePartOfAFileThatAProcessWaitsFor) {
  char path[] = "/tmp/hangscope-lock-XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  int is_locked[2];
  ASSERT_EQ(pipe(is_locked), 0);
  const Child holder([&] {
    LockPart(fd, 100);
    (void)!write(is_locked[1], "x", 1);
    pause();
  });
  char c = 0;
  ASSERT_EQ(read(is_locked[0], &c, 1), 1);
  const Child waiter([&] {
    LockPart(fd, 0);  // one of its own, in front of the other's
    LockPart(fd, 100);
  });
  EXPECT_EQ(waiter.WhenItWaits(WaitKind::kFileLock).wait.owner.value_or(0), holder.pid());
  for (const int open : {fd, is_locked[0], is_locked[1]}) close(open);
  unlink(path);
}

// As `flock 9` in a script takes one, and ends: the shell has it then.
TEST(Looks, TellWhoHasALockThatAnotherProcessTook) {
  for (const bool is_flock : {true, false}) {
    char path[] = "/tmp/hangscope-lock-XXXXXX";
    const int fd = mkstemp(path);
    ASSERT_GE(fd, 0);
    const auto lock = [&](int file) {
      struct flock whole = {};
      whole.l_type = F_WRLCK;
      if (is_flock)
        flock(file, LOCK_EX);
      else
        fcntl(file, F_OFD_SETLKW, &whole);
    };
    int is_locked[2];
    ASSERT_EQ(pipe(is_locked), 0);
    const Child holder([&] {
      const pid_t taker = fork();
      if (taker == 0) {
        lock(fd);
        _exit(0);
      }
      waitpid(taker, nullptr, 0);
      (void)!write(is_locked[1], "x", 1);
      pause();
    });
    close(fd);
    char c = 0;
    ASSERT_EQ(read(is_locked[0], &c, 1), 1);
    const Child waiter([&] { lock(open(path, O_RDWR)); });
    const ThreadWait wait = waiter.WhenItWaits(WaitKind::kFileLock).wait;
    EXPECT_FALSE(wait.owner.has_value()) << *wait.owner;
    ASSERT_EQ(wait.files.size(), 1u);
    EXPECT_EQ(wait.files[0].others, (std::vector<std::pair<int, int>>{{holder.pid(), fd}}))
        << is_flock;
    for (const int open : is_locked) close(open);
    unlink(path);
  }
}

TEST(Looks, TellWhoHoldsTheFullBacklogThatAConnectWaitsFor) {
  for (const bool is_file : {true, false}) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const std::string path =
        fmt::format("{}hangscope-backlog-{}", is_file ? "/tmp/" : "", getpid());
    const size_t at = is_file ? 0 : 1;
    path.copy(address.sun_path + at, path.size());
    const auto bytes = static_cast<socklen_t>(sizeof address.sun_family + at + path.size());
    const auto* const name = reinterpret_cast<const sockaddr*>(&address);
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(bind(listener, name, bytes), 0);
    ASSERT_EQ(listen(listener, 0), 0);
    const Child child([&] {
      while (connect(socket(AF_UNIX, SOCK_STREAM, 0), name, bytes) == 0) {
      }
    });
    const ThreadWait wait = child.WhenItWaits(WaitKind::kConnect).wait;
    ASSERT_EQ(wait.files.size(), 1u);
    const WaitFile& file = wait.files[0];
    EXPECT_TRUE(file.backlog);
    EXPECT_EQ(file.name, is_file ? "unix '" + path + "'" : "unix '@" + path + "'");
    EXPECT_THAT(file.others, testing::UnorderedElementsAre(testing::Pair(getpid(), listener),
                                                           testing::Pair(child.pid(), listener)));
    EXPECT_FALSE(wait.has_timeout);
    close(listener);
    unlink(path.c_str());
  }
}

// Whoever has a timer may arm it.
TEST(Looks, TellATimerThatIsNotArmedFromOneThatIs) {
  for (const bool is_armed : {true, false}) {
    const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    const itimerspec in_an_hour = {{0, 0}, {3600, 0}};
    if (is_armed) timerfd_settime(timer, 0, &in_an_hour, nullptr);
    const int other = timerfd_create(CLOCK_MONOTONIC, 0);
    const Child child([&] {
      uint64_t ticks = 0;
      (void)!read(timer, &ticks, sizeof ticks);
    });
    close(timer);
    const WaitFile file = child.WhenItWaits(WaitKind::kRead).wait.files.at(0);
    EXPECT_EQ(file.is_idle, !is_armed);
    EXPECT_THAT(file.others, testing::ElementsAreArray(is_armed ? std::vector<std::pair<int, int>>{}
                                                                : std::vector<std::pair<int, int>>{
                                                                      {child.pid(), timer}}));
    close(other);
  }
}

TEST(Looks, SayThatAnEpollWatchesNothing) {
  const Child child([] {
    epoll_event event;
    epoll_wait(epoll_create1(0), &event, 1, -1);
  });
  const ThreadFacts thread = child.WhenItWaits(WaitKind::kPoll);
  ASSERT_EQ(thread.wait.files.size(), 1u);
  EXPECT_TRUE(thread.wait.files[0].is_idle);
  EXPECT_EQ(thread.wait.files[0].others.size(), 1u);
  EXPECT_THAT(WaitedFor(thread, {}), HasSubstr("an epoll that watches no file (fd "));
}

TEST(Looks, TakeANamedPipeThatIsKeptOpenForOthersAsTheOutside) {
  const std::string path = "/tmp/hangscope-pipe-" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const Child daemon([&] {
    char c = 0;
    (void)!read(open(path.c_str(), O_RDWR), &c, 1);
  });
  const ThreadFacts thread = daemon.WhenItWaits(WaitKind::kRead);
  unlink(path.c_str());
  ASSERT_EQ(thread.wait.files.size(), 1u);
  EXPECT_TRUE(thread.wait.files[0].outside);
  EXPECT_EQ(thread.wait.files[0].name, path);
  const ThreadFacts later = daemon.WhenItWaits(WaitKind::kRead);
  EXPECT_FALSE(later.wait.files.at(0).outside) << "nobody can open it any more";
}

// `exec 3<>pipe; cat <&3`: the shell, which has both ends, writes nothing.
TEST(Looks, TakeANamedPipeThatAParentKeepsOpenForOthersAsTheOutside) {
  for (const bool keeps : {true, false}) {
    const std::string path = "/tmp/hangscope-pipe-" + std::to_string(getpid());
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    const int both = open(path.c_str(), O_RDWR | O_CLOEXEC);
    const int writing = keeps ? -1 : open(path.c_str(), O_WRONLY | O_CLOEXEC);
    const Child reader([&] {
      char c = 0;
      close(writing);
      (void)!read(both, &c, 1);
    });
    const ThreadFacts thread = reader.WhenItWaits(WaitKind::kRead);
    EXPECT_EQ(thread.wait.files.at(0).outside, keeps) << "a writer is somebody to wait for";
    close(both);
    close(writing);
    unlink(path.c_str());
  }
}

TEST(Looks, NameThePipeWhoseOtherEndNobodyOpens) {
  const std::string path = "/tmp/hangscope-unopened-" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const Child reader([&] { (void)!open(path.c_str(), O_RDONLY); });
  const ThreadFacts thread = reader.WhenItWaits(WaitKind::kOpen);
  unlink(path.c_str());
  ASSERT_EQ(thread.wait.files.size(), 1u);
  EXPECT_EQ(thread.wait.files[0].name, path);
  EXPECT_TRUE(thread.wait.files[0].wants_read);
}

TEST(Looks, SayWhenADebuggerHasTheThreads) {
  const StartedProgram program(SPINNER, "flag");
  ASSERT_TRUE(program.is_ready());
  ASSERT_EQ(ptrace(PTRACE_SEIZE, program.pid(), nullptr, nullptr), 0);
  const SystemSample look = Inspect(program.pid());
  ASSERT_FALSE(look.processes.empty());
  EXPECT_THAT(look.processes[0].warnings, Contains(HasSubstr("is traced by process")));
}

TEST(Looks, TakeNoThreadForStoppedThatAnotherLookHolds) {
  const StartedProgram program(SPINNER, "flag");
  ASSERT_TRUE(program.is_ready());
  ASSERT_EQ(ptrace(PTRACE_SEIZE, program.pid(), nullptr, nullptr), 0);
  ASSERT_EQ(ptrace(PTRACE_INTERRUPT, program.pid(), nullptr, nullptr), 0);
  ASSERT_EQ(waitpid(program.pid(), nullptr, __WALL), program.pid());
  const SystemSample look = Inspect(program.pid());
  ASSERT_FALSE(look.processes.empty());
  EXPECT_EQ(look.processes[0].threads[0].state, ThreadState::kUnknown);
}

TEST(Looks, SayWhatHasEnded) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t about;
  waitid(P_PID, static_cast<id_t>(child), &about, WEXITED | WNOWAIT);
  const SystemSample look = Inspect(child);
  ASSERT_FALSE(look.processes.empty());
  EXPECT_EQ(look.processes[0].state, ThreadState::kZombie);
  EXPECT_THAT(look.processes[0].warnings, Contains(HasSubstr("has not collected it")));
  waitpid(child, nullptr, 0);
  auto inspector = OpenLinuxInspector(system_clock);
  EXPECT_THAT((*inspector)->Inspect(child, {}).status().message(),
              HasSubstr("there is no process"));
}

TEST(Looks, SayWhatIsLackingAndNotMore) {
  const Capabilities none("Name:\tx CapEff:\tffffffff\nCapEff:\t0000000000000000\n");
  EXPECT_EQ(WhatGrantsLooking(none, false, 1000),
            "run hangscope as root, or as user 1000 with kernel.yama.ptrace_scope=0");
  EXPECT_EQ(WhatGrantsLooking(none, false, 0), "run hangscope as root");
  EXPECT_THAT(WhatGrantsLooking(none, true, 0), AllOf(HasSubstr("root without CAP_SYS_PTRACE"),
                                                      Not(HasSubstr("run hangscope as root"))));
  const Capabilities all("Name:\tx\nCapEff:\t0000000000080000\n");
  EXPECT_THAT(WhatGrantsLooking(all, true, 0), HasSubstr("security module"));
}

TEST(Looks, SayWhatAnotherUsersProcessKeepsToItself) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const StartedProgram program(SPINNER, "flag");
  ASSERT_TRUE(program.is_ready());
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (setgid(kNobody) != 0 || setuid(kNobody) != 0) _exit(2);
    auto inspector = OpenLinuxInspector(system_clock);
    auto look = (*inspector)->Inspect(program.pid(), {});
    if (!look.ok() || look->processes.empty() || look->processes[0].threads.empty()) _exit(3);
    _exit(testing::Matches(Contains(HasSubstr("may not be looked at")))(look->processes[0].warnings)
              ? 0
              : 4);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TimeNs ProcessorTime() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

// The processor's time, because others use the machine, too.
TEST(Looks, TakeLittleTimeForAHundredThreads) {
  const StartedProgram program(WAIT_ZOO, "3");
  ASSERT_TRUE(program.is_ready());
  const TimeNs before = ProcessorTime();
  const TimeNs begin = system_clock.Monotonic();
  const SystemSample look = Inspect(program.pid());
  const TimeNs took = ProcessorTime() - before;
  ASSERT_FALSE(look.processes.empty());
  EXPECT_GE(look.processes[0].threads.size(), 100u);
  RecordProperty("threads", static_cast<int>(look.processes[0].threads.size()));
  RecordProperty("processor_ms", static_cast<int>(took / kMillisecond));
  RecordProperty("elapsed_ms", static_cast<int>((system_clock.Monotonic() - begin) / kMillisecond));
  printf("%zu threads: %.1f ms of a processor\n", look.processes[0].threads.size(),
         static_cast<double>(took) / 1e6);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr TimeNs kMost = 4 * kSecond;
#else
  constexpr TimeNs kMost = 500 * kMillisecond;
#endif
  EXPECT_LT(took, kMost);
}

// As a program of Go has it.
__attribute__((noinline)) void SwitchStacks() __asm__("runtime.mcall");
void SwitchStacks() {
  pause();
  asm volatile("");  // or the call would be a jump
}

TEST(Looks, EndAStackWhereGoHasSwitchedToTheSchedulers) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    SwitchStacks();
    _exit(0);
  }
  ThreadFacts waiting;
  const TimeNs end = system_clock.Monotonic() + kGenerous;
  while (waiting.wait.kind != WaitKind::kSignal && system_clock.Monotonic() < end) {
    system_clock.Sleep(10 * kMillisecond);
    const SystemSample look = Inspect(child);
    if (const ThreadFacts* const thread = FindThread(look, child)) waiting = *thread;
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ASSERT_FALSE(waiting.stack.empty());
  EXPECT_EQ(waiting.stack.back().function, "runtime.mcall");
  EXPECT_FALSE(waiting.stack_incomplete);
}

// More than what is left of the page behind the program's other variables.
char many_zeroes[4 << 20];

TEST(Looks, NameAVariableWhereNoFileIsMapped) {
  many_zeroes[0] = 1;  // or the linker may leave it out
  const auto maps = ProcFolder("/proc").Read("self/maps");
  ASSERT_TRUE(maps);
  const ProcessMemory memory(getpid());
  auto walker = StackWalker::Open("/proc", getpid(), ParseMemoryMappings(*maps),
                                  [&](uint64_t address, void* into, size_t bytes) {
                                    return memory.ReadInto(address, into, bytes);
                                  });
  ASSERT_TRUE(walker.ok()) << walker.status().message();
  EXPECT_THAT((*walker)->Variable(reinterpret_cast<uint64_t>(&many_zeroes[3 << 20])),
              HasSubstr("many_zeroes+3145728"));
}

TEST(Looks, BearThreadsThatComeAndGo) {
  const StartedProgram program(SPINNER, "threads");
  ASSERT_TRUE(program.is_ready());
  auto inspector = OpenLinuxInspector(system_clock);
  for (int i = 0; i < 30; ++i) {
    auto look = (*inspector)->Inspect(program.pid(), {});
    ASSERT_TRUE(look.ok()) << look.status().message();
    EXPECT_NE(FindThread(*look, program.pid()), nullptr);
  }
  EXPECT_TRUE(IsRunning(program.pid(), kMillisecond));
}

}  // namespace
}  // namespace hangscope
