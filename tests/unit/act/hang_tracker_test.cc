// Which hang is on, what is news of it, and when it is acted on.
#include "act/hang_tracker.h"

#include <gtest/gtest.h>

namespace hangscope {
namespace {

using News = HangTracker::News;

Verdict Is(State state, Confidence confidence, std::string summary = "stuck") {
  Verdict verdict;
  verdict.state = state;
  verdict.confidence = confidence;
  verdict.summary = std::move(summary);
  return verdict;
}

const Verdict kRuns = Is(State::kProgressing, Confidence::kLikely);
const Verdict kLikelyHang = Is(State::kSilent, Confidence::kLikely, "silent");

TEST(HangTracker, AHangIsNewsOnceAndSoIsItsEnd) {
  HangTracker hang({});
  EXPECT_EQ(hang.Follow(kRuns), News::kNone);
  EXPECT_EQ(hang.Follow(kLikelyHang), News::kHang);
  EXPECT_EQ(hang.Follow(kLikelyHang), News::kNone);
  EXPECT_EQ(hang.Follow(kRuns), News::kOver);
  EXPECT_EQ(hang.Follow(kRuns), News::kNone);
  EXPECT_EQ(hang.last()->summary, "silent");
  EXPECT_EQ(hang.Follow(kLikelyHang), News::kHang);
}

TEST(HangTracker, EachHangIsActedOnOnce) {
  HangTracker hang({});
  hang.Follow(kRuns);
  EXPECT_FALSE(hang.IsToBeActedOn());
  hang.Follow(kLikelyHang);
  EXPECT_TRUE(hang.IsToBeActedOn());
  hang.Follow(kLikelyHang);
  EXPECT_FALSE(hang.IsToBeActedOn());
  hang.Follow(kRuns);
  hang.Follow(kLikelyHang);
  EXPECT_TRUE(hang.IsToBeActedOn());
}

TEST(HangTracker, ASurerCauseIsSaidInsteadAndActedOnWhereTheFirstWasNotSureEnough) {
  HangTracker hang({Confidence::kCertain, false});
  EXPECT_EQ(hang.Follow(kLikelyHang), News::kHang);
  EXPECT_FALSE(hang.IsToBeActedOn());
  EXPECT_EQ(hang.Follow(Is(State::kDeadlock, Confidence::kCertain)), News::kBetter);
  EXPECT_EQ(hang.last()->evidence, std::vector<std::string>{"instead of: silent"});
  EXPECT_TRUE(hang.IsToBeActedOn());
}

TEST(HangTracker, AnUndecidedVerdictBeginsNoHangAndEndsNone) {
  HangTracker hang({});
  Verdict undecided = kLikelyHang;
  undecided.undecided = true;
  EXPECT_EQ(hang.Follow(undecided), News::kNone);
  hang.Follow(kLikelyHang);
  EXPECT_EQ(hang.Follow(undecided), News::kNone);
  EXPECT_TRUE(hang.is_on());
}

TEST(HangTracker, APartialHangIsLeftAloneUnlessItIsAskedFor) {
  const Verdict partial = Is(State::kPartial, Confidence::kCertain);
  HangTracker hang({});
  EXPECT_EQ(hang.Follow(partial), News::kHang);
  EXPECT_FALSE(hang.IsToBeActedOn());
  HangTracker asked({Confidence::kLikely, true});
  asked.Follow(partial);
  EXPECT_TRUE(asked.IsToBeActedOn());
}

}  // namespace
}  // namespace hangscope
