// A target over time: what is a hang, and what only looks like one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/scope/watcher_story.h"

namespace hangscope {
namespace {

TEST_F(WatcherTest, TwoCoresThatHoldWhatTheOtherWantsAreADeadlockForCertain) {
  Cores(3);
  claims_[0].holds = {10};
  claims_[1].holds = {20};
  Wait(0, 20);
  Sample();
  Wait(1, 10);
  Run(2 * kStall, [&] { Beat(2); });
  const auto bad = Bad();
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(bad[0].kind, FindingKind::kDeadlock);
  EXPECT_EQ(bad[0].confidence, Confidence::kCertain);
  EXPECT_EQ(bad[0].subjects, (std::vector<SubjectId>{Core(0), Core(1)}));
  EXPECT_EQ(bad[0].first, Core(0));
}

TEST_F(WatcherTest, AWaitThatOneLookFoundIsNoHang) {
  Cores(2);
  options_.stall = 0;
  watcher_ = Watcher(options_);
  claims_[0].holds = {10};
  claims_[1].holds = {20};
  Wait(0, 20);
  Wait(1, 10);
  Sample();
  EXPECT_TRUE(found_.empty());
  Sample();
  EXPECT_TRUE(found_.empty())
      << "who holds what was asked after this look: the waits may have ended before";
  Sample();
  EXPECT_EQ(Bad().size(), 1u);
}

TEST_F(WatcherTest, AWaitIsLookedIntoOnceItHasLastedForTheStallTime) {
  Cores(2);
  claims_[0].holds = {10};
  claims_[1].holds = {20};
  Wait(0, 20);
  Wait(1, 10);
  Run(kStall);
  EXPECT_TRUE(found_.empty());
  Run(3 * kInterval);
  EXPECT_EQ(Bad().size(), 1u);
}

TEST_F(WatcherTest, AWaitLastsWhereTwoJudgementsSawItAlike) {
  Cores(2);
  claims_[1].provides = {30};
  Wait(0, 30, ResourceKind::kChannel);
  Run(kStall, [&] { Beat(1); });
  EXPECT_TRUE(watcher_.LastingWaits().empty());
  Run(3 * kInterval, [&] { Beat(1); });
  const uint32_t sequence = core(0).wait_sequence;
  EXPECT_EQ(watcher_.LastingWaits(), (std::vector<LastingWait>{{0, sequence, {1}, false}}));
  claims_[0].lost = 1;
  Run(2 * kInterval);
  EXPECT_EQ(watcher_.LastingWaits(), (std::vector<LastingWait>{{0, sequence, {1}, true}}));
  WaitDone(0);
  Wait(0, 30, ResourceKind::kChannel);
  Sample();
  EXPECT_TRUE(watcher_.LastingWaits().empty()) << "it is another one";
}

TEST_F(WatcherTest, ACycleOfFiveIsReportedOnceAndInItsOrder) {
  Cores(6);
  const uint32_t order[] = {3, 0, 4, 1, 2};
  for (size_t i = 0; i < 5; ++i) {
    claims_[order[(i + 1) % 5]].provides = {100 + order[i]};
    Wait(order[i], 100 + order[i], ResourceKind::kChannel);
  }
  Run(5 * kStall, [&] { Beat(5); });
  ASSERT_EQ(Bad().size(), 1u);
  EXPECT_EQ(Bad()[0].subjects,
            (std::vector<SubjectId>{Core(0), Core(4), Core(1), Core(2), Core(3)}));
  EXPECT_TRUE(Bad()[0].victims.empty());
  EXPECT_EQ(watcher_.standing().size(), 1u);
}

TEST_F(WatcherTest, WhoWaitsForADeadlockIsItsVictimAndNoFindingOfItsOwn) {
  Cores(4);
  claims_[0].holds = {10};
  claims_[1].holds = {20};
  claims_[2].provides = {30};
  Wait(0, 20);
  Wait(1, 10);
  Wait(2, 20);
  Wait(3, 30, ResourceKind::kChannel);
  Run(3 * kStall);
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].subjects, (std::vector<SubjectId>{Core(0), Core(1)}));
  EXPECT_EQ(found_[0].victims, (std::vector<SubjectId>{Core(2), Core(3)}));
}

