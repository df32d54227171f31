// With a fake inspector; the threads that it tells of are none of this machine's, so they stand
// still for as long as they are looked at.
#include "observe/thread_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <vector>

#include "fakes/fake_clock.h"
#include "fakes/fake_process_inspector.h"
#include "proc/proc_folder.h"

namespace hangscope {
namespace {

constexpr TimeNs kThreadStall = 10 * kSecond;
constexpr int kPid = 1 << 30;  // no process has such a number

class ThreadWatchTest : public ::testing::Test {
 protected:
  ThreadWatchTest() {
    clock_.Advance(100 * kSecond);
    look_.processes.emplace_back();
    look_.processes[0].pid = kPid;
    look_.asked = {kPid};
  }

  ThreadFacts& Add(int thread, WaitKind kind) {
    ThreadFacts& facts = look_.processes[0].threads.emplace_back();
    facts.pid = kPid;
    facts.tid = thread;
    facts.name = "worker";
    facts.state = ThreadState::kSleeping;
    facts.system_call = 202;
    facts.wait.kind = kind;
    return facts;
  }
  void Spins(int thread) {
    ThreadFacts& facts = Add(thread, WaitKind::kNone);
    facts.state = ThreadState::kRunning;
    facts.system_call = -1;
    facts.spin.emplace();
    facts.spin->steps = 100;
    facts.spin->period = 3;
    facts.spin->polls = {0x1000};
    facts.spin->polled_variable = "flag";
  }
  // A second later, with a suspicion since `ago`; 0: none.
  void Follow(TimeNs ago = 0) {
    clock_.Advance(kSecond);
    watch_.Follow(kPid, {kPid}, ago == 0 ? 0 : clock_.Monotonic() - ago, true);
  }
  size_t looks() const { return inspector_.asked.size() / 2; }

