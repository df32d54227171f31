// What each macro leaves in the scope for a watcher, from the target itself: interrupted anywhere, by
// many cores at once, with a clock and a halt that belong to the test.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#define HANGSCOPE_PORT "watch_port.h"
#define HANGSCOPE_RING_CAPACITY 8
#define HANGSCOPE_CORES 6
#define HANGSCOPE_NODES 2
#define HANGSCOPE_DEBUG_RING 4
#define HANGSCOPE_HOLDS 3
#define HANGSCOPE_PROVIDES_MOST 2
#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"

std::atomic<uint64_t> test_now = 0;
thread_local uint32_t test_core = 0;

namespace {

struct Halted {};

thread_local std::function<void()> interrupt;
thread_local bool interrupted = false;  // handlers here are not interrupted
thread_local std::function<void()> relax;
thread_local std::vector<uint32_t> writing;                        // debug values, the innermost last
thread_local std::vector<std::pair<uint32_t, uint32_t>> ordered;   // of this thread: order, value

}  // namespace

void test_between() {
  if (!interrupt || interrupted) return;
  interrupted = true;
  interrupt();
  interrupted = false;
}
void test_added(const uint32_t* word, uint32_t value) {
  for (const hangscope_node& node : hangscope_scope.nodes) {
    if (word == &node.debug_order) ordered.emplace_back(value, writing.back());
  }
}
void test_relax() {
  if (relax) relax();
}
void test_halt() { throw Halted(); }

