#include "cpu/ring_pause.h"

#include <gtest/gtest.h>

namespace hangscope {
namespace {

class RingPauseTest : public testing::Test {
 protected:
  bool may_ = true;
  std::vector<bool> asked_;
  RingPause pause_{[this](bool off) {
    asked_.push_back(off);
    return may_;
  }};
};

TEST_F(RingPauseTest, FillsAsFastAsSinceTheNoteBefore) {
  EXPECT_FALSE(pause_.ComesWithin(1, kSecond, 1'000'000, kSecond)) << "nothing was noted";
  pause_.Note(1000, kSecond);
  // 100 bytes in 10 ms
  const TimeNs now = kSecond + 10 * kMillisecond;
  EXPECT_TRUE(pause_.ComesWithin(200, 20 * kMillisecond, 1100, now));
  EXPECT_FALSE(pause_.ComesWithin(201, 20 * kMillisecond, 1100, now));
  EXPECT_FALSE(pause_.ComesWithin(1, kSecond, 1000, now)) << "nothing came";
  EXPECT_FALSE(pause_.ComesWithin(1, kSecond, 2000, kSecond)) << "no time has passed";
}

TEST_F(RingPauseTest, KnowsWhenTheRingWasOff) {
  pause_.Begin(5);
  EXPECT_TRUE(pause_.is_off());
  pause_.Begin(6);
  EXPECT_TRUE(pause_.was_off().empty());
  pause_.End(9);
  pause_.End(10);
  EXPECT_FALSE(pause_.is_off());
  EXPECT_EQ(pause_.was_off(), (std::vector<TimeSpan>{{5, 9}}));
  EXPECT_EQ(asked_, (std::vector<bool>{true, false}));
}

TEST_F(RingPauseTest, OneThatCannotBeSwitchedOffGoesOn) {
  may_ = false;
  pause_.Begin(5);
  EXPECT_FALSE(pause_.is_off());
  pause_.End(9);
  EXPECT_TRUE(pause_.was_off().empty());
  EXPECT_EQ(asked_, (std::vector<bool>{true}));
}

TEST_F(RingPauseTest, RemembersTheNewestTimes) {
  for (TimeNs at = 0; at < 200; at += 2) {
    pause_.Begin(at);
    pause_.End(at + 1);
  }
  EXPECT_EQ(pause_.was_off().size(), 64u);
  EXPECT_EQ(pause_.was_off().back(), (TimeSpan{198, 199}));
}

}  // namespace
}  // namespace hangscope