TEST_F(WatcherTest, ACoreThatWaitsForWhatItHoldsIsADeadlockOfOne) {
  Cores(2);
  claims_[0].holds = {10};
  Wait(0, 10, ResourceKind::kExclusive);
  Run(3 * kStall, [&] { Beat(1); });
  ASSERT_EQ(Bad().size(), 1u);
  EXPECT_EQ(Bad()[0].kind, FindingKind::kDeadlock);
  EXPECT_EQ(Bad()[0].subjects, (std::vector<SubjectId>{Core(0)}));
}

TEST_F(WatcherTest, TwoDeadlocksAreTwoFindings) {
  Cores(4);
  for (uint32_t i = 0; i < 4; ++i) {
    claims_[i].holds = {10 + i};
    Wait(i, 10 + (i ^ 1));
  }
  Run(3 * kStall);
  EXPECT_EQ(Bad().size(), 2u);
}

TEST_F(WatcherTest, ClaimsThatRanOverLowerTheConfidence) {
  Cores(3);
  claims_[0].holds = {10};
  claims_[1].holds = {20};
  claims_[2].lost = 1;
  Wait(0, 20);
  Wait(1, 10);
  Run(3 * kStall, [&] { Beat(2); });
  ASSERT_EQ(Bad().size(), 1u);
  EXPECT_EQ(Bad()[0].confidence, Confidence::kLikely);
  EXPECT_EQ(Bad()[0].doubts.size(), 1u);
}

TEST_F(WatcherTest, WhoStoppedFirstIsToldByTheTargetsClock) {
  for (const bool shared : {true, false}) {
    options_.shared_clock = shared;
    watcher_ = Watcher(options_);
    found_.clear();
    sample_ = {};
    claims_.clear();
    Cores(2);
    claims_[0].holds = {10};
    claims_[1].holds = {20};
    Wait(0, 20);
    Wait(1, 10);
    core(0).wait->since = 2000;
    core(1).wait->since = 1000;
    Run(3 * kStall);
    ASSERT_EQ(Bad().size(), 1u);
    if (shared)
      EXPECT_EQ(Bad()[0].first, Core(1));
    else
      EXPECT_FALSE(Bad()[0].first) << "both began between two looks";
  }
}

// Whoever comes late need not wait for what the target knows.
TEST_F(WatcherTest, ByTheTargetsClockAWaitIsAsOldAsItIs) {
  options_.shared_clock = true;
  options_.clock_hz = 1'000'000'000;
  options_.stall = 60 * kSecond;
  watcher_ = Watcher(options_);
  Cores(2);
  claims_[0].holds = {10};
  claims_[1].holds = {20};
  Wait(0, 20);
  Wait(1, 10);
  now_ += 90 * kSecond;
  sample_.target_time = static_cast<uint64_t>(now_);
  Sample();
  sample_.target_time = static_cast<uint64_t>(now_);
  Sample();
  sample_.target_time = static_cast<uint64_t>(now_);
  Sample();
  ASSERT_EQ(Bad().size(), 1u);
  EXPECT_EQ(Bad()[0].since, 100 * kSecond);
  EXPECT_FALSE(Bad()[0].since_at_least);
}

TEST_F(WatcherTest, HandOversBetweenPollsAreNoDeadlock) {
  Cores(2);
  claims_[0].holds = {10};
  claims_[1].holds = {20};
  // The same resources at each look, another sequence: the waits came and went.
  Run(20 * kStall, [&] {
    for (const uint32_t i : {0u, 1u}) {
      WaitDone(i);
      Wait(i, i == 0 ? 20 : 10);
    }
  });
  EXPECT_TRUE(found_.empty());
}

TEST_F(WatcherTest, OneMemberThatStillGetsItsTurnIsNoDeadlock) {
  Cores(2);
  claims_[0].provides = {10};
  claims_[1].provides = {20};
  Wait(0, 20, ResourceKind::kChannel);
  Run(20 * kStall, [&] {
    WaitDone(1);
    Wait(1, 10, ResourceKind::kChannel);
    if (now_ % kSecond == 0) {
      WaitDone(0);
      Wait(0, 20, ResourceKind::kChannel);
    }
  });
  EXPECT_TRUE(found_.empty());
}

