// A target's clock against the host's, with the truth of a simulated one.
#include "window/clock_alignment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

namespace hangscope {
namespace {

// Runs at its own rate from any count on, and is read through a channel that takes its time.
class SkewedClock {
 public:
  SkewedClock(uint64_t seed, uint64_t start, double counts_per_ns)
      : random_(seed), start_(start), rate_(counts_per_ns) {}

  uint64_t CountAt(TimeNs host) const {
    return start_ + static_cast<uint64_t>(static_cast<int64_t>(
                        std::floor(static_cast<double>(host - kBegin) * rate_)));
  }
  ClockSample Read(TimeNs at) {
    const TimeNs before = at - static_cast<TimeNs>(random_() % 3000);
    const TimeNs after = at + static_cast<TimeNs>(random_() % 9000);
    return {before, CountAt(at), after};
  }

  static constexpr TimeNs kBegin = 5 * kSecond;

 private:
  std::mt19937_64 random_;
  uint64_t start_;
  double rate_;
};

// The stated error holds for every instant between the first and the last sample, over the wrap,
// too.
TEST(ClockAlignment, IsNeverFurtherOffThanItSays) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const double rate = (0.001 + static_cast<double>(random() % 4000) / 1000) *
                        (1 + static_cast<double>(random() % 200) * 1e-6);
    const uint64_t start = seed % 3 == 0 ? UINT64_MAX - random() % 1'000'000 : random();
    SkewedClock clock(seed, start, rate);
    std::vector<ClockSample> samples;
    TimeNs at = SkewedClock::kBegin;
    for (uint64_t n = 2 + random() % 8; n > 0; --n)
      samples.push_back(clock.Read(at += static_cast<TimeNs>(20'000 + random() % 500'000'000)));
    const auto alignment = AlignClocks(samples, 0);
    ASSERT_TRUE(alignment.has_value());
    // A count is an instant's down to one count.
    const TimeNs count_length = static_cast<TimeNs>(std::ceil(1 / rate));
    for (int i = 0; i <= 20; ++i) {
      const TimeNs truth =
          samples.front().after + (samples.back().before - samples.front().after) * i / 20;
      EXPECT_LE(std::abs(alignment->HostTime(clock.CountAt(truth)) - truth),
                alignment->error + count_length);
    }
    // No worse than the slower of two readings, which is what one could do with a single one.
    TimeNs longest = 0;
    for (const ClockSample& sample : samples)
      longest = std::max(longest, sample.after - sample.before);
    EXPECT_LE(alignment->error, longest + count_length);
  }
}

TEST(ClockAlignment, OfOneSampleNeedsAKnownRate) {
  const std::vector<ClockSample> one{{1000, 500, 1400}};
  EXPECT_FALSE(AlignClocks(one, 0).has_value());
  const auto alignment = AlignClocks(one, 10'000'000);
  ASSERT_TRUE(alignment.has_value());
  EXPECT_EQ(alignment->HostTime(500), 1200);
  EXPECT_EQ(alignment->HostTime(510), 2200);
  EXPECT_EQ(alignment->HostTime(499), 1100);
  EXPECT_EQ(alignment->error, 201);
}

// A clock that says 10 MHz and runs 100 ppm slower: the samples are believed.
TEST(ClockAlignment, MeasuresTheDrift) {
  SkewedClock clock(1, 0, 0.01 * (1 - 100e-6));
  std::vector<ClockSample> samples;
  for (int i = 0; i <= 10; ++i) samples.push_back(clock.Read(SkewedClock::kBegin + i * kSecond));
  const auto alignment = AlignClocks(samples, 10'000'000);
  ASSERT_TRUE(alignment.has_value());
  EXPECT_NEAR(alignment->ns_per_count, 100 * (1 + 100e-6), 100 * 2e-6);
  EXPECT_LT(alignment->error, 10'000);
}

TEST(ClockAlignment, RefusesClocksThatContradictThemselves) {
  const struct {
    const char* what;
    std::vector<ClockSample> samples;
  } kCases[] = {
      {"no sample", {}},
      {"it ran backwards", {{0, 100, 10}, {1000, 90, 1010}}},
      {"it stood still", {{0, 100, 10}, {1000, 100, 1010}}},
      {"the host's ran backwards", {{1000, 100, 1010}, {0, 200, 10}}},
      {"read after it was read", {{10, 100, 0}}},
      {"it stopped for a while",
       {{0, 0, 10}, {1000, 1000, 1010}, {5000, 1010, 5010}, {6000, 2010, 6010}}},
      {"beyond all times", {{INT64_MIN, 0, INT64_MAX}}},
  };
  for (const auto& c : kCases)
    EXPECT_FALSE(AlignClocks(c.samples, 1'000'000'000).has_value()) << c.what;
}

// Two readings so close that they say nothing of the rate.
TEST(ClockAlignment, TakesTheKnownRateWhereSamplesOverlap) {
  const std::vector<ClockSample> samples{{0, 100, 1000}, {500, 100, 1500}};
  EXPECT_FALSE(AlignClocks(samples, 0).has_value());
  const auto alignment = AlignClocks(samples, 1'000'000'000);
  ASSERT_TRUE(alignment.has_value());
  EXPECT_EQ(alignment->ns_per_count, 1);
  EXPECT_EQ(alignment->HostTime(100), 750);
}

TEST(ClockAlignment, OfAnyCountIsATime) {
  const auto alignment = AlignClocks({{0, 0, 0}}, 1);
  ASSERT_TRUE(alignment.has_value());
  EXPECT_GT(alignment->HostTime(INT64_MAX), kSecond);
  EXPECT_LT(alignment->HostTime(uint64_t{1} << 63), -kSecond);
}

// As of firmware whose newest event is looked at now and then: half a period wide, the samples
// allow for any rate.
TEST(ClockAlignment, BelievesWhatAClockSaysOfItsRateWhereSamplesTellLess) {
  std::vector<ClockSample> samples;
  for (TimeNs n = 1; n <= 4; ++n) {
    const TimeNs at = n * 200 * kMillisecond + (n % 2 == 0 ? -100 : 90) * kMillisecond;
    const TimeNs late = n == 1 ? 190 * kMillisecond : 110 * kMillisecond;
    samples.push_back(
        {at - late, static_cast<uint64_t>(at / 1000), at - late + 215 * kMillisecond});
  }
  const auto said = AlignClocks(samples, 1'000'000);
  ASSERT_TRUE(said.has_value());
  EXPECT_DOUBLE_EQ(said->ns_per_count, 1000);
  EXPECT_LE(said->error, 150 * kMillisecond);
  // Not where the samples contradict it.
  const auto contradicted = AlignClocks(samples, 200'000);
  ASSERT_TRUE(contradicted.has_value());
  EXPECT_LT(contradicted->ns_per_count, 3000);
}

}  // namespace
}  // namespace hangscope
