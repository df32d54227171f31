// A child that really runs and is recorded by the kernel of this machine, for tests.
#ifndef HANGSCOPE_TESTS_UNIT_CPU_RECORDED_CHILD_H
#define HANGSCOPE_TESTS_UNIT_CPU_RECORDED_CHILD_H

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "cpu/cpu_recorder.h"
#include "cpu/perf_open.h"

namespace hangscope {

// A record, as far as these tests look into it; the fields are those that the recorder asks for.
struct SeenRecord {
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
inline std::vector<SeenRecord> Parse(const std::string& bytes,
                                     const std::vector<PerfEvent>& events) {
  std::map<uint64_t, const PerfEvent*> by_id;
  for (const PerfEvent& event : events) {
    for (const uint64_t id : event.ids) by_id[id] = &event;
  }
  std::vector<SeenRecord> all;
  for (size_t at = 0; at < bytes.size();) {
    const auto header = At<perf_event_header>(bytes, at);
    if (header.size < 40 || header.size % 8 != 0 || header.size > bytes.size() - at) {
      ADD_FAILURE() << "no record at byte " << at << " of " << bytes.size();
      return all;
    }
    SeenRecord seen;
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
      if ((event.attr.sample_type & PERF_SAMPLE_RAW) != 0)
        seen.raw = bytes.substr(after + 12, At<uint32_t>(bytes, after + 8));
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

inline std::vector<SeenRecord> AllOf(const CpuCapture& capture) {
  std::vector<SeenRecord> all;
  for (const PerfRing& ring : capture.rings) {
    for (SeenRecord& seen : Parse(ring.records, capture.events)) all.push_back(std::move(seen));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const SeenRecord& a, const SeenRecord& b) { return a.time < b.time; });
  return all;
}

// A child that waits until the recorder has it, then does what the test says. What it counts lies
// in memory that both see.
struct ChildCounts {
  int tids[8];
  int child;
  int64_t calls;
};

class RecordedChildTest : public ::testing::Test {
 protected:
  void SetUp() override {
    perf_event_attr attr{};
    attr.size = sizeof(attr);
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_DUMMY;
    attr.exclude_kernel = 1;
    if (!OpenPerfEvent(attr, 0, -1).ok())
      GTEST_SKIP() << "perf_event_open: " << std::strerror(errno);
    counts_ = static_cast<ChildCounts*>(mmap(nullptr, sizeof(ChildCounts), PROT_READ | PROT_WRITE,
                                             MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(counts_, MAP_FAILED);
  }
  void TearDown() override {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    munmap(counts_, sizeof(ChildCounts));
  }

  void NeedTracepoints() {
    if (!PosixFileSystem().Exists("/sys/kernel/tracing/events/sched/sched_switch/id"))
      GTEST_SKIP() << "tracefs is not mounted or may not be read";
    if (geteuid() != 0) GTEST_SKIP() << "not root: tracepoints may not be recorded";
  }

  // The child runs `body` once Go is called.
  void Fork(const std::function<void(ChildCounts&)>& body) {
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
  ChildCounts* counts_ = nullptr;
  pid_t child_ = -1;
  int go_[2] = {-1, -1};
  std::unique_ptr<CpuRecorder> recorder_;
};

inline int Tid() { return static_cast<int>(syscall(SYS_gettid)); }

inline void GoToCpu(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

inline std::vector<int> AllowedCpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// sys_enter: { common 8, long id, ... }.
inline int64_t CallsOf(const std::vector<SeenRecord>& all, const std::string& event, int64_t number,
                       int tid) {
  return std::count_if(all.begin(), all.end(), [&](const SeenRecord& seen) {
    return seen.event == event && seen.tid == tid && At<int64_t>(seen.raw, 8) == number;
  });
}

}  // namespace hangscope

#endif
