// Real threads and real signals on a real scope: what the writers count themselves is what is found
// in it, while they write and when they are dead.
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
#include <cstring>
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
  const uint32_t* const words =
      &core.records[sequence % HANGSCOPE_RING_CAPACITY * HANGSCOPE_RECORD_WORDS];
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
  const uint64_t first = (static_cast<uint64_t>(core.ring.base[1]) << 32 | core.ring.base[0]);
  const uint64_t begun = hangscope_begun_by(&core);
  if (begun - first != emitted_by_thread) account.wrong = std::to_string(begun - first) + " begun";
  const uint64_t oldest =
      begun - first > HANGSCOPE_RING_CAPACITY ? begun - HANGSCOPE_RING_CAPACITY : first;
  std::set<uint32_t> listed(core.ring.refused_tickets, core.ring.refused_tickets + 8);
  std::set<uint32_t> numbers;
  uint64_t missing = 0;
  for (uint64_t sequence = oldest; sequence < begun; sequence++) {
    Record record;
    if (Accepts(core, sequence, &record)) {
      account.returned++;
      if (!IsWhole(record) || record.number >= emitted_by_thread ||
          !numbers.insert(record.number).second) {
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
    if (listed.count(static_cast<uint32_t>(sequence << HANGSCOPE_TICKET_SHIFT) | 1) == 0)
      account.torn++;
  }
  account.refused = core.ring.refused;
  account.overwritten = oldest - first - (account.refused - (missing - account.torn));
  if (account.returned + account.overwritten + account.torn + account.refused !=
      emitted_by_thread) {
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
        return now < events / kThreads ||
               (kMustRefuse && now < 40 * events && refusals.load() == 0);
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
    EXPECT_EQ(account.wrong, "") << "emitted " << account.emitted << " returned "
                                 << account.returned << " overwritten " << account.overwritten
                                 << " torn " << account.torn << " refused " << account.refused;
    sum += account.emitted;
    refused += account.refused;
  }
  std::printf("%ju events, %ju signals, %ju refused; readers accepted %ju and %ju\n",
              uintmax_t{sum}, uintmax_t{signals}, uintmax_t{refused}, uintmax_t{mapped.accepted},
              uintmax_t{own.accepted});
  // Rows of scripts/reliability.
  ::testing::Test::RecordProperty("events", std::to_string(sum));
  ::testing::Test::RecordProperty("signals", std::to_string(signals));
  ::testing::Test::RecordProperty("refused", std::to_string(refused));
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
      EXPECT_EQ(AccountOf(*hangscope_this_core(), HANGSCOPE_RING_CAPACITY).returned,
                HANGSCOPE_RING_CAPACITY);
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
    EXPECT_NE(hangscope_this_core(), &hangscope_no_core)
        << "rings of threads that ended are not used again";
  }).join();
}

// --- What a watcher sees of threads.

const hangscope_core_detail& DetailsOf(const hangscope_mailbox* mailbox) {
  return hangscope_the_scope()->details[hangscope_core_of(mailbox)];
}

// Leaves something in each part of the calling thread's mailbox, claims and details, a wait that
// does not end among it.
void LeaveTraces(uint32_t number) {
  HANGSCOPE_WAYPOINT("LEFT");
  for (uint32_t i = 0; i < number; i++) hangscope_heartbeat();
  hangscope_kernel_is(number);
  hangscope_launch_is(HANGSCOPE_LAUNCH_RUNNING);
  HANGSCOPE_HOLD(1000 + number);
  HANGSCOPE_PROVIDES(2000 + number);
  HANGSCOPE_DEBUG(number);
  HANGSCOPE_WAIT(3000 + number);
  struct hangscope_fault found = {};
  found.line = number;
  hangscope_fault_is(HANGSCOPE_FAULT_ASSERT, &found);
}

