// From places to open functions.
#include "stream/function_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_code.h"
#include "stream/core_track.h"

namespace hangscope {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint32_t kNop = 0x00000013;
constexpr uint32_t kReturn = 0x00008067;
constexpr uint32_t kMret = 0x30200073;
constexpr uint32_t kCallByRegister = 0x000300e7;  // jalr ra, 0(t1)
constexpr uint32_t kJumpByRegister = 0x00030067;  // jalr zero, 0(t1)

class FunctionTrackerTest : public ::testing::Test {
 protected:
  FunctionTrackerTest() {
    code_.Add(0x1000, {kNop, kCallByRegister, kNop, kCallByRegister, kNop, kReturn}, "main");
    code_.Add(0x2000, {kNop, kCallByRegister, kReturn}, "middle");
    code_.Add(0x3000, {kNop, kReturn}, "leaf");
    code_.Add(0x4000, {kNop, kJumpByRegister}, "tail");
    code_.Add(0x5000, {kNop, kMret}, "handler");
  }
  // "main(leaf())": what is open, and what was, as the places are gone through. Each is an
  // instruction.
  std::string Reported(std::initializer_list<uint64_t> places) {
    for (const uint64_t pc : places) {
      Step step;
      step.pc = pc;
      step.starts_block = blocks_;
      tracker_.Take(step);
    }
    return told_;
  }

