#include "base/jitter.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hangscope {
namespace {

TEST(JitterTest, VariesAroundTheMeanAndNeverKeepsStep) {
  constexpr TimeNs kMean = 100 * kMillisecond;
  Jitter jitter;
  TimeNs now = 0;
  int phases[10] = {};  // of a period as long as the mean
  for (int i = 0; i < 1000; ++i) {
    const TimeNs interval = jitter.Next(kMean);
    ASSERT_GE(interval, kMean / 2);
    ASSERT_LT(interval, kMean * 3 / 2);
    now += interval;
    ++phases[now % kMean / (kMean / 10)];
  }
  EXPECT_NEAR(static_cast<double>(now) / 1000, static_cast<double>(kMean), kMean * 0.05);
  EXPECT_GT(*std::min_element(std::begin(phases), std::end(phases)), 50);
}

TEST(JitterTest, TheSameSeedGivesTheSameIntervals) {
  Jitter a(7), b(7), other(8);
  EXPECT_EQ(a.Next(kSecond), b.Next(kSecond));
  EXPECT_NE(a.Next(kSecond), other.Next(kSecond));
}

}  // namespace
}  // namespace hangscope
