// When bytes of a hardware trace were written.
#include "hwtrace/trace_times.h"

#include <gtest/gtest.h>

namespace hangscope {
namespace {

TEST(TraceTimes, BoundsAByteByTheStampsAroundIt) {
  const TimeSpan piece{100, 900};
  const std::vector<TraceTime> times{{10, 200}, {20, 300}, {30, 400}};
  const struct {
    uint64_t offset;
    TimeSpan expected;
  } kCases[] = {{0, {100, 200}},  {10, {200, 300}}, {15, {200, 300}},
                {20, {300, 400}}, {30, {400, 900}}, {99, {400, 900}}};
  for (const auto& c : kCases)
    EXPECT_EQ(TimeOfOffset(piece, times, c.offset), c.expected) << c.offset;
  EXPECT_EQ(TimeOfOffset(piece, {}, 15), piece);
}

TEST(TraceTimes, DoesNotBelieveStampsOutsideOfThePiece) {
  const TimeSpan piece{250, 350};
  const std::vector<TraceTime> times{{10, 200}, {20, 300}, {30, 400}};
  EXPECT_EQ(TimeOfOffset(piece, times, 15), (TimeSpan{250, 300}));
  EXPECT_EQ(TimeOfOffset(piece, times, 25), (TimeSpan{300, 350}));
  EXPECT_EQ(TimeOfOffset({1000, 2000}, times, 25), (TimeSpan{1000, 2000}));
}

TEST(TraceTimes, KeepsAFewOfMany) {
  std::vector<TraceTime> times;
  TraceTimes keeper(&times);
  constexpr uint64_t kCount = 1'000'000;
  for (uint64_t i = 0; i < kCount; ++i) keeper.Add({i, static_cast<TimeNs>(10 * i)});
  EXPECT_LE(times.size(), TraceTimes::kMost);
  EXPECT_GT(times.size(), TraceTimes::kMost / 4);
  EXPECT_EQ(times.front(), (TraceTime{0, 0}));
  // They stay spread evenly, and true.
  for (size_t i = 1; i < times.size(); ++i) {
    ASSERT_EQ(times[i].offset - times[i - 1].offset, times[1].offset) << i;
    ASSERT_EQ(times[i].time, static_cast<TimeNs>(10 * times[i].offset));
  }
  EXPECT_GT(times.back().offset, kCount - 2 * times[1].offset);
}

TEST(TraceTimes, LeavesOutWhatRunsBackwards) {
  std::vector<TraceTime> times;
  TraceTimes keeper(&times);
  keeper.Add({10, 100});
  keeper.Add({20, 90});
  keeper.Add({5, 200});
  keeper.Add({30, 110});
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[1], (TraceTime{30, 110}));
}

}  // namespace
}  // namespace hangscope
