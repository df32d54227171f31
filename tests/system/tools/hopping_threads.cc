// hopping_threads LOG THREADS ENTRIES [SPINNERS]: threads that hop from CPU to CPU, and tell the
// truth about it.
//
// Each hop is three marked system calls, prctl(0x48530000 + thread, serial), which the kernel
// refuses. What really happened is in LOG, mapped: for each thread ENTRIES times {uint64 before,
// uint64 after} in nanoseconds of CLOCK_MONOTONIC, the time before and after the call of that
// serial; after = 0: it has not come back. Serials begin with 1, which has the entry 0. A thread
// stops when its entries are full. SPINNERS threads only burn time.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int kMark = 0x48530000;
constexpr int kCallsPerHop = 3;

struct Entry {
  uint64_t before;
  uint64_t after;
};

uint64_t Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

void HopTo(size_t cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

void Hop(size_t thread, Entry* log, size_t entries, size_t cpus) {
  size_t serial = 0;
  for (size_t hop = thread; serial + kCallsPerHop <= entries; ++hop) {
    HopTo(hop % cpus);
    for (int call = 0; call < kCallsPerHop; ++call) {
      Entry& entry = log[serial++];
      __atomic_store_n(&entry.before, Now(), __ATOMIC_RELAXED);
      syscall(SYS_prctl, kMark + static_cast<int>(thread), serial, 0, 0, 0);
      __atomic_store_n(&entry.after, Now(), __ATOMIC_RELAXED);
    }
    const timespec pause = {0, 300'000};
    nanosleep(&pause, nullptr);
  }
  for (;;) pause();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const size_t threads = strtoul(argv[2], nullptr, 10);
  const size_t entries = strtoul(argv[3], nullptr, 10);
  const size_t spinners = argc > 4 ? strtoul(argv[4], nullptr, 10) : 0;
  const size_t bytes = threads * entries * sizeof(Entry);
  const int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) return 1;
  void* log = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (log == MAP_FAILED) return 1;
  const size_t cpus = static_cast<size_t>(sysconf(_SC_NPROCESSORS_ONLN));
  std::vector<std::thread> running;
  for (size_t i = 0; i < threads; ++i)
    running.emplace_back(Hop, i, static_cast<Entry*>(log) + i * entries, entries, cpus);
  for (size_t i = 0; i < spinners; ++i) {
    running.emplace_back([] {
      volatile uint64_t rounds = 0;
      for (;;) rounds = rounds + 1;
    });
  }
  printf("hopping\n");
  fflush(stdout);
  for (;;) pause();
}
