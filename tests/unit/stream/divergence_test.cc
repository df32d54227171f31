// Where a hung run left the way of a healthy one.
#include "stream/divergence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using Steps = std::vector<StepNumber>;

Steps Of(const std::string& letters) { return {letters.begin(), letters.end()}; }

std::string Repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

Divergence Find(const std::string& hung, const std::string& healthy) {
  return FindDivergence(Of(hung), Of(healthy));
}

TEST(Divergence, IsWhereTheHealthyRunWentOn) {
  const Divergence found = Find("xxPUSHwaitLOCK", "yyPUSHwaitLOCKdonePUSH");
  EXPECT_EQ(found.kind, Divergence::Kind::kDiverged);
  EXPECT_EQ(found.matched, 12u);
  EXPECT_EQ(found.hung_next, 14u);  // the hung run did nothing more
  EXPECT_EQ(found.healthy_next, 14u);
  EXPECT_EQ(found.places, 1u);
  EXPECT_EQ(found.confidence, Confidence::kLikely);
}

TEST(Divergence, IsFoundBeforeStepsThatOnlyTheHungRunDid) {
  const Divergence found = Find("abcdefghijXY", "abcdefghijklm");
  EXPECT_EQ(found.matched, 10u);
  EXPECT_EQ(found.hung_next, 10u);
  EXPECT_EQ(found.healthy_next, 10u);
}

TEST(Divergence, TakesTheLastPlaceWhereEnoughIsCommon) {
  const Divergence found = Find("abcdefghijklmnop?12345678!z", "abcdefghijklmnopqr 12345678zz");
  EXPECT_EQ(found.matched, 8u);
  EXPECT_EQ(found.hung_next, 25u);
  EXPECT_EQ(found.healthy_next, 27u);
}

TEST(Divergence, TellsHowOftenTheHealthyRunDidThatAndThenTheSame) {
  const Divergence found = Find("12getWAIT", Repeat("getWAITput", 4) + "getWAITerr");
  EXPECT_EQ(found.places, 5u);
  EXPECT_EQ(found.agreeing, 4u);
  EXPECT_EQ(found.healthy_next, 37u);  // the latest that did what most did
  EXPECT_EQ(found.confidence, Confidence::kLikely);
  EXPECT_EQ(Find("12getWAIT", "getWAITputgetWAITerr").confidence, Confidence::kPossible);
}

TEST(Divergence, OfALoopIsWhereTheHealthyRunLeftIt) {
  const Divergence found =
      Find("setupGO" + Repeat("spin", 500), "setupGO" + Repeat("spin", 3) + "doneREST");
  EXPECT_EQ(found.kind, Divergence::Kind::kDiverged);
  EXPECT_EQ(found.loop_steps, 4u);
  EXPECT_EQ(found.loop_rounds, 500u);
  EXPECT_EQ(found.matched, 11u);  // up to one round of it
  EXPECT_EQ(found.healthy_rounds, 2u);
  EXPECT_EQ(found.healthy_next, 7u + 12u);
  EXPECT_EQ(found.hung_next, 7u + 2000u);
}

TEST(Divergence, OfALoopThatTheHealthyRunEndsInTooIsNone) {
  EXPECT_EQ(Find("setup" + Repeat("poll", 50), "setup" + Repeat("poll", 9)).kind,
            Divergence::Kind::kSameEnd);
}

TEST(Divergence, IsNoneWhereTheHealthyRecordingEndsThere) {
  EXPECT_EQ(Find("abcde", "xabcde").kind, Divergence::Kind::kSameEnd);
}

TEST(Divergence, SaysSoWhereNothingIsCommon) {
  EXPECT_EQ(Find("abc", "xyz").kind, Divergence::Kind::kNothingCommon);
  EXPECT_EQ(Find("", "xyz").kind, Divergence::Kind::kNothingCommon);
  EXPECT_EQ(Find("abc", "").kind, Divergence::Kind::kNothingCommon);
  EXPECT_EQ(Find("abc", "").matched, 0u);
}

TEST(Divergence, IsCertainOnlyAfterALongMatchThatAlwaysWentOnAlike) {
  EXPECT_EQ(Find("abcdefghijklmnop", "abcdefghijklmnopq").confidence, Confidence::kCertain);
  EXPECT_EQ(Find("nop", "abcdefghijklmnopq").confidence, Confidence::kPossible);
}

