// Finding loops, and telling spins from computations.
#include <gtest/gtest.h>

#include "fakes/fake_code.h"
#include "stream/core_analysis.h"
#include "stream/loop_body.h"
#include "stream/loop_finder.h"

namespace hangscope {
namespace {

std::vector<uint64_t> Repeat(std::vector<uint64_t> before, const std::vector<uint64_t>& round,
                             int times) {
  for (int i = 0; i < times; ++i) before.insert(before.end(), round.begin(), round.end());
  return before;
}

TEST(FindPeriod, OneSevenSixtyFour) {
  for (const size_t length : {1u, 7u, 64u}) {
    std::vector<uint64_t> round;
    for (uint64_t i = 0; i < length; ++i) round.push_back(100 + i);
    const auto period = FindPeriod(Repeat({1, 2, 3, 4, 5}, round, 10));
    ASSERT_TRUE(period.has_value());
    EXPECT_EQ(period->length, length);
    EXPECT_EQ(period->covered, 10 * length);
    EXPECT_EQ(period->rounds(), 10u);
  }
}

TEST(FindPeriod, TheOuterLoopExplainsMoreThanTheInner) {
  const auto period = FindPeriod(Repeat({9, 9}, {1, 2, 2, 2, 2, 2, 2}, 5));
  ASSERT_TRUE(period.has_value());
  EXPECT_EQ(period->length, 7u);
}

TEST(FindPeriod, RoundCutAtTheEnd) {
  const auto period = FindPeriod(Repeat(Repeat({}, {1, 2, 3}, 5), {1, 2}, 1));
  ASSERT_TRUE(period.has_value());
  EXPECT_EQ(period->length, 3u);
  EXPECT_EQ(period->covered, 17u);
}

TEST(FindPeriod, TwoRoundsAreNoLoop) {
  EXPECT_FALSE(FindPeriod(Repeat({}, {1, 2, 3}, 2)).has_value());
  EXPECT_FALSE(FindPeriod(std::vector<uint64_t>{}).has_value());
  EXPECT_FALSE(FindPeriod(std::vector<uint64_t>{1}).has_value());
}

// Against the definition, on all short words over two letters.
TEST(FindPeriod, AgreesWithTheDefinition) {
  for (size_t length = 1; length <= 12; ++length) {
    for (uint32_t word = 0; word < 1u << length; ++word) {
      std::vector<uint64_t> tokens;
      for (size_t i = 0; i < length; ++i) tokens.push_back(word >> i & 1);
      size_t best_period = 0;
      size_t best_covered = 0;
      for (size_t p = 1; p < length; ++p) {
        size_t covered = p;
        while (covered < length && tokens[length - 1 - covered] == tokens[length - 1 - covered + p])
          ++covered;
        if (covered / p >= 3 && covered > best_covered) {
          best_covered = covered;
          best_period = p;
        }
      }
      const auto found = FindPeriod(tokens);
      ASSERT_EQ(found.has_value(), best_period != 0);
      if (found) {
        ASSERT_EQ(found->length, best_period);
        ASSERT_EQ(found->covered, best_covered);
      }
    }
  }
}

class LoopBodyTest : public ::testing::Test {
 protected:
  // The loop that runs through `words` once a round.
  LoopBody::Kind Examine(std::initializer_list<uint32_t> words) {
    std::vector<Step> round;
    for (const uint64_t pc : code_.Add(0x1000, words)) round.push_back({pc, 0, 0, false, false});
    body_ = ExamineLoopBody(round, code_);
    return body_.kind;
  }

