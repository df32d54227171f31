// What the kernel of this machine really records of a child that counts what it does.
#include <gmock/gmock.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <thread>

#include "cpu/aux_tracer.h"
#include "fakes/fake_tracer.h"
#include "fakes/fake_tracer_sysfs.h"
#include "recorded_child.h"

namespace hangscope {
namespace {

class PerfRecorderTest : public RecordedChildTest {};

TEST_F(PerfRecorderTest, SeesEachSystemCall) {
  NeedTracepoints();
  if (IsSkipped()) return;
  constexpr int kCalls = 5000;
  Fork([](ChildCounts& counts) {
    counts.tids[0] = Tid();
    for (int i = 0; i < kCalls; ++i) syscall(SYS_getppid);
  });
  Start();
  Go();
  WaitForEnd();
  const CpuCapture capture = Take();
  for (const PerfRing& ring : capture.rings) ASSERT_FALSE(ring.lost_before);
  const std::vector<SeenRecord> all = AllOf(capture);
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
  auto* stays = static_cast<Stay*>(mmap(nullptr, kHops * sizeof(Stay), PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(stays, MAP_FAILED);
  Fork([&](ChildCounts&) {
    SystemClock clock;
    for (int hop = 0; hop < kHops; ++hop) {
      stays[hop].cpu = cpus[hop % 2];
      GoToCpu(stays[hop].cpu);
      stays[hop].from = clock.Monotonic();
      while (clock.Monotonic() < stays[hop].from + kMillisecond) {
      }
      stays[hop].to = clock.Monotonic();
    }
  });
  const pid_t program = child_;
  Start();
  Go();
  WaitForEnd();
  const std::vector<SeenRecord> all = AllOf(Take());
  // Its runs (ThreadSanitizer has a thread of its own beside it): from where it is switched in to
  // where it is switched out.
  struct Run {
    TimeNs from, to;
    uint32_t cpu;
  };
  std::vector<Run> runs;
  for (const SeenRecord& seen : all) {
    if (seen.type != PERF_RECORD_SWITCH || seen.tid != program) continue;
    if ((seen.misc & PERF_RECORD_MISC_SWITCH_OUT) == 0)
      runs.push_back({seen.time, INT64_MAX, seen.cpu});
    else if (!runs.empty())
      runs.back().to = seen.time;
  }
  ASSERT_GE(runs.size(), static_cast<size_t>(kHops) / 2);
  for (int hop = 0; hop < kHops; ++hop) {
    const auto run = std::find_if(runs.begin(), runs.end(), [&](const Run& each) {
      return each.from <= stays[hop].from && stays[hop].from < each.to;
    });
    ASSERT_NE(run, runs.end()) << "hop " << hop << ": not running, though it does";
    EXPECT_EQ(run->cpu, static_cast<uint32_t>(stays[hop].cpu)) << "hop " << hop;
  }
  munmap(stays, kHops * sizeof(Stay));
}

extern "C" __attribute__((noinline)) int64_t perf_recorder_test_probed(int64_t value) {
  asm volatile("");  // each call is one
  return value + 1;
}
int64_t perf_recorder_test_watched = 0;

// Some virtual machines take a breakpoint and ignore it.
bool BreakpointsFire() {
  static volatile int word;
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_BREAKPOINT;
  attr.bp_type = 2;  // HW_BREAKPOINT_W
  attr.bp_addr = reinterpret_cast<uintptr_t>(&word);
  attr.bp_len = sizeof word;
  const int event = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
  if (event < 0) return false;
  word = 1;
  uint64_t count = 0;
  const bool counted = read(event, &count, sizeof count) == sizeof count && count > 0;
  close(event);
  return counted;
}

TEST_F(PerfRecorderTest, SetsProbesOnFunctionsAndMemory) {
  NeedTracepoints();
  if (IsSkipped()) return;
  Fork([](ChildCounts& counts) {
    counts.tids[0] = Tid();
    for (int64_t i = 0; i < 30; ++i) counts.calls = perf_recorder_test_probed(i);
    for (int64_t i = 0; i < 20; ++i)
      __atomic_store_n(&perf_recorder_test_watched, i, __ATOMIC_SEQ_CST);
  });
  CpuRecorderOptions options;
  char watch[64];
  std::snprintf(watch, sizeof(watch), "mem:%p/8:w",
                static_cast<void*>(&perf_recorder_test_watched));
  const std::string entered = "perf_recorder_test_probed@/proc/self/exe";
  options.events = {entered, entered + ":return", watch, "cs_etm/@tmc_etr0/",
                    "sched:sched_nonsense"};
  Start(options);
  Go();
  WaitForEnd();
  std::map<std::string, int> seen;
  std::map<std::string, std::string> raw;
  for (const SeenRecord& each : AllOf(Take())) {
    ++seen[each.event];
    raw[each.event] = each.raw;
  }
  EXPECT_EQ(seen[entered], 30);
  EXPECT_EQ(seen[entered + ":return"], 30);
  EXPECT_EQ(At<uint64_t>(raw[entered], 8), reinterpret_cast<uintptr_t>(&perf_recorder_test_probed));
  EXPECT_EQ(At<uint64_t>(raw[entered + ":return"], 8),
            reinterpret_cast<uintptr_t>(&perf_recorder_test_probed));
  const std::vector<std::string>& warnings = recorder_->warnings();
  const auto said = [&](const std::string& begin) {
    return std::any_of(warnings.begin(), warnings.end(),
                       [&](const std::string& each) { return each.starts_with(begin); });
  };
  // A machine without breakpoints says so, or takes them and never stops at one: then nobody's
  // does.
  EXPECT_EQ(seen[watch], said(std::string("'") + watch) || !BreakpointsFire() ? 0 : 20);
  EXPECT_TRUE(said("'sched:sched_nonsense' is not recorded: this kernel has no event"));
  EXPECT_NE(said("'cs_etm/@tmc_etr0/' is not recorded: this machine has no 'cs_etm'"),
            PosixFileSystem().Exists("/sys/bus/event_source/devices/cs_etm"));
}

// As somebody who may do nothing special: what the kernel allows is recorded, and the rest is said.
TEST_F(PerfRecorderTest, RecordsWhatTheKernelAllowsToEverybody) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: cannot become somebody else";
  auto paranoid = ReadWholeFile(PosixFileSystem(), "/proc/sys/kernel/perf_event_paranoid");
  if (!paranoid.ok() || std::atoi(paranoid->c_str()) != 2)
    GTEST_SKIP() << "kernel.perf_event_paranoid is not 2";
  struct Found {
    char warnings[8192];
    int switches, faults, other;
    uint64_t capacity;
  };
  auto* found = static_cast<Found*>(
      mmap(nullptr, sizeof(Found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(found, MAP_FAILED);
  const pid_t nobody = fork();
  if (nobody == 0) {
    if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0) _exit(2);
    prctl(PR_SET_DUMPABLE, 1);  // as a program that was started so
    Fork([](ChildCounts&) {
      for (int i = 0; i < 50; ++i) {
        usleep(100);
        auto* page = static_cast<volatile char*>(
            mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
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
    for (const SeenRecord& seen : AllOf(capture)) {
      if (seen.type == PERF_RECORD_SWITCH)
        ++found->switches;
      else if (seen.event == "page-faults")
        ++found->faults;
      else
        ++found->other;
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
  EXPECT_NE(warnings.find("only the program is recorded and not the whole machine: "
                          "kernel.perf_event_paranoid is 2 and CAP_PERFMON is missing"),
            std::string::npos)
      << warnings;
  EXPECT_NE(warnings.find("'sched:sched_switch', 'sched:sched_waking'"), std::string::npos)
      << warnings;
  EXPECT_NE(warnings.find("'page-faults' is recorded outside of the kernel only"),
            std::string::npos)
      << warnings;
  munmap(found, sizeof(Found));
}

TEST_F(PerfRecorderTest, SaysThatThereIsNoSuchProcess) {
  auto recorder = StartCpuRecorder(clock_, 0x3ffffff, {});
  ASSERT_FALSE(recorder.ok());
  EXPECT_NE(recorder.status().message().find("there is no process 67108863"), std::string::npos)
      << recorder.status().message();
}

TEST_F(PerfRecorderTest, RecordsTheWholeMachine) {
  NeedTracepoints();
  if (IsSkipped()) return;
  Fork([](ChildCounts& counts) {
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
  int sleeps = 0, strange = 0;
  const CpuCapture capture = Take();
  kill(stranger, SIGKILL);
  waitpid(stranger, nullptr, 0);
  for (const SeenRecord& seen : AllOf(capture)) {
    if (seen.event == "sched:sched_switch" && seen.tid == program) ++sleeps;
    if (seen.event == "sched:sched_switch" && seen.tid == stranger) ++strange;
  }
  EXPECT_GE(sleeps, 50);
  EXPECT_GT(strange, 0);
}

// Somebody else counts the same faults, by another clock: the kernel prepares one sample for both.
TEST_F(PerfRecorderTest, TakesNoIdAndNoTimeOfAnotherRecorder) {
  constexpr int kPages = 200;
  Fork([](ChildCounts& counts) {
    counts.tids[0] = Tid();
    auto* const pages = static_cast<volatile char*>(
        mmap(nullptr, kPages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    madvise(const_cast<char*>(pages), kPages * 4096, MADV_NOHUGEPAGE);
    for (int page = 0; page < kPages; ++page) pages[page * 4096] = 1;
  });
  const pid_t program = child_;
  CpuRecorderOptions options;
  // events of a thread are first at each of its turns, and theirs what the kernel keeps
  options.whole_machine = true;
  Start(options);
  std::vector<PerfDescriptor> others;
  for (const int cpu : AllowedCpus()) {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_PAGE_FAULTS;
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
    others.push_back(OpenPerfEvent(attr, -1, cpu));
    if (!others.back().ok())
      GTEST_SKIP() << "not allowed to count the faults of others: " << std::strerror(errno);
  }
  Go();
  WaitForEnd();
  const CpuCapture capture = Take();
  int64_t faults = 0, disordered = 0;
  for (const PerfRing& ring : capture.rings) {
    const std::vector<SeenRecord> records = Parse(ring.records, capture.events);
    for (size_t i = 0; i < records.size(); ++i) {
      if (records[i].event == "page-faults" && records[i].tid == program) ++faults;
      if (i > 0 && records[i].time + kMillisecond < records[i - 1].time) ++disordered;
    }
  }
  EXPECT_GE(faults, kPages);
  EXPECT_EQ(disordered, 0);
}

// Two threads fill the rings as fast as they can: every record is whole, and the heads say how much
// lies between two looks; where they overlap, they agree.
TEST_F(PerfRecorderTest, ReadsRingsThatAreWritten) {
  NeedTracepoints();
  if (IsSkipped()) return;
  // During two looks of four the child writes as fast as it can, during the other two less than a
  // ring holds, so that two looks overlap however slow the machine is.
  constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  constexpr int64_t kCallsOfPart = 500;
  Fork([](ChildCounts& counts) {
    std::atomic_ref<int64_t> calls(counts.calls);
    const auto write = [&] {
      for (;;) {
        if (calls.load(std::memory_order_relaxed) > 0) {
          calls.fetch_sub(1, std::memory_order_relaxed);
          syscall(SYS_getppid);
        }
      }
    };
    std::thread other(write);
    write();
  });
  std::atomic_ref<int64_t> calls(counts_->calls);
  calls = kUnlimited;
  CpuRecorderOptions options;
  options.ring_bytes = 1 << 20;
  Start(options);
  Go();
  std::vector<PerfRing> before;
  uint64_t lapped = 0, overlapping = 0;
  int64_t disordered = 0;
  // On a busy machine it takes a while until the rings are full.
  const TimeNs end = clock_.Monotonic() + 20 * kSecond;
  for (int look = 0; look < 50 || ((lapped == 0 || overlapping == 0) && clock_.Monotonic() < end);
       ++look) {
    calls = look % 4 < 2 ? kUnlimited : kCallsOfPart;
    CpuCapture capture = Take();
    for (size_t i = 0; i < capture.rings.size(); ++i) {
      const PerfRing& ring = capture.rings[i];
      const std::vector<SeenRecord> records = Parse(ring.records, capture.events);
      ASSERT_EQ(ring.records.size() + ring.discarded_bytes,
                std::min(ring.head, ring.capacity_bytes));
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
      const std::string_view again =
          std::string_view(ring.records).substr(0, ring.records.size() - fresh);
      const std::string_view old(before[i].records);
      const size_t common = std::min(again.size(), old.size());
      ASSERT_TRUE(again.substr(again.size() - common) == old.substr(old.size() - common))
          << "two looks disagree";
      overlapping += common;
    }
    before = std::move(capture.rings);
    usleep(look % 5 * 1000);
  }
  EXPECT_GT(lapped, 0u) << "the rings never were full";
  EXPECT_GT(overlapping, 0u) << "no two looks had anything in common";
  EXPECT_EQ(disordered, 0);
}

// The events are this kernel's, the tracer is played.
class TracingRecorderTest : public RecordedChildTest {
 protected:
  TracingRecorderTest() {
    sources_.pmus = testing::TempDir() + "hangscope-pmus-" + std::to_string(getpid());
    AddTracers(&PosixFileSystem(), sources_.pmus);
  }
  ~TracingRecorderTest() override {
    recorder_.reset();  // before the kernel that it records with
    std::filesystem::remove_all(sources_.pmus);
  }

  void StartTracing(std::vector<std::string> events) {
    Fork([](ChildCounts&) {});
    CpuRecorderOptions options;
    options.ring_bytes = 64u << 10;
    options.events = std::move(events);
    auto recorder = StartTracingCpuRecorder(clock_, child_, options, sources_, kernel_);
    ASSERT_TRUE(recorder.ok()) << recorder.status().message();
    recorder_ = std::move(*recorder);
  }
  std::string Warnings() const {
    std::string all;
    for (const std::string& warning : recorder_->warnings()) all += warning + "\n";
    return all;
  }

  PerfSources sources_;
  FakeClock fake_clock_;
  FakeTracerKernel kernel_{fake_clock_, 256, AuxHeadKind::kCountsAll, 1 << 20};
};

TEST_F(TracingRecorderTest, RecordsATracerBesideTheUsualEvents) {
  StartTracing({"cs_etm/@tmc_etr0/u", "cs_etm/@tmc_etr0/u", "intel_pt//u"});
  if (HasFatalFailure()) return;
  EXPECT_THAT(Warnings(), testing::HasSubstr("'intel_pt//u' is not recorded: one hardware trace at "
                                             "a time, and 'cs_etm/@tmc_etr0/u' is recorded"));
  kernel_.Run(0, child_);
  kernel_.Trace(0, "traced");
  kernel_.Leave(0);
  recorder_->Tick();
  Go();
  WaitForEnd();
  const CpuCapture capture = Take();
  ASSERT_FALSE(capture.aux.empty());
  EXPECT_EQ(capture.aux[0].bytes, "traced");
  ASSERT_EQ(capture.aux[0].spans.size(), 1u);
  EXPECT_EQ(capture.events.back().name, "cs_etm/@tmc_etr0/u");
  EXPECT_EQ(capture.events.back().ids.size() % capture.aux.size(), 0u) << "one a CPU and thread";
  EXPECT_GE(capture.events.back().ids.size(), capture.aux.size());
  EXPECT_EQ(At<uint32_t>(capture.side_band, 0), 70u) << "what the tracer is comes first";
  EXPECT_FALSE(AllOf(capture).empty()) << "and the rest is recorded, too";
}

TEST_F(TracingRecorderTest, RecordsTheRestWhereTheTracerIsRefused) {
  kernel_.open_errors[0] = EBUSY;
  StartTracing({"cs_etm/@tmc_etr0/u"});
  if (HasFatalFailure()) return;
  EXPECT_THAT(
      Warnings(),
      testing::HasSubstr("'cs_etm/@tmc_etr0/u' is not recorded: somebody else has the hardware"));
  Go();
  WaitForEnd();
  const CpuCapture capture = Take();
  EXPECT_TRUE(capture.aux.empty());
  EXPECT_FALSE(AllOf(capture).empty());
}

TEST_F(TracingRecorderTest, SaysWhichThreadsAreNotTraced) {
  Fork([](ChildCounts&) {});
  kernel_.thread_errors[child_] = EBUSY;
  CpuRecorderOptions options;
  options.events = {"cs_etm/@tmc_etr0/u"};
  auto recorder = StartTracingCpuRecorder(clock_, child_, options, sources_, kernel_);
  ASSERT_TRUE(recorder.ok()) << recorder.status().message();
  recorder_ = std::move(*recorder);
  EXPECT_THAT(Warnings(),
              testing::ContainsRegex("1 of [12] threads are not traced by hardware: "
                                     "'cs_etm/@tmc_etr0/u': somebody else has the hardware"));
  Go();
  WaitForEnd();
}

// As far as a machine without a tracer can tell.
TEST_F(PerfRecorderTest, AsksTheKernelForAnAreaOnlyWhereThereIsATracer) {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.exclude_kernel = 1;
  attr = Recorded(attr);
  int error = 0;
  const auto event = KernelTracerPort().Open(attr, 0, AllowedCpus().front(), &error);
  ASSERT_NE(event, nullptr) << std::strerror(error);
  EXPECT_NE(event->id(), 0u);
  EXPECT_EQ(event->Map(16u << 10, 64u << 10), EOPNOTSUPP)
      << "its ring is mapped, and this event has no area";
  EXPECT_EQ(event->pages().trace, nullptr);
  EXPECT_EQ(event->Start(), 0);
  EXPECT_EQ(event->Stop(), 0);
  attr.type = 0x7fffffff;
  EXPECT_EQ(KernelTracerPort().Open(attr, 0, AllowedCpus().front(), &error), nullptr);
  EXPECT_EQ(error, ENOENT);
}

}  // namespace
}  // namespace hangscope