TEST(EndLoop, IsTheOneThatReachesFarthestBack) {
  const EndLoop loop = FindEndLoop(Of("start" + Repeat("baaa", 10)), 3, 100);
  EXPECT_EQ(loop.steps, 4u);
  EXPECT_EQ(loop.rounds, 10u);
  EXPECT_EQ(loop.begin, 5u);
  EXPECT_EQ(FindEndLoop(Of("abcabc"), 3, 100).steps, 0u);
  EXPECT_EQ(FindEndLoop(Of("abcabcabc"), 3, 2).steps, 0u) << "longer than asked for";
}

// By trying all.
size_t LongestMatchAt(const Steps& within, const Steps& text, size_t end) {
  for (size_t length = end; length > 0; --length) {
    const auto from = text.begin() + static_cast<ptrdiff_t>(end - length);
    if (std::search(within.begin(), within.end(), from, from + static_cast<ptrdiff_t>(length)) !=
        within.end())
      return length;
  }
  return 0;
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  size_t Below(size_t end) { return engine_() % end; }
  Steps Sequence(size_t longest, size_t kinds) {
    Steps steps(Below(longest + 1));
    for (StepNumber& step : steps) step = Below(kinds);
    return steps;
  }

 private:
  std::mt19937 engine_;
};

TEST(DivergenceProperty, MatchesAreThoseOfTryingAll) {
  Random random(7);
  for (int round = 0; round < 3000; ++round) {
    const size_t kinds = 1 + random.Below(4);
    const Steps within = random.Sequence(24, kinds);
    const Steps text = random.Sequence(24, kinds + random.Below(2));
    const std::vector<size_t> matches = LongestMatches(within, text);
    ASSERT_EQ(matches.size(), text.size());
    for (size_t end = 1; end <= text.size(); ++end) {
      ASSERT_EQ(matches[end - 1], LongestMatchAt(within, text, end))
          << "round " << round << ", step " << end;
    }
  }
}

TEST(DivergenceProperty, WhatIsSaidOfAPlaceIsTrueThere) {
  Random random(11);
  for (int round = 0; round < 3000; ++round) {
    const size_t kinds = 1 + random.Below(5);
    const Steps hung = random.Sequence(40, kinds);
    const Steps healthy = random.Sequence(40, kinds);
    const Divergence found = FindDivergence(hung, healthy);
    SCOPED_TRACE(round);
    if (found.kind == Divergence::Kind::kNothingCommon) {
      ASSERT_EQ(found.matched, 0u);
      for (const StepNumber step : hung)
        ASSERT_EQ(std::count(healthy.begin(), healthy.end(), step), 0);
      continue;
    }
    ASSERT_LE(found.hung_next, hung.size());
    ASSERT_LE(found.healthy_next, healthy.size());
    ASSERT_GE(found.places, 1u);
    ASSERT_LE(found.agreeing, found.places);
    ASSERT_EQ(found.kind == Divergence::Kind::kSameEnd, found.healthy_next == healthy.size());
    if (found.loop_steps > 0) continue;  // has a test of its own
    ASSERT_GE(found.healthy_next, found.matched);
    ASSERT_TRUE(
        std::equal(hung.begin() + static_cast<ptrdiff_t>(found.hung_next - found.matched),
                   hung.begin() + static_cast<ptrdiff_t>(found.hung_next),
                   healthy.begin() + static_cast<ptrdiff_t>(found.healthy_next - found.matched)));
    if (found.hung_next < hung.size() && found.healthy_next < healthy.size() && found.places == 1) {
      ASSERT_NE(hung[found.hung_next], healthy[found.healthy_next]);
    }
  }
}

TEST(DivergenceProperty, AnEndLoopRepeatsAndNoneIsMissed) {
  Random random(13);
  for (int round = 0; round < 3000; ++round) {
    const Steps steps = random.Sequence(30, 1 + random.Below(3));
    const EndLoop loop = FindEndLoop(steps, 3, 8);
    SCOPED_TRACE(round);
    const auto rounds_of = [&](size_t period) {
      size_t same = 0;
      while (same + period < steps.size() &&
             steps[steps.size() - 1 - same] == steps[steps.size() - 1 - same - period])
        ++same;
      return same / period + 1;
    };
    bool any = false;
    for (size_t period = 1; period <= 8 && period <= steps.size(); ++period)
      any = any || rounds_of(period) >= 3;
    ASSERT_EQ(loop.steps > 0, any);
    if (!any) continue;
    ASSERT_EQ(loop.rounds, rounds_of(loop.steps));
    ASSERT_EQ(loop.begin + loop.rounds * loop.steps, steps.size());
  }
}

}  // namespace
}  // namespace hangscope