TEST_F(WatcherTest, ALockThatComesBetweenTheLookAndItsClaimsIsNoDeadlock) {
  Cores(2);
  Wait(0, 10, ResourceKind::kExclusive);
  Run(2 * kStall);
  found_.clear();
  // The look found it waiting; when the claims are read it has the lock.
  claims_[0].holds = {10};
  Sample();
  WaitDone(0);
  Run(kStall, [&] { Beat(0), Beat(1); });
  EXPECT_TRUE(Bad().empty());
}

TEST_F(WatcherTest, AFaultAndAllWhoWaitForItAreOneFinding) {
  Cores(6);
  claims_[2].provides = {20};
  claims_[3].provides = {30};
  Run(2 * kStall, [&] {
    for (uint32_t i = 0; i < 6; ++i) Beat(i);
  });
  core(2).fault = FaultType::kAssert;
  Wait(0, 20, ResourceKind::kChannel);
  Wait(1, 20, ResourceKind::kChannel);
  Wait(3, 20, ResourceKind::kChannel);
  Wait(4, 30, ResourceKind::kChannel);
  Run(3 * kStall, [&] { Beat(5); });
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kFault);
  EXPECT_EQ(found_[0].confidence, Confidence::kCertain);
  EXPECT_EQ(found_[0].fault.type, FaultType::kAssert);
  EXPECT_EQ(found_[0].subjects, (std::vector<SubjectId>{Core(2)}));
  ASSERT_EQ(watcher_.standing().size(), 1u);
  EXPECT_EQ(watcher_.standing()[0].victims,
            (std::vector<SubjectId>{Core(0), Core(1), Core(3), Core(4)}));
  EXPECT_EQ(watcher_.subjects()[2].activity, Activity::kHalted);
}

TEST_F(WatcherTest, AllFaultsAreReported) {
  Cores(3);
  core(0).fault = FaultType::kBus;
  Sample();
  core(2).fault = FaultType::kHardware;
  Run(kStall, [&] { Beat(1); });
  ASSERT_EQ(Bad().size(), 2u);
  EXPECT_EQ(Bad()[0].fault.type, FaultType::kBus);
  EXPECT_EQ(Bad()[1].fault.type, FaultType::kHardware);
}

TEST_F(WatcherTest, OfSeveralFaultsOfANodeEachSaysWhichCameFirst) {
  Cores(4);
  core(3).node = 1;
  core(3).fault = FaultType::kBus;
  core(2).fault = FaultType::kAssert;
  Sample();
  ASSERT_EQ(Bad().size(), 2u);
  for (const ScopeFinding& alone : Bad()) EXPECT_THAT(alone.evidence, testing::IsEmpty());
  found_.clear();
  core(0).fault = FaultType::kBus;
  first_fault_ = 2;
  Run(kStall, [&] { Beat(1); });
  ASSERT_EQ(Bad().size(), 1u);
  EXPECT_THAT(Bad()[0].evidence,
              testing::ElementsAre("the first of its node's 2 faults was that of core 2"));
  found_.clear();
  core(1).fault = FaultType::kBus;
  first_fault_ = 1;
  Sample();
  EXPECT_THAT(Bad()[0].evidence, testing::ElementsAre("the first of its node's 3 faults"));
  Cores(5);
  core(4).fault = FaultType::kGuard;
  first_fault_.reset();
  found_.clear();
  Sample();
  ASSERT_EQ(Bad().size(), 1u);
  EXPECT_THAT(Bad()[0].evidence,
              testing::ElementsAre("which of its node's 4 faults came first is not known"));
}

TEST_F(WatcherTest, ACoreThatGoesOnAfterItsFaultIsRunning) {
  Cores(1);
  core(0).fault = FaultType::kPending;
  Run(3 * kStall, [&] { Beat(0); });
  EXPECT_EQ(Bad().size(), 1u);
  EXPECT_EQ(watcher_.subjects()[0].activity, Activity::kRunning);
}

TEST_F(WatcherTest, ACoreWhoseHeartbeatStandsStillIsSilent) {
  Cores(2);
  claims_[0].provides = {10};
  Run(5 * kStall, [&] { Beat(0), Beat(1); });
  EXPECT_TRUE(found_.empty());
  Wait(1, 10, ResourceKind::kChannel);
  Run(3 * kStall);
  const auto bad = Bad();
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(bad[0].kind, FindingKind::kSilent);
  EXPECT_EQ(bad[0].confidence, Confidence::kLikely);
  EXPECT_EQ(bad[0].subjects, (std::vector<SubjectId>{Core(0)}));
  EXPECT_EQ(watcher_.standing()[0].victims, (std::vector<SubjectId>{Core(1)}));
}

