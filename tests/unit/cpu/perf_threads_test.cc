// Whom a recorder records: threads and processes that are there, that come while it begins, and
// that come later.
#include <map>
#include <set>
#include <thread>

#include "recorded_child.h"

namespace hangscope {
namespace {

class PerfThreadsTest : public RecordedChildTest {};

TEST_F(PerfThreadsTest, FollowsThreadsForksAndExecs) {
  Fork([](ChildCounts& counts) {
    counts.tids[0] = Tid();
    std::thread first([&] {
      counts.tids[1] = Tid();
      std::thread([&] { counts.tids[2] = Tid(); }).join();
    });
    first.join();
    const pid_t child = fork();
    if (child == 0) {
      execl("/bin/true", "true", nullptr);
      _exit(1);
    }
    counts.child = child;
    waitpid(child, nullptr, 0);
  });
  Start();
  Go();
  WaitForEnd();
  recorder_->Tick();
  const CpuCapture capture = Take();
  std::set<int> threads;
  for (const SeenRecord& seen : AllOf(capture)) threads.insert(seen.tid);
  for (const int tid : {counts_->tids[0], counts_->tids[1], counts_->tids[2], counts_->child})
    EXPECT_TRUE(threads.contains(tid)) << tid;
  // The side band says the same, and what the child has become.
  std::set<int> made;
  bool renamed = false, mapped = false;
  const std::string& side_band = capture.side_band;
  for (size_t at = 0; at < side_band.size(); at += At<perf_event_header>(side_band, at).size) {
    const auto header = At<perf_event_header>(side_band, at);
    ASSERT_GE(header.size, 8);
    if (header.type == PERF_RECORD_FORK) made.insert(At<int>(side_band, at + 16));
    if (header.type == PERF_RECORD_COMM && At<int>(side_band, at + 8) == counts_->child)
      renamed = renamed || std::string(side_band.data() + at + 16) == "true";
    if (header.type == PERF_RECORD_MMAP2 && At<int>(side_band, at + 8) == counts_->child)
      mapped = mapped || std::string(side_band.data() + at + 72).ends_with("/true");
  }
  for (const int tid : {counts_->tids[1], counts_->tids[2], counts_->child})
    EXPECT_TRUE(made.contains(tid)) << tid;
  EXPECT_FALSE(made.contains(counts_->tids[0])) << "it was there before";
  EXPECT_TRUE(renamed);
  EXPECT_TRUE(mapped);
  EXPECT_EQ(capture.side_band_lost, 0u);
  EXPECT_FALSE(Parse(side_band, capture.events).empty());
}

// The kernel takes their events away before it tells their parent and lets them go.
TEST_F(PerfThreadsTest, RecordsTheLastSwitchOfEachTaskAndWhatTellsItsParent) {
  NeedTracepoints();
  if (IsSkipped()) return;
  constexpr int kTasks = 20;
  auto* const tids = static_cast<int*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(tids, MAP_FAILED);
  Fork([&](ChildCounts&) {
    for (int i = 0; i < kTasks; ++i) {
      std::thread([&] { tids[i] = Tid(); }).join();
      const pid_t child = fork();
      if (child == 0) _exit(0);
      tids[kTasks + i] = child;
      waitpid(child, nullptr, 0);
    }
  });
  const pid_t program = child_;
  Start();
  Go();
  for (int i = 0; i < 3; ++i) {  // others end, too
    const pid_t stranger = fork();
    if (stranger == 0) _exit(0);
    waitpid(stranger, nullptr, 0);
  }
  WaitForEnd();
  // How often, by thread; by process, for the last of its threads tells the parent.
  std::map<int, int> left, told;
  for (const SeenRecord& seen : AllOf(Take())) {
    const bool is_last =
        seen.event == "sched:sched_switch" && (At<int64_t>(seen.raw, 32) & (16 | 32)) != 0;
    if (is_last && seen.tid == At<int>(seen.raw, 24)) ++left[seen.tid];
    if (seen.event == "signal:signal_generate" && At<int>(seen.raw, 8) == SIGCHLD) ++told[seen.pid];
  }
  for (int i = 0; i < 2 * kTasks; ++i) EXPECT_EQ(left[tids[i]], 1) << (i < kTasks ? "thread" : "");
  for (int i = 0; i < kTasks; ++i) EXPECT_EQ(told[tids[kTasks + i]], 1);
  EXPECT_EQ(told[program], 1);
  munmap(tids, 4096);
}

// A thread that numbers its calls: each of them is to be recorded once.
struct Caller {
  int tid;
  TimeNs last;   // before the last call
  TimeNs ended;  // 0: not yet
};

void MakeCalls(Caller* caller, int calls) {
  SystemClock clock;
  caller->tid = Tid();
  for (int i = 0; i < calls; ++i) {
    if (i > 0) usleep(1000);
    caller->last = clock.Monotonic();
    syscall(SYS_getppid, i);
  }
  // pairs with the test's load
  __atomic_store_n(&caller->ended, clock.Monotonic(), __ATOMIC_RELEASE);
}

// The numbers of a thread's calls, as they were recorded: { common 8, long id, args[6] }.
std::vector<int> CallsOf(const std::vector<SeenRecord>& all, int tid) {
  std::vector<int> calls;
  for (const SeenRecord& seen : all) {
    if (seen.event == "raw_syscalls:sys_enter" && seen.tid == tid &&
        At<int64_t>(seen.raw, 8) == SYS_getppid)
      calls.push_back(At<int>(seen.raw, 16));
  }
  return calls;
}

// Threads that are there, that come while the recorder attaches to one after the other, and that
// come later.
TEST_F(PerfThreadsTest, TakesInThreadsThatComeWhileItAttaches) {
  NeedTracepoints();
  if (IsSkipped()) return;
  constexpr int kStanding = 30;
  constexpr int kCallers = 3000;  // enough for a busy machine
  constexpr int kCalls = 20;
  auto* callers =
      static_cast<Caller*>(mmap(nullptr, kCallers * sizeof(Caller), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(callers, MAP_FAILED);
  Fork([&](ChildCounts& counts) {
    for (int i = 0; i < kStanding; ++i)
      std::thread([] {
        for (;;) pause();
      }).detach();
    // After those: threads come while they are attached, of a maker that is not yet.
    std::thread([&] {
      for (int i = 0; i < kCallers; ++i) {
        std::thread([caller = &callers[i]] { MakeCalls(caller, kCalls); }).detach();
        usleep(6000);
        __atomic_store_n(&counts.calls, i + 1, __ATOMIC_RELEASE);  // pairs with the test's load
      }
    }).join();
    for (;;) pause();
  });
  const auto started = [&] { return __atomic_load_n(&counts_->calls, __ATOMIC_ACQUIRE); };
  Go();
  while (started() < 5) usleep(1000);
  int complete = 0;
  for (int recording = 0; recording < 5; ++recording) {
    Start();
    const std::vector<std::string> warnings = recorder_->warnings();
    const int64_t until = started() + 10;
    if (until > kCallers) break;
    while (started() < until) usleep(1000);
    const CpuCapture capture = Take();
    const TimeNs since = capture.rings.front().recording_since;
    const std::vector<SeenRecord> all = AllOf(capture);
    recorder_.reset();
    if (std::any_of(warnings.begin(), warnings.end(), [](const std::string& text) {
          return text.starts_with("the program made threads all the time");
        }))
      continue;
    for (int i = 0; i < until; ++i) {
      const TimeNs ended = __atomic_load_n(&callers[i].ended, __ATOMIC_ACQUIRE);
      if (ended == 0 || ended > capture.time || callers[i].last < since) continue;
      const std::vector<int> calls = CallsOf(all, callers[i].tid);
      ASSERT_FALSE(calls.empty()) << "recording " << recording << ", thread " << i
                                  << ": nothing of it";
      for (size_t k = 0; k < calls.size(); ++k)
        ASSERT_EQ(calls[k], kCalls - static_cast<int>(calls.size() - k))
            << "recording " << recording << ", thread " << i;
      ++complete;
    }
  }
  EXPECT_GT(complete, 10) << "there was no thread to look at";
  munmap(callers, kCallers * sizeof(Caller));
}

// What runs already when it begins, below the program, is part of it.
TEST_F(PerfThreadsTest, RecordsProcessesThatAreThere) {
  Fork([](ChildCounts& counts) {
    const pid_t child = fork();
    if (child == 0) {
      const pid_t grandchild = fork();
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (grandchild > 0) __atomic_store_n(&counts.child, grandchild, __ATOMIC_RELEASE);
      for (;;) usleep(1000);
    }
    waitpid(child, nullptr, 0);
  });
  Go();
  while (__atomic_load_n(&counts_->child, __ATOMIC_ACQUIRE) == 0) usleep(500);
  const pid_t grandchild = counts_->child;
  Start();
  bool found = false;
  for (const TimeNs end = clock_.Monotonic() + 20 * kSecond; !found && clock_.Monotonic() < end;) {
    for (const SeenRecord& seen : AllOf(Take())) found = found || seen.pid == grandchild;
  }
  kill(grandchild, SIGKILL);
  EXPECT_TRUE(found);
}

TEST_F(PerfThreadsTest, AttachesToThreadsThatAreThere) {
  Fork([](ChildCounts& counts) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&counts, i] {
        counts.tids[i] = Tid();
        for (;;) usleep(2000);
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  Go();
  for (int i = 0; i < 8; ++i) {
    while (__atomic_load_n(&counts_->tids[i], __ATOMIC_ACQUIRE) == 0) usleep(500);
  }
  Start();
  std::set<int> missing(counts_->tids, counts_->tids + 8);
  for (const TimeNs end = clock_.Monotonic() + 20 * kSecond;
       !missing.empty() && clock_.Monotonic() < end;) {
    for (const SeenRecord& seen : AllOf(Take())) missing.erase(seen.tid);
  }
  EXPECT_EQ(missing.size(), 0u) << "thread " << *missing.begin();
  // Their names, though they had them before.
  int names = 0;
  const std::string side_band = Take().side_band;
  for (size_t at = 0; at < side_band.size(); at += At<perf_event_header>(side_band, at).size) {
    if (At<perf_event_header>(side_band, at).type == PERF_RECORD_COMM) ++names;
  }
  EXPECT_GE(names, 9);  // a sanitizer has a thread of its own
}

}  // namespace
}  // namespace hangscope