TEST(Watched, EachThreadHasAMailboxOfItsOwnFromItsFirstLookOn) {
  constexpr int kThreads = 8;
  std::atomic<int> there = 0;
  std::vector<std::thread> threads;
  std::vector<hangscope_mailbox*> mailboxes(kThreads);
  for (uint32_t t = 0; t < kThreads; t++) {
    threads.emplace_back([&, t] {
      LeaveTraces(t + 1);
      there++;
      while (there < kThreads) std::this_thread::yield();
      hangscope_mailbox* const mailbox = mailboxes[t] = hangscope_this_mailbox();
      ASSERT_NE(mailbox, &hangscope_no_mailbox);
      const uint32_t core = hangscope_core_of(mailbox);
      EXPECT_EQ(hangscope_this_core(), &hangscope_the_scope()->cores[core]);
      EXPECT_EQ(hangscope_this_core()->ring.owner, static_cast<uint32_t>(gettid()));
      EXPECT_EQ(std::memcmp(&mailbox->waypoint, "LEFT", 4), 0);
      EXPECT_EQ(mailbox->heartbeat, t + 1);
      EXPECT_EQ(mailbox->kernel, t + 1);
      EXPECT_EQ(mailbox->wait_resource, 3001 + t);
      EXPECT_EQ(mailbox->wait_sequence % 2, 1u);
      EXPECT_EQ(mailbox->guard, HANGSCOPE_MAILBOX_GUARD ^ core);
      EXPECT_EQ(hangscope_the_scope()->claims[core].holds[0], 1001 + t);
      EXPECT_EQ(hangscope_the_scope()->claims[core].provides[0], 2001 + t);
      EXPECT_EQ(DetailsOf(mailbox).detail.fault.line, t + 1);
      EXPECT_EQ(DetailsOf(mailbox).debug[0].value, t + 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<hangscope_mailbox*>(mailboxes.begin(), mailboxes.end()).size(),
            size_t{kThreads});
}

TEST(Watched, AThreadThatReturnedSaysSoAndWhatItHeldStaysWritten) {
  hangscope_mailbox* mailbox = nullptr;
  std::thread([&] {
    LeaveTraces(5);
    mailbox = hangscope_this_mailbox();
    EXPECT_EQ(mailbox->launch, static_cast<uint32_t>(HANGSCOPE_LAUNCH_RUNNING));
  }).join();
  EXPECT_EQ(mailbox->launch, static_cast<uint32_t>(HANGSCOPE_LAUNCH_ENDED));
  EXPECT_EQ(hangscope_the_scope()->claims[hangscope_core_of(mailbox)].holds[0], 1005u);
  // One that only recorded events, and one that its canceller ended.
  std::thread([&] {
    Emit();
    mailbox = hangscope_this_mailbox();
  }).join();
  EXPECT_EQ(mailbox->launch, static_cast<uint32_t>(HANGSCOPE_LAUNCH_ENDED));
  std::atomic<hangscope_mailbox*> cancelled = nullptr;
  std::thread waits([&] {
    HANGSCOPE_WAIT(7);
    cancelled = hangscope_this_mailbox();
    for (;;) pause();
  });
  while (cancelled == nullptr) usleep(1000);
  pthread_cancel(waits.native_handle());
  waits.join();
  EXPECT_EQ(hangscope_port_load(&cancelled.load()->launch),
            static_cast<uint32_t>(HANGSCOPE_LAUNCH_ENDED));
}

// A host that looks at all mailboxes meanwhile sees each whole at all times, and no wait of a new
// thread under the number of an old one's.
TEST(Watched, WhatWasAnotherThreadsIsAnew) {
  struct hangscope_scope* const scope = hangscope_the_scope();
  std::atomic<bool> stop = false;
  uint32_t corrupt = 0;
  std::thread host([&] {
    while (!stop) {
      for (uint32_t i = 0; i < HANGSCOPE_CORES; i++)
        corrupt += hangscope_port_load(&scope->mailboxes[i].guard) != (HANGSCOPE_MAILBOX_GUARD ^ i);
    }
  });
  hangscope_mailbox* left = nullptr;
  uint32_t sequence = 0;
  std::thread([&] {
    LeaveTraces(9);
    left = hangscope_this_mailbox();
    left->pause = 1;  // a host asked, too late
    left->resumes = 3;
    hangscope_core_is(hangscope_core_of(left), 0, 6);
    sequence = left->wait_sequence;
  }).join();
  bool again = false;
  for (int t = 0; t < 2 * HANGSCOPE_CORES && !again; t++) {
    std::thread([&] {
      if (hangscope_this_mailbox() != left) return;
      again = true;
      hangscope_mailbox wanted = {};
      wanted.wait_sequence = sequence + 1;
      wanted.stack_free = HANGSCOPE_NOT_KNOWN;
      wanted.guard = left->guard;
      EXPECT_EQ(std::memcmp(left, &wanted, sizeof wanted), 0);
      hangscope_core_detail details = {};
      details.detail.stack_lowest = HANGSCOPE_NOT_KNOWN;
      EXPECT_EQ(std::memcmp(&DetailsOf(left), &details, sizeof details), 0);
      const hangscope_claims claims = {};
      EXPECT_EQ(std::memcmp(&scope->claims[hangscope_core_of(left)], &claims, sizeof claims), 0);
    }).join();
  }
  EXPECT_TRUE(again);
  stop = true;
  host.join();
  EXPECT_EQ(corrupt, 0u);
}

TEST(Watched, ThreadsWithoutAMailboxGoOnAndTouchNobodys) {
  constexpr int kMore = 3;
  Emit();
  std::atomic<int> there = 0, past = 0;
  std::atomic<bool> leave = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < HANGSCOPE_CORES - 1; t++) {
    threads.emplace_back([&] {
      HANGSCOPE_WAYPOINT("FULL");
      there++;
      while (!leave) usleep(1000);
    });
  }
  while (there < HANGSCOPE_CORES - 1) usleep(1000);
  struct hangscope_scope* const scope = hangscope_the_scope();
  const std::vector<hangscope_mailbox> before(scope->mailboxes, scope->mailboxes + HANGSCOPE_CORES);
  uint32_t word = 1;
  hangscope_guard(0, &word, 1);
  word = 2;
  for (int t = 0; t < kMore; t++) {
    threads.emplace_back([&] {
      LeaveTraces(4);
      EXPECT_EQ(hangscope_this_mailbox(), &hangscope_no_mailbox);
      HANGSCOPE_ASSERT(false, "nobody could tell why it stopped");
      hangscope_hardware_fault(1, 2, 3);
      hangscope_kernel_ends(3);
      hangscope_guards_look();
      HANGSCOPE_PAUSE();
      HANGSCOPE_PAUSE_POINT();
      EXPECT_EQ(hangscope_stack_paint_thread(), 0);
      hangscope_stack_look();
      HANGSCOPE_WAIT_DONE();
      HANGSCOPE_RELEASE(1004);
      past++;
    });
  }
  for (int i = 0; i < 5000 && past < kMore; i++) usleep(1000);
  ASSERT_EQ(past, kMore);
  EXPECT_EQ(std::memcmp(before.data(), scope->mailboxes, sizeof scope->mailboxes), 0);
  leave = true;
  for (std::thread& thread : threads) thread.join();
  // Who has a mailbox reports the guard that the others left.
  std::thread([&] {
    hangscope_guards_look();
    EXPECT_EQ(hangscope_this_mailbox()->fault, static_cast<uint32_t>(HANGSCOPE_FAULT_GUARD));
  }).join();
  hangscope_guard(0, nullptr, 0);
}

TEST(Watched, TheFirstWaypointOfAThreadInAHandler) {
  Handle(SIGUSR1, [](int) { HANGSCOPE_WAYPOINT("HNDL"); });
  hangscope_mailbox* mailbox = nullptr;
  std::thread([&] {
    raise(SIGUSR1);
    mailbox = hangscope_this_mailbox();
    ASSERT_NE(mailbox, &hangscope_no_mailbox);
    EXPECT_EQ(std::memcmp(&mailbox->waypoint, "HNDL", 4), 0);
  }).join();
  EXPECT_EQ(mailbox->launch, static_cast<uint32_t>(HANGSCOPE_LAUNCH_ENDED));
}

__attribute__((noinline)) void UseStack() {
  volatile char used[128 << 10];
  for (volatile char& byte : used) byte = 1;
}

TEST(Watched, AThreadsStackIsPainted) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 4 << 20);  // a sanitizer puts its own on it, too
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void*) -> void* {
                  EXPECT_EQ(hangscope_stack_paint_thread(), 1);
                  hangscope_stack_look();
                  const hangscope_mailbox* const mailbox = hangscope_this_mailbox();
                  const uint32_t bytes = DetailsOf(mailbox).detail.stack_bytes;
                  EXPECT_GT(bytes, 3u << 20);
                  // the C library keeps larger ones of threads that ended
                  EXPECT_LE(bytes, HANGSCOPE_LARGEST_STACK);
                  const uint32_t free = mailbox->stack_free;
                  EXPECT_GT(free, bytes / 2);
                  EXPECT_LT(free, bytes);
                  UseStack();
                  hangscope_stack_look();
                  EXPECT_LE(mailbox->stack_free, free - (100u << 10));
                  return nullptr;
                },
                nullptr),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// Debug values of handlers that interrupt each other, by real instructions: those that were begun
