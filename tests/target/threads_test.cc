// Real threads and real signals on a real scope: what the writers count themselves is what is found in it,
// while they write and when they are dead.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

// Few records, so that a burst in a handler laps the writer that it interrupts.
#define HANGSCOPE_PORT "without_anchors_port.h"
#define HANGSCOPE_CORES 64
#define HANGSCOPE_RING_CAPACITY 16
#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"

#define TEST_EVENTS(EVENT) EVENT(written, USER, "%u %x", u32, number, u32, proof)
HANGSCOPE_EVENTS(test, HANGSCOPE_FIRST_USER_ID, TEST_EVENTS);

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kEvents = 300'000;
constexpr bool kMustRefuse = false;
#else
constexpr bool kMustRefuse = true;
constexpr uint64_t kEvents = 10'000'000;
#endif

uint32_t Proof(uint32_t number) { return (number ^ 0x5bd1e995u) * 0x9e3779b1u; }

// Each thread's own account. Handlers of the same thread count in it, too.
thread_local uint32_t emitted = 0;

void Emit() {
  const uint32_t number = __atomic_fetch_add(&emitted, 1, __ATOMIC_RELAXED);
  hangscope_written(number, Proof(number));
}

void OnSignal(int) { Emit(); }
void OnBurst(int) {
  for (int i = 0; i < 2 * HANGSCOPE_RING_CAPACITY + 3; i++) Emit();
}

void Handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // nothing is blocked meanwhile: the other kind interrupts this one
  sigaction(signal, &action, nullptr);
}

