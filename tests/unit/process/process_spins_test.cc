// Loops that only others can end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "unit/process/process_story.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = FindingKind;

TEST(ProcessSpins, WhoSpinsComesBeforeEventLoopsThatIdle) {
  World world;
  world.Reads(10, 10, {10});
  world.Spins(10, 11).spin->polled_variable.clear();
  const auto findings = world.Judge().findings;
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].kind, Kind::kSpin);
  EXPECT_EQ(findings[0].confidence, findings[1].confidence);
}

TEST(ProcessSpins, ASpinThatNobodyIsLeftToEndIsForEver) {
  World world;
  world.Spins(10, 10);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kSpin);
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  EXPECT_EQ(finding.summary,
            "spin, its only thread spins for ready, and nobody is left to end that");
  world.Signals(10, 11, "work");
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kCertain);
  EXPECT_THAT(Only(world.Judge()).victims, ElementsAre(11));
}

TEST(ProcessSpins, ASpinThatOthersMayEndIsPossibleOnly) {
  World world;
  world.Spins(10, 10);
  world.Thread(10, 11, WaitKind::kTime);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kSpin);
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
  EXPECT_THAT(finding.doubts, ElementsAre("it may be ended by 11 (waits 41.0 s for time to pass)"));
}

// As clone(2) makes them; of one that was not looked at nobody knows what it does.
TEST(ProcessSpins, WhoHasTheSameMemoryMayEndIt) {
  World world;
  world.Spins(10, 10);
  world.Of(10).shares_memory_with = {20};
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible);
  world.Thread(20, 20, WaitKind::kTime);
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible);
  world.Of(20).threads[0].wait.kind = WaitKind::kChild;
  world.Of(20).threads[0].wait.children = {10};
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kCertain) << "it waits for this one";
}

TEST(ProcessSpins, ASpinIsLessSureWhereTheWordOrTheHandlersAreUnknown) {
  World unnamed;
  unnamed.Spins(10, 10).spin->polled_variable.clear();
  EXPECT_EQ(Only(unnamed.Judge()).confidence, Confidence::kLikely);
  const auto bit = [](int number) { return uint64_t{1} << (number - 1); };
  for (const int number : {SIGALRM, SIGUSR1, SIGRTMIN + 1}) {
    World works;
    works.Process(10).caught_signals = bit(number);
    works.Spins(10, 10);
    EXPECT_EQ(Only(works.Judge()).confidence, Confidence::kPossible) << number;
  }
  World ruby;
  ruby.Process(10).caught_signals = bit(SIGALRM) | bit(SIGHUP) | bit(SIGUSR1) | bit(SIGUSR2);
  ruby.Spins(10, 10);
  EXPECT_EQ(Only(ruby.Judge()).confidence, Confidence::kLikely);
  World node;
  node.Process(10, "node").caught_signals = bit(SIGUSR1);
  node.Spins(10, 10);
  EXPECT_EQ(Only(node.Judge()).confidence, Confidence::kLikely);
  World shared;
  shared.Spins(10, 10).spin->polls_shared = true;
  EXPECT_EQ(Only(shared.Judge()).confidence, Confidence::kPossible);
  World several;
  ThreadFacts& spinning = several.Spins(10, 10);
  spinning.spin->polls = {0x1000, 0x1008, 0x1010};
  spinning.spin->polled_variable.clear();
  EXPECT_THAT(Only(several.Judge()).summary,
              HasSubstr("its only thread spins while 3 words stay the same"));
  World handler;
  handler.Process(10).caught_signals = kTerm;
  handler.Spins(10, 10);
  EXPECT_EQ(Only(handler.Judge()).confidence, Confidence::kLikely);
}

TEST(ProcessSpins, WhatComputesOrReadsTheClockOrAsksTheKernelDoesNotSpin) {
  const std::function<void(ThreadFacts::Spin*)> cases[] = {
      [](auto* spin) { spin->period = 0; },
      [](auto* spin) { spin->writes_memory = true; },
      [](auto* spin) { spin->reads_clock = true; },
      [](auto* spin) { spin->calls_kernel = true; },
  };
  for (const auto& change : cases) {
    World world;
    change(&*world.Spins(10, 10).spin);
    EXPECT_TRUE(IsSilent(world.Judge()));
  }
  World yields;
  ThreadFacts& thread = yields.Spins(10, 10);
  thread.spin->calls_kernel = true, thread.system_call_name = "sched_yield";
  EXPECT_EQ(Only(yields.Judge()).kind, Kind::kSpin);
}

TEST(ProcessSpins, WhoSpinsForAThreadThatWaitsForItIsWhy) {
  World world;
  world.Spins(10, 10);
  world.Signals(10, 11, "work");
  world.Joins(10, 12, 11);
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.kind, Kind::kSpin);
  EXPECT_THAT(finding.threads, ElementsAre(10));
  EXPECT_THAT(finding.victims, ElementsAre(11, 12));
}

}  // namespace
}  // namespace hangscope