// are those that have an order and those that gave up, and no two have the same order. (That values
// and orders are not mixed is tested step by step, in watch_target_test.cc.)
TEST(Watched, DebugValuesOfHandlersAreAllAccountedFor) {
  static thread_local uint32_t begun = 0;
  static const auto write = [] {
    __atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
    HANGSCOPE_DEBUG(begun);
  };
  Handle(SIGUSR1, [](int) { write(); });
  Handle(SIGUSR2, [](int) {
    for (int i = 0; i < 2 * HANGSCOPE_DEBUG_RING + 3; i++) write();
  });
  const uint32_t first = hangscope_port_load(&hangscope_the_scope()->nodes[0].debug_order);
  std::atomic<hangscope_core_detail*> details = nullptr;
  std::atomic<bool> stop = false;
  uint32_t count = 0;
  std::thread writer([&] {
    details = &hangscope_the_scope()->details[hangscope_core_of(hangscope_this_mailbox())];
    while (!stop) write();
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    count = begun;
  });
  while (details == nullptr) usleep(100);
  hangscope_detail& mine = details.load()->detail;
  for (int round = 0; round < 5000 || (kMustRefuse && round < 2'000'000 &&
                                       hangscope_port_load(&mine.debug_refused) == 0);
       round++) {
    pthread_kill(writer.native_handle(), round % 4 == 0 ? SIGUSR2 : SIGUSR1);
  }
  stop = true;
  writer.join();
  EXPECT_EQ(mine.debug_next, count);
  EXPECT_EQ(hangscope_the_scope()->nodes[0].debug_order - first, count - mine.debug_refused);
  EXPECT_TRUE(mine.debug_refused > 0 || !kMustRefuse);
  std::set<uint32_t> orders;
  for (const hangscope_debug_value& slot : details.load()->debug) orders.insert(slot.order);
  EXPECT_EQ(orders.size(), size_t{HANGSCOPE_DEBUG_RING});
  EXPECT_EQ(orders.count(0), 0u);
}