TEST_F(WatcherTest, ASlowStageIsNoHang) {
  Cores(2);
  claims_[0].provides = {10};
  // Three stalls a round: longer than a stall, and always has been.
  Run(60 * kStall, [&] {
    if (now_ % (3 * kStall) != 0) return;
    Beat(0);
    WaitDone(1);
    Beat(1);
    Wait(1, 10, ResourceKind::kChannel);
  });
  EXPECT_TRUE(Bad().empty());
}

TEST_F(WatcherTest, ACoreThatNeverHadAHeartbeatMayCompute) {
  Cores(1);
  core(0).heartbeat = 0;
  core(0).waypoint = 'R';
  Run(100 * kStall);
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kSilent);
  EXPECT_EQ(found_[0].confidence, Confidence::kPossible);
  EXPECT_EQ(found_[0].doubts.size(), 1u);
}

TEST_F(WatcherTest, ACoreThatRecordsEventsIsNotSilent) {
  Cores(1);
  Run(5 * kStall, [&] { Beat(0); });
  Run(20 * kStall, [&] { ++emitted_[0]; });
  EXPECT_TRUE(found_.empty());
  Run(4 * kStall);
  EXPECT_EQ(Bad().size(), 1u);
}

TEST_F(WatcherTest, WhatWasPossibleAndBecomesLikelyIsToldAgain) {
  Cores(1);
  Run(20 * kStall);
  ASSERT_EQ(found_.size(), 2u);
  EXPECT_EQ(found_[0].confidence, Confidence::kPossible);
  EXPECT_EQ(found_[1].confidence, Confidence::kLikely);
}

TEST_F(WatcherTest, AWaitForAProviderThatEndedIsStarved) {
  Cores(3);
  claims_[0].provides = {10};
  claims_[1].provides = {20};
  core(0).launch = LaunchState::kEnded;
  Wait(1, 10, ResourceKind::kChannel);
  Wait(2, 20, ResourceKind::kChannel);
  Run(3 * kStall);
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kStarved);
  EXPECT_EQ(found_[0].confidence, Confidence::kCertain);
  EXPECT_EQ(found_[0].subjects, (std::vector<SubjectId>{Core(1)}));
  EXPECT_EQ(found_[0].partners, (std::vector<SubjectId>{Core(0)}));
  EXPECT_EQ(found_[0].victims, (std::vector<SubjectId>{Core(2)}));
  EXPECT_EQ(found_[0].resource, 10u);
}

TEST_F(WatcherTest, OneProviderOfTwoThatIsAliveIsEnough) {
  Cores(3);
  claims_[0].provides = {10};
  claims_[1].provides = {10};
  core(0).launch = LaunchState::kEnded;
  Wait(2, 10, ResourceKind::kChannel);
  Run(8 * kStall, [&] { Beat(1); });
  EXPECT_TRUE(found_.empty());
}

TEST_F(WatcherTest, AProviderThatHasNothingToDoIsLikelyToStarveWhoWaits) {
  Cores(2);
  claims_[0].provides = {10};
  core(0).launch = LaunchState::kIdle;
  Wait(1, 10, ResourceKind::kChannel);
  Run(3 * kStall);
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].confidence, Confidence::kLikely);
}

TEST_F(WatcherTest, AWaitForNobodyInParticularIsOnlyPossiblyAHang) {
  Cores(1);
  Wait(0, 10, ResourceKind::kChannel);
  Run(100 * kStall);
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kStarved);
  EXPECT_EQ(found_[0].confidence, Confidence::kPossible);
  EXPECT_TRUE(found_[0].partners.empty());
}

TEST_F(WatcherTest, AHolderThatRunsOnAndOnStarvesWhoWaits) {
  Cores(2);
  claims_[0].holds = {10};
  Wait(1, 10, ResourceKind::kExclusive);
  Run(2 * kStall, [&] { Beat(0); });
  EXPECT_TRUE(found_.empty()) << "it may let go";
  Run(4 * kStall, [&] { Beat(0); });
  ASSERT_EQ(Bad().size(), 1u);
  EXPECT_EQ(Bad()[0].kind, FindingKind::kStarved);
  EXPECT_EQ(Bad()[0].confidence, Confidence::kLikely);
  EXPECT_EQ(Bad()[0].subjects, (std::vector<SubjectId>{Core(1)}));
  EXPECT_EQ(Bad()[0].partners, (std::vector<SubjectId>{Core(0)}));
}