// A scope file as any other process sees it.
class Mapping {
 public:
  explicit Mapping(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    memory_ = mmap(nullptr, sizeof(hangscope_scope), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
  }
  ~Mapping() {
    if (memory_ != MAP_FAILED) munmap(memory_, sizeof(hangscope_scope));
  }
  bool good() const { return memory_ != MAP_FAILED; }
  const hangscope_scope& scope() const { return *static_cast<const hangscope_scope*>(memory_); }

 private:
  void* memory_;
};

struct Record {
  uint32_t id, time, number, proof;
};

// The rule of abi/record.h.
bool Accepts(const hangscope_core& core, uint64_t sequence, Record* record) {
  const uint32_t* const words = &core.records[sequence % HANGSCOPE_RING_CAPACITY * HANGSCOPE_RECORD_WORDS];
  const uint32_t mark = hangscope_port_load_acquire(&words[0]);
  record->id = mark & HANGSCOPE_ID_MASK;
  record->time = hangscope_port_load(&words[1]);
  record->number = hangscope_port_load(&words[2]);
  record->proof = hangscope_port_load(&words[3]);
  hangscope_port_loads_in_order();
  return hangscope_is_committed(mark, sequence) && hangscope_port_load(&words[0]) == mark &&
         hangscope_begun_by(&core) <= sequence + HANGSCOPE_RING_CAPACITY;
}

bool IsWhole(const Record& record) {
  return record.id == HANGSCOPE_ID_written && record.proof == Proof(record.number);
}

struct Readings {
  uint64_t accepted = 0;
  uint64_t mixed = 0;
};

// Reads all rings over and over, each record from the newest to the oldest.
Readings ReadUntil(const hangscope_scope& scope, const std::atomic<bool>& stop) {
  Readings readings;
  do {
    for (const hangscope_core& core : scope.cores) {
      const uint64_t begun = hangscope_begun_by(&core);
      for (uint64_t back = 1; back <= HANGSCOPE_RING_CAPACITY && back <= begun; back++) {
        Record record;
        if (!Accepts(core, begun - back, &record)) continue;
        readings.accepted++;
        readings.mixed += IsWhole(record) ? 0 : 1;
      }
    }
  } while (!stop.load(std::memory_order_relaxed));
  return readings;
}

struct Account {
  uint64_t emitted = 0, returned = 0, overwritten = 0, torn = 0, refused = 0;
  std::string wrong;
};

// Of a ring whose writers have finished.
Account AccountOf(const hangscope_core& core, uint64_t emitted_by_thread) {
  Account account;
  account.emitted = emitted_by_thread;
  const uint64_t first =
      (static_cast<uint64_t>(core.ring.base[1]) << 32 | core.ring.base[0]);
  const uint64_t begun = hangscope_begun_by(&core);
  if (begun - first != emitted_by_thread) account.wrong = std::to_string(begun - first) + " begun";
  const uint64_t oldest = begun - first > HANGSCOPE_RING_CAPACITY ? begun - HANGSCOPE_RING_CAPACITY : first;
  std::set<uint32_t> listed(core.ring.refused_tickets, core.ring.refused_tickets + 8);
  std::set<uint32_t> numbers;
  uint64_t missing = 0;
  for (uint64_t sequence = oldest; sequence < begun; sequence++) {
    Record record;
    if (Accepts(core, sequence, &record)) {
      account.returned++;
      if (!IsWhole(record) || record.number >= emitted_by_thread || !numbers.insert(record.number).second) {
        account.wrong = "a wrong record";
      }
      continue;
    }
    missing++;
    const uint32_t mark = core.records[sequence % HANGSCOPE_RING_CAPACITY * HANGSCOPE_RECORD_WORDS];
    if (hangscope_is_busy(mark)) account.wrong = "a record that is never finished";
    if (listed.count(static_cast<uint32_t>(sequence << HANGSCOPE_TICKET_SHIFT) | 1) == 0 &&
        ((sequence - hangscope_mark_sequence(mark)) & 0xfffff) > 0x80000 && missing <= 8) {
      account.wrong = "a record is missing for no reason";
    }
    if (listed.count(static_cast<uint32_t>(sequence << HANGSCOPE_TICKET_SHIFT) | 1) == 0) account.torn++;
  }
  account.refused = core.ring.refused;
  account.overwritten = oldest - first - (account.refused - (missing - account.torn));
  if (account.returned + account.overwritten + account.torn + account.refused != emitted_by_thread) {
    account.wrong = "the account does not add up";
  }
  return account;
}

// Threads that write, while others send them signals of two kinds and two readers look.
void Storm(uint64_t events) {
  Handle(SIGUSR1, OnSignal);
  Handle(SIGUSR2, OnBurst);
  constexpr int kThreads = 3;
  std::atomic<bool> stop = false;
  std::atomic<int> writing = kThreads;
  std::atomic<bool> leave = false;
  std::atomic<uint64_t> refusals = 0;  // until there are some, the storm goes on
  std::vector<uint64_t> ledger(kThreads);
  std::vector<hangscope_core*> rings(kThreads);
  std::vector<std::thread> writers;
  for (int t = 0; t < kThreads; t++) {
    writers.emplace_back([&, t] {
      Emit();
      rings[t] = hangscope_this_core();
      const auto more = [&] {
        const uint64_t now = __atomic_load_n(&emitted, __ATOMIC_RELAXED);
        return now < events / kThreads || (kMustRefuse && now < 40 * events && refusals.load() == 0);
      };
      while (more()) {
        for (int i = 0; i < 64; i++) Emit();
        refusals += hangscope_port_load(&rings[t]->ring.refused);
      }
      writing--;
      while (!leave) std::this_thread::yield();
      ledger[t] = __atomic_load_n(&emitted, __ATOMIC_RELAXED);
    });
  }
  const Mapping mapping(hangscope_scope_path());
  ASSERT_TRUE(mapping.good());
  Readings mapped, own;
  std::thread reads_mapping([&] { mapped = ReadUntil(mapping.scope(), stop); });
  std::thread reads_own([&] { own = ReadUntil(*hangscope_the_scope(), stop); });
  uint64_t signals = 0;
  while (writing > 0) {
    for (std::thread& writer : writers) {
      pthread_kill(writer.native_handle(), signals++ % 3 == 0 ? SIGUSR2 : SIGUSR1);
    }
    if (signals % 30 == 0) usleep(50);
  }
  leave = true;
  for (std::thread& writer : writers) writer.join();
  stop = true;
  reads_mapping.join();
  reads_own.join();
  EXPECT_EQ(mapped.mixed, 0u);
  EXPECT_EQ(own.mixed, 0u);
  EXPECT_GT(mapped.accepted, 0u);
  EXPECT_GT(own.accepted, 0u);
  uint64_t sum = 0, refused = 0;
  for (int t = 0; t < kThreads; t++) {
    const Account account = AccountOf(*rings[t], ledger[t]);
    EXPECT_EQ(account.wrong, "") << "emitted " << account.emitted << " returned " << account.returned << " overwritten "
                                 << account.overwritten << " torn " << account.torn << " refused " << account.refused;
    sum += account.emitted;
    refused += account.refused;
  }
  std::printf("%ju events, %ju signals, %ju refused; readers accepted %ju and %ju\n", uintmax_t{sum}, uintmax_t{signals},
              uintmax_t{refused}, uintmax_t{mapped.accepted}, uintmax_t{own.accepted});
  EXPECT_GE(sum, events / kThreads * kThreads);
  if (kMustRefuse) {
    EXPECT_GT(refused, 0u);
  }
}

TEST(Threads, SignalsAndReadersWhileTheyWrite) { Storm(kEvents); }

TEST(ThreadsLong, SignalsAndReadersWhileTheyWrite) { Storm(1'000'000'000); }

TEST(Threads, TheFirstEventOfAThreadInAHandler) {
  Handle(SIGUSR1, OnSignal);
  // All rings were somebody's, so whether their threads are dead must be asked: that sets errno.
  for (int t = 0; t < HANGSCOPE_CORES; t++) std::thread(Emit).join();
  std::thread([] {
    ASSERT_EQ(hangscope_this_core(), &hangscope_no_core);
    errno = 4711;
    raise(SIGUSR1);
    EXPECT_EQ(errno, 4711);
    ASSERT_NE(hangscope_this_core(), &hangscope_no_core);
    EXPECT_EQ(AccountOf(*hangscope_this_core(), 1).wrong, "");
  }).join();
}

TEST(Threads, WhatADeadThreadDidNotFinishIsInNobodysWay) {
  hangscope_core* left = nullptr;
  std::thread([&] {
    Emit();
    left = hangscope_this_core();
    for (int slot = 0; slot < HANGSCOPE_RING_CAPACITY; slot += 2) {
      hangscope_port_store(&left->records[slot * HANGSCOPE_RECORD_WORDS], HANGSCOPE_MARK_BUSY);
    }
  }).join();
  bool again = false;
  for (int t = 0; t < 2 * HANGSCOPE_CORES && !again; t++) {
    std::thread([&] {
      for (int i = 0; i < HANGSCOPE_RING_CAPACITY; i++) Emit();
      again = hangscope_this_core() == left;
      EXPECT_EQ(AccountOf(*hangscope_this_core(), HANGSCOPE_RING_CAPACITY).returned, HANGSCOPE_RING_CAPACITY);
    }).join();
  }
  EXPECT_TRUE(again);
}

TEST(Threads, AThousandComeAndGo) {
  const uint32_t lost = hangscope_the_scope()->header.lost_threads;
  for (int batch = 0; batch < 50; batch++) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 20; t++) {
      threads.emplace_back([] {
        for (int i = 0; i < 5; i++) Emit();
        const hangscope_core* const core = hangscope_this_core();
        ASSERT_NE(core, &hangscope_no_core);
        EXPECT_EQ(core->ring.owner, static_cast<uint32_t>(gettid()));
        const uint64_t first = static_cast<uint64_t>(core->ring.base[1]) << 32 | core->ring.base[0];
        EXPECT_EQ(hangscope_begun_by(core) - first, 5u);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(hangscope_the_scope()->header.lost_threads, lost);
}

TEST(Threads, ThoseThatFindNoRingAreCounted) {
  constexpr int kMore = 9;
  const uint32_t lost = hangscope_the_scope()->header.lost_threads;
  Emit();  // this thread has one
  std::atomic<int> there = 0, without = 0;
  std::atomic<bool> leave = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < HANGSCOPE_CORES - 1 + kMore; t++) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; i++) Emit();
      if (hangscope_this_core() == &hangscope_no_core) without++;
      there++;
      while (!leave) usleep(1000);
    });
  }
  while (there < HANGSCOPE_CORES - 1 + kMore) usleep(1000);
  EXPECT_EQ(without, kMore);
  EXPECT_EQ(hangscope_the_scope()->header.lost_threads - lost, static_cast<uint32_t>(kMore));
  leave = true;
  for (std::thread& thread : threads) thread.join();
  std::thread([] {
    Emit();
    EXPECT_NE(hangscope_this_core(), &hangscope_no_core) << "rings of threads that ended are not used again";
  }).join();
}

