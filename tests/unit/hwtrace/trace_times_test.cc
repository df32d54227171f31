// When bytes of a hardware trace were written.
#include "hwtrace/trace_times.h"

#include <gtest/gtest.h>

#include <memory>

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

TEST(TraceTimes, BoundsAByteByTheStampsOfItsOwnCpu) {
  const TimeSpan piece{100, 900};
  const std::vector<TraceTime> times{{10, 200, 0}, {20, 300, 1}, {30, 400, 1}, {40, 500, 0}};
  EXPECT_EQ(TimeOfOffset(piece, times, 25, 0), (TimeSpan{200, 500}));
  EXPECT_EQ(TimeOfOffset(piece, times, 25, 1), (TimeSpan{300, 400}));
  EXPECT_EQ(TimeOfOffset(piece, times, 15, 1), (TimeSpan{100, 300}));
  EXPECT_EQ(TimeOfOffset(piece, times, 35, 1), (TimeSpan{400, 900}));
  EXPECT_EQ(TimeOfOffset(piece, times, 25, -1), piece);
}

// What the tracer kept back may be older than a stamp before it.
TEST(TraceTimes, BoundsABranchByWhatSurelyCameBefore) {
  const std::vector<TraceTime> times{{10, 200}, {20, 300}, {30, 400}};
  TraceBranch branch;
  branch.offset = 25;
  branch.after = 20;
  EXPECT_EQ(TimeOfBranch({100, 900}, times, branch), (TimeSpan{200, 400}));
  branch.after = 21;
  EXPECT_EQ(TimeOfBranch({100, 900}, times, branch), (TimeSpan{300, 400}));
  branch.after = 0;
  EXPECT_EQ(TimeOfBranch({100, 900}, times, branch), (TimeSpan{100, 400}));
}

TEST(TraceTimes, OrdersMomentsOfSeveralTraces) {
  std::vector<TraceMoment> moments{
      {0, {10, 20}}, {0, {50, 60}}, {1, {30, 40}}, {1, {55, 70}}, {2, {80, 90}}};
  const std::vector<size_t> order = OrderMoments(&moments);
  EXPECT_EQ(order, (std::vector<size_t>{0, 2, 1, 3, 4}));
  std::vector<bool> certain;
  for (const TraceMoment& moment : moments) certain.push_back(moment.certain);
  EXPECT_EQ(certain, (std::vector<bool>{true, true, false, false, true}));
}

TEST(TraceTimes, IsNotCertainWhereIntervalsTouchOrOneHoldsTheOther) {
  std::vector<TraceMoment> moments{
      {0, {10, 20}}, {1, {20, 30}}, {0, {40, 90}}, {1, {50, 60}}, {2, {70, 80}}};
  OrderMoments(&moments);
  for (const TraceMoment& moment : moments) EXPECT_FALSE(moment.certain) << moment.within.from;
  std::vector<TraceMoment> alone{{7, {10, 20}}, {7, {10, 20}}};
  OrderMoments(&alone);
  for (const TraceMoment& moment : alone) EXPECT_TRUE(moment.certain);
}

TEST(TraceTimes, NarrowsMomentsByTheOrderWithinTheirTrace) {
  std::vector<TraceMoment> moments{
      {0, {0, 100}}, {0, {10, 20}}, {0, {0, 100}}, {0, {30, 40}}, {0, {0, 35}}};
  EXPECT_EQ(OrderMoments(&moments), (std::vector<size_t>{0, 1, 2, 3, 4}));
  const TimeSpan expected[] = {{0, 20}, {10, 20}, {10, 35}, {30, 35}, {30, 35}};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(moments[i].within, expected[i]) << i;
  EXPECT_TRUE(OrderMoments(std::make_unique<std::vector<TraceMoment>>().get()).empty());
}

}  // namespace
}  // namespace hangscope