// As philosophers on a machine that has no time for them: woken for a fork that is gone by then.
TEST_F(WatcherTest, AHolderThatWaitsForOneAndTheSameLockAgainAndAgainHasGoneNoRound) {
  Cores(3);
  claims_[0].holds = {10};
  claims_[2].holds = {20};
  Wait(0, 20, ResourceKind::kExclusive);
  Wait(1, 10, ResourceKind::kExclusive);
  const auto wait_anew = [&] {
    WaitDone(0);
    Wait(0, 20, ResourceKind::kExclusive);
    Beat(2);
  };
  Run(40 * kStall, wait_anew);
  EXPECT_TRUE(found_.empty());
  Run(40 * kStall, [&] {
    WaitDone(0);
    Wait(0, static_cast<uint32_t>(20 + now_ / kInterval % 2), ResourceKind::kExclusive);
    Beat(2);
  });
  EXPECT_EQ(Bad().size(), 1u) << "one that comes to other locks does";
}

TEST_F(WatcherTest, AProviderThatGoesRoundWithoutDeliveringStarvesWhoWaits) {
  Cores(2);
  claims_[0].provides = {10};
  const auto deliver = [&] {
    Beat(0);
    WaitDone(1);
    Wait(1, 10, ResourceKind::kChannel);
  };
  Run(10 * kStall, deliver);
  Run(10 * kStall, [&] { Beat(0); });  // the push is missing
  ASSERT_EQ(Bad().size(), 1u);
  EXPECT_EQ(Bad()[0].kind, FindingKind::kStarved);
  EXPECT_EQ(Bad()[0].partners, (std::vector<SubjectId>{Core(0)}));
}

TEST_F(WatcherTest, AProviderThatDeliversSeldomIsNoHang) {
  Cores(2);
  claims_[0].provides = {10};
  Wait(1, 10, ResourceKind::kChannel);
  Run(100 * kStall, [&] {
    Beat(0);
    if (now_ % (8 * kStall) != 0) return;
    WaitDone(1);
    Wait(1, 10, ResourceKind::kChannel);
  });
  EXPECT_TRUE(Bad().empty());
}

TEST_F(WatcherTest, APausedCoreExcusesWhoWaitsForIt) {
  Cores(3);
  claims_[0].provides = {10};
  claims_[1].provides = {20};
  core(0).paused = PausedState::kByHost;
  Wait(1, 10, ResourceKind::kChannel);
  Wait(2, 20, ResourceKind::kChannel);
  Run(100 * kStall);
  EXPECT_TRUE(found_.empty());
  EXPECT_EQ(watcher_.subjects()[0].activity, Activity::kPaused);
}

TEST_F(WatcherTest, WhatComesFromOutsideOrWithTimeIsIdleByDesign) {
  for (const ResourceKind kind : {ResourceKind::kOutside, ResourceKind::kTime}) {
    Cores(2);
    claims_[0].provides = {10};
    Wait(0, 77, kind);
    Wait(1, 10, ResourceKind::kChannel);
    Run(100 * kStall);
    EXPECT_TRUE(found_.empty()) << ResourceKindName(kind);
    EXPECT_EQ(watcher_.subjects()[0].activity, Activity::kIdle);
    EXPECT_EQ(watcher_.subjects()[1].activity, Activity::kWaiting);
  }
}

TEST_F(WatcherTest, ABarrierThatOneNeverReachesIsThatOnesFault) {
  Cores(4);
  for (uint32_t i = 0; i < 4; ++i) claims_[i].provides = {10};
  Run(5 * kStall, [&] {
    for (uint32_t i = 0; i < 4; ++i) Beat(i);
  });
  for (uint32_t i = 0; i < 3; ++i) Wait(i, 10, ResourceKind::kChannel);
  Run(3 * kStall);
  ASSERT_EQ(Bad().size(), 1u);
  EXPECT_EQ(Bad()[0].kind, FindingKind::kSilent);
  EXPECT_EQ(Bad()[0].subjects, (std::vector<SubjectId>{Core(3)}));
}

