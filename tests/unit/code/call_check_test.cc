// Callers that a stack was unwound to count as far as there are calls.
#include "code/call_check.h"

#include <gtest/gtest.h>

#include "fakes/fake_code.h"

namespace hangscope {
namespace {

constexpr uint64_t kWait = 0x1010;
constexpr uint32_t kAuipcRaBack = 0xfffff097;  // auipc ra, -0x1000
constexpr uint32_t kCompressedJalrA5 = 0x9782;
constexpr uint32_t kNop = 0x00000013;

constexpr uint32_t Jal(uint32_t rd, int32_t distance) {
  const auto d = static_cast<uint32_t>(distance);
  return (d >> 20 & 1) << 31 | (d >> 1 & 0x3ff) << 21 | (d >> 11 & 1) << 20 |
         (d >> 12 & 0xff) << 12 | rd << 7 | 0x6f;
}
constexpr uint32_t JalrRa(int32_t distance) {
  return static_cast<uint32_t>(distance) << 20 | 1u << 15 | 1u << 7 | 0x67;
}
// As Unwind gives a call: by its last byte.
constexpr uint64_t CallAt(uint64_t pc, uint64_t length = 4) { return pc + length - 1; }

class CallCheckTest : public ::testing::Test {
 protected:
  CallCheckTest() {
    code_.Add(0x1000, {kNop}, "wait");
    code_.Add(0x2000, {kNop}, "caller");
    code_.Add(0x3000, {kNop}, "main");
  }

  FakeCode code_;
};

TEST_F(CallCheckTest, FollowsCallsOfTheNextFunction) {
  code_.Add(0x2020, {Jal(1, 0x1000 - 0x2020)});
  code_.Add(0x3030, {kAuipcRaBack, JalrRa(-0x30)});
  EXPECT_EQ(CountCalled(code_, {kWait, CallAt(0x2020), CallAt(0x3034)}), 3u);
  code_.Add(0x3030, {kAuipcRaBack, JalrRa(-0x20)});  // into the midst of it
  EXPECT_EQ(CountCalled(code_, {kWait, CallAt(0x2020), CallAt(0x3034)}), 2u);
}

TEST_F(CallCheckTest, ACallOfAnotherFunctionWasMadeSince) {
  code_.Add(0x4000, {kNop}, "other");
  code_.Add(0x2020, {Jal(1, 0x4000 - 0x2020)});
  EXPECT_EQ(CountCalled(code_, {kWait, CallAt(0x2020)}), 1u);
}

TEST_F(CallCheckTest, TheFunctionThatIsCalledMayJumpToIt) {
  code_.Add(0x2020, {Jal(1, 0x4000 - 0x2020)});
  code_.Add(0x4000, {kNop, Jal(0, 0x1000 - 0x4004)}, "wrapper");
  EXPECT_EQ(CountCalled(code_, {kWait, CallAt(0x2020)}), 2u);
  // A call would have left the wrapper on the stack.
  code_.Add(0x4000, {kNop, Jal(1, 0x1000 - 0x4004)}, "wrapper");
  EXPECT_EQ(CountCalled(code_, {kWait, CallAt(0x2020)}), 1u);
}

TEST_F(CallCheckTest, WhomACallThroughARegisterReachesIsNotKnown) {
  code_.Add(0x2020, {kCompressedJalrA5});
  EXPECT_EQ(CountCalled(code_, {kWait, CallAt(0x2020, 2)}), 2u);
}

TEST_F(CallCheckTest, WhereNothingIsCalledNobodyCalled) {
  code_.Add(0x2020, {kNop});
  EXPECT_EQ(CountCalled(code_, {kWait, CallAt(0x2020)}), 1u);
  EXPECT_EQ(CountCalled(code_, {kWait, 0x5555, 0x1111}), 1u);
  EXPECT_EQ(CountCalled(code_, {}), 0u);
}

}  // namespace
}  // namespace hangscope
