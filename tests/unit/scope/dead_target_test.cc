// A target that is looked at once it has died.
#include <gtest/gtest.h>

#include "unit/scope/watcher_story.h"

namespace hangscope {
namespace {

// What died does not change any more: one look must do, and may have caught a hand-over.
class DeadTargetTest : public WatcherTest {
 protected:
  void SampleDead() {
    watcher_.SeeDead(sample_, now_, *this);
    for (ScopeFinding& finding : watcher_.DrainFindings()) found_.push_back(std::move(finding));
  }
  void TwoWait(ResourceKind kind) {
    Cores(3);
    claims_[0] = {{10}, {10}, 0};
    claims_[1] = {{20}, {20}, 0};
    Wait(0, 20, kind);
    Wait(1, 10, kind);
  }
};

TEST_F(DeadTargetTest, LocksThatAreHeldInACycleAreADeadlockForCertain) {
  TwoWait(ResourceKind::kExclusive);
  SampleDead();
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kDeadlock);
  EXPECT_EQ(found_[0].confidence, Confidence::kCertain);
}

TEST_F(DeadTargetTest, ChannelsInACycleMayBeAHandOverWhileSomebodyRan) {
  TwoWait(ResourceKind::kChannel);
  SampleDead();
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].confidence, Confidence::kPossible);
  EXPECT_EQ(found_[0].doubts.size(), 1u);
}

TEST_F(DeadTargetTest, ChannelsInACycleAreLikelyADeadlockWhereNobodyRan) {
  TwoWait(ResourceKind::kChannel);
  sample_.cores.pop_back();
  claims_.pop_back();
  SampleDead();
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].confidence, Confidence::kLikely);
}

TEST_F(DeadTargetTest, AProgramThatEndedByItselfHasOnlyDeadlocksOfLocks) {
  for (const ResourceKind kind : {ResourceKind::kChannel, ResourceKind::kExclusive}) {
    found_.clear();
    watcher_ = Watcher(options_);
    TwoWait(kind);
    sample_.cores.pop_back();
    claims_.pop_back();
    sample_.ended_by_itself = true;
    SampleDead();
    ASSERT_EQ(found_.size(), 1u);
    EXPECT_EQ(found_[0].confidence,
              kind == ResourceKind::kChannel ? Confidence::kPossible : Confidence::kCertain);
  }
}

TEST_F(DeadTargetTest, ChannelsInACycleAreADeadlockForCertainWhereTheyWaitedForLong) {
  options_.shared_clock = true;
  options_.clock_hz = 1'000'000'000;
  watcher_ = Watcher(options_);
  TwoWait(ResourceKind::kChannel);
  now_ += 2 * kStall;
  sample_.target_time = static_cast<uint64_t>(now_);
  SampleDead();
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].confidence, Confidence::kCertain);
}

TEST_F(DeadTargetTest, WhatWasWatchedBeforeItDiedIsKnown) {
  TwoWait(ResourceKind::kChannel);
  Run(2 * kStall, [&] { Beat(2); });
  EXPECT_EQ(Bad().size(), 1u);
  SampleDead();
  EXPECT_EQ(watcher_.standing()[0].confidence, Confidence::kCertain);
  now_ += 100 * kStall;
  SampleDead();
  EXPECT_EQ(found_.size(), 1u) << "nothing grows older once the target is dead";
}

TEST_F(DeadTargetTest, NothingGrowsOlder) {
  TwoWait(ResourceKind::kChannel);
  SampleDead();
  now_ += 100 * kStall;
  SampleDead();
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(watcher_.standing()[0].confidence, Confidence::kPossible);
}

// It ran when it died, and had long not delivered: how long tells.
TEST_F(DeadTargetTest, AProviderThatRanIsBlamedByTheAgeOfTheWait) {
  for (const auto& [stalls, confidence] :
       {std::pair{2, Confidence::kPossible}, std::pair{20, Confidence::kLikely}}) {
    options_.shared_clock = true;
    options_.clock_hz = 1'000'000'000;
    watcher_ = Watcher(options_);
    found_.clear();
    Cores(2);
    claims_[0].provides = {10};
    Wait(1, 10, ResourceKind::kChannel);
    now_ += stalls * kStall;
    sample_.target_time = static_cast<uint64_t>(now_);
    SampleDead();
    ASSERT_EQ(found_.size(), 1u);
    EXPECT_EQ(found_[0].kind, FindingKind::kStarved);
    EXPECT_EQ(found_[0].confidence, confidence);
  }
}

TEST_F(DeadTargetTest, WhoWasSilentWhenItDiedStaysSo) {
  Cores(1);
  Run(5 * kStall, [&] { Beat(0); });
  Run(3 * kStall);
  ASSERT_EQ(Bad().size(), 1u);
  SampleDead();
  ASSERT_EQ(watcher_.standing().size(), 1u);
  EXPECT_EQ(watcher_.standing()[0].kind, FindingKind::kSilent);
}

TEST_F(DeadTargetTest, WhoWasKilledAtWorkIsNoHang) {
  Cores(2);
  claims_[0].provides = {10};
  Wait(1, 10, ResourceKind::kChannel);
  SampleDead();
  EXPECT_TRUE(found_.empty());
}

}  // namespace
}  // namespace hangscope