TEST_F(WatcherTest, ABarrierThatOneIsLateForIsNoHang) {
  Cores(4);
  for (uint32_t i = 0; i < 4; ++i) claims_[i].provides = {10};
  for (uint32_t i = 0; i < 3; ++i) Wait(i, 10, ResourceKind::kChannel);
  Run(8 * kStall, [&] { Beat(3); });
  EXPECT_TRUE(found_.empty());
}

TEST_F(WatcherTest, ACorruptMailboxIsFoundOnceAndTheRestGoesOn) {
  Cores(3);
  claims_[2].provides = {10};
  claims_[0].provides = {20};
  Wait(1, 10, ResourceKind::kChannel);
  core(2).corrupt = true;
  uint32_t value = 0;
  Run(10 * kStall, [&] {
    Beat(0);
    sample_.corruptions = {{Corruption::Part::kCore, 2, "four printable characters are possible",
                            "waypoint", std::to_string(++value)}};
  });
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kCorrupt);
  EXPECT_EQ(found_[0].subjects, (std::vector<SubjectId>{Core(2)}));
  EXPECT_EQ(watcher_.subjects()[2].activity, Activity::kCorrupt);
  EXPECT_EQ(watcher_.subjects()[0].activity, Activity::kRunning);
}

TEST_F(WatcherTest, AStackThatIsNearlyUsedUpIsAWarning) {
  Cores(2);
  core(0).stack_free = 63;
  core(1).stack_free = 64;
  Run(kStall, [&] { Beat(0), Beat(1); });
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].kind, FindingKind::kStackLow);
  EXPECT_EQ(found_[0].subjects, (std::vector<SubjectId>{Core(0)}));
  EXPECT_FALSE(found_[0].IsBad());
}

TEST_F(WatcherTest, WhatEndedAndCameBackIsANewFinding) {
  Cores(2);
  claims_[0].holds = {10};
  claims_[1].holds = {20};
  for (int round = 0; round < 2; ++round) {
    Wait(0, 20);
    Wait(1, 10);
    Run(2 * kStall);
    EXPECT_EQ(watcher_.standing().size(), 1u);
    WaitDone(0);
    WaitDone(1);
    Run(kStall / 2, [&] { Beat(0), Beat(1); });
    EXPECT_TRUE(watcher_.standing().empty());
  }
  EXPECT_EQ(Bad().size(), 2u);
}

TEST_F(WatcherTest, AHangThatStandsCostsLittle) {
  Cores(2);
  claims_[0].holds = {10};
  claims_[1].holds = {20};
  Wait(0, 20);
  Wait(1, 10);
  Run(2 * kStall);
  ASSERT_EQ(watcher_.standing().size(), 1u);
  claims_read_ = 0;
  for (int look = 0; look < 1000; ++look) {
    watcher_.See(sample_, now_, *this);
    now_ += kStall / 1000;
  }
  EXPECT_GE(claims_read_, 40);
  EXPECT_LE(claims_read_, 60);
  EXPECT_EQ(watcher_.standing().size(), 1u);
}

TEST_F(WatcherTest, ANewFaultIsFoundWhileAHangStands) {
  Cores(3);
  claims_[0].holds = {10};
  claims_[1].holds = {20};
  Wait(0, 20);
  Wait(1, 10);
  Run(2 * kStall, [&] { Beat(2); });
  core(2).fault = FaultType::kAssert;
  Run(kStall / 5);
  EXPECT_EQ(Bad().size(), 2u);
}

// A thread ends, and its mailbox is given to another one: nothing of the old one's counts any more.
TEST_F(WatcherTest, AThreadThatGotTheMailboxOfAnotherBeginsAnew) {
  Cores(2);
  claims_[0].holds = {10};
  Run(2 * kStall, [&] { Beat(0), Beat(1); });
  Wait(1, 10, ResourceKind::kExclusive);
  Run(2 * kStall, [&] {
    if (now_ % (kStall / 2) == 0) Beat(0);
  });
  core(0).heartbeat = 0;  // and not four thousand million rounds further
  Run(3 * kStall / 2, [&] { core(0).waypoint ^= 1; });
  EXPECT_TRUE(Bad().empty());
}

}  // namespace
}  // namespace hangscope
