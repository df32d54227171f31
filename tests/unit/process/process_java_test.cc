// Threads of a runtime that has some for itself, pools that stand by, and waits that it wakes now
// and then: as a machine of Java does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/process/process_story.h"

namespace hangscope {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kOfMachine = SignalBit(SIGQUIT);

// A thread that waits for a latch, beside a collector that naps.
World Latch() {
  World world;
  world.Signals(10, 11, "done");
  ThreadFacts& collector = world.Thread(10, 12, WaitKind::kCondition);
  collector.wait.has_timeout = true;
  collector.of_runtime = true;
  world.Of(10).caught_signals = world.Of(10).runtime_signals = kOfMachine;
  return world;
}

TEST(ProcessJava, ThreadsOfTheMachineEndNoWait) {
  const ProcessFinding finding = Only(Latch().Judge());
  EXPECT_EQ(finding.kind, FindingKind::kLostWakeup);
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.threads, ElementsAre(11));
}

TEST(ProcessJava, AHookOfTheProgramMay) {
  World world = Latch();
  world.Of(10).caught_signals |= kTerm;
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.confidence, Confidence::kPossible);
  EXPECT_THAT(finding.doubts, Contains(HasSubstr("handles signals")));
}

TEST(ProcessJava, APoolThatStandsByIsNoHang) {
  World world = Latch();
  world.Of(10).threads[0].stands_by = true;
  EXPECT_TRUE(IsSilent(world.Judge()));
}

TEST(ProcessJava, WhoIsWokenToLookAgainWaitsOn) {
  World world = Abba();
  ThreadFacts& rechecks = world.Of(10).threads[1];
  rechecks.wait.rechecks = true;
  rechecks.voluntary_switches = 9;
  const auto before = [&](SystemSample* look) {
    ThreadFacts& thread = look->processes[0].threads[1];
    thread.wait.rechecks = false;
    thread.wait.has_timeout = true;
    thread.voluntary_switches = 8;
    thread.cpu_time = 0;
  };
  const ProcessFinding finding = Only(world.Judge(before));
  EXPECT_EQ(finding.kind, FindingKind::kDeadlock);
  EXPECT_EQ(finding.confidence, Confidence::kCertain);
  rechecks.cpu_time = 5 * kMillisecond;  // it did more than that
  EXPECT_TRUE(IsSilent(world.Judge(before)));
}

TEST(ProcessJava, WhatAnotherThreadMayInterruptIsNotCertain) {
  World world = Abba();
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kCertain);
  world.Of(10).threads[1].wait.may_be_interrupted = true;
  const ProcessFinding finding = Only(world.Judge());
  EXPECT_EQ(finding.confidence, Confidence::kLikely);
  EXPECT_THAT(finding.doubts, Contains(HasSubstr("may interrupt")));
  world.Thread(10, 13, WaitKind::kAccept, "server");
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kLikely);
  world.Of(10).threads[1].stack.emplace_back().function = "ReentrantLock.lockInterruptibly";
  EXPECT_EQ(Only(world.Judge()).confidence, Confidence::kPossible);
  EXPECT_THAT(Only(world.Judge()).doubts, Contains(HasSubstr("interrupted by 13 server")));
}

}  // namespace
}  // namespace hangscope