namespace {

hangscope_mailbox& Mailbox(uint32_t core) { return hangscope_scope.mailboxes[core]; }
hangscope_core_detail& Details(uint32_t core) { return hangscope_scope.details[core]; }
const hangscope_fault& Fault(uint32_t core) { return Details(core).detail.fault; }
hangscope_node& Node(uint32_t node) { return hangscope_scope.nodes[node]; }

class Watched : public testing::Test {
 protected:
  void SetUp() override {
    test_now = 0;
    test_core = 0;
    std::memset(&hangscope_scope, 0, sizeof hangscope_scope);
    hangscope_init();
  }
  void TearDown() override {
    interrupt = nullptr;
    relax = nullptr;
    ordered.clear();
  }
  static void SwitchOff(uint32_t feature) { hangscope_scope.watch.switches &= ~feature; }
};

// Whether the code halts its core.
template <typename Code>
bool Halts(Code code) {
  try {
    code();
  } catch (Halted) {
    return true;
  }
  return false;
}
constexpr bool kHalts = HANGSCOPE_HALT;

TEST_F(Watched, BeginsWithEmptyMailboxesThatAreSomebodys) {
  EXPECT_EQ(hangscope_scope.header.watch_at, offsetof(struct hangscope_scope, watch));
  EXPECT_EQ(hangscope_scope.watch.check, hangscope_check_of(&hangscope_scope.watch, 4, HANGSCOPE_WATCH_CHECKED_BYTES));
  EXPECT_EQ(hangscope_scope.watch.switches, hangscope_scope.watch.features);
  for (uint32_t core = 0; core < HANGSCOPE_CORES; core++) {
    hangscope_mailbox wanted = {};
    wanted.stack_free = HANGSCOPE_NOT_KNOWN;
    wanted.guard = HANGSCOPE_MAILBOX_GUARD ^ core;
    EXPECT_EQ(std::memcmp(&Mailbox(core), &wanted, sizeof wanted), 0) << core;
    EXPECT_EQ(Details(core).detail.stack_lowest, HANGSCOPE_NOT_KNOWN);
  }
}

// --- Waypoints.

TEST_F(Watched, AWaypointIsItsCharactersTheFirstInTheLowByte) {
  HANGSCOPE_WAYPOINT("CRBW");
  EXPECT_EQ(std::memcmp(&Mailbox(0).waypoint, "CRBW", 4), 0);
  HANGSCOPE_WAYPOINT("W");
  EXPECT_EQ(Mailbox(0).waypoint, 'W');
  HANGSCOPE_WAYPOINT("xy");
  EXPECT_EQ(Mailbox(0).waypoint, 'x' | 'y' << 8);
  HANGSCOPE_WAYPOINT_NAMED("abc", "a long name");
  EXPECT_EQ(Mailbox(0).waypoint, 'a' | 'b' << 8 | 'c' << 16);
  EXPECT_EQ(Mailbox(1).waypoint, 0u);
  test_core = 1;
  HANGSCOPE_WAYPOINT("E\xff");
  EXPECT_EQ(Mailbox(1).waypoint, 'E' | 0xff00u);
}

TEST_F(Watched, ACoreSaysThatItGoesRoundAndWhatItRuns) {
  test_core = 2;
  for (int i = 0; i < 3; i++) hangscope_heartbeat();
  hangscope_kernel_is(7);
  hangscope_launch_is(HANGSCOPE_LAUNCH_RUNNING);
  EXPECT_EQ(Mailbox(2).heartbeat, 3u);
  EXPECT_EQ(Mailbox(2).kernel, 7u);
  EXPECT_EQ(Mailbox(2).launch, static_cast<uint32_t>(HANGSCOPE_LAUNCH_RUNNING));
  EXPECT_EQ(Mailbox(0).heartbeat + Mailbox(0).kernel + Mailbox(0).launch, 0u);
}

TEST_F(Watched, CoresAndNodesThatDoNotExistAreIgnored) {
  const struct hangscope_scope before = hangscope_scope;
  hangscope_core_is(HANGSCOPE_CORES, 0, 1);
  hangscope_core_is(0, HANGSCOPE_NODES, 1);
  hangscope_node_is(HANGSCOPE_NODES, 1, 1);
  EXPECT_EQ(std::memcmp(&before, &hangscope_scope, sizeof before), 0);
  hangscope_core_is(5, 1, 3);
  hangscope_node_is(1, 9, 8);
  EXPECT_EQ(Mailbox(5).node, 1u);
  EXPECT_EQ(Mailbox(5).role, 3u);
  EXPECT_EQ(Node(1).x, 9u);
  EXPECT_EQ(Node(1).y, 8u);
}

// --- Waits and claims.

TEST_F(Watched, AWaitHasAnOddNumberUntilItIsDone) {
  test_now = (5ull << 30) + 77;
  test_core = 3;
  HANGSCOPE_WAIT(0xabcdu);
  EXPECT_EQ(Mailbox(3).wait_sequence, 1u);
  EXPECT_EQ(Mailbox(3).wait_resource, 0xabcdu);
  EXPECT_EQ(Mailbox(3).wait_kind, 0u);
  EXPECT_EQ(Mailbox(3).wait_since, static_cast<uint32_t>(test_now));
  EXPECT_EQ(Mailbox(3).wait_epoch, 5u);
  HANGSCOPE_WAIT_DONE();
  EXPECT_EQ(Mailbox(3).wait_sequence, 2u);
  HANGSCOPE_WAIT_FOR(HANGSCOPE_RESOURCE_CHANNEL, &test_now);
  EXPECT_EQ(Mailbox(3).wait_sequence, 3u);
  EXPECT_EQ(Mailbox(3).wait_resource, static_cast<uint32_t>(reinterpret_cast<uintptr_t>(&test_now)));
  EXPECT_EQ(Mailbox(3).wait_kind, static_cast<uint32_t>(HANGSCOPE_RESOURCE_CHANNEL));
  HANGSCOPE_WAIT_DONE();
  HANGSCOPE_WAIT_DONE();  // one too many is none
  EXPECT_EQ(Mailbox(3).wait_sequence, 4u);
}

TEST_F(Watched, ADifferentWaitHasADifferentNumberOver32Bits) {
  Mailbox(0).wait_sequence = 0xfffffffeu;
  HANGSCOPE_WAIT(1);
  EXPECT_EQ(Mailbox(0).wait_sequence, 0xffffffffu);
  HANGSCOPE_WAIT_DONE();
  EXPECT_EQ(Mailbox(0).wait_sequence, 0u);
  HANGSCOPE_WAIT(1);
  EXPECT_EQ(Mailbox(0).wait_sequence, 1u);
}

TEST_F(Watched, WhatIsHeldIsListedUntilReleasedAndWhatDoesNotFitIsCounted) {
  test_core = 1;
  const hangscope_claims& claims = hangscope_scope.claims[1];
  for (uint32_t lock = 10; lock < 15; lock++) HANGSCOPE_HOLD(lock);
  EXPECT_EQ(std::vector<uint32_t>(claims.holds, claims.holds + 3), (std::vector<uint32_t>{10, 11, 12}));
  EXPECT_EQ(claims.provides[HANGSCOPE_PROVIDES_MOST], 2u);
  HANGSCOPE_RELEASE(11);
  HANGSCOPE_RELEASE(99);
  HANGSCOPE_HOLD(10);  // again: a lock that its holder may take twice
  HANGSCOPE_RELEASE(10);
  EXPECT_EQ(std::vector<uint32_t>(claims.holds, claims.holds + 3), (std::vector<uint32_t>{10, 0, 12}));
  HANGSCOPE_PROVIDES(70);
  HANGSCOPE_PROVIDES(71);
  HANGSCOPE_PROVIDES_NO_MORE(70);
  EXPECT_EQ(claims.provides[0], 0u);
  EXPECT_EQ(claims.provides[1], 71u);
}

// --- Faults.

TEST_F(Watched, AnAssertThatHoldsDoesNothing) {
  const struct hangscope_scope before = hangscope_scope;
  int evaluated = 0;
  EXPECT_FALSE(Halts([&] { HANGSCOPE_ASSERT(++evaluated == 1, "evaluated once"); }));
  EXPECT_FALSE(Halts([&] { HANGSCOPE_ASSERT_ARGUMENT(++evaluated == 2, "evaluated once", ++evaluated); }));
  EXPECT_EQ(evaluated, 2);
  EXPECT_EQ(std::memcmp(&before, &hangscope_scope, sizeof before), 0);
}

TEST_F(Watched, AnAssertThatTripsIsRecordedAndHalts) {
  test_now = (9ull << 30) + 5;
  test_core = 4;
  hangscope_core_is(4, 1, 0);
  uint32_t line = 0;
  EXPECT_EQ(Halts([&] { line = __LINE__; HANGSCOPE_ASSERT(test_core == 3, "core is 3"); }), kHalts);
  EXPECT_EQ(Mailbox(4).fault, static_cast<uint32_t>(HANGSCOPE_FAULT_ASSERT));
  EXPECT_EQ(Fault(4).type, static_cast<uint32_t>(HANGSCOPE_FAULT_ASSERT));
  EXPECT_EQ(Fault(4).line, line);
  EXPECT_NE(Fault(4).pc[0], 0u);
  EXPECT_EQ(Fault(4).time, static_cast<uint32_t>(test_now));
  EXPECT_EQ(Fault(4).epoch, 9u);
  EXPECT_EQ(Details(4).detail.faults, 1u);
  EXPECT_EQ(Node(1).first_fault, 5u);
  EXPECT_EQ(Node(0).first_fault, 0u);
  EXPECT_EQ(Fault(4).reason | Fault(4).kind | Fault(4).address[0] | Fault(4).value[0] | Fault(4).value[1] | Fault(4).length, 0u);
}

TEST_F(Watched, AnArgumentIsKept) {
  const int64_t value = -3;
  EXPECT_EQ(Halts([&] { HANGSCOPE_ASSERT_ARGUMENT(value >= 0, "not negative", value); }), kHalts);
  EXPECT_EQ(Mailbox(0).fault, static_cast<uint32_t>(HANGSCOPE_FAULT_ARGUMENT));
  EXPECT_EQ(Fault(0).value[0], 0xfffffffdu);
  EXPECT_EQ(Fault(0).value[1], 0xffffffffu);
}

TEST_F(Watched, ASwitchedOffAssertIsNotEvaluated) {
  SwitchOff(HANGSCOPE_WATCH_ASSERTS);
  int evaluated = 0;
  EXPECT_FALSE(Halts([&] { HANGSCOPE_ASSERT(++evaluated == 0, "never"); }));
  EXPECT_FALSE(Halts([&] { HANGSCOPE_ASSERT_ARGUMENT(++evaluated == 0, "never", 1); }));
  EXPECT_FALSE(Halts([&] { hangscope_hardware_fault(1, 2, 3); }));
  EXPECT_FALSE(Halts([&] { hangscope_kernel_ends(2); }));
  EXPECT_EQ(evaluated, 0);
  EXPECT_EQ(Mailbox(0).fault, 0u);
  EXPECT_EQ(Details(0).detail.faults, 0u);
  EXPECT_EQ(Mailbox(0).launch, static_cast<uint32_t>(HANGSCOPE_LAUNCH_DONE));
}

TEST_F(Watched, TheFirstFaultIsKeptAndOthersAreCounted) {
  Halts([&] { HANGSCOPE_ASSERT_ARGUMENT(false, "first", 1); });
  const hangscope_fault first = Fault(0);
  for (int i = 0; i < 3; i++) Halts([&] { HANGSCOPE_ASSERT(false, "later"); });
  test_core = 1;
  Halts([&] { HANGSCOPE_ASSERT(false, "of another core of the node"); });
  EXPECT_EQ(std::memcmp(&first, &Fault(0), sizeof first), 0);
  EXPECT_EQ(Details(0).detail.faults, 4u);
  EXPECT_EQ(Details(1).detail.faults, 1u);
  EXPECT_EQ(Mailbox(0).fault, static_cast<uint32_t>(HANGSCOPE_FAULT_ARGUMENT));
  EXPECT_EQ(Node(0).first_fault, 1u);
}

TEST_F(Watched, AHandlersFaultInTheMidstOfAnotherIsCountedOnly) {
  int steps = 0;
  for (int at = 0; at == 0 || steps >= at; at++) {
    SetUp();
    steps = 0;
    interrupt = [&] {
      if (++steps == at) {
        struct hangscope_fault found = {};
        found.line = 4711;
        found.value[0] = 4712;
        hangscope_fault_is(HANGSCOPE_FAULT_BUS, &found);
      }
    };
    uint32_t line = 0;
    Halts([&] { line = __LINE__; HANGSCOPE_ASSERT_ARGUMENT(false, "interrupted", 7); });
    interrupt = nullptr;
    const bool nested_was_first = at == 1;  // before the outer one was counted
    EXPECT_EQ(Fault(0).line, nested_was_first ? 4711 : line) << at;
    EXPECT_EQ(Fault(0).value[0], nested_was_first ? 4712u : 7u) << at;
    EXPECT_EQ(Fault(0).type, Mailbox(0).fault) << at;
    EXPECT_EQ(Details(0).detail.faults, at == 0 || steps < at ? 1u : 2u) << at;
  }
  EXPECT_GE(steps, 3);
}

TEST_F(Watched, TheHardwaresFault) {
  const uintptr_t top = uintptr_t{1} << (8 * sizeof(uintptr_t) - 1);
  EXPECT_EQ(Halts([&] { hangscope_hardware_fault(top | 7, 0x80001234, 0x1122334455667788); }), kHalts);
  EXPECT_EQ(Mailbox(0).fault, static_cast<uint32_t>(HANGSCOPE_FAULT_HARDWARE));
  EXPECT_EQ(Fault(0).reason, 0x80000007u);
  EXPECT_EQ(Fault(0).pc[0], 0x80001234u);
  EXPECT_EQ(Fault(0).pc[1], 0u);
  EXPECT_EQ(Fault(0).value[0], 0x55667788u);
  EXPECT_EQ(Fault(0).value[1], 0x11223344u);
}

TEST_F(Watched, AKernelEndsWithOrWithoutPendingTransactions) {
  EXPECT_FALSE(Halts([&] { hangscope_kernel_ends(0); }));
  EXPECT_EQ(Mailbox(0).launch, static_cast<uint32_t>(HANGSCOPE_LAUNCH_DONE));
  EXPECT_EQ(Mailbox(0).fault, 0u);
  test_core = 1;
  EXPECT_EQ(Halts([&] { hangscope_kernel_ends(3); }), kHalts);
  EXPECT_EQ(Mailbox(1).fault, static_cast<uint32_t>(HANGSCOPE_FAULT_PENDING));
  EXPECT_EQ(Fault(1).length, 3u);
}

TEST_F(Watched, OfRacingCoresOneIsFirstAndStays) {
  std::set<uint32_t> firsts;
  for (uint32_t round = 0; round < 200; round++) {
    SetUp();
    std::atomic<uint32_t> ready = 0;
    std::atomic<bool> stop = false;
    std::set<uint32_t> seen;
    std::thread observer([&] {
      do seen.insert(hangscope_port_load(&Node(0).first_fault));
      while (!stop);
    });
    std::vector<std::thread> cores;
    for (uint32_t core = 0; core < HANGSCOPE_CORES; core++) {
      cores.emplace_back([&, core] {
        test_core = core;
        ready++;
        while (ready < HANGSCOPE_CORES) std::this_thread::yield();
        Halts([&] { HANGSCOPE_ASSERT_ARGUMENT(false, "all at once", 100 + core); });
      });
    }
    for (std::thread& core : cores) core.join();
    stop = true;
    observer.join();
    const uint32_t first = Node(0).first_fault;
    ASSERT_GE(first, 1u);
    ASSERT_LE(first, static_cast<uint32_t>(HANGSCOPE_CORES));
    for (const uint32_t one : seen) ASSERT_TRUE(one == 0 || one == first) << one << " was first before " << first;
    for (uint32_t core = 0; core < HANGSCOPE_CORES; core++) {
      ASSERT_EQ(Fault(core).value[0], 100 + core);
      ASSERT_EQ(Details(core).detail.faults, 1u);
    }
    firsts.insert(first);
  }
  EXPECT_GT(firsts.size(), 1u) << "they never raced";
}

// --- Pauses.

TEST_F(Watched, ItsOwnCodePausesACoreUntilResumed) {
  int rounds = 0;
  relax = [&] {
    EXPECT_EQ(Mailbox(0).paused, static_cast<uint32_t>(HANGSCOPE_PAUSED_BY_CODE));
    if (++rounds == 5) hangscope_resume(0);
  };
  HANGSCOPE_PAUSE();
  EXPECT_EQ(rounds, 5);
  EXPECT_EQ(Mailbox(0).paused, static_cast<uint32_t>(HANGSCOPE_PAUSED_NOT));
  EXPECT_EQ(Mailbox(0).resumes, 1u);
}

TEST_F(Watched, APausePointPausesOnlyIfAHostAsks) {
  int rounds = 0;
  relax = [&] {
    EXPECT_EQ(Mailbox(0).paused, static_cast<uint32_t>(HANGSCOPE_PAUSED_BY_HOST));
    if (++rounds % 3 == 0) hangscope_resume(0);
  };
  HANGSCOPE_PAUSE_POINT();
  EXPECT_EQ(rounds, 0);
  Mailbox(1).pause = 1;  // another core
  HANGSCOPE_PAUSE_POINT();
  EXPECT_EQ(rounds, 0);
  Mailbox(0).pause = 1;
  HANGSCOPE_PAUSE_POINT();
  EXPECT_EQ(rounds, 3);
  EXPECT_EQ(Mailbox(0).pause, 0u);
  Mailbox(0).pause = 1;
  hangscope_heartbeat();
  EXPECT_EQ(rounds, 6);
  EXPECT_EQ(Mailbox(0).heartbeat, 1u);
  Mailbox(0).pause = 7;  // no host writes this
  HANGSCOPE_PAUSE_POINT();
  EXPECT_EQ(rounds, 6);
}

TEST_F(Watched, PausesThatAreSwitchedOffEnd) {
  int rounds = 0;
  relax = [&] {
    if (++rounds == 4) SwitchOff(HANGSCOPE_WATCH_PAUSES);
  };
  HANGSCOPE_PAUSE();
  EXPECT_EQ(rounds, 4);
  HANGSCOPE_PAUSE();
  Mailbox(0).pause = 1;
  HANGSCOPE_PAUSE_POINT();
  EXPECT_EQ(rounds, 4);
}

TEST_F(Watched, AHandlerThatPausesInAPauseLeavesItPaused) {
  int rounds = 0;
  std::vector<uint32_t> paused;
  relax = [&] {
    paused.push_back(Mailbox(0).paused);
    if (++rounds == 1) {
      Mailbox(0).pause = 1;
      HANGSCOPE_PAUSE_POINT();
      paused.push_back(Mailbox(0).paused);
    } else {
      hangscope_resume(0);
    }
  };
  HANGSCOPE_PAUSE();
  EXPECT_EQ(paused, (std::vector<uint32_t>{HANGSCOPE_PAUSED_BY_CODE, HANGSCOPE_PAUSED_BY_HOST, HANGSCOPE_PAUSED_BY_CODE}));
  EXPECT_EQ(Mailbox(0).paused, 0u);
}

TEST_F(Watched, ResumingWhatDoesNotExistIsIgnored) {
  const struct hangscope_scope before = hangscope_scope;
  hangscope_resume(HANGSCOPE_CORES);
  EXPECT_EQ(std::memcmp(&before, &hangscope_scope, sizeof before), 0);
}

// A host that asks and lets go, with no regard to whether the core noticed: it never misses a resume.
TEST_F(Watched, NoResumeIsMissed) {
#ifdef __SANITIZE_THREAD__
  constexpr int kRounds = 3000;
#else
  constexpr int kRounds = 60'000;
#endif
  std::atomic<bool> stop = false;
  std::atomic<uint32_t> pauses = 0;
  std::thread core([&] {
    relax = [&] {
      pauses++;
      std::this_thread::yield();
    };
    while (!stop) hangscope_heartbeat();
    relax = nullptr;
  });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::mt19937 random(1);
  bool missed = false;
  for (int round = 0; round < kRounds && !missed; round++) {
    hangscope_port_store(&Mailbox(0).pause, 1);
    for (uint32_t i = random() % 64; i > 0; i--) (void)hangscope_port_load(&Mailbox(0).paused);
    hangscope_resume(0);
    const uint32_t beat = hangscope_port_load(&Mailbox(0).heartbeat);
    while (!missed && hangscope_port_load(&Mailbox(0).heartbeat) - beat < 2) {
      missed = std::chrono::steady_clock::now() > deadline;
    }
  }
  EXPECT_FALSE(missed) << "paused for ever";
  stop = true;
  hangscope_resume(0);
  core.join();
  EXPECT_GT(pauses, 0u);
}

// --- Debug values.

void Debug(uint32_t value) {
  writing.push_back(value);
  HANGSCOPE_DEBUG(value);
  writing.pop_back();
}

// What a reader accepts of a slot: order 0 is none.
hangscope_debug_value ReadSlot(const hangscope_debug_value& slot) {
  hangscope_debug_value read;
  read.order = hangscope_port_load_acquire(&slot.order);
  read.value = hangscope_port_load(&slot.value);
  hangscope_port_loads_in_order();
  if (hangscope_port_load(&slot.order) != read.order) read.order = 0;
  return read;
}

TEST_F(Watched, DebugValuesAreNumberedOverTheCoresOfANode) {
  for (uint32_t core = 0; core < HANGSCOPE_CORES; core++) hangscope_core_is(core, core < 4 ? 0 : 1, 0);
  for (uint32_t i = 0; i < 6; i++) {
    test_core = i % 2 == 0 ? 1 : 3;
    Debug(100 + i);
    test_core = 5;
    Debug(200 + i);
  }
  EXPECT_EQ(Node(0).debug_order, 6u);
  EXPECT_EQ(Node(1).debug_order, 6u);
  EXPECT_EQ(Details(1).detail.debug_next, 3u);
  EXPECT_EQ(Details(5).detail.debug_next, 6u);
  for (uint32_t i = 0; i < 3; i++) {
    EXPECT_EQ(Details(1).debug[i].order, 2 * i + 1);
    EXPECT_EQ(Details(1).debug[i].value, 100 + 2 * i);
    EXPECT_EQ(Details(3).debug[i].order, 2 * i + 2);
    EXPECT_EQ(Details(3).debug[i].value, 101 + 2 * i);
  }
  EXPECT_EQ(Details(1).debug[3].order, 0u);
  for (uint32_t i = 0; i < 4; i++) EXPECT_EQ(Details(5).debug[i].value, (i < 2 ? 204 : 200) + i);
}

TEST_F(Watched, OnlySwitchedOnDebugValuesAreKept) {
  SwitchOff(HANGSCOPE_WATCH_DEBUG);
  Debug(5);
  EXPECT_EQ(Details(0).detail.debug_next, 0u);
  EXPECT_EQ(Node(0).debug_order, 0u);
}

// A debug value interrupted at each step by a handler that writes so many: each is there whole, or newer
// ones are in its place, or it gave up and was counted.
TEST_F(Watched, DebugValuesNestAndNeverMix) {
  int refusals = 0;
  for (int earlier = 0; earlier < 6; earlier++) {
    for (int nested = 0; nested < 11; nested++) {
      for (int at = 1, steps = 1; steps >= at || at == 1; at++) {
        SetUp();
        ordered.clear();
        for (int i = 0; i < earlier; i++) Debug(10 + static_cast<uint32_t>(i));
        steps = 0;
        interrupt = [&] {
          if (++steps != at) return;
          for (int i = 0; i < nested; i++) Debug(1000 + static_cast<uint32_t>(i));
        };
        Debug(500);
        interrupt = nullptr;
        const std::map<uint32_t, uint32_t> ledger(ordered.begin(), ordered.end());
        const uint32_t refused = Details(0).detail.debug_refused;
        const uint32_t begun = Details(0).detail.debug_next;
        refusals += static_cast<int>(refused);
        EXPECT_EQ(ledger.size() + refused, begun);
        EXPECT_EQ(Node(0).debug_order, ledger.size());
        std::set<uint32_t> kept;
        for (const hangscope_debug_value& slot : Details(0).debug) {
          if (slot.order == 0) continue;
          ASSERT_TRUE(ledger.count(slot.order) == 1 && ledger.at(slot.order) == slot.value)
              << earlier << " " << nested << " " << at << ": " << slot.order << " " << slot.value;
          kept.insert(slot.order);
        }
        EXPECT_EQ(kept.size(), std::min<size_t>(begun, HANGSCOPE_DEBUG_RING)) << "a slot is lost";
      }
    }
  }
  EXPECT_GT(refusals, 0) << "none was lapped";
}

TEST_F(Watched, ManyCoresWriteDebugValuesAndNothingIsMixed) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr uint32_t kEach = 4000;
#else
  constexpr uint32_t kEach = 60'000;
#endif
  std::atomic<bool> stop = false;
  std::vector<std::pair<uint32_t, uint32_t>> ledger;
  std::vector<hangscope_debug_value> accepted;
  std::mutex merging;
  std::thread reader([&] {
    while (!stop) {
      for (const hangscope_core_detail& details : hangscope_scope.details) {
        for (const hangscope_debug_value& slot : details.debug) {
          if (const hangscope_debug_value read = ReadSlot(slot); read.order != 0 && accepted.size() < 3'000'000) accepted.push_back(read);
        }
      }
    }
  });
  std::vector<std::thread> cores;
  for (uint32_t core = 0; core < HANGSCOPE_CORES; core++) {
    cores.emplace_back([&, core] {
      test_core = core;
      uint32_t number = core << 24;
      uint32_t steps = 0;
      interrupt = [&] {
        if (++steps % 37 != 0) return;
        for (uint32_t i = steps / 37 % 12; i > 0; i--) Debug(number++);
      };
      for (uint32_t i = 0; i < kEach; i++) Debug(number++);
      interrupt = nullptr;
      const std::lock_guard<std::mutex> lock(merging);
      ledger.insert(ledger.end(), ordered.begin(), ordered.end());
    });
  }
  for (std::thread& core : cores) core.join();
  stop = true;
  reader.join();
  std::vector<uint32_t> values(ledger.size() + 1);
  std::vector<bool> there(ledger.size() + 1);
  for (const auto& [order, value] : ledger) {
    ASSERT_TRUE(order >= 1 && order <= ledger.size() && !there[order]) << order;
    there[order] = true;
    values[order] = value;
  }
  EXPECT_EQ(Node(0).debug_order, ledger.size());
  uint64_t begun = 0, refused = 0;
  for (const hangscope_core_detail& details : hangscope_scope.details) {
    begun += details.detail.debug_next;
    refused += details.detail.debug_refused;
    for (const hangscope_debug_value& slot : details.debug) accepted.push_back(slot);
  }
  EXPECT_EQ(ledger.size() + refused, begun);
  size_t mixed = 0;
  for (const hangscope_debug_value& read : accepted) mixed += read.order > ledger.size() || values[read.order] != read.value;
  EXPECT_EQ(mixed, 0u) << "of " << accepted.size();
  EXPECT_GT(refused, 0u);
  EXPECT_GT(accepted.size(), 1000u);
  std::printf("%zu values, %ju given up; %zu read\n", ledger.size(), uintmax_t{refused}, accepted.size());
}

}  // namespace
