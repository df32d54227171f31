// What each macro leaves in the scope for a watcher, from the target itself: interrupted anywhere,
// by many cores at once, with a clock and a halt that belong to the test.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
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
#define HANGSCOPE_HOLD_SLOTS 3
#define HANGSCOPE_PROVIDE_SLOTS 2
#define HANGSCOPE_GUARDS 3
#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"

std::atomic<uint64_t> test_now = 0;
thread_local uint32_t test_core = 0;

namespace {

struct Halted {};

thread_local std::function<void()> interrupt;
thread_local bool interrupted = false;  // handlers here are not interrupted
thread_local std::function<void()> relax;
// debug values, the innermost last
thread_local std::vector<uint32_t> writing;
thread_local std::vector<std::pair<uint32_t, uint32_t>> ordered;  // of this thread: order, value

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
    for (hangscope_stack& stack : hangscope_stacks) stack = {};
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
  EXPECT_EQ(hangscope_scope.watch.check,
            hangscope_check_of(&hangscope_scope.watch, 4, HANGSCOPE_WATCH_CHECKED_BYTES));
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
  EXPECT_EQ(Mailbox(3).wait_resource,
            static_cast<uint32_t>(reinterpret_cast<uintptr_t>(&test_now)));
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

// A reader whose looks lie anywhere, between any two accesses of the core's: what it finds with the
// same odd number before and after is that wait.
TEST_F(Watched, AWaitIsReadWholeOrNotAtAll) {
  std::vector<hangscope_mailbox> history;
  interrupt = [&] { history.push_back(Mailbox(0)); };
  for (uint32_t wait = 1; wait <= 3; wait++) {
    test_now = (uint64_t{wait} << 40) + wait;
    HANGSCOPE_WAIT_FOR(static_cast<hangscope_resource_kind>(wait), 100 + wait);
    HANGSCOPE_WAIT_DONE();
  }
  interrupt = nullptr;
  int read = 0;
  for (size_t before = 0; before < history.size(); before++) {
    for (size_t after = before; after < history.size(); after++) {
      const uint32_t sequence = history[before].wait_sequence;
      if (sequence % 2 == 0 || history[after].wait_sequence != sequence) continue;
      const uint32_t wait = (sequence + 1) / 2;
      for (size_t at = before; at <= after; at++, read++) {
        EXPECT_EQ(history[at].wait_resource, 100 + wait);
        EXPECT_EQ(history[at].wait_kind, wait);
        EXPECT_EQ(history[at].wait_since, wait);
        EXPECT_EQ(history[at].wait_epoch, wait << 10);
      }
    }
  }
  EXPECT_GE(read, 3);
}

TEST_F(Watched, SwitchedOffWaitsEndAndBeginNoMore) {
  HANGSCOPE_WAIT(1);
  HANGSCOPE_HOLD(10);
  SwitchOff(HANGSCOPE_WATCH_WAITS);
  HANGSCOPE_HOLD(11);
  HANGSCOPE_RELEASE(10);
  HANGSCOPE_WAIT_DONE();
  EXPECT_EQ(Mailbox(0).wait_sequence, 2u);
  HANGSCOPE_WAIT(2);
  EXPECT_EQ(Mailbox(0).wait_sequence, 2u);
  EXPECT_EQ(Mailbox(0).wait_resource, 1u);
  HANGSCOPE_WAIT_DONE();
  EXPECT_EQ(Mailbox(0).wait_sequence, 2u);
  EXPECT_EQ(hangscope_scope.claims[0].holds[0] | hangscope_scope.claims[0].holds[1], 0u);
  HANGSCOPE_PROVIDES(70);  // said once: it must be known when waits are switched on
  EXPECT_EQ(hangscope_scope.claims[0].provides[0], 70u);
}

TEST_F(Watched, WhatIsHeldIsListedUntilReleasedAndWhatDoesNotFitIsCounted) {
  test_core = 1;
  const hangscope_claims& claims = hangscope_scope.claims[1];
  for (uint32_t lock = 10; lock < 15; lock++) HANGSCOPE_HOLD(lock);
  EXPECT_EQ(std::vector<uint32_t>(claims.holds, claims.holds + 3),
            (std::vector<uint32_t>{10, 11, 12}));
  EXPECT_EQ(claims.provides[HANGSCOPE_PROVIDE_SLOTS], 2u);
  HANGSCOPE_RELEASE(11);
  HANGSCOPE_RELEASE(99);
  HANGSCOPE_HOLD(10);  // again: a lock that its holder may take twice
  HANGSCOPE_RELEASE(10);
  EXPECT_EQ(std::vector<uint32_t>(claims.holds, claims.holds + 3),
            (std::vector<uint32_t>{10, 0, 12}));
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
  EXPECT_FALSE(
      Halts([&] { HANGSCOPE_ASSERT_ARGUMENT(++evaluated == 2, "evaluated once", ++evaluated); }));
  EXPECT_EQ(evaluated, 2);
  EXPECT_EQ(std::memcmp(&before, &hangscope_scope, sizeof before), 0);
}

TEST_F(Watched, AnAssertThatTripsIsRecordedAndHalts) {
  test_now = (9ull << 30) + 5;
  test_core = 4;
  hangscope_core_is(4, 1, 0);
  uint32_t line = 0;
  EXPECT_EQ(Halts([&] {
              line = __LINE__ + 1;
              HANGSCOPE_ASSERT(test_core == 3, "core is 3");
            }),
            kHalts);
  EXPECT_EQ(Mailbox(4).fault, static_cast<uint32_t>(HANGSCOPE_FAULT_ASSERT));
  EXPECT_EQ(Fault(4).type, static_cast<uint32_t>(HANGSCOPE_FAULT_ASSERT));
  EXPECT_EQ(Fault(4).line, line);
  EXPECT_NE(Fault(4).pc[0], 0u);
  EXPECT_EQ(Fault(4).time, static_cast<uint32_t>(test_now));
  EXPECT_EQ(Fault(4).epoch, 9u);
  EXPECT_EQ(Details(4).detail.faults, 1u);
  EXPECT_EQ(Node(1).first_fault, 5u);
  EXPECT_EQ(Node(0).first_fault, 0u);
  EXPECT_EQ(Fault(4).reason | Fault(4).kind | Fault(4).address[0] | Fault(4).value[0] |
                Fault(4).value[1] | Fault(4).length,
            0u);
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

// Interrupts an assert of core 0 before its access number `at` by code that runs on `core`. Returns
// how many accesses there are, and calls `seen` before each and behind the code.
int InterruptAssert(int at, uint32_t core, const std::function<void()>& code,
                    const std::function<void()>& seen, uint32_t* line) {
  int steps = 0;
  interrupt = [&] {
    seen();
    if (++steps != at) return;
    test_core = core;
    code();
    test_core = 0;
    seen();
  };
  Halts([&] {
    *line = __LINE__ + 1;
    HANGSCOPE_ASSERT_ARGUMENT(false, "interrupted", 7);
  });
  interrupt = nullptr;
  return steps;
}

TEST_F(Watched, AHandlersFaultInTheMidstOfAnotherIsCountedOnly) {
  uint32_t line = 0;
  const int steps = InterruptAssert(
      0, 0, nullptr, [] {}, &line);
  int kept_nested = 0;
  for (int at = 1; at <= steps; at++) {
    SetUp();
    std::vector<std::pair<uint32_t, hangscope_fault>> history;
    InterruptAssert(
        at, 0,
        [] {
          struct hangscope_fault found = {};
          found.line = 4711;
          found.value[0] = 4712;
          hangscope_fault_is(HANGSCOPE_FAULT_BUS, &found);
        },
        [&] { history.emplace_back(Mailbox(0).fault, Fault(0)); }, &line);
    ASSERT_EQ(Details(0).detail.faults, 2u);
    const bool nested = Fault(0).line == 4711;
    kept_nested += nested;
    EXPECT_EQ(Fault(0).line, nested ? 4711 : line) << at;
    EXPECT_EQ(Fault(0).value[0], nested ? 4712u : 7u) << at;
    EXPECT_EQ(Fault(0).type,
              static_cast<uint32_t>(nested ? HANGSCOPE_FAULT_BUS : HANGSCOPE_FAULT_ARGUMENT))
        << at;
    EXPECT_EQ(Fault(0).type, Mailbox(0).fault) << at;
    // Once it is published, it is all there and stays.
    for (const auto& [published, fault] : history) {
      ASSERT_TRUE(published == 0 || std::memcmp(&fault, &Fault(0), sizeof fault) == 0) << at;
    }
  }
  EXPECT_GE(kept_nested, 1);
  EXPECT_GT(steps, 15);
}

TEST_F(Watched, AnotherCoresFaultInTheMidstOfOneIsFirstOrNotButOneIsAndStays) {
  std::set<uint32_t> firsts;
  uint32_t line = 0;
  const int steps = InterruptAssert(
      0, 0, nullptr, [] {}, &line);
  for (int at = 1; at <= steps; at++) {
    SetUp();
    uint32_t first = 0;
    const auto look = [&] {
      const uint32_t now = Node(0).first_fault;
      EXPECT_TRUE(first == 0 || now == first) << at << ": " << first << " was first, then " << now;
      first = now;
    };
    InterruptAssert(
        at, 1, [] { Halts([] { HANGSCOPE_ASSERT_ARGUMENT(false, "of another core", 8); }); }, look,
        &line);
    look();
    firsts.insert(first);
    EXPECT_EQ(Fault(0).value[0], 7u);
    EXPECT_EQ(Fault(1).value[0], 8u);
  }
  EXPECT_EQ(firsts, (std::set<uint32_t>{1, 2}));
}

TEST_F(Watched, TheHardwaresFault) {
  const uintptr_t top = uintptr_t{1} << (8 * sizeof(uintptr_t) - 1);
  EXPECT_EQ(Halts([&] { hangscope_hardware_fault(top | 7, 0x80001234, 0x1122334455667788); }),
            kHalts);
  EXPECT_EQ(Mailbox(0).fault, static_cast<uint32_t>(HANGSCOPE_FAULT_HARDWARE));
  EXPECT_EQ(Fault(0).reason, 0x80000007u);
  EXPECT_EQ(Fault(0).pc[0], 0x80001234u);
  EXPECT_EQ(Fault(0).pc[1], 0u);
  EXPECT_EQ(Fault(0).value[0], 0x55667788u);
  EXPECT_EQ(Fault(0).value[1], 0x11223344u);
}

TEST_F(Watched, AKernelEndsWithSoManyTransactionsOfEachKind) {
  EXPECT_FALSE(Halts([&] { hangscope_kernel_ends_with(0, 0, 0, 0); }));
  EXPECT_EQ(Mailbox(0).launch, static_cast<uint32_t>(HANGSCOPE_LAUNCH_DONE));
  test_core = 1;
  EXPECT_EQ(Halts([&] { hangscope_kernel_ends_with(1, 2, 3, 4); }), kHalts);
  EXPECT_EQ(Mailbox(1).fault, static_cast<uint32_t>(HANGSCOPE_FAULT_PENDING));
  EXPECT_EQ(Fault(1).length, 10u);
  EXPECT_EQ(Fault(1).kind, 1u);
  EXPECT_EQ(Fault(1).value[0], 2u << 16 | 1u);
  EXPECT_EQ(Fault(1).value[1], 4u << 16 | 3u);
  test_core = 2;
  EXPECT_EQ(Halts([&] { hangscope_kernel_ends_with(0, 0, 0, 70000); }), kHalts);
  EXPECT_EQ(Fault(2).value[1], 0xffff0000u) << "as many as there is room for";
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
  for (uint32_t round = 0; round < 300; round++) {
    SetUp();
    std::atomic<uint32_t> ready = 0;
    std::vector<uint32_t> seen(HANGSCOPE_CORES);
    std::vector<std::thread> cores;
    for (uint32_t core = 0; core < HANGSCOPE_CORES; core++) {
      cores.emplace_back([&, core] {
        test_core = core;
        ready++;
        while (ready < HANGSCOPE_CORES) std::this_thread::yield();
        Halts([&] { HANGSCOPE_ASSERT_ARGUMENT(false, "all at once", 100 + core); });
        seen[core] = hangscope_port_load(&Node(0).first_fault);
      });
    }
    for (std::thread& core : cores) core.join();
    const uint32_t first = Node(0).first_fault;
    ASSERT_GE(first, 1u);
    ASSERT_LE(first, static_cast<uint32_t>(HANGSCOPE_CORES));
    for (uint32_t core = 0; core < HANGSCOPE_CORES; core++) {
      ASSERT_EQ(seen[core], first);
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
  EXPECT_EQ(paused, (std::vector<uint32_t>{HANGSCOPE_PAUSED_BY_CODE, HANGSCOPE_PAUSED_BY_HOST,
                                           HANGSCOPE_PAUSED_BY_CODE}));
  EXPECT_EQ(Mailbox(0).paused, 0u);
}

TEST_F(Watched, ResumingWhatDoesNotExistIsIgnored) {
  const struct hangscope_scope before = hangscope_scope;
  hangscope_resume(HANGSCOPE_CORES);
  EXPECT_EQ(std::memcmp(&before, &hangscope_scope, sizeof before), 0);
}

// A host that asks and lets go, with no regard to whether the core noticed: before each access of
// the core's.
TEST_F(Watched, NoResumeIsMissed) {
  struct Missed {};
  std::set<bool> paused;
  for (int at = 1; at <= 20; at++) {
    SetUp();
    int steps = 0;
    bool pauses = false;
    interrupt = [&] {
      pauses = pauses || Mailbox(0).paused != 0;
      if (++steps == at) hangscope_resume(0);
    };
    relax = [&] {
      if (steps > at + 100) throw Missed();
    };
    Mailbox(0).pause = 1;
    EXPECT_NO_THROW(HANGSCOPE_PAUSE_POINT())
        << "resumed before access " << at << ", and paused for ever";
    interrupt = nullptr;
    EXPECT_EQ(Mailbox(0).paused, 0u);
    paused.insert(pauses);
  }
  EXPECT_EQ(paused.size(), 2u) << "resumed in time and too late";
}

TEST_F(Watched, AHostAndACoreWithNoRegardForEachOther) {
  // As many rounds as there is time for: on a busy machine each may take a few time slices.
  constexpr int kRounds = 10'000;
  constexpr auto kTime = std::chrono::seconds(3);
  constexpr auto kForEver = std::chrono::seconds(30);
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
  const auto start = std::chrono::steady_clock::now();
  std::mt19937 random(1);
  bool missed = false;
  for (int round = 0;
       !missed &&
       ((round < kRounds && std::chrono::steady_clock::now() < start + kTime) || pauses == 0);
       round++) {
    hangscope_port_store(&Mailbox(0).pause, 1);
    for (uint32_t i = random() % 64; i > 0; i--) (void)hangscope_port_load(&Mailbox(0).paused);
    hangscope_resume(0);
    const uint32_t beat = hangscope_port_load(&Mailbox(0).heartbeat);
    const auto resumed = std::chrono::steady_clock::now();
    while (!missed && hangscope_port_load(&Mailbox(0).heartbeat) - beat < 2) {
      missed = std::chrono::steady_clock::now() > resumed + kForEver;
    }
  }
  EXPECT_FALSE(missed) << "paused for ever";
  stop = true;
  hangscope_resume(0);
  core.join();
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
  for (uint32_t core = 0; core < HANGSCOPE_CORES; core++)
    hangscope_core_is(core, core < 4 ? 0 : 1, 0);
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

// A debug value interrupted at each step by a handler that writes so many: each is there whole, or
// newer ones are in its place, or it gave up and was counted.
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
  accepted.reserve(3'000'100);
  // the writers go on until there is enough, if that is not for ever
  std::atomic<size_t> read_so_far = 0;
  const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  std::mutex merging;
  std::thread reader([&] {
    while (!stop) {
      read_so_far = accepted.size();
      for (const hangscope_core_detail& details : hangscope_scope.details) {
        for (const hangscope_debug_value& slot : details.debug) {
          if (const hangscope_debug_value read = ReadSlot(slot);
              read.order != 0 && accepted.size() < 3'000'000)
            accepted.push_back(read);
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
      const auto enough = [&] {
        return read_so_far > 1000 || std::chrono::steady_clock::now() > latest;
      };
      for (uint32_t i = 0; i < kEach || (!enough() && i < 5'000'000); i++) Debug(number++);
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
  for (const hangscope_debug_value& read : accepted)
    mixed += read.order > ledger.size() || values[read.order] != read.value;
  EXPECT_EQ(mixed, 0u) << "of " << accepted.size();
  EXPECT_GT(refused, 0u);
  EXPECT_GT(accepted.size(), 1000u);
  std::printf("%zu values, %ju given up; %zu read\n", ledger.size(), uintmax_t{refused},
              accepted.size());
}

// --- Stacks.

// A painted stack of which the lowest `free` bytes were never used.
struct PaintedStack {
  PaintedStack(size_t bytes, size_t free) : words(bytes / 4) { Use(free); }
  void Use(size_t free) {
    for (size_t i = 0; i < words.size(); i++)
      words[i] = i < free / 4 ? HANGSCOPE_STACK_PAINT : static_cast<uint32_t>(i);
  }
  std::vector<uint32_t> words;
};

TEST_F(Watched, AStacksUnusedBytesAreCountedWithTheKernelThatUsedMost) {
  hangscope_stack_look();
  EXPECT_EQ(Mailbox(0).stack_free, HANGSCOPE_NOT_KNOWN) << "not painted";
  PaintedStack stack(400, 200);
  test_core = 2;
  EXPECT_EQ(hangscope_stack_is(stack.words.data(), 400), 1);
  EXPECT_EQ(Mailbox(2).stack_free, HANGSCOPE_NOT_KNOWN) << "nobody looked";
  const auto look = [&](uint32_t kernel, uint32_t free) {
    stack.Use(free);
    hangscope_kernel_is(kernel);
    hangscope_stack_look();
    EXPECT_EQ(Mailbox(2).stack_free, free);
  };
  look(5, 200);
  EXPECT_EQ(Details(2).detail.stack_bytes, 400u);
  EXPECT_EQ(Details(2).detail.stack_lowest, 200u);
  EXPECT_EQ(Details(2).detail.stack_kernel, 5u);
  look(6, 16);
  look(7, 300);  // painted again
  look(8, 16);   // no lower
  EXPECT_EQ(Details(2).detail.stack_lowest, 16u);
  EXPECT_EQ(Details(2).detail.stack_kernel, 6u);
  EXPECT_EQ(Mailbox(2).fault, 0u);
  look(9, 400);
  EXPECT_EQ(Mailbox(0).stack_free, HANGSCOPE_NOT_KNOWN) << "another core's";
}

TEST_F(Watched, AStackWithoutOneFreeByteIsAFaultOnceAndItsCoreGoesOn) {
  PaintedStack stack(400, 4);
  EXPECT_EQ(hangscope_stack_is(stack.words.data(), 400), 1);
  hangscope_stack_look();
  EXPECT_EQ(Mailbox(0).fault, 0u);
  stack.Use(0);
  EXPECT_FALSE(Halts([] { hangscope_stack_look(); }));
  EXPECT_FALSE(Halts([] { hangscope_stack_look(); }));
  EXPECT_EQ(Mailbox(0).fault, static_cast<uint32_t>(HANGSCOPE_FAULT_STACK));
  EXPECT_EQ(Mailbox(0).stack_free, 0u);
  EXPECT_EQ(Details(0).detail.stack_lowest, 0u);
  EXPECT_EQ(Details(0).detail.faults, 1u);
  EXPECT_EQ(uint64_t{Fault(0).address[1]} << 32 | Fault(0).address[0],
            reinterpret_cast<uintptr_t>(stack.words.data()));
}

TEST_F(Watched, OnlyWholeWordsOfAStackCount) {
  PaintedStack stack(40, 40);
  char* const bytes = reinterpret_cast<char*>(stack.words.data());
  EXPECT_EQ(hangscope_stack_is(bytes + 1, 18), 1);
  hangscope_stack_look();
  EXPECT_EQ(Mailbox(0).stack_free, 12u);  // bytes 4 to 15
  EXPECT_EQ(hangscope_stack_is(bytes + 1, 6), 0);
  EXPECT_EQ(hangscope_stack_is(bytes, 3), 0);
}

TEST_F(Watched, SwitchedOffStacksAreNotLookedAt) {
  PaintedStack stack(40, 20);
  EXPECT_EQ(hangscope_stack_is(stack.words.data(), 40), 1);
  SwitchOff(HANGSCOPE_WATCH_STACKS);
  hangscope_stack_look();
  EXPECT_EQ(Mailbox(0).stack_free, HANGSCOPE_NOT_KNOWN);
}

// What a thread does with a stack of its own.
constexpr size_t kStackBytes = 4 << 20;
void OnStack(const std::function<void(char* stack)>& code) {
  struct Call {
    const std::function<void(char*)>* code;
    char* stack;
  };
  char* const stack = static_cast<char*>(
      mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstack(&attributes, stack, kStackBytes), 0);
  Call call{&code, stack};
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* argument) -> void* {
                  const Call* const this_call = static_cast<Call*>(argument);
                  (*this_call->code)(this_call->stack);
                  return nullptr;
                },
                &call),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  munmap(stack, kStackBytes);
}

__attribute__((noinline)) uint32_t UseStack(uint32_t bytes) {
  volatile char used[1024];
  for (volatile char& byte : used) byte = 1;
  return bytes <= sizeof used ? used[5]
                              : UseStack(bytes - static_cast<uint32_t>(sizeof used)) + used[7];
}

TEST_F(Watched, WhatAPaintedStackUsesIsNoLongerFree) {
  OnStack([](char* stack) {
    UseStack(200 * 1024);  // before it is painted: does not count
    ASSERT_EQ(hangscope_stack_paint(stack, kStackBytes), 1);
    hangscope_stack_look();
    const uint32_t free = Mailbox(0).stack_free;
    EXPECT_GT(free, kStackBytes / 2);
    EXPECT_LT(free, kStackBytes);
    UseStack(100 * 1024);
    hangscope_stack_look();
    EXPECT_LT(Mailbox(0).stack_free, free - 90 * 1024);
    EXPECT_GT(Mailbox(0).stack_free, free - 200 * 1024);
    EXPECT_EQ(Details(0).detail.stack_bytes, kStackBytes);
    EXPECT_EQ(Mailbox(0).fault, 0u);
    // Right up to what is in use, but for a margin.
    ASSERT_EQ(hangscope_stack_paint(stack, kStackBytes), 1);
    hangscope_stack_look();
    EXPECT_NEAR(Mailbox(0).stack_free, free, 64);
  });
}

TEST_F(Watched, AStackThatTheCallerIsNotOnIsLeftAlone) {
  std::vector<uint32_t> other(100, 7);
  EXPECT_EQ(hangscope_stack_paint(other.data(), 400), 0);
  EXPECT_EQ(other, std::vector<uint32_t>(100, 7));
  hangscope_stack_look();
  EXPECT_EQ(Mailbox(0).stack_free, HANGSCOPE_NOT_KNOWN);
}

// --- Guards.

class Guards : public Watched {
 protected:
  void SetUp() override {
    Watched::SetUp();
    for (hangscope_guarded& guard : hangscope_guard_table) guard = {};
    for (uint32_t i = 0; i < HANGSCOPE_GUARDS; i++) {
      words_[i] = 0x5afe0000 + i;
      hangscope_guard(i, &words_[i], words_[i]);
    }
  }
  static uint64_t Address() {
    return uint64_t{Fault(test_core).address[1]} << 32 | Fault(test_core).address[0];
  }
  uint32_t words_[HANGSCOPE_GUARDS] = {};
};

TEST_F(Guards, AWordThatChangedIsAFaultOnceAndTheCoreGoesOn) {
  hangscope_guards_look();
  EXPECT_EQ(Mailbox(0).fault, 0u);
  words_[1] = 0xbad;
  EXPECT_FALSE(Halts([] { hangscope_guards_look(); }));
  EXPECT_EQ(Mailbox(0).fault, static_cast<uint32_t>(HANGSCOPE_FAULT_GUARD));
  EXPECT_EQ(Fault(0).kind, 1u);
  EXPECT_EQ(Fault(0).value[0], 0xbadu);
  EXPECT_EQ(Address(), reinterpret_cast<uintptr_t>(&words_[1]));
  words_[1] = 0xbad2;
  hangscope_guards_look();
  EXPECT_EQ(Details(0).detail.faults, 1u);
  hangscope_guard(1, &words_[1], 0xbad2);
  hangscope_guards_look();
  EXPECT_EQ(Details(0).detail.faults, 1u);
  words_[1] = 0;
  hangscope_guards_look();
  EXPECT_EQ(Details(0).detail.faults, 2u);
}

TEST_F(Guards, EachLookReportsOne) {
  words_[0] = words_[2] = 1;
  hangscope_guards_look();
  test_core = 1;
  hangscope_guards_look();
  hangscope_guards_look();
  EXPECT_EQ(Details(0).detail.faults, 1u);
  EXPECT_EQ(Details(1).detail.faults, 1u);
  EXPECT_EQ(Fault(0).kind, 0u);
  EXPECT_EQ(Fault(1).kind, 2u);
}

TEST_F(Guards, WhatIsNotGuardedOrSwitchedOffIsNotLookedAt) {
  hangscope_guard(HANGSCOPE_GUARDS, &words_[0], 99);
  hangscope_guard(0, nullptr, 0);
  words_[0] = 1;
  hangscope_guards_look();
  EXPECT_EQ(Details(0).detail.faults, 0u);
  words_[1] = 1;
  SwitchOff(HANGSCOPE_WATCH_GUARDS);
  hangscope_guards_look();
  EXPECT_EQ(Details(0).detail.faults, 0u);
}

// Whatever another core does in between any two accesses: set it anew, or find it, too.
TEST_F(Guards, AGuardIsReportedByOneCoreAndNotWhileItIsSetAnew) {
  for (const bool anew : {false, true}) {
    int steps = 1;
    for (int at = 1; at <= steps; at++) {
      SetUp();
      steps = 0;
      uint32_t other[2] = {7, 7};
      words_[1] = 1;
      bool was_late = false;
      interrupt = [&] {
        if (++steps != at) return;
        was_late = Details(0).detail.faults != 0;
        test_core = 1;
        if (anew) {
          hangscope_guard(1, &other[1], 7);
        } else {
          hangscope_guards_look();
        }
        test_core = 0;
      };
      hangscope_guards_look();
      interrupt = nullptr;
      const uint32_t faults = Details(0).detail.faults + Details(1).detail.faults;
      if (!anew) {
        ASSERT_EQ(faults, 1u) << at;
      } else if (faults == 1) {
        ASSERT_EQ(Address(), reinterpret_cast<uintptr_t>(&words_[1])) << at;
        ASSERT_EQ(Fault(0).value[0], 1u) << at;
        other[1] = 8;
        hangscope_guards_look();
        ASSERT_EQ(Details(0).detail.faults, 2u) << at;
      } else {
        ASSERT_EQ(faults, 0u) << at;
        ASSERT_FALSE(was_late);
      }
    }
    EXPECT_GT(steps, 5);
  }
}

__attribute__((no_sanitize("undefined"))) void WriteToAddressZero(uint32_t value) {
  uintptr_t address = 0;
  __asm__("" : "+r"(address));
  *reinterpret_cast<volatile uint32_t*>(address) = value;
}

TEST_F(Guards, AddressZeroWhereThatIsMemory) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer lets nobody map address 0";
#endif
  uint32_t* const zero = static_cast<uint32_t*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
  if (zero == MAP_FAILED)
    GTEST_SKIP() << "address 0 cannot be mapped here: " << std::strerror(errno);
  WriteToAddressZero(0x1234);
  hangscope_guard_null();
  hangscope_guards_look();
  EXPECT_EQ(Details(0).detail.faults, 0u);
  WriteToAddressZero(0x1235);
  hangscope_guards_look();
  munmap(zero, 4096);
  EXPECT_EQ(Mailbox(0).fault, static_cast<uint32_t>(HANGSCOPE_FAULT_GUARD));
  EXPECT_EQ(Fault(0).kind, HANGSCOPE_GUARD_NULL);
  EXPECT_EQ(Fault(0).value[0], 0x1235u);
  EXPECT_EQ(Address(), 0u);
}

}  // namespace