  FakeCode code_;
  LoopBody body_;
};

constexpr auto kSpins = LoopBody::Kind::kSpins;
constexpr auto kComputes = LoopBody::Kind::kComputes;
constexpr auto kUnknown = LoopBody::Kind::kUnknown;

TEST_F(LoopBodyTest, Polling) {
  EXPECT_EQ(Examine({0x431c, 0xdffd}), kSpins);  // lw a5,0(a4); beqz a5
  EXPECT_FALSE(body_.polls_known);
}
TEST_F(LoopBodyTest, PollingAKnownAddress) {
  EXPECT_EQ(Examine({0x00001717, 0x4b1c, 0xdfed}), kSpins);  // auipc a4,1; lw a5,16(a4); beqz
  EXPECT_TRUE(body_.polls_known);
  EXPECT_EQ(body_.polls, std::vector<uint64_t>{0x2010});
}
TEST_F(LoopBodyTest, CountingWhilePolling) {
  EXPECT_EQ(Examine({0x0505, 0x431c, 0xdff5}), kComputes);
}
TEST_F(LoopBodyTest, StackFrameOfACallIsNoProgress) {
  // addi sp,-16; sw ra,12(sp); lw a5,0(a4); lw ra,12(sp); addi sp,16; beqz
  EXPECT_EQ(Examine({0x1141, 0xc606, 0x431c, 0x40b2, 0x0141, 0xdbfd}), kSpins);
}
TEST_F(LoopBodyTest, CountingInMemory) {
  EXPECT_EQ(Examine({0x431c, 0x0785, 0xc31c, 0xbfed}), kComputes);  // lw; addi 1; sw; j
}
TEST_F(LoopBodyTest, StoringTheSameAgainIsNoProgress) {
  EXPECT_EQ(Examine({0x4785, 0xc31c, 0xbff5}), kSpins);
}
TEST_F(LoopBodyTest, SwapLock) { EXPECT_EQ(Examine({0x08d727af, 0xfff5}), kSpins); }
TEST_F(LoopBodyTest, TestAndSetByOr) { EXPECT_EQ(Examine({0x40d727af, 0xfff5}), kSpins); }
TEST_F(LoopBodyTest, TicketByAdd) { EXPECT_EQ(Examine({0x00d727af, 0xfff5}), kComputes); }
TEST_F(LoopBodyTest, LoadReserved) { EXPECT_EQ(Examine({0x100727af, 0xfff5}), kSpins); }
TEST_F(LoopBodyTest, SleepingInARound) { EXPECT_EQ(Examine({0x10500073, 0xbff5}), kSpins); }
TEST_F(LoopBodyTest, Crc) { EXPECT_EQ(Examine({0x8fb5, 0x177d, 0xff75}), kComputes); }
TEST_F(LoopBodyTest, ReadingTheCycleCounterEndsByItself) {
  EXPECT_EQ(Examine({0xc00027f3, 0xfee7eee3}), kComputes);
  EXPECT_TRUE(body_.reads_time);
}
TEST_F(LoopBodyTest, ReadingTheClintEndsByItself) {
  EXPECT_EQ(Examine({0x0200c737, 0xff872783, 0xfed7ece3}), kComputes);
  EXPECT_TRUE(body_.reads_time);
}
TEST_F(LoopBodyTest, PollingACsr) { EXPECT_EQ(Examine({0x344027f3, 0xdff5}), kSpins); }
TEST_F(LoopBodyTest, SettingTheSameBitAgain) {
  EXPECT_EQ(Examine({0x431c, 0x00486813, 0xdfed}), kSpins);
  EXPECT_EQ(Examine({0x431c, 0x00f86833, 0xdfed}), kSpins);
}
TEST_F(LoopBodyTest, AccumulatingInAFloat) { EXPECT_EQ(Examine({0x50c5f543, 0xbff5}), kComputes); }
// Numbers wrap around as they do in a register; a sanitizer watches.
TEST_F(LoopBodyTest, ArithmeticAtTheEdgeOfTheNumbers) {
  constexpr uint64_t kBegin = 0x7ffffffffffffff8;
  code_.register_bits = 64;
  // auipc a4,0x7ffff; jal t0,.+8; nop; li a5,-1; slli a5,a5,63; sub a0,a2,a5; j
  code_.Add(kBegin,
            {0x7ffff717, 0x008002ef, 0x00000013, 0xfff00793, 0x03f79793, 0x40f60533, 0xfe5ff06f});
  const std::vector<Step> round = {{kBegin, 0, 0, false, true}, {kBegin + 12, 0, 0, false, true}};
  EXPECT_EQ(ExamineLoopBody(round, code_).kind, kSpins);
}
TEST_F(LoopBodyTest, UnknownInstruction) { EXPECT_EQ(Examine({0x0000002b, 0xbff5}), kUnknown); }
TEST_F(LoopBodyTest, NestedDelayIsPartOfTheRound) {
  // li a3,3; 1: addi a3,-1; bnez 1b; lw a5,0(a4); beqz
  const auto pcs = code_.Add(0x1000, {0x468d, 0x16fd, 0xfefd, 0x431c, 0xdfe5});
  std::vector<Step> round;
  for (const size_t i : {0, 1, 2, 1, 2, 1, 2, 3, 4}) round.push_back({pcs[i], 0, 0, false, false});
  EXPECT_EQ(ExamineLoopBody(round, code_).kind, kSpins);
}
TEST_F(LoopBodyTest, BlocksRunToTheirEnd) {
  code_.Add(0x1000, {0x431c, 0xdffd});
  const std::vector<Step> round = {{0x1000, 0, 0, false, true}};
  EXPECT_EQ(ExamineLoopBody(round, code_).kind, kSpins);
}

TEST_F(LoopBodyTest, WhatLedInTellsWhatIsPolled) {
  const auto before = code_.Add(0x1000, {0x00001717});    // auipc a4,1
  const auto loop = code_.Add(0x1004, {0x4b1c, 0xdffd});  // lw a5,16(a4); beqz
  const std::vector<Step> lead_in = {{before[0], 0, 0, false, false}};
  const std::vector<Step> round = {{loop[0], 0, 0, false, false}, {loop[1], 0, 0, false, false}};
  EXPECT_FALSE(ExamineLoopBody(round, code_).polls_known);
  const LoopBody body = ExamineLoopBody(round, code_, lead_in);
  EXPECT_EQ(body.kind, kSpins);
  EXPECT_TRUE(body.polls_known);
  EXPECT_EQ(body.polls, std::vector<uint64_t>{0x2010});
}

TEST_F(LoopBodyTest, WhatLedInTellsThatAClockIsPolled) {
  const auto before = code_.Add(0x1000, {0x0200c737});            // lui a4,0x200c
  const auto loop = code_.Add(0x1004, {0xff872783, 0xfed7eee3});  // lw a5,-8(a4); bltu a5,a3
  const std::vector<Step> lead_in = {{before[0], 0, 0, false, false}};
  const std::vector<Step> round = {{loop[0], 0, 0, false, false}, {loop[1], 0, 0, false, false}};
  EXPECT_EQ(ExamineLoopBody(round, code_).kind, kSpins);
  const LoopBody body = ExamineLoopBody(round, code_, lead_in);
  EXPECT_EQ(body.kind, kComputes);
  EXPECT_TRUE(body.reads_time);
}

TEST_F(LoopBodyTest, StoresOfAHandlerAreFound) {
  // auipc a4,1; lw a5,16(a4); addi a5,1; sw a5,16(a4); mret
  code_.Add(0x1000, {0x00001717, 0x4b1c, 0x0785, 0xcb1c, 0x30200073});
  const std::vector<Step> places = {{0x1000, 0, 0, false, true}};
  EXPECT_EQ(StoredAddresses(places, code_), std::vector<uint64_t>{0x2010});
}

class CoreAnalysisTest : public ::testing::Test {
 protected:
  using Motion = CoreFinding::Motion;

