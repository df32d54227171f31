// Control over the rings and what is read back, from the target itself, with a clock that a test
// moves.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#define HANGSCOPE_PORT "clock_port.h"
#define HANGSCOPE_RING_CAPACITY 8
#define HANGSCOPE_CORES 2
#define HANGSCOPE_DEFINE
#include "hangscope/hangscope.h"

uint64_t test_now = 0;
uint32_t test_core = 0;

#define TEST_EVENTS(EVENT) EVENT(user, USER, "%u", u32, a) EVENT(sync, SYNC, "%u", u32, a)
HANGSCOPE_EVENTS(test, HANGSCOPE_FIRST_USER_ID, TEST_EVENTS);

namespace {

class Control : public testing::Test {
 protected:
  void SetUp() override {
    test_now = 0;
    test_core = 0;
    std::memset(&hangscope_scope, 0, sizeof hangscope_scope);
    hangscope_init();
  }
  static uint32_t Parameter(uint32_t index) {
    hangscope_event event;
    EXPECT_EQ(hangscope_get(0, index, &event), HANGSCOPE_OK);
    return event.parameters[0];
  }
};

TEST_F(Control, CountsAndOverwrites) {
  for (uint32_t i = 0; i < 20; i++) {
    EXPECT_EQ(hangscope_count(0), i < 8 ? i : 8u);
    EXPECT_EQ(hangscope_overwrites(0), i < 8 ? 0u : i - 8);
    hangscope_user(i);
  }
  for (uint32_t i = 0; i < 8; i++) EXPECT_EQ(Parameter(i), 12 + i);
  EXPECT_EQ(hangscope_count(1), 0u);
  EXPECT_EQ(hangscope_count(2), 0u);
  EXPECT_EQ(hangscope_overwrites(2), 0u);
  EXPECT_EQ(hangscope_refusals(2), 0u);
}

// They leave the same records.
TEST_F(Control, RawWritersRecordAsTheOthersDo) {
  hangscope_user(5);
  hangscope_user_raw(5);
  hangscope_task_switch(3, 4);
  hangscope_task_switch_raw(3, 4);
  ASSERT_EQ(hangscope_count(0), 4u);
  hangscope_event other, raw;
  for (uint32_t i = 0; i < 4; i += 2) {
    ASSERT_EQ(hangscope_get(0, i, &other), HANGSCOPE_OK);
    ASSERT_EQ(hangscope_get(0, i + 1, &raw), HANGSCOPE_OK);
    EXPECT_EQ(raw.id, other.id);
    EXPECT_EQ(std::memcmp(raw.parameters, other.parameters, sizeof raw.parameters), 0);
  }
  hangscope_set_mask(HANGSCOPE_CLASS_SYNC);
  hangscope_user_raw(6);
  EXPECT_EQ(hangscope_count(0), 4u) << "a mask holds for them, too";
}

TEST_F(Control, EachCoreHasItsRing) {
  test_core = 1;
  hangscope_user(5);
  EXPECT_EQ(hangscope_count(0), 0u);
  EXPECT_EQ(hangscope_count(1), 1u);
}

TEST_F(Control, ErrorsOfGet) {
  hangscope_event event;
  hangscope_user(1);
  EXPECT_EQ(hangscope_get(0, 0, nullptr), HANGSCOPE_NULL);
  EXPECT_EQ(hangscope_get(9, 0, nullptr), HANGSCOPE_NULL);
  EXPECT_EQ(hangscope_get(0, 1, &event), HANGSCOPE_OUT_OF_RANGE);
  EXPECT_EQ(hangscope_get(2, 0, &event), HANGSCOPE_OUT_OF_RANGE);
  EXPECT_EQ(hangscope_get(0xffffffff, 0, &event), HANGSCOPE_OUT_OF_RANGE);
  hangscope_scope.cores[0].records[0] = HANGSCOPE_MARK_TAKEN;
  EXPECT_EQ(hangscope_get(0, 0, &event), HANGSCOPE_UNREADABLE);
}

TEST_F(Control, MaskSelectsClasses) {
  EXPECT_EQ(hangscope_set_mask(HANGSCOPE_CLASS_SYNC), HANGSCOPE_FIRST_MASK);
  hangscope_user(1);
  hangscope_sync(2);
  EXPECT_EQ(hangscope_set_mask(0), static_cast<uint32_t>(HANGSCOPE_CLASS_SYNC));
  hangscope_sync(3);
  ASSERT_EQ(hangscope_count(0), 1u);
  EXPECT_EQ(Parameter(0), 2u);
}

TEST_F(Control, FreezesAfterExactlySoMany) {
  for (uint32_t more = 0; more < 20; more++) {
    SetUp();
    for (uint32_t i = 0; i < 3; i++) hangscope_user(i);
    hangscope_freeze_after(more);
    for (uint32_t i = 0; i < 40; i++) hangscope_user(100 + i);
    EXPECT_EQ(hangscope_begun_by(&hangscope_scope.cores[0]), 3u + more);
    hangscope_set_mask(HANGSCOPE_FIRST_MASK);
    hangscope_user(1);
    EXPECT_EQ(hangscope_begun_by(&hangscope_scope.cores[0]), 4u + more);
  }
}

TEST_F(Control, OnlyClassesThatWereRecordedCountAfterATrigger) {
  hangscope_set_mask(HANGSCOPE_CLASS_SYNC);
  hangscope_freeze_after(2);
  for (uint32_t i = 0; i < 5; i++) {
    hangscope_user(i);
    hangscope_sync(10 + i);
  }
  ASSERT_EQ(hangscope_count(0), 2u);
  EXPECT_EQ(Parameter(1), 11u);
}

TEST_F(Control, ClearForgets) {
  for (uint32_t i = 0; i < 20; i++) hangscope_user(i);
  hangscope_clear();
  EXPECT_EQ(hangscope_count(0), 0u);
  EXPECT_EQ(hangscope_overwrites(0), 0u);
  hangscope_user(77);
  ASSERT_EQ(hangscope_count(0), 1u);
  EXPECT_EQ(Parameter(0), 77u);
}

TEST_F(Control, TheSequenceWraps) {
  for (uint32_t i = 0; i < (1u << 20) + 20; i++) hangscope_user(i);
  for (uint32_t i = 0; i < 8; i++) EXPECT_EQ(Parameter(i), (1u << 20) + 12 + i);
  EXPECT_EQ(hangscope_begun_by(&hangscope_scope.cores[0]), (1u << 20) + 20);
}

// A new epoch is said by an anchor, before the first record in it; silence takes no room.
TEST_F(Control, AnchorsOverSilences) {
  hangscope_user(1);
  test_now = 5ull << 30;
  hangscope_tick();
  ASSERT_EQ(hangscope_count(0), 2u);
  test_now = 1000ull << 30;
  hangscope_tick();
  test_now = (70000ull << 30) + 12345;
  hangscope_tick();
  ASSERT_EQ(hangscope_count(0), 2u);
  hangscope_event anchor;
  ASSERT_EQ(hangscope_get(0, 1, &anchor), HANGSCOPE_OK);
  EXPECT_EQ(anchor.id, HANGSCOPE_ID_ANCHOR);
  EXPECT_EQ(anchor.parameters[0], 70000u);
  EXPECT_EQ(anchor.parameters[1], 0u);
  hangscope_user(2);
  hangscope_event event;
  ASSERT_EQ(hangscope_get(0, 2, &event), HANGSCOPE_OK);
  EXPECT_EQ(event.time, 12345u);
  EXPECT_EQ(hangscope_scope.cores[0].ring.epoch, 70000u);
}

// The reference counts for itself what head and turns have lost.
TEST(Begun, IsExactWhileTheCountOfTurnsIsNear) {
  for (const uint32_t capacity : {8u, 64u, 1024u, 65536u}) {
    const uint64_t period = (1u << 20) / capacity;
    for (uint64_t lap = 0; lap < 3 * period; lap += 1 + period / 50) {
      for (const uint32_t within : {0u, 1u, capacity / 2, capacity - 1}) {
        const uint64_t begun = lap * capacity + within;
        const uint64_t turns = (begun + capacity - 1) / capacity;
        for (uint64_t late = 0; late < period / 2 && late <= turns; late = late * 2 + 1) {
          ASSERT_EQ(hangscope_begun(static_cast<uint32_t>(begun << HANGSCOPE_TICKET_SHIFT),
                                    static_cast<uint32_t>(turns - late), capacity),
                    begun)
              << capacity << " " << late;
        }
      }
    }
  }
}

TEST(Begun, TurnsGoOnForAllOf32Bits) {
  for (uint64_t turns = 0xffffff00u; turns < 0xffffffffu; turns++) {
    const uint64_t begun = turns * 256;
    ASSERT_EQ(hangscope_begun(static_cast<uint32_t>(begun << HANGSCOPE_TICKET_SHIFT),
                              static_cast<uint32_t>(turns), 256),
              begun);
  }
}

}  // namespace
