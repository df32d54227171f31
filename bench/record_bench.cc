// What recording an event costs in time: 16 bytes with two parameters, by a pinned producer.
//
//   clock       rdtsc alone
//   floor       rdtsc, four stores, a published head, inline: what a recorder cannot do without
//   hangscope   the default: safe against signals, with mask, into a mapped file
//   private     the same into private memory
//   two         hangscope by two threads at once, each on its own processor
//   two_floor   the floor by two threads at once: what the machine takes for it
//   masked_out  hangscope, the event's class switched off
//   lttng       LTTng-UST, if it is built in and a session takes the event hangscope_bench:event
//
// usage: record_bench ROUNDS BATCHES NAME...   (record_bench.py runs it and judges)
// Rounds go through the names in turn, to and fro. In each, a name gets BATCHES batches of kBatch
// events, and its number is the median of these: a batch is so short that a preemption falls into
// few. Prints JSON: for each name the nanoseconds an event of each round.
#define HANGSCOPE_DEFINE
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "hangscope/hangscope.h"
#include "record_floor.h"
#ifdef HANGSCOPE_BENCH_LTTNG
#include "record_bench_lttng.h"
#endif

#define HANGSCOPE_CLASS_BENCH HANGSCOPE_CLASS(5)
#define BENCH_EVENTS(EVENT) EVENT(bench, BENCH, "%u of %u", u32, index, u32, thread)
HANGSCOPE_EVENTS(bench, HANGSCOPE_FIRST_USER_ID, BENCH_EVENTS);

namespace {

constexpr uint32_t kBatch = 2000;

uint64_t Ticks() { return __builtin_ia32_rdtsc(); }

void Pin(unsigned processor) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    if (processor-- != 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    return;
  }
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// The median batch, in ticks an event.
template <typename Emit>
[[gnu::noinline]] double Measure(int batches, Emit emit) {
  std::vector<double> ticks;
  for (int batch = -1; batch < batches; ++batch) {  // the first warms up
    const uint64_t begin = Ticks();
    for (uint32_t i = 0; i < kBatch; ++i) emit(i);
    const uint64_t end = Ticks();
    if (batch >= 0) ticks.push_back(static_cast<double>(end - begin) / kBatch);
  }
  return Median(std::move(ticks));
}

double MeasureClock(int batches) {
  return Measure(batches, [](uint32_t) {
    uint32_t low;
    uint32_t high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  });
}

double MeasureFloor(int batches) {
  return Measure(batches, [](uint32_t i) { RecordFloor(&floor_ring, 64, i, 0); });
}

double MeasureHangscope(int batches) {
  return Measure(batches, [](uint32_t i) { hangscope_bench(i, 0); });
}

// The thread's ring lies elsewhere for a while.
double MeasurePrivate(int batches) {
  static hangscope_core* const memory =
      static_cast<hangscope_core*>(mmap(nullptr, sizeof(hangscope_core), PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
  if (memory == MAP_FAILED) abort();
  memory->ring.mask = HANGSCOPE_FIRST_MASK;
  hangscope_core* const mapped = hangscope_thread_core;
  hangscope_thread_core = memory;
  const double ticks = MeasureHangscope(batches);
  hangscope_thread_core = mapped;
  return ticks;
}

double MeasureMaskedOut(int batches) {
  const uint32_t before =
      hangscope_set_mask(HANGSCOPE_FIRST_MASK & ~static_cast<uint32_t>(HANGSCOPE_CLASS_BENCH));
  const double ticks = MeasureHangscope(batches);
  hangscope_set_mask(before);
  return ticks;
}

// Both threads record until both are done; the mean of the two.
double MeasureTwo(int batches, double (*measure)(int)) {
  std::atomic<int> ready = 0;
  std::atomic<int> done = 0;
  double ticks[2];
  const auto run = [&](unsigned number) {
    Pin(number);
    (void)measure(1);
    ++ready;
    while (ready != 2) sched_yield();
    ticks[number] = measure(batches);
    ++done;
    while (done != 2) (void)measure(1);
  };
  std::thread other(run, 1);
  std::thread one(run, 0);
  one.join();
  other.join();
  return (ticks[0] + ticks[1]) / 2;
}

double MeasureTwoHangscope(int batches) { return MeasureTwo(batches, MeasureHangscope); }
double MeasureTwoFloor(int batches) { return MeasureTwo(batches, MeasureFloor); }

#ifdef HANGSCOPE_BENCH_LTTNG
double MeasureLttng(int batches) {
  return Measure(batches, [](uint32_t i) { lttng_ust_tracepoint(hangscope_bench, event, i, 0u); });
}
#endif

struct Recorder {
  const char* name;
  double (*measure)(int batches);
};

const Recorder kRecorders[] = {
    {"clock", MeasureClock},          {"floor", MeasureFloor},      {"hangscope", MeasureHangscope},
    {"private", MeasurePrivate},      {"two", MeasureTwoHangscope}, {"two_floor", MeasureTwoFloor},
    {"masked_out", MeasureMaskedOut},
#ifdef HANGSCOPE_BENCH_LTTNG
    {"lttng", MeasureLttng},
#endif
};

struct Result {
  const Recorder* recorder;
  std::vector<double> ticks;
};

double NanosecondsATick() {
  timespec begin;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  const uint64_t from = Ticks();
  usleep(50000);
  timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  const uint64_t to = Ticks();
  return (static_cast<double>(end.tv_sec - begin.tv_sec) * 1e9 +
          static_cast<double>(end.tv_nsec - begin.tv_nsec)) /
         static_cast<double>(to - from);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--list") == 0) {
    for (const Recorder& recorder : kRecorders) puts(recorder.name);
    return 0;
  }
  std::vector<Result> results;
  for (int i = 3; i < argc; ++i) {
    for (const Recorder& recorder : kRecorders) {
      if (strcmp(recorder.name, argv[i]) == 0) results.push_back({&recorder, {}});
    }
  }
  const int rounds = argc > 2 ? atoi(argv[1]) : 0;
  const int batches = argc > 2 ? atoi(argv[2]) : 0;
  if (rounds < 1 || batches < 1 || results.size() + 3 != static_cast<size_t>(argc)) {
    fprintf(stderr,
            "usage: record_bench ROUNDS BATCHES NAME...; record_bench --list has the names\n");
    return 2;
  }
  hangscope_bench(0, 0);
  if (hangscope_scope_path() == nullptr) {
    fprintf(stderr, "record_bench: no scope could be made\n");
    return 1;
  }
  Pin(0);
  const double ns = NanosecondsATick();
  for (int round = 0; round < rounds; ++round) {
    for (Result& result : results) result.ticks.push_back(result.recorder->measure(batches));
    std::reverse(results.begin(), results.end());
  }
  printf("{");
  for (const Result& result : results) {
    printf("%s\"%s\": [", &result == &results[0] ? "" : ", ", result.recorder->name);
    for (size_t i = 0; i < result.ticks.size(); ++i)
      printf("%s%.4f", i == 0 ? "" : ", ", result.ticks[i] * ns);
    printf("]");
  }
  printf("}\n");
  return 0;
}
