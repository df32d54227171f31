// Carrying programs step by step: what goes in circles, and that nobody is disturbed by it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "fakes/started_program.h"
#include "proc/steps/step_calls.h"
#include "process/linux_inspector.h"
#include "process/process_words.h"

namespace hangscope {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr TimeNs kStepsAreSeenWithin = 60 * kSecond;

// Each step takes a sanitizer several times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSlower = 10;
#else
constexpr int kSlower = 1;
#endif
InspectOptions WithTimeForSteps() {
  InspectOptions options;
  options.step_time *= kSlower;
  options.long_step_time *= kSlower;
  return options;
}

SystemClock steps_clock;

// What its steps show, once they show a circle where one is `wanted`.
ThreadFacts::Spin StepsOf(const StartedProgram& program, bool wanted) {
  EXPECT_TRUE(program.is_ready());
  auto inspector = OpenLinuxInspector(steps_clock);
  const TimeNs end = steps_clock.Monotonic() + kStepsAreSeenWithin;
  while (steps_clock.Monotonic() < end) {
    const auto look = (*inspector)->Inspect(program.pid(), WithTimeForSteps());
    const ThreadFacts* const thread = look.ok() ? FindThread(look.value(), program.pid()) : nullptr;
    if (thread == nullptr || !thread->spin) continue;
    // On a busy machine the time for steps may be over before the circle is closed.
    if (!wanted || thread->spin->period > 0) return *thread->spin;
  }
  ADD_FAILURE() << "no steps of it were seen";
  return {};
}

bool IsProvenSpin(const ThreadFacts::Spin& spin) {
  return spin.period > 0 && !spin.writes_memory && !spin.calls_kernel && !spin.reads_clock;
}

#if defined(__x86_64__)
TEST(Steps, GoThroughCallsThatAskAndChangeNothing) {
  struct Way {
    const char* name;
    const char* call;
    int64_t result;
    WaitKind kind;
  };
  for (const Way& way :
       {Way{"read", "read", -EAGAIN, WaitKind::kRead}, Way{"poll", "poll", 0, WaitKind::kPoll},
        Way{"ready", "epoll_wait", 1, WaitKind::kPoll}, Way{"child", "wait4", 0, WaitKind::kChild},
        Way{"futex", "futex", -EAGAIN, WaitKind::kNone}}) {
    const StartedProgram program(SPINNER, way.name);
    ThreadFacts::Spin spin = StepsOf(program, true);
    // Its child may be younger than the list of processes that the first look took.
    if (way.kind == WaitKind::kChild) spin = StepsOf(program, true);
    EXPECT_TRUE(IsProvenSpin(spin)) << way.name;
    ASSERT_EQ(spin.calls.size(), 1u) << way.name;
    const ThreadFacts::Spin::Call& call = spin.calls[0];
    EXPECT_EQ(call.name, way.call);
    EXPECT_EQ(call.result, way.result) << way.name;
    EXPECT_EQ(WaitKindName(call.wait.kind), WaitKindName(way.kind)) << way.name;
    const bool asks_files = way.kind == WaitKind::kRead || way.kind == WaitKind::kPoll;
    ASSERT_EQ(call.wait.files.size(), asks_files ? 1u : 0u) << way.name;
    if (asks_files) {
      EXPECT_EQ(call.wait.files[0].kind, FileKind::kPipe) << way.name;
      EXPECT_EQ(call.wait.files[0].others.size(), 1u) << way.name;
    }
    if (way.call == std::string("epoll_wait")) {
      EXPECT_THAT(call.ready, ElementsAre(call.wait.files[0].fd));
    }
    if (way.kind == WaitKind::kChild) {
      EXPECT_EQ(call.wait.children.size(), 1u);
    }
    if (way.call == std::string("futex")) {
      EXPECT_EQ(spin.polled_variable, "futex_word");
    }
  }
}

TEST(Steps, EndWhereACallChangesSomething) {
  const StartedProgram program(SPINNER, "pass");
  const ThreadFacts::Spin spin = StepsOf(program, false);
  EXPECT_TRUE(spin.calls_kernel);
  EXPECT_EQ(spin.period, 0u);
}

// It ends if a call ever comes back before its time.
TEST(Steps, LeaveWhoSleepsInACallToSleep) {
  const StartedProgram program(SPINNER, "nap");
  ASSERT_TRUE(program.is_ready());
  auto inspector = OpenLinuxInspector(steps_clock);
  for (int i = 0; i < 60 / kSlower; ++i) {
    const auto look = (*inspector)->Inspect(program.pid(), {});
    ASSERT_TRUE(look.ok()) << look.status().message();
    const ThreadFacts* const thread = FindThread(look.value(), program.pid());
    ASSERT_NE(thread, nullptr);
    EXPECT_FALSE(thread->spin && IsProvenSpin(*thread->spin));
    EXPECT_NE(thread->state, ThreadState::kTraced);
  }
  EXPECT_EQ(kill(program.pid(), 0), 0);
}

TEST(Steps, GoAroundALongList) {
  const StartedProgram program(SPINNER, "list");
  const ThreadFacts::Spin spin = StepsOf(program, true);
  EXPECT_TRUE(IsProvenSpin(spin));
  EXPECT_GE(spin.period, 1500u * 3);
  EXPECT_THAT(spin.flickers, IsEmpty()) << "what it writes is on its own stack";
}

TEST(Steps, TellWhatIsReadOfTheClock) {
  const StartedProgram program(SPINNER, "time");
  EXPECT_FALSE(IsProvenSpin(StepsOf(program, false)));
}

TEST(Steps, TellWhatOthersMaySeeOfACircle) {
  const StartedProgram program(SPINNER, "flicker");
  const ThreadFacts::Spin spin = StepsOf(program, true);
  EXPECT_TRUE(IsProvenSpin(spin));
  EXPECT_EQ(spin.flickers.size(), 1u);
  EXPECT_EQ(spin.polled_variable, "flag");
}

// Each is seen in its circle now and then, though one of the two always goes on.
TEST(Steps, TellCirclesOfSeveralOfOneTime) {
  const StartedProgram program(SPINNER, "turns");
  ASSERT_TRUE(program.is_ready());
  auto inspector = OpenLinuxInspector(steps_clock);
  int circles = 0;
  for (int i = 0; i < 15; ++i) {
    const auto look = (*inspector)->Inspect(program.pid(), WithTimeForSteps());
    ASSERT_TRUE(look.ok()) << look.status().message();
    int together = 0;
    for (const ThreadFacts& thread : look.value().processes[0].threads) {
      if (!thread.spin || !IsProvenSpin(*thread.spin)) continue;
      ++circles;
      if (thread.spin->held_with_others) ++together;
    }
    EXPECT_LT(together, 2);
  }
  EXPECT_GT(circles, 0);
}

TEST(Steps, TellThatSeveralAreInCirclesAtOneTime) {
  const StartedProgram program(SPINNER, "both");
  ASSERT_TRUE(program.is_ready());
  auto inspector = OpenLinuxInspector(steps_clock);
  const TimeNs end = steps_clock.Monotonic() + kStepsAreSeenWithin;
  size_t together = 0;
  while (together < 2 && steps_clock.Monotonic() < end) {
    const auto look = (*inspector)->Inspect(program.pid(), WithTimeForSteps());
    ASSERT_TRUE(look.ok()) << look.status().message();
    const auto& threads = look.value().processes[0].threads;
    together = static_cast<size_t>(
        std::count_if(threads.begin(), threads.end(), [](const ThreadFacts& thread) {
          return thread.spin && IsProvenSpin(*thread.spin) && thread.spin->held_with_others;
        }));
  }
  EXPECT_EQ(together, 2u);
}
#endif

TEST(StepCalls, AskOrMayChangeTheWorld) {
  const ReadMemory read = [](uint64_t, void*, size_t) { return false; };
  const auto use = [&](int number, std::array<uint64_t, 6> arguments = {}) {
    return UseOf({number, arguments, 0}, read);
  };
  EXPECT_EQ(use(SYS_sched_yield), CallUse::kYields);
  EXPECT_EQ(use(SYS_clock_gettime), CallUse::kClock);
  EXPECT_EQ(use(SYS_read), CallUse::kAsks);
  EXPECT_EQ(use(SYS_wait4, {0, 0, 1 /* WNOHANG */}), CallUse::kAsks);
  EXPECT_EQ(use(SYS_wait4), CallUse::kAsks) << "who has no child is told so at once";
  EXPECT_EQ(use(SYS_kill, {1, 0}), CallUse::kAsks);
  EXPECT_EQ(use(SYS_kill, {1, 15}), CallUse::kNever);
  for (const int number : {SYS_mmap, SYS_close, SYS_clone, SYS_exit_group, SYS_execve,
                           SYS_rt_sigprocmask, SYS_nanosleep, SYS_openat})
    EXPECT_EQ(use(number), CallUse::kNever) << number;
}

// Of what fcntl does with locks, one that takes them without waiting.
TEST(StepCalls, AskForALockOfAFileThatTheyDoNotGet) {
  struct flock lock = {};
  const ReadMemory read = [&](uint64_t, void* into, size_t bytes) {
    std::memcpy(into, &lock, bytes);
    return true;
  };
  const auto use = [&](uint64_t command) { return UseOf({SYS_fcntl, {3, command, 64}, 0}, read); };
  for (const uint64_t set : {uint64_t{F_SETLK}, uint64_t{37 /* F_OFD_SETLK */}}) {
    lock.l_type = F_WRLCK;
    EXPECT_EQ(use(set), CallUse::kAsks);
    lock.l_type = F_UNLCK;
    EXPECT_EQ(use(set), CallUse::kNever);
    EXPECT_TRUE(ChangedNothing({SYS_fcntl, {3, set, 64}, -EAGAIN}));
    EXPECT_FALSE(ChangedNothing({SYS_fcntl, {3, set, 64}, 0}));
    EXPECT_EQ(MemoryOf({SYS_fcntl, {3, set, 64}, 0}).size(), 1u);
  }
  lock.l_type = F_WRLCK;
  EXPECT_EQ(use(F_SETLKW), CallUse::kNever);
  EXPECT_EQ(use(F_SETFL), CallUse::kNever);
}

TEST(StepCalls, TellByTheirResultWhetherTheyChangedAnything) {
  const auto same = [](int number, int64_t result, std::array<uint64_t, 6> arguments = {}) {
    return ChangedNothing({number, arguments, result});
  };
  EXPECT_TRUE(same(SYS_read, -EAGAIN));
  EXPECT_TRUE(same(SYS_read, 0)) << "at its end";
  EXPECT_FALSE(same(SYS_read, 1));
  EXPECT_FALSE(same(SYS_read, -EINTR));
  EXPECT_FALSE(same(SYS_read, -512)) << "it will be made again, after a signal";
  EXPECT_TRUE(same(SYS_write, -EAGAIN));
  EXPECT_FALSE(same(SYS_write, 0));
  EXPECT_FALSE(same(SYS_write, 1));
  EXPECT_FALSE(same(SYS_accept4, 5));
  EXPECT_TRUE(same(SYS_ppoll, 1));
  EXPECT_TRUE(same(SYS_wait4, 0));
  EXPECT_FALSE(same(SYS_wait4, 4711));
  EXPECT_TRUE(same(SYS_futex, -EAGAIN));
  EXPECT_FALSE(same(SYS_futex, 0)) << "it was woken";
  EXPECT_TRUE(same(SYS_futex, 0, {0, 1 /* FUTEX_WAKE */}));
  EXPECT_FALSE(same(SYS_futex, 1, {0, 1 /* FUTEX_WAKE */}));
  EXPECT_TRUE(same(SYS_recvfrom, 4, {0, 0, 4, 2 /* MSG_PEEK */}));
  EXPECT_FALSE(same(SYS_recvfrom, 4));
}

}  // namespace
}  // namespace hangscope