  FakeCode code_;
  std::string told_;
  bool blocks_ = false;
  FunctionTracker tracker_{
      code_, [this](const TrackedFunction& function, uint64_t) { told_ += function.name + "("; },
      [this] { told_ += ")"; }};
};

TEST_F(FunctionTrackerTest, FollowsCallsAndReturns) {
  EXPECT_EQ(Reported({0x1000, 0x1004, 0x2000, 0x2004, 0x3000, 0x3004, 0x2008, 0x1008, 0x100c,
                      0x3000, 0x3004, 0x1010}),
            "main(middle(leaf())leaf()");
  EXPECT_EQ(tracker_.depth(), 1u);
}

// "main", "leaf<-main": the way to the last of these places.
std::vector<std::string> Way(CodeSource* code, const std::vector<uint64_t>& places, size_t most) {
  std::vector<Step> steps;
  for (const uint64_t pc : places) steps.push_back({.pc = pc});
  ProgramCode program(code);
  std::vector<std::string> way;
  for (const WayStep& step : FindWay(steps, program, most)) {
    way.push_back(step.place.function.empty() ? std::to_string(step.place.pc)
                                              : step.place.function);
    for (const std::string& caller : step.callers) way.back() += "<-" + caller;
  }
  return way;
}

TEST_F(FunctionTrackerTest, AWayHasEachChainOfCallersWhereItWasLast) {
  const std::vector<uint64_t> there = {0x1000, 0x1004, 0x2000, 0x2004, 0x3000,
                                       0x3004, 0x2008, 0x1008, 0x100c, 0x3000};
  EXPECT_THAT(Way(&code_, there, 8),
              ElementsAre("main", "middle<-main", "leaf<-middle<-main", "leaf<-main"));
  EXPECT_THAT(Way(&code_, there, 2), ElementsAre("leaf<-middle<-main", "leaf<-main"));
  // Many times round, and back in main at last.
  std::vector<uint64_t> rounds = {0x1000};
  for (int i = 0; i < 100; ++i)
    rounds.insert(rounds.end(), {0x1004, 0x2000, 0x2004, 0x3000, 0x3004, 0x2008, 0x1008});
  EXPECT_THAT(Way(&code_, rounds, 8),
              ElementsAre("main", "middle<-main", "leaf<-middle<-main", "main"));
  EXPECT_THAT(Way(&code_, {}, 8), IsEmpty());
}

TEST_F(FunctionTrackerTest, AWayWithoutNamesHasPlaces) {
  EXPECT_THAT(Way(nullptr, {0x10, 0x20, 0x10, 0x30}, 8), ElementsAre("32", "16", "48"));
}

TEST_F(FunctionTrackerTest, FollowsBlocksAsWell) {
  blocks_ = true;
  EXPECT_EQ(Reported({0x1000, 0x2000, 0x3000, 0x2008, 0x1008, 0x3000, 0x1010}),
            "main(middle(leaf())leaf()");
}

TEST_F(FunctionTrackerTest, TakesTheCallerThatItReturnsIntoFirst) {
  // The trace begins in the leaf: who called it shows when it returns.
  EXPECT_EQ(Reported({0x3004, 0x2008, 0x1008}), "leaf()middle()main(");
}

TEST_F(FunctionTrackerTest, PutsATailCallInTheCallersPlace) {
  EXPECT_EQ(Reported({0x1000, 0x1004, 0x4000, 0x4004, 0x3000, 0x3004, 0x1008}),
            "main(tail()leaf()");
}

TEST_F(FunctionTrackerTest, OpensAFunctionThatCallsItselfTwice) {
  EXPECT_EQ(Reported({0x2000, 0x2004, 0x2000, 0x2004, 0x3000, 0x3004, 0x2008, 0x2008}),
            "middle(middle(leaf())");
  EXPECT_EQ(tracker_.depth(), 1u);
}

TEST_F(FunctionTrackerTest, OpensAgainWhatIsOpenFurtherOut) {
  EXPECT_EQ(Reported({0x2000, 0x2004, 0x1000, 0x1004, 0x2000}), "middle(main(middle(");
}

TEST_F(FunctionTrackerTest, LooksForTheWayAtABlocksEnd) {
  blocks_ = true;
  EXPECT_EQ(Reported({0x4000, 0x3000}), "tail()leaf(");
}

TEST_F(FunctionTrackerTest, PutsAnInterruptOnTopAndTakesItAway) {
  EXPECT_EQ(Reported({0x2000, 0x5000, 0x5004, 0x2004, 0x3000}), "middle(handler()leaf(");
  EXPECT_EQ(tracker_.depth(), 2u);
}

TEST_F(FunctionTrackerTest, BeginsAnewWhereItIsThrownIntoTheMiddleOfAnother) {
  EXPECT_EQ(Reported({0x2000, 0x2004, 0x3000, 0x1010}), "middle(leaf())main(");
}

TEST_F(FunctionTrackerTest, KnowsNothingOfWhatWasOpenBeforeALoss) {
  Reported({0x2000, 0x2004, 0x3000});
  tracker_.Forget();
  EXPECT_EQ(Reported({0x1008}), "middle(leaf(main(");
  EXPECT_EQ(tracker_.depth(), 1u);
}

TEST_F(FunctionTrackerTest, CountsPlacesWithoutASymbol) {
  EXPECT_EQ(Reported({0x2000, 0x10, 0x14, 0x2004}), "middle(");
  EXPECT_EQ(tracker_.nameless(), 2u);
}

TEST_F(FunctionTrackerTest, IsBoundedInDepth) {
  for (int i = 0; i < 1000; ++i) Reported({0x2000, 0x2004});
  EXPECT_EQ(tracker_.depth(), FunctionTracker::kDeepest);
  Reported({0x3000, 0x3004});
  EXPECT_EQ(tracker_.depth(), FunctionTracker::kDeepest);
  Reported({0x2008});
  EXPECT_LE(tracker_.depth(), FunctionTracker::kDeepest);
}

TEST_F(FunctionTrackerTest, KnowsThePlacesOfTheCalls) {
  (void)Reported({0x1000, 0x1004, 0x2000, 0x2004, 0x3000});
  EXPECT_EQ(tracker_.CallSites(), (std::vector<uint64_t>{0x2004, 0x1004}));
  (void)Reported({0x3004, 0x2008, 0x1008, 0x100c, 0x3000});
  EXPECT_EQ(tracker_.CallSites(), (std::vector<uint64_t>{0x100c}));
}

TEST_F(FunctionTrackerTest, KnowsThePlacesOfTheCallsOfBlocks) {
  blocks_ = true;
  (void)Reported({0x1000, 0x2000, 0x3000});
  EXPECT_EQ(tracker_.CallSites(), (std::vector<uint64_t>{0x2004, 0x1004}));
}

// A handler was called by nobody; who jumps somewhere leaves its own caller behind.
TEST_F(FunctionTrackerTest, TakesNobodyForACallerWhoWasNotSeenToCall) {
  (void)Reported({0x1000, 0x1004, 0x2000, 0x5000});
  EXPECT_TRUE(tracker_.CallSites().empty());
  (void)Reported({0x5004, 0x2004, 0x4000, 0x4004, 0x3000});
  EXPECT_EQ(tracker_.CallSites(), (std::vector<uint64_t>{0x2004, 0x1004}));
}

// The core went from the leaf's entry into a loop there.
TEST_F(FunctionTrackerTest, TellsTheCallersOfALoop) {
  ProgramCode code(&code_);
  CoreTrack core;
  core.finding.motion = CoreFinding::Motion::kSpinning;
  core.finding.loop = {0x3000, 0x3004};
  CoreProof proof;
  for (const uint64_t pc : {0x1000, 0x1004, 0x2000, 0x2004})
    proof.lead_in.push_back({pc, 0, 0, false, false});
  proof.entered_at = 0x3000;
  core.FindCallers(proof, code);
  EXPECT_EQ(core.callers,
            (std::vector<Place>{{0x2004, "middle", "middle.c:5"}, {0x1004, "main", "main.c:5"}}));
  CoreFinding moving;
  moving.motion = CoreFinding::Motion::kMoving;
  moving.seen_places = {0x1000};
  core.Update(moving, kSecond);
  EXPECT_TRUE(core.callers.empty());
}

// A hart that prints little between two others shows a few steps, all of the inner loop.
TEST(CoreTrack, StaysInALoopOfWhichAShortSampleShowsAPart) {
  CoreFinding nested;
  nested.motion = CoreFinding::Motion::kSpinning;
  nested.loop = {0x1000, 0x1004, 0x1004, 0x1004, 0x1004, 0x1004, 0x1004, 0x1004, 0x1004};
  nested.loop_places = nested.seen_places = {0x1000, 0x1004};
  const auto inner = [](std::vector<uint64_t> path) {
    CoreFinding sample;
    sample.motion = CoreFinding::Motion::kComputing;
    sample.loop = {0x1004};
    sample.loop_places = sample.seen_places = {0x1004};
    sample.seen_places.insert(path.begin(), path.end());
    sample.path = std::move(path);
    return sample;
  };
  const std::vector<uint64_t> seven(7, 0x1004);
  std::vector<uint64_t> into_the_next = seven;
  into_the_next.insert(into_the_next.end(), {0x1004, 0x1000, 0x1004, 0x1004});
  for (const auto& path : {seven, into_the_next}) {
    CoreTrack core;
    core.Update(nested, kSecond);
    core.Update(inner(path), 3 * kSecond);
    core.Update(nested, 5 * kSecond);
    EXPECT_EQ(core.loop_since, kSecond);
    EXPECT_EQ(core.LeftBefore(), nullptr);
  }
  std::vector<uint64_t> longer = seven;
  longer.insert(longer.end(), 2, 0x1004);
  for (const auto& path : {longer, std::vector<uint64_t>(), std::vector<uint64_t>(27, 0x1004)}) {
    CoreTrack core;
    core.Update(nested, kSecond);
    core.Update(inner(path), 3 * kSecond);
    EXPECT_EQ(core.loop_since, 3 * kSecond) << path.size();
    core.Update(nested, 5 * kSecond);
    EXPECT_EQ(core.LeftBefore(), nullptr) << "it was nowhere else";
  }
}

CoreFinding Spinning() {
  CoreFinding spin;
  spin.motion = CoreFinding::Motion::kSpinning;
  spin.loop = {0x1004, 0x1000};
  spin.loop_places = spin.seen_places = {0x1000, 0x1004};
  return spin;
}

CoreFinding Working() {
  CoreFinding work;
  work.motion = CoreFinding::Motion::kMoving;
  work.seen_places = {0x2000};
  return work;
}

// It was given no processor: QEMU's harts share one lock to print.
TEST(CoreTrack, ComesBackIntoTheLoopInWhichItFellSilent) {
  const CoreFinding spin = Spinning();
  const CoreFinding work = Working();
  CoreTrack core;
  core.Update(spin, 10 * kSecond);
  core.FallSilent();
  EXPECT_FALSE(core.finding.IsLoop());
  core.Update(spin, 20 * kSecond);
  EXPECT_TRUE(core.finding.IsLoop());
  EXPECT_EQ(core.loop_since, 10 * kSecond);
  EXPECT_EQ(core.LeftBefore(), nullptr);
  core.FallSilent();
  core.Update(work, 30 * kSecond);
  core.Update(spin, 40 * kSecond);
  EXPECT_EQ(core.loop_since, 40 * kSecond) << "it was elsewhere";
}

TEST(CoreTrack, CountsTheWaitsThatItLeft) {
  const CoreFinding spin = Spinning();
  const CoreFinding work = Working();
  CoreTrack core;
  EXPECT_EQ(core.LeftBefore(), nullptr);
  for (const TimeNs at : {10, 20, 40}) {
    core.Update(spin, at * kSecond);
    core.Update(spin, (at + 2) * kSecond);
    core.Update(work, (at + at / 10) * kSecond + 2 * kSecond);
  }
  EXPECT_EQ(core.LeftBefore(), nullptr) << "it is in none";
  core.Update(spin, 60 * kSecond);
  ASSERT_NE(core.LeftBefore(), nullptr);
  EXPECT_EQ(core.LeftBefore()->times, 3u);
  EXPECT_EQ(core.LeftBefore()->longest, 6 * kSecond);
}

}  // namespace
}  // namespace hangscope
