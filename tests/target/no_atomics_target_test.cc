// A node of five cores without an instruction that is atomic for more than its own core: the order
// of debug values.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <set>
#include <thread>
#include <vector>

#define HANGSCOPE_PORT "no_atomics_port.h"
#define HANGSCOPE_RING_CAPACITY 8
#define HANGSCOPE_CORES 6
#define HANGSCOPE_NODES 2
#define HANGSCOPE_DEBUG_RING 1024
#define HANGSCOPE_FIRST_FEATURES (HANGSCOPE_WATCH_DEBUG | HANGSCOPE_WATCH_DELAYS)
#define HANGSCOPE_START_SETTINGS 1
#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"

thread_local uint32_t test_core = 0;
thread_local uint32_t test_time = 1;

namespace {

constexpr uint32_t kOther = 5;  // of the other node

class NoAtomics : public testing::Test {
 protected:
  void SetUp() override {
    std::memset(&hangscope_scope, 0, sizeof hangscope_scope);
    hangscope_init();
    hangscope_core_is(kOther, 1, 0);
  }
};

TEST_F(NoAtomics, ValueThatWasWrittenBeforeAnotherHasAnEarlierOrder) {
  struct Span {
    uint64_t begin;
    uint64_t end;
    uint32_t order;
  };
  constexpr uint32_t kValues = 1000;
  std::atomic<uint64_t> now = 0;
  std::vector<std::vector<Span>> spans(HANGSCOPE_CORES);
  std::vector<std::thread> cores;
  for (uint32_t core = 0; core < HANGSCOPE_CORES; ++core) {
    cores.emplace_back([&, core] {
      test_core = core;
      for (uint32_t i = 0; i < kValues; ++i) {
        const uint64_t begin = now.fetch_add(1);
        HANGSCOPE_DEBUG(i);
        const hangscope_debug_value& written = hangscope_scope.details[core].debug[i];
        EXPECT_EQ(written.value, i);
        spans[core].push_back({begin, now.fetch_add(1), written.order});
      }
    });
  }
  for (std::thread& core : cores) core.join();
  // By end: the greatest order of all that had ended before a value began is below its own.
  std::map<uint64_t, uint32_t> ended;
  std::multimap<uint64_t, Span> begun;
  for (uint32_t core = 0; core < kOther; ++core) {
    for (const Span& span : spans[core]) {
      ended.emplace(span.end, span.order);
      begun.emplace(span.begin, span);
    }
  }
  uint32_t greatest = 0;
  auto next = ended.begin();
  size_t compared = 0;
  for (const auto& [begin, span] : begun) {
    for (; next != ended.end() && next->first < begin; ++next)
      greatest = std::max(greatest, next->second);
    EXPECT_GT(span.order, greatest);
    compared += greatest != 0 ? 1 : 0;
  }
  EXPECT_GT(compared, 4 * kValues);
  EXPECT_EQ(spans[kOther].back().order, kValues) << "those of another node do not count";
}

TEST_F(NoAtomics, OrdersGoOnBehindTheirWrap) {
  for (uint32_t core = 0; core < kOther; ++core)
    hangscope_scope.details[core].debug_order[0] = UINT32_MAX - 1 - (core == 1 ? 0 : 2);
  test_core = 0;
  for (uint32_t i = 0; i < 3; ++i) HANGSCOPE_DEBUG(i);
  EXPECT_EQ(hangscope_scope.details[0].debug[0].order, UINT32_MAX);
  EXPECT_EQ(hangscope_scope.details[0].debug[1].order, 1u) << "0 is that of none";
  EXPECT_EQ(hangscope_scope.details[0].debug[2].order, 2u);
}

// The node's word is whoever wrote it last, of those who found it free: a host takes the times.
TEST_F(NoAtomics, FaultsOfFiveCoresAtOnceHaveTheirTimesEach) {
  std::set<uint32_t> words;
  hangscope_start.start.switches = HANGSCOPE_WATCH_FEATURES;
  for (uint32_t round = 0; round < 200; ++round) {
    SetUp();
    std::atomic<uint32_t> ready = 0;
    std::vector<std::thread> cores;
    for (uint32_t core = 0; core < kOther; ++core) {
      cores.emplace_back([&, core] {
        test_core = core;
        test_time = 100 + (core + round) % kOther;
        ++ready;
        while (ready < kOther) std::this_thread::yield();
        HANGSCOPE_ASSERT_ARGUMENT(false, "all at once", core);
      });
    }
    for (std::thread& core : cores) core.join();
    const hangscope_node& node = hangscope_scope.nodes[0];
    ASSERT_TRUE(node.first_fault >= 1 && node.first_fault <= kOther) << node.first_fault;
    words.insert(node.first_fault);
    for (uint32_t core = 0; core < kOther; ++core) {
      const hangscope_detail& detail = hangscope_scope.details[core].detail;
      ASSERT_EQ(detail.faults, 1u);
      ASSERT_EQ(detail.fault.time, 100 + (core + round) % kOther);
      ASSERT_EQ(detail.fault.value[0], core);
    }
  }
  EXPECT_GT(words.size(), 1u) << "they never raced";
  EXPECT_EQ(hangscope_scope.nodes[1].first_fault, 0u);
  hangscope_start.start.switches = HANGSCOPE_FIRST_FEATURES;
}

TEST_F(NoAtomics, HeaderSaysSo) {
  EXPECT_NE(hangscope_scope.header.features & HANGSCOPE_FEATURE_NO_ATOMICS, 0u);
}

TEST_F(NoAtomics, FeaturesBeginAsTheImageOrItsLoaderSays) {
  EXPECT_EQ(hangscope_scope.watch.switches,
            uint32_t{HANGSCOPE_WATCH_DEBUG | HANGSCOPE_WATCH_DELAYS});
  EXPECT_EQ(hangscope_scope.watch.features, HANGSCOPE_WATCH_BUILT_IN);
  hangscope_start.start.switches = HANGSCOPE_WATCH_FEATURES;
  hangscope_init();
  EXPECT_EQ(hangscope_scope.watch.switches, HANGSCOPE_WATCH_BUILT_IN);
  hangscope_start.start.switches = 0;
  hangscope_init();
  EXPECT_EQ(hangscope_scope.watch.switches, 0u);
  hangscope_start.start.switches = HANGSCOPE_FIRST_FEATURES;
}

TEST_F(NoAtomics, DelaysAreThereFromTheFirstAccessOn) {
  for (uint32_t i = 0; i < 4; ++i) hangscope_start.delays[2][i] = 10 + i;
  hangscope_init();
  const hangscope_detail& detail = hangscope_scope.details[2].detail;
  EXPECT_EQ(detail.delays[HANGSCOPE_DELAY_READ], 10u);
  EXPECT_EQ(detail.delays[HANGSCOPE_DELAY_ATOMIC], 12u);
  EXPECT_EQ(detail.delay_seed, 13u);
  EXPECT_EQ(hangscope_scope.details[1].detail.delays[0], 0u);
  test_core = 2;
  hangscope_delay(HANGSCOPE_DELAY_WRITE);
  EXPECT_EQ(detail.delays_done[HANGSCOPE_DELAY_WRITE], 1u);
  test_core = 0;
  for (uint32_t i = 0; i < 4; ++i) hangscope_start.delays[2][i] = 0;
}

}  // namespace
