// From places to open functions.
#include "stream/function_tracker.h"

#include <gtest/gtest.h>

#include "fakes/fake_code.h"

namespace hangscope {
namespace {

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

}  // namespace
}  // namespace hangscope