#ifndef __SANITIZE_THREAD__  // which does not let a process with threads fork as it likes

TEST(Watched, AForksMailboxIsItsOwn) {
  std::thread([] {
    LeaveTraces(3);
    hangscope_mailbox* const parents = hangscope_this_mailbox();
    const hangscope_mailbox before = *parents;
    const pid_t child = fork();
    if (child == 0) {
      struct hangscope_scope* const scope = hangscope_the_scope();
      hangscope_mailbox* const mine = hangscope_this_mailbox();
      const bool fresh =
          mine >= scope->mailboxes && mine < scope->mailboxes + HANGSCOPE_CORES &&
          mine->heartbeat == 0 && mine->wait_sequence == 0 && DetailsOf(mine).detail.faults == 0 &&
          scope->cores[hangscope_core_of(mine)].ring.owner == static_cast<uint32_t>(gettid());
      LeaveTraces(8);
      unlink(hangscope_scope_path());
      _exit(fresh && mine->heartbeat == 8 && mine->fault == HANGSCOPE_FAULT_ASSERT ? 0 : 1);
    }
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    EXPECT_EQ(status, 0);
    EXPECT_EQ(std::memcmp(&before, parents, sizeof before), 0);
  }).join();
}

struct Shared {
  std::atomic<uint32_t> written;  // events that were recorded, by the child's own account
  char path[512];
};

Shared* MakeShared() {
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
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
  })
      .join();
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

// Its scope goes to a folder of its own, if the caller has not said where. `--emit N` is a program
// that records N events and says where.
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