  CoreAnalysisTest() : program_(&code_) {}

  void Step1(uint64_t pc, uint64_t values = 0, bool has_values = false) {
    steps_.push_back({pc, steps_.size() * 70, values, has_values, false});
  }
  void Rounds(const std::vector<uint64_t>& pcs, int times) {
    for (int i = 0; i < times; ++i) {
      for (const uint64_t pc : pcs) Step1(pc);
    }
  }
  CoreFinding Analyze() { return AnalyzeCore(steps_, program_); }

  FakeCode code_;
  ProgramCode program_;
  std::vector<Step> steps_;
};

TEST_F(CoreAnalysisTest, NamesTheLoopInOrderFromItsHead) {
  const auto poll = code_.Add(0x1000, {0x431c, 0xdffd}, "wait_loop");
  Step1(0x900);
  Step1(poll[1]);
  Rounds({poll[0], poll[1]}, 20);
  const CoreFinding finding = Analyze();
  EXPECT_EQ(finding.motion, Motion::kSpinning);
  EXPECT_EQ(finding.loop, poll);
  EXPECT_EQ(finding.basis, LoopBasis::kBody);
}

TEST_F(CoreAnalysisTest, HeadIsInTheCallerAlsoWhenTheCalleeLiesLower) {
  // poll at 0x1000: lw a5,0(a4); ret.  wait at 0x2000: nop, jal poll, beqz.
  const auto poll = code_.Add(0x1000, {0x431c, 0x8082}, "poll");
  const auto wait = code_.Add(0x2000, {0x0001, 0xfffff0ef, 0xdfed});
  code_.Add(0x1ff0, {0x0001}, "wait");  // its function begins before the loop
  Rounds({wait[0], wait[1], poll[0], poll[1], wait[2]}, 20);
  const CoreFinding finding = Analyze();
  ASSERT_FALSE(finding.loop.empty());
  EXPECT_EQ(finding.loop.front(), wait[0]);
}

TEST_F(CoreAnalysisTest, InterruptsInsideAreTakenOut) {
  const auto poll = code_.Add(0x1000, {0x431c, 0xdffd}, "wait");
  const auto handler = code_.Add(0x3000, {0x431c, 0x0785, 0xc31c, 0x30200073}, "tick");
  for (int tick = 0; tick < 10; ++tick) {
    Rounds(poll, 3 + tick % 4);
    if (tick % 2 == 0) {
      Rounds(handler, 1);
    } else {  // in the middle of a round
      Step1(poll[0]);
      Rounds(handler, 1);
      Step1(poll[1]);
    }
  }
  Rounds(poll, 2);
  const CoreFinding finding = Analyze();
  EXPECT_EQ(finding.motion, Motion::kSpinning);
  EXPECT_EQ(finding.loop, poll);
  EXPECT_EQ(finding.traps, 10u);
  EXPECT_EQ(finding.trap_places.size(), 4u);
}

TEST_F(CoreAnalysisTest, StretchThatEndsInsideAHandler) {
  const auto poll = code_.Add(0x1000, {0x431c, 0xdffd}, "wait");
  const auto handler = code_.Add(0x3000, {0x431c, 0x0785, 0xc31c, 0x30200073}, "tick");
  Rounds(poll, 20);
  Rounds({handler[0], handler[1]}, 1);
  const CoreFinding finding = Analyze();
  EXPECT_EQ(finding.motion, Motion::kSpinning);
  EXPECT_EQ(finding.loop, poll);
}

TEST_F(CoreAnalysisTest, HandlerThatNeverReturnsIsTheHang) {
  const auto poll = code_.Add(0x1000, {0x431c, 0xdffd}, "wait");
  const auto handler = code_.Add(0x3000, {0x431c, 0xdffd, 0x30200073}, "stuck_handler");
  Rounds(poll, 10);
  Rounds({handler[0], handler[1]}, 500);
  const CoreFinding finding = Analyze();
  EXPECT_EQ(finding.motion, Motion::kSpinning);
  EXPECT_EQ(finding.loop.front(), handler[0]);
}

TEST_F(CoreAnalysisTest, ValuesDecideWhereTheTraceHasThem) {
  for (int i = 0; i < 50; ++i) {
    Step1(0x1000, 1, true);
    Step1(0x1004, 2, true);
  }
  EXPECT_EQ(Analyze().motion, Motion::kSpinning);
  EXPECT_EQ(Analyze().basis, LoopBasis::kValues);
  steps_.clear();
  for (uint64_t i = 0; i < 50; ++i) {
    Step1(0x1000, i, true);
    Step1(0x1004, 2, true);
  }
  EXPECT_EQ(Analyze().motion, Motion::kComputing);
}

TEST_F(CoreAnalysisTest, PlacesAloneAreOnlyRepeating) {
  Rounds({0x5000, 0x5004}, 50);
  EXPECT_EQ(Analyze().motion, Motion::kRepeating);
}

TEST_F(CoreAnalysisTest, NoLoopIsMoving) {
  for (uint64_t i = 0; i < 100; ++i) Step1(0x1000 + 4 * (i * i % 97));
  EXPECT_EQ(Analyze().motion, Motion::kMoving);
}

TEST_F(CoreAnalysisTest, FewStepsSayNothing) {
  Step1(0x1000);
  EXPECT_EQ(Analyze().motion, Motion::kTooShort);
  steps_.clear();
  EXPECT_EQ(Analyze().motion, Motion::kTooShort);
}

// A trace names any places, for weeks.
TEST(ProgramCode, ForgetsPlacesThatItHasNotSeenForLong) {
  ProgramCode program(nullptr);
  const auto learn = [&](uint64_t pc) {
    TracedCode traced;
    traced.bits = 0x13;
    traced.has_bits = true;
    program.Learn({{pc, traced}});
  };
  constexpr uint64_t kPlaces = 200'000;
  for (uint64_t i = 0; i < kPlaces; ++i) {
    learn(0x80000000 + 4 * i);
    if (i % 1000 == 0) learn(0x1000);
  }
  EXPECT_EQ(program.InsnAt(0x80000000), std::nullopt);
  EXPECT_EQ(program.InsnAt(0x80000000 + 4 * (kPlaces - 1)), 0x13u);
  EXPECT_EQ(program.InsnAt(0x1000), 0x13u);
}

}  // namespace
}  // namespace hangscope