  FakeClock clock_;
  FakeProcessInspector inspector_;
  ThreadWatch watch_{clock_, inspector_, false, kThreadStall};
  SystemSample look_;
};

TEST_F(ThreadWatchTest, LooksOnASuspicionAtOnceAndOtherwiseOnlyWhereSomebodyNewStandsStill) {
  Add(kPid, WaitKind::kAccept);
  inspector_.Add(look_);
  for (int i = 0; i < 30; ++i) Follow();
  EXPECT_EQ(looks(), 0u) << "nobody of this machine stands still";
  Follow(kSecond / 2);
  EXPECT_EQ(looks(), 1u);
  EXPECT_EQ(watch_.sightings().outside.size(), 1u);
  EXPECT_TRUE(watch_.sightings().findings.empty());
  EXPECT_FALSE(watch_.details().empty());
}

TEST_F(ThreadWatchTest, StopsNobodyWhereNothingRuns) {
  Add(kPid, WaitKind::kMutex).wait.owner = kPid;
  inspector_.Add(look_);
  Follow(kSecond / 2);
  ASSERT_FALSE(inspector_.asked.empty());
  for (const auto& [pid, how] : inspector_.asked) {
    EXPECT_EQ(pid, kPid);
    EXPECT_TRUE(how.descendants);
    EXPECT_FALSE(how.stop || how.step_running);
  }
  ASSERT_EQ(watch_.sightings().findings.size(), 1u);
  EXPECT_EQ(watch_.sightings().findings[0].kind, FindingKind::kDeadlock);
}

TEST_F(ThreadWatchTest, ASpinIsOneWhenItIsSeenAgain) {
  Spins(kPid);
  inspector_.Add(look_);
  Follow(kSecond / 2);
  EXPECT_TRUE(watch_.sightings().findings.empty()) << "it may be a wait for a moment";
  Follow(2 * kSecond);
  ASSERT_EQ(watch_.sightings().findings.size(), 1u);
  EXPECT_EQ(watch_.sightings().findings[0].kind, FindingKind::kSpin);
}

// The program may end between two looks, and whoever asks before its end is known hears of a hang.
TEST_F(ThreadWatchTest, TakesBackWhatItSaidOfThreadsThatHaveEnded) {
  for (const int follows : {3, 15}) {  // before it has lasted, and after
    const pid_t child = fork();
    if (child == 0) {
      pause();
      _exit(0);
    }
    while (ProcFolder("/proc").Stat(child)->state != ThreadState::kSleeping) usleep(1000);
    SystemSample look;
    look.processes.emplace_back();
    look.processes[0].pid = child;
    look.asked = {child};
    look.processes[0].threads.push_back(Add(child, WaitKind::kMutex));
    ThreadFacts& waiting = look.processes[0].threads[0];
    waiting.pid = child;
    waiting.wait.owner = child;
    FakeProcessInspector inspector;
    inspector.Add(look);
    ThreadWatch watch(clock_, inspector, false, kThreadStall);
    const auto follow = [&] {
      clock_.Advance(kSecond);
      watch.Follow(child, {child}, clock_.Monotonic() - kSecond / 2, false);
      return watch.sightings().findings.size();
    };
    for (int i = 1; i < follows; ++i) follow();
    EXPECT_EQ(follow(), follows * kSecond > kThreadStall ? 1u : 0u);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    watch.Confirm();
    EXPECT_TRUE(watch.sightings().findings.empty());
    EXPECT_EQ(follow(), 0u) << "the inspector still tells of it";
  }
}

// As a thread of Java does that wants a monitor; and one of its machine's works beside it.
TEST_F(ThreadWatchTest, WhoLooksNowAndThenWhetherItMayGoOnHangsAllTheSame) {
  for (const bool rechecks : {true, false}) {
    const pid_t child = fork();
    if (child == 0) {
      for (;;) usleep(1000);
    }
    SystemSample look;
    look.processes.emplace_back();
    look.processes[0].pid = child;
    look.asked = {child};
    look_.processes[0].threads.clear();
    ThreadFacts& waiter = Add(child, WaitKind::kMutex);
    waiter.pid = waiter.wait.owner.emplace(child);
    waiter.wait.rechecks = rechecks;
    look.processes[0].threads = look_.processes[0].threads;
    FakeProcessInspector inspector;
    inspector.Add(look);
    ThreadWatch watch(clock_, inspector, false, kThreadStall);
    const auto switches = [&] {
      const auto text = ProcFolder("/proc").Read(std::to_string(child) + "/status");
      const auto status = text ? ParseTaskStatus(*text) : std::nullopt;
      return status ? status->voluntary_switches : 0;
    };
    for (int i = 0; i < 4; ++i) {
      clock_.Advance(kSecond);
      for (const uint64_t before = switches(); switches() == before;) usleep(1000);
      watch.Follow(child, {child}, clock_.Monotonic() - 2 * kSecond, true);
    }
    EXPECT_EQ(watch.sightings().findings.size(), rechecks ? 1u : 0u);
    EXPECT_EQ(watch.sightings().moving.empty(), rechecks);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

// Of a program of Go whose threads all sleep: that its goroutines wait for each other for longer
// than a moment only a third look tells.
TEST_F(ThreadWatchTest, GoroutinesInACircleAreFollowedWhereNoThreadRuns) {
  look_.processes[0].threads.clear();
  ThreadFacts& main = Add(kPid, WaitKind::kFutex);
  main.tasks.resize(2);
  for (size_t i = 0; i < 2; ++i) {
    main.tasks[i].is_goroutine = true;
    main.tasks[i].name = i == 0 ? "goroutine 1" : "goroutine 2";
    main.tasks[i].waits_for = "mutex main.lock";
    main.tasks[i].holder = i == 0 ? "goroutine 2" : "goroutine 1";
    main.tasks[i].tasks = {1 - i};
  }
  FakeProcessInspector inspector;
  inspector.Add(look_);
  ThreadWatch watch(clock_, inspector, false, kThreadStall);
  clock_.Advance(2 * kSecond);
  const TimeNs begin = clock_.Monotonic();
  watch.Follow(kPid, {kPid}, begin - kSecond, true);
  EXPECT_GT(inspector.asked.size(), 2u);
  // Not again and again.
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(kSecond);
    watch.Follow(kPid, {kPid}, begin - kSecond, true);
  }
  const auto follows = [](const auto& asked) { return !asked.second.stacks; };
  EXPECT_LE(std::count_if(inspector.asked.begin(), inspector.asked.end(), follows), 3);
}

// Of whom each look takes more of a CPU than all may.
class DearInspector final : public ProcessInspector {
 public:
  Result<SystemSample> Inspect(int, const InspectOptions&) override {
    const clock_t end = clock() + CLOCKS_PER_SEC / 6;
    while (clock() < end) {
    }
    ++asked;
    return look;
  }
  SystemSample look;
  int asked = 0;
};

TEST_F(ThreadWatchTest, LooksOnceMoreWhereWhoWentOnBesideAHangStandsStill) {
  std::vector<int> children;
  for (int i = 0; i < 2; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      pause();
      _exit(0);
    }
    while (ProcFolder("/proc").Stat(child)->state != ThreadState::kSleeping) usleep(1000);
    children.push_back(child);
  }
  DearInspector inspector;
  for (const int child : children) {
    ProcessFacts& process = inspector.look.processes.emplace_back();
    process.pid = child;
    inspector.look.asked.push_back(child);
    ThreadFacts& thread = process.threads.emplace_back(Add(child, WaitKind::kMutex));
    thread.pid = child;
    if (child == children[0]) {
      thread.wait.owner = child;
    } else {
      thread.state = ThreadState::kRunning;
      thread.wait = {};
    }
  }
  ThreadWatch watch(clock_, inspector, false, kThreadStall);
  const TimeNs suspected = clock_.Monotonic();
  const auto follow = [&] {
    clock_.Advance(kSecond);
    watch.Follow(children[0], {children[0], children[1]}, suspected, true);
  };
  for (int i = 0; i < 5; ++i) follow();
  EXPECT_FALSE(watch.sightings().moving.empty());
  const int asked = inspector.asked;
  ThreadFacts& other = inspector.look.processes[1].threads[0];
  other.state = ThreadState::kSleeping;
  other.wait.kind = WaitKind::kAccept;
  for (int i = 0; i < 12; ++i) follow();
  EXPECT_GT(inspector.asked, asked);
  EXPECT_TRUE(watch.sightings().moving.empty());
  EXPECT_EQ(watch.sightings().findings.size(), 1u);
  for (const int child : children) kill(child, SIGKILL), waitpid(child, nullptr, 0);
}

TEST_F(ThreadWatchTest, ThatNobodyCanBeLookedAtIsSaidOnce) {
  Follow(kSecond / 2);  // the inspector finds no such process
  EXPECT_TRUE(watch_.sightings().findings.empty());
  EXPECT_FALSE(watch_.sightings().incomplete.empty());
}

}  // namespace
}  // namespace hangscope
