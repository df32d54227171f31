// What the kernel of this machine really records of a child that counts what it does.
#include "capture/cpu_recorder.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/file_system.h"
#include "capture/perf_open.h"

namespace hangscope {
namespace {

// A record, as far as these tests look into it; the fields are those that the recorder asks for.
struct Seen {
  uint32_t type = 0;
  uint16_t misc = 0;
  int pid = 0;
  int tid = 0;
  TimeNs time = 0;
  uint32_t cpu = 0;
  std::string event;
  std::string raw;
};

template <typename Number>
Number At(const std::string& bytes, size_t at) {
  Number number{};
  if (at + sizeof(number) <= bytes.size()) std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

// The records of `bytes`, each whole and with a known event. What is none fails the test.
std::vector<Seen> Parse(const std::string& bytes, const std::vector<PerfEvent>& events) {
  std::map<uint64_t, const PerfEvent*> by_id;
  for (const PerfEvent& event : events) {
    for (const uint64_t id : event.ids) by_id[id] = &event;
  }
  std::vector<Seen> all;
  for (size_t at = 0; at < bytes.size();) {
    const auto header = At<perf_event_header>(bytes, at);
    if (header.size < 40 || header.size % 8 != 0 || header.size > bytes.size() - at) {
      ADD_FAILURE() << "no record at byte " << at << " of " << bytes.size();
      return all;
    }
    Seen seen;
    seen.type = header.type;
    seen.misc = header.misc;
    size_t fields = at + header.size - 24;  // sample_id_all: tid, time, cpu, identifier at the end
    uint64_t id = At<uint64_t>(bytes, at + header.size - 8u);
    if (header.type == PERF_RECORD_SAMPLE) id = At<uint64_t>(bytes, at + 8);
    if (!by_id.contains(id)) {
      ADD_FAILURE() << "a record of type " << header.type << " of no event, id " << id;
      return all;
    }
    const PerfEvent& event = *by_id[id];
    seen.event = event.name;
    if (header.type == PERF_RECORD_SAMPLE) {
      fields = at + 16 + ((event.attr.sample_type & PERF_SAMPLE_IP) != 0 ? 8 : 0);
      size_t after = fields + 16 + ((event.attr.sample_type & PERF_SAMPLE_ADDR) != 0 ? 8 : 0);
      seen.cpu = At<uint32_t>(bytes, after);
      if ((event.attr.sample_type & PERF_SAMPLE_RAW) != 0) seen.raw = bytes.substr(after + 12, At<uint32_t>(bytes, after + 8));
    } else {
      fields -= 8;
      seen.cpu = At<uint32_t>(bytes, fields + 16);
    }
    seen.pid = At<int>(bytes, fields);
    seen.tid = At<int>(bytes, fields + 4);
    seen.time = At<TimeNs>(bytes, fields + 8);
    all.push_back(seen);
    at += header.size;
  }
  return all;
}

std::vector<Seen> AllOf(const CpuCapture& capture) {
  std::vector<Seen> all;
  for (const PerfRing& ring : capture.rings) {
    for (Seen& seen : Parse(ring.records, capture.events)) all.push_back(std::move(seen));
  }
  std::stable_sort(all.begin(), all.end(), [](const Seen& a, const Seen& b) { return a.time < b.time; });
  return all;
}

// A child that waits until the recorder has it, then does what the test says. What it counts lies in memory
// that both see.
struct Counts {
  int tids[8];
  int child;
  int64_t calls;
};

class PerfRecorderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    perf_event_attr attr{};
    attr.size = sizeof(attr);
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_DUMMY;
    attr.exclude_kernel = 1;
    if (!OpenPerfEvent(attr, 0, -1).ok()) GTEST_SKIP() << "perf_event_open: " << std::strerror(errno);
    counts_ = static_cast<Counts*>(mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(counts_, MAP_FAILED);
  }
  void TearDown() override {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    munmap(counts_, sizeof(Counts));
  }

  void NeedTracepoints() {
    if (!PosixFileSystem().Exists("/sys/kernel/tracing/events/sched/sched_switch/id")) GTEST_SKIP() << "tracefs is not mounted or may not be read";
    if (geteuid() != 0) GTEST_SKIP() << "not root: tracepoints may not be recorded";
  }

  // The child runs `body` once Go is called.
  void Fork(const std::function<void(Counts&)>& body) {
    ASSERT_EQ(pipe(go_), 0);
    child_ = fork();
    ASSERT_GE(child_, 0);
    if (child_ > 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(go_[1]);
    char byte = 0;
    (void)!read(go_[0], &byte, 1);
    body(*counts_);
    _exit(0);
  }
  void Start(const CpuRecorderOptions& options = {}) {
    auto recorder = StartCpuRecorder(clock_, child_, options);
    ASSERT_TRUE(recorder.ok()) << recorder.status().message();
    recorder_ = std::move(*recorder);
  }
  void Go() {
    close(go_[0]);
    ASSERT_EQ(write(go_[1], "x", 1), 1);
    close(go_[1]);
  }
  void WaitForEnd() {
    int status = 0;
    ASSERT_EQ(waitpid(child_, &status, 0), child_);
    child_ = -1;
    ASSERT_EQ(status, 0);
  }
  CpuCapture Take() {
    auto capture = recorder_->Take();
    EXPECT_TRUE(capture.ok());
    return capture.ok() ? std::move(*capture) : CpuCapture();
  }

  SystemClock clock_;
  Counts* counts_ = nullptr;
  pid_t child_ = -1;
  int go_[2] = {-1, -1};
  std::unique_ptr<CpuRecorder> recorder_;
};

int Tid() { return static_cast<int>(syscall(SYS_gettid)); }

void GoToCpu(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

std::vector<int> AllowedCpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// sys_enter: { common 8, long id, ... }.
int64_t CallsOf(const std::vector<Seen>& all, const std::string& event, int64_t number, int tid) {
  return std::count_if(all.begin(), all.end(), [&](const Seen& seen) { return seen.event == event && seen.tid == tid && At<int64_t>(seen.raw, 8) == number; });
}

TEST_F(PerfRecorderTest, SeesEachSystemCall) {
  NeedTracepoints();
  if (IsSkipped()) return;
  constexpr int kCalls = 5000;
  Fork([](Counts& counts) {
    counts.tids[0] = Tid();
    for (int i = 0; i < kCalls; ++i) syscall(SYS_getppid);
  });
  Start();
  Go();
  WaitForEnd();
  const CpuCapture capture = Take();
  for (const PerfRing& ring : capture.rings) ASSERT_FALSE(ring.lost_before);
  const std::vector<Seen> all = AllOf(capture);
  EXPECT_EQ(CallsOf(all, "raw_syscalls:sys_enter", SYS_getppid, counts_->tids[0]), kCalls);
  EXPECT_EQ(CallsOf(all, "raw_syscalls:sys_exit", SYS_getppid, counts_->tids[0]), kCalls);
}

// Where a thread was when: it goes from CPU to CPU, and knows when it was where.
TEST_F(PerfRecorderTest, SeesWhereAThreadRuns) {
  const std::vector<int> cpus = AllowedCpus();
  if (cpus.size() < 2) GTEST_SKIP() << "one CPU: nothing migrates";
  constexpr int kHops = 40;
  struct Stay {
    TimeNs from, to;
    int cpu;
  };
  auto* stays = static_cast<Stay*>(mmap(nullptr, kHops * sizeof(Stay), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(stays, MAP_FAILED);
  Fork([&](Counts&) {
    SystemClock clock;
    for (int hop = 0; hop < kHops; ++hop) {
      stays[hop].cpu = cpus[hop % 2];
      GoToCpu(stays[hop].cpu);
      stays[hop].from = clock.Monotonic();
      while (clock.Monotonic() < stays[hop].from + kMillisecond) {}
      stays[hop].to = clock.Monotonic();
    }
  });
  Start();
  Go();
  WaitForEnd();
  const std::vector<Seen> all = AllOf(Take());
  // Its runs: from where it is switched in to where it is switched out.
  struct Run {
    TimeNs from, to;
    uint32_t cpu;
  };
  std::vector<Run> runs;
  for (const Seen& seen : all) {
    if (seen.type != PERF_RECORD_SWITCH) continue;
    if ((seen.misc & PERF_RECORD_MISC_SWITCH_OUT) == 0) runs.push_back({seen.time, INT64_MAX, seen.cpu});
    else if (!runs.empty()) runs.back().to = seen.time;
  }
  ASSERT_GE(runs.size(), static_cast<size_t>(kHops) / 2);
  for (int hop = 0; hop < kHops; ++hop) {
    const auto run = std::find_if(runs.begin(), runs.end(), [&](const Run& each) { return each.from <= stays[hop].from && stays[hop].from < each.to; });
    ASSERT_NE(run, runs.end()) << "hop " << hop << ": not running, though it does";
    EXPECT_EQ(run->cpu, static_cast<uint32_t>(stays[hop].cpu)) << "hop " << hop;
  }
  munmap(stays, kHops * sizeof(Stay));
}

TEST_F(PerfRecorderTest, FollowsThreadsForksAndExecs) {
  Fork([](Counts& counts) {
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
  for (const Seen& seen : AllOf(capture)) threads.insert(seen.tid);
  for (const int tid : {counts_->tids[0], counts_->tids[1], counts_->tids[2], counts_->child}) EXPECT_TRUE(threads.contains(tid)) << tid;
  // The side band says the same, and what the child has become.
  std::set<int> made;
  bool renamed = false, mapped = false;
  const std::string& side_band = capture.side_band;
  for (size_t at = 0; at < side_band.size(); at += At<perf_event_header>(side_band, at).size) {
    const auto header = At<perf_event_header>(side_band, at);
    ASSERT_GE(header.size, 8);
    if (header.type == PERF_RECORD_FORK) made.insert(At<int>(side_band, at + 16));
    if (header.type == PERF_RECORD_COMM && At<int>(side_band, at + 8) == counts_->child) renamed = renamed || std::string(side_band.data() + at + 16) == "true";
    if (header.type == PERF_RECORD_MMAP2 && At<int>(side_band, at + 8) == counts_->child) mapped = mapped || std::string(side_band.data() + at + 72).ends_with("/true");
  }
  for (const int tid : {counts_->tids[1], counts_->tids[2], counts_->child}) EXPECT_TRUE(made.contains(tid)) << tid;
  EXPECT_FALSE(made.contains(counts_->tids[0])) << "it was there before";
  EXPECT_TRUE(renamed);
  EXPECT_TRUE(mapped);
  EXPECT_EQ(capture.side_band_lost, 0u);
  EXPECT_FALSE(Parse(side_band, capture.events).empty());
}

extern "C" __attribute__((noinline)) int64_t perf_recorder_test_probed(int64_t value) {
  asm volatile("");  // each call is one
  return value + 1;
}
int64_t perf_recorder_test_watched = 0;

TEST_F(PerfRecorderTest, SetsProbesOnFunctionsAndMemory) {
  NeedTracepoints();
  if (IsSkipped()) return;
  Fork([](Counts& counts) {
    counts.tids[0] = Tid();
    for (int64_t i = 0; i < 30; ++i) counts.calls = perf_recorder_test_probed(i);
    for (int64_t i = 0; i < 20; ++i) __atomic_store_n(&perf_recorder_test_watched, i, __ATOMIC_SEQ_CST);
  });
  CpuRecorderOptions options;
  char watch[64];
  std::snprintf(watch, sizeof(watch), "mem:%p/8:w", static_cast<void*>(&perf_recorder_test_watched));
  const std::string entered = "perf_recorder_test_probed@/proc/self/exe";
  options.events = {entered, entered + ":return", watch, "cs_etm/@tmc_etr0/", "sched:sched_nonsense"};
  Start(options);
  Go();
  WaitForEnd();
  std::map<std::string, int> seen;
  std::map<std::string, std::string> raw;
  for (const Seen& each : AllOf(Take())) {
    ++seen[each.event];
    raw[each.event] = each.raw;
  }
  EXPECT_EQ(seen[entered], 30);
  EXPECT_EQ(seen[entered + ":return"], 30);
  EXPECT_EQ(At<uint64_t>(raw[entered], 8), reinterpret_cast<uintptr_t>(&perf_recorder_test_probed));
  EXPECT_EQ(At<uint64_t>(raw[entered + ":return"], 8), reinterpret_cast<uintptr_t>(&perf_recorder_test_probed));
  const std::vector<std::string>& warnings = recorder_->warnings();
  const auto said = [&](const std::string& begin) { return std::any_of(warnings.begin(), warnings.end(), [&](const std::string& each) { return each.starts_with(begin); }); };
  // A machine without breakpoints says so.
  EXPECT_EQ(seen[watch], said(std::string("'") + watch) ? 0 : 20);
  EXPECT_TRUE(said("'sched:sched_nonsense' is not recorded: this kernel has no event"));
  EXPECT_NE(said("'cs_etm/@tmc_etr0/' is not recorded: this machine has no 'cs_etm'"), PosixFileSystem().Exists("/sys/bus/event_source/devices/cs_etm"));
}

// As somebody who may do nothing special: what the kernel allows is recorded, and the rest is said.
TEST_F(PerfRecorderTest, RecordsWhatTheKernelAllowsToEverybody) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: cannot become somebody else";
  auto paranoid = ReadWholeFile(PosixFileSystem(), "/proc/sys/kernel/perf_event_paranoid");
  if (!paranoid.ok() || std::atoi(paranoid->c_str()) != 2) GTEST_SKIP() << "kernel.perf_event_paranoid is not 2";
  struct Found {
    char warnings[8192];
    int switches, faults, other;
    uint64_t capacity;
  };
  auto* found = static_cast<Found*>(mmap(nullptr, sizeof(Found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(found, MAP_FAILED);
  const pid_t nobody = fork();
  if (nobody == 0) {
    if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0) _exit(2);
    prctl(PR_SET_DUMPABLE, 1);  // as a program that was started so
    Fork([](Counts&) {
      for (int i = 0; i < 50; ++i) {
        usleep(100);
        auto* page = static_cast<volatile char*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        page[0] = 1;
      }
    });
    CpuRecorderOptions options;
    options.whole_machine = true;
    options.ring_bytes = 64 << 20;
    Start(options);
    if (recorder_ == nullptr) _exit(3);
    Go();
    WaitForEnd();
    const CpuCapture capture = Take();
    found->capacity = capture.rings.front().capacity_bytes;
    for (const Seen& seen : AllOf(capture)) {
      if (seen.type == PERF_RECORD_SWITCH) ++found->switches;
      else if (seen.event == "page-faults") ++found->faults;
      else ++found->other;
    }
    std::string all;
    for (const std::string& warning : recorder_->warnings()) all += warning + "\n";
    std::strncpy(found->warnings, all.c_str(), sizeof(found->warnings) - 1);
    _exit(HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(nobody, &status, 0), nobody);
  EXPECT_EQ(status, 0);
  EXPECT_GE(found->switches, 100);
  EXPECT_GE(found->faults, 50);
  EXPECT_EQ(found->other, 0);
  const std::string warnings = found->warnings;
  EXPECT_LT(found->capacity, 64u << 20);
  EXPECT_NE(warnings.find("kernel.perf_event_mlock_kb="), std::string::npos) << warnings;
  EXPECT_NE(warnings.find("only the program is recorded and not the whole machine: kernel.perf_event_paranoid is 2 and CAP_PERFMON is missing"), std::string::npos) << warnings;
  EXPECT_NE(warnings.find("'sched:sched_switch', 'sched:sched_waking'"), std::string::npos) << warnings;
  EXPECT_NE(warnings.find("'page-faults' is recorded outside of the kernel only"), std::string::npos) << warnings;
  munmap(found, sizeof(Found));
}

TEST_F(PerfRecorderTest, SaysThatThereIsNoSuchProcess) {
  auto recorder = StartCpuRecorder(clock_, 0x3ffffff, {});
  ASSERT_FALSE(recorder.ok());
  EXPECT_NE(recorder.status().message().find("there is no process 67108863"), std::string::npos) << recorder.status().message();
}

TEST_F(PerfRecorderTest, RecordsTheWholeMachine) {
  NeedTracepoints();
  if (IsSkipped()) return;
  Fork([](Counts& counts) {
    counts.tids[0] = Tid();
    for (int i = 0; i < 50; ++i) usleep(100);
  });
  const pid_t program = child_;
  const pid_t stranger = fork();
  if (stranger == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) usleep(500);
  }
  CpuRecorderOptions options;
  options.whole_machine = true;
  Start(options);
  Go();
  WaitForEnd();
  int sleeps = 0, strange = 0, woken = 0;
  for (const Seen& seen : AllOf(Take())) {
    if (seen.event == "sched:sched_switch" && seen.tid == program) ++sleeps;
    if (seen.event == "sched:sched_switch" && seen.tid == stranger) ++strange;
    if (seen.event == "sched:sched_waking" && At<int>(seen.raw, 24) == program) ++woken;
  }
  kill(stranger, SIGKILL);
  waitpid(stranger, nullptr, 0);
  EXPECT_GE(sleeps, 50);
  EXPECT_GE(woken, 50) << "by the clock's interrupt";
  EXPECT_GT(strange, 0);
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
  __atomic_store_n(&caller->ended, clock.Monotonic(), __ATOMIC_RELEASE);  // pairs with the test's load
}

// The numbers of a thread's calls, as they were recorded: { common 8, long id, args[6] }.
std::vector<int> CallsOf(const std::vector<Seen>& all, int tid) {
  std::vector<int> calls;
  for (const Seen& seen : all) {
    if (seen.event == "raw_syscalls:sys_enter" && seen.tid == tid && At<int64_t>(seen.raw, 8) == SYS_getppid) calls.push_back(At<int>(seen.raw, 16));
  }
  return calls;
}

// Threads that are there, that come while the recorder attaches to one after the other, and that come later.
TEST_F(PerfRecorderTest, TakesInThreadsThatComeWhileItAttaches) {
  NeedTracepoints();
  if (IsSkipped()) return;
  constexpr int kStanding = 30;
  constexpr int kCallers = 400;
  constexpr int kCalls = 20;
  auto* callers = static_cast<Caller*>(mmap(nullptr, kCallers * sizeof(Caller), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(callers, MAP_FAILED);
  Fork([&](Counts& counts) {
    for (int i = 0; i < kStanding; ++i) std::thread([] { for (;;) pause(); }).detach();
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
    while (started() < until) usleep(1000);
    const CpuCapture capture = Take();
    const TimeNs since = capture.rings.front().recording_since;
    const std::vector<Seen> all = AllOf(capture);
    recorder_.reset();
    if (std::any_of(warnings.begin(), warnings.end(), [](const std::string& text) { return text.starts_with("the program made threads all the time"); })) continue;
    for (int i = 0; i < until; ++i) {
      const TimeNs ended = __atomic_load_n(&callers[i].ended, __ATOMIC_ACQUIRE);
      if (ended == 0 || ended > capture.time || callers[i].last < since) continue;
      const std::vector<int> calls = CallsOf(all, callers[i].tid);
      ASSERT_FALSE(calls.empty()) << "recording " << recording << ", thread " << i << ": nothing of it";
      for (size_t k = 0; k < calls.size(); ++k) ASSERT_EQ(calls[k], kCalls - static_cast<int>(calls.size() - k)) << "recording " << recording << ", thread " << i;
      ++complete;
    }
  }
  EXPECT_GT(complete, 10) << "there was no thread to look at";
  munmap(callers, kCallers * sizeof(Caller));
}

// What runs already when it begins, below the program, is part of it.
TEST_F(PerfRecorderTest, RecordsProcessesThatAreThere) {
  Fork([](Counts& counts) {
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
    for (const Seen& seen : AllOf(Take())) found = found || seen.pid == grandchild;
  }
  kill(grandchild, SIGKILL);
  EXPECT_TRUE(found);
}

TEST_F(PerfRecorderTest, AttachesToThreadsThatAreThere) {
  Fork([](Counts& counts) {
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
  for (const TimeNs end = clock_.Monotonic() + 20 * kSecond; !missing.empty() && clock_.Monotonic() < end;) {
    for (const Seen& seen : AllOf(Take())) missing.erase(seen.tid);
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

// Two threads fill the rings as fast as they can: every record is whole, and the heads say how much lies between
// two looks; where they overlap, they agree.
TEST_F(PerfRecorderTest, ReadsRingsThatAreWritten) {
  NeedTracepoints();
  if (IsSkipped()) return;
  Fork([](Counts&) {
    std::thread other([] {
      for (;;) syscall(SYS_getppid);
    });
    for (;;) syscall(SYS_getppid);
  });
  CpuRecorderOptions options;
  options.ring_bytes = 1 << 20;
  Start(options);
  Go();
  std::vector<PerfRing> before;
  uint64_t lapped = 0, overlapping = 0;
  int64_t disordered = 0;
  for (int look = 0; look < 50; ++look) {
    CpuCapture capture = Take();
    for (size_t i = 0; i < capture.rings.size(); ++i) {
      const PerfRing& ring = capture.rings[i];
      const std::vector<Seen> records = Parse(ring.records, capture.events);
      ASSERT_EQ(ring.records.size() + ring.discarded_bytes, std::min(ring.head, ring.capacity_bytes));
      ASSERT_EQ(ring.lost_before, ring.records.size() < ring.head);
      for (size_t k = 0; k < records.size(); ++k) {
        ASSERT_EQ(records[k].cpu, static_cast<uint32_t>(ring.cpu));
        ASSERT_LE(records[k].time, ring.taken + kMillisecond);
        if (k > 0 && records[k].time < records[k - 1].time) ++disordered;
      }
      lapped += ring.discarded_bytes;
      if (look == 0) continue;
      ASSERT_GE(ring.head, before[i].head);
      const uint64_t fresh = ring.head - before[i].head;
      if (fresh >= ring.records.size()) continue;
      const std::string_view again = std::string_view(ring.records).substr(0, ring.records.size() - fresh);
      const std::string_view old(before[i].records);
      const size_t common = std::min(again.size(), old.size());
      ASSERT_TRUE(again.substr(again.size() - common) == old.substr(old.size() - common)) << "two looks disagree";
      overlapping += common;
    }
    before = std::move(capture.rings);
    usleep(look % 5 * 1000);
  }
  EXPECT_GT(lapped, 0u) << "the rings never were full";
  EXPECT_GT(overlapping, 0u) << "no two looks had anything in common";
  EXPECT_EQ(disordered, 0);
}

}  // namespace
}  // namespace hangscope
