// What cpu_record.py records: a program of system calls or of switches, that measures itself.
//
//   getppid  one thread calls getppid
//   pipe     two threads pass a byte to and fro through two pipes: 4 calls and 2 switches a round
//            trip
//   fill     a thread on each CPU calls getppid until the time is over: RESULT, a file of 8 bytes a
//            CPU, counts the calls
//
// usage: cpu_record_load getppid|pipe CPU BATCHES CALLS RESULT
//        cpu_record_load fill SECONDS RESULT
// All threads of the first two run on CPU: so each byte of the pipe makes two switches, wherever
// else there is room. RESULT is JSON: the nanoseconds of a call (a round trip) in the median batch,
// which a preemption by others falls not into, and its CPU time in all of them. It ends with status
// 3, for which hangscope takes a snapshot: from that it is checked that it did record. Built with
// LTTng-UST, a tracepoint stands before and after each call.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

#ifdef HANGSCOPE_BENCH_LTTNG
#include "record_bench_lttng.h"
#define TRACE(number, leaves) lttng_ust_tracepoint(hangscope_bench, event, number, leaves)
#else
#define TRACE(number, leaves) static_cast<void>(0)
#endif

namespace {

constexpr int kEndStatus = 3;
constexpr uint64_t kCallsACount = 256;

[[noreturn]] void Fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

uint64_t Nanoseconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

void RunOn(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (sched_setaffinity(0, sizeof(one), &one) != 0) Fail("sched_setaffinity");
}

void GetParent() {
  TRACE(SYS_getppid, 0);
  syscall(SYS_getppid);
  TRACE(SYS_getppid, 1);
}

void Send(int pipe) {
  const char byte = 'x';
  TRACE(SYS_write, 0);
  const ssize_t sent = write(pipe, &byte, 1);
  TRACE(SYS_write, 1);
  if (sent != 1) Fail("write");
}

// Whether there was a byte; the other end may be closed.
bool Receive(int pipe) {
  char byte;
  TRACE(SYS_read, 0);
  const ssize_t got = read(pipe, &byte, 1);
  TRACE(SYS_read, 1);
  return got == 1;
}

// Two pipes and the thread that sends back what comes.
class Echo {
 public:
  Echo() {
    if (pipe(there_) != 0 || pipe(back_) != 0) Fail("pipe");
    thread_ = std::thread([this] {
      while (Receive(there_[0])) Send(back_[1]);
    });
  }
  ~Echo() {
    close(there_[1]);
    thread_.join();
  }
  void RoundTrip() {
    Send(there_[1]);
    if (!Receive(back_[0])) Fail("read");
  }

 private:
  int there_[2], back_[2];
  std::thread thread_;
};

template <typename Call>
void Measure(int batches, int calls, const char* result, Call call) {
  std::vector<uint64_t> took(static_cast<size_t>(batches));
  for (int i = 0; i < calls; ++i) call();
  const uint64_t cpu_before = Nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
  for (uint64_t& each : took) {
    const uint64_t before = Nanoseconds(CLOCK_MONOTONIC);
    for (int i = 0; i < calls; ++i) call();
    each = Nanoseconds(CLOCK_MONOTONIC) - before;
  }
  const uint64_t cpu = Nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_before;
  std::nth_element(took.begin(), took.begin() + batches / 2, took.end());
  FILE* file = std::fopen(result, "w");
  if (file == nullptr) Fail(result);
  std::fprintf(file, "{\"ns\": %.1f, \"cpu_ns\": %.1f}\n",
               static_cast<double>(took[static_cast<size_t>(batches) / 2]) / calls,
               static_cast<double>(cpu) / batches / calls);
  if (std::fclose(file) != 0) Fail(result);
}

void Fill(int seconds, const char* result) {
  const auto cpus = static_cast<size_t>(sysconf(_SC_NPROCESSORS_ONLN));
  const size_t bytes = cpus * sizeof(uint64_t);
  const int file = open(result, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) Fail(result);
  auto* counts = static_cast<std::atomic<uint64_t>*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  if (counts == MAP_FAILED) Fail(result);
  const uint64_t end =
      Nanoseconds(CLOCK_MONOTONIC) + static_cast<uint64_t>(seconds) * 1'000'000'000;
  std::vector<std::thread> threads;
  for (size_t cpu = 0; cpu < cpus; ++cpu) {
    threads.emplace_back([=] {
      RunOn(static_cast<int>(cpu));
      while (Nanoseconds(CLOCK_MONOTONIC) < end) {
        for (uint64_t i = 0; i < kCallsACount; ++i) GetParent();
        counts[cpu].fetch_add(kCallsACount, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int count, char** words) {
  const char* what = count > 1 ? words[1] : "";
  if (count == 4 && std::strcmp(what, "fill") == 0) {
    Fill(std::atoi(words[2]), words[3]);
    return kEndStatus;
  }
  const int batches = count == 6 ? std::atoi(words[3]) : 0;
  const int calls = count == 6 ? std::atoi(words[4]) : 0;
  const bool passes = std::strcmp(what, "pipe") == 0;
  if (batches < 1 || calls < 1 || (!passes && std::strcmp(what, "getppid") != 0)) {
    std::fprintf(
        stderr,
        "usage: cpu_record_load getppid|pipe CPU BATCHES CALLS RESULT | fill SECONDS RESULT\n");
    return 2;
  }
  RunOn(std::atoi(words[2]));
  if (passes) {
    Echo echo;
    Measure(batches, calls, words[5], [&] { echo.RoundTrip(); });
  } else {
    Measure(batches, calls, words[5], GetParent);
  }
  return kEndStatus;
}