#ifndef __SANITIZE_THREAD__  // which does not let a process with threads fork as it likes

struct Shared {
  std::atomic<uint32_t> written;  // events that were recorded, by the child's own account
  char path[512];
};

Shared* MakeShared() {
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (memory) Shared();
}

TEST(Processes, SigkillLosesNothing) {
  for (int round = 0; round < 30; round++) {
    Shared* const shared = MakeShared();
    const pid_t child = fork();
    if (child == 0) {
      std::snprintf(shared->path, sizeof shared->path, "%s", hangscope_scope_path());
      emitted = 0;
      for (;;) {
        Emit();
        shared->written.store(emitted, std::memory_order_release);
      }
    }
    while (shared->written < 100) usleep(100);
    usleep(static_cast<useconds_t>(137 * round % 1000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const uint32_t written = shared->written;
    const Mapping mapping(shared->path);
    ASSERT_TRUE(mapping.good());
    EXPECT_EQ(mapping.scope().header.pid, static_cast<uint32_t>(child));
    const hangscope_core& core = mapping.scope().cores[0];
    ASSERT_GE(hangscope_begun_by(&core), written);
    ASSERT_LE(hangscope_begun_by(&core), written + 1u);
    for (uint32_t number = written + 1 - HANGSCOPE_RING_CAPACITY; number < written; number++) {
      Record record;
      EXPECT_TRUE(Accepts(core, number, &record)) << number << " of " << written;
      EXPECT_TRUE(IsWhole(record));
      EXPECT_EQ(record.number, number);
    }
    unlink(shared->path);
    munmap(shared, sizeof *shared);
  }
}

TEST(Processes, AForkHasAScopeOfItsOwnWhileSignalsStorm) {
  Handle(SIGALRM, OnSignal);
  setpgid(0, 0);
  const pid_t group = getpid();
  const pid_t storm = fork();
  if (storm == 0) {
    signal(SIGALRM, SIG_IGN);
    while (getppid() == group) {
      kill(-group, SIGALRM);  // the children as well, from their first instruction on
      for (int i = 0; i < 20; i++) getppid();
    }
    _exit(0);
  }
  std::thread([] {  // with a ring that has no history
    Emit();
    hangscope_core* const mine = hangscope_this_core();
    for (int round = 0; round < 100; round++) {
      Shared* const shared = MakeShared();
      const pid_t child = fork();
      if (child == 0) {
        const bool own = hangscope_the_scope() != nullptr;
        for (int i = 0; i < 5; i++) Emit();
        std::snprintf(shared->path, sizeof shared->path, "%s", hangscope_scope_path());
        _exit(own && hangscope_the_scope()->header.pid == static_cast<uint32_t>(getpid()) ? 0 : 1);
      }
      int status = -1;
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      EXPECT_EQ(status, 0);
      const Mapping mapping(shared->path);
      ASSERT_TRUE(mapping.good());
      const hangscope_core& core = mapping.scope().cores[0];
      const uint64_t begun = hangscope_begun_by(&core);
      EXPECT_GE(begun, 5u);
      for (uint64_t sequence = begun - 5; sequence < begun; sequence++) {
        Record record;
        // The newest may be of a handler that _exit cut short.
        EXPECT_TRUE(!Accepts(core, sequence, &record) || IsWhole(record));
      }
      unlink(shared->path);
      munmap(shared, sizeof *shared);
    }
    // Signals go to any thread; this one's are all in its ring, and the children's are not.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    EXPECT_EQ(AccountOf(*mine, emitted).wrong, "");
  }).join();
  kill(storm, SIGKILL);
  waitpid(storm, nullptr, 0);
}

TEST(Processes, AReaderOfAnotherProcess) {
  std::atomic<bool> leave = false;
  int done[2];
  ASSERT_EQ(pipe(done), 0);
  const std::string path = hangscope_scope_path();
  const pid_t child = fork();
  if (child == 0) {
    const Mapping mapping(path);
    std::atomic<bool> stop = false;
    std::thread waits([&] {
      usleep(300'000);
      stop = true;
    });
    const Readings readings = ReadUntil(mapping.scope(), stop);
    waits.join();
    _exit(readings.mixed != 0 ? 2 : readings.accepted == 0 ? 1 : 0);
  }
  std::thread writer([&] {
    while (!leave) Emit();
  });
  int status = -1;
  waitpid(child, &status, 0);
  leave = true;
  writer.join();
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

#endif

}  // namespace

// Its scope goes to a folder of its own, if the caller has not said where. `--emit N` is a program that
// records N events and says where.
int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--emit") {
    for (int i = std::atoi(argv[2]); i > 0; i--) Emit();
    std::printf("%s\n", hangscope_scope_path() == nullptr ? "none" : hangscope_scope_path());
    return 0;
  }
  testing::InitGoogleTest(&argc, argv);
  const int status = RUN_ALL_TESTS();
  if (hangscope_scope_path() != nullptr) unlink(hangscope_scope_path());
  return status;
}
