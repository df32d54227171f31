// Cycles of waits of which the scope and the kernel each see a part.
#include "verdict/joined_graph.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "verdict/judge_picture.h"

namespace hangscope {
namespace {

constexpr TimeNs kJoinedNow = 100 * kSecond;
constexpr JudgeRules kJoinedRules{10 * kSecond};

FindingSubject Thread(int thread) {
  FindingSubject who{std::to_string(thread) + " worker"};
  who.process = 7;
  who.thread = thread;
  return who;
}

// Core 0 is thread 10, core 1 thread 11, and so on.
FindingSubject Core(uint32_t core) {
  FindingSubject who{"core " + std::to_string(core)};
  who.core = core;
  who.thread = 10 + static_cast<int>(core);
  return who;
}

Wait WaitOf(const FindingSubject& who, std::vector<FindingSubject> whom) {
  Wait wait{who, std::move(whom), "", who.name + "  waits", 80 * kSecond};
  wait.who.waits_for = "what " + who.name + " lacks";
  return wait;
}

// Core 0 waits in its mailbox for core 1, whose thread waits in the kernel for the other's.
Picture Across() {
  Picture picture;
  picture.now = kJoinedNow;
  picture.scope.attached = picture.threads.attached = true;
  picture.scope.as_of = picture.threads.as_of = kJoinedNow;
  picture.scope.waits = {WaitOf(Core(0), {Core(1)})};
  picture.threads.waits = {WaitOf(Thread(11), {Thread(10)})};
  picture.threads.still_threads = {10, 11};
  return picture;
}

std::vector<Finding> Found(const Picture& picture) {
  return FindJoinedCycles(picture.scope, picture.threads);
}

bool HasText(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

TEST(JoinedGraph, AWaitOfTheScopeThatEndsInTheKernelIsFollowed) {
  const Verdict verdict = JudgePicture(Across(), kJoinedRules);
  EXPECT_EQ(verdict.state, State::kDeadlock);
  EXPECT_EQ(verdict.confidence, Confidence::kCertain);
  EXPECT_EQ(verdict.since, 80 * kSecond);
  ASSERT_EQ(verdict.findings.size(), 1u);
  const Finding& finding = verdict.findings[0];
  EXPECT_EQ(finding.source, Source::kScope);
  EXPECT_EQ(finding.summary, "deadlock, 2 threads wait for each other");
  EXPECT_EQ(finding.lines, (std::vector<std::string>{"core 0  waits", "11 worker  waits"}));
  EXPECT_TRUE(
      HasText(finding.evidence, "the scope: core 0 (10 worker) waits for core 1 (11 worker)"));
  EXPECT_TRUE(
      HasText(finding.evidence, "the kernel: core 1 (11 worker) waits for core 0 (10 worker)"));
  ASSERT_EQ(finding.subjects.size(), 2u);
  EXPECT_EQ(finding.subjects[0].thread, 10);
  EXPECT_EQ(finding.subjects[0].process, 7);
  EXPECT_EQ(finding.subjects[1].name, "core 1");
  EXPECT_EQ(finding.subjects[1].core, 1u);
  EXPECT_EQ(finding.subjects[1].waits_for, "what 11 worker lacks");
}

TEST(JoinedGraph, WhoMovesInTheEyesOfEitherSourceIsNotStuck) {
  Picture moves_in_kernel = Across();
  moves_in_kernel.threads.still_threads = {11};
  EXPECT_TRUE(Found(moves_in_kernel).empty());
  Picture moves_in_scope = Across();
  moves_in_scope.scope.moving_threads = {11};
  EXPECT_TRUE(Found(moves_in_scope).empty());
}

TEST(JoinedGraph, AThreadThatIsNotKnownIsNobody) {
  Picture unknown = Across();
  unknown.scope.waits[0].who.thread = unknown.scope.waits[0].whom[0].thread = 0;
  unknown.threads.still_threads = {0, 10, 11};
  EXPECT_TRUE(Found(unknown).empty());
  Picture twice = Across();
  twice.scope.waits.push_back(WaitOf(Core(2), {Core(1)}));
  twice.scope.waits[1].who.thread = 11;
  EXPECT_TRUE(Found(twice).empty());
}

TEST(JoinedGraph, WhoMightEndAWaitBesideTheKnownLowersIt) {
  Picture picture = Across();
  picture.threads.waits[0].doubt = "any thread of a process may write its end of a pipe";
  const std::vector<Finding> found = Found(picture);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].confidence, Confidence::kLikely);
  EXPECT_EQ(found[0].doubts, std::vector<std::string>{picture.threads.waits[0].doubt});
}

TEST(JoinedGraph, AllWhoCouldEndAWaitMustBeStuck) {
  Picture picture = Across();
  picture.scope.waits[0].whom.push_back(Core(2));
  EXPECT_TRUE(Found(picture).empty());
  picture.threads.still_threads.push_back(12);
  EXPECT_TRUE(Found(picture).empty()) << "it stands still, but what for is not known";
  picture.threads.waits.push_back(WaitOf(Thread(12), {Thread(10)}));
  EXPECT_EQ(Found(picture).size(), 1u);
}

TEST(JoinedGraph, WhatOneSourceTellsIsNotToldTwice) {
  Picture by_scope = Across();
  by_scope.scope.waits.push_back(WaitOf(Core(1), {Core(0)}));
  EXPECT_TRUE(Found(by_scope).empty());
  Picture by_kernel = Across();
  by_kernel.threads.waits.push_back(WaitOf(Thread(10), {Thread(11)}));
  EXPECT_TRUE(Found(by_kernel).empty());
}

// Thread 10 is about to get the lock inside which it then waits.
TEST(JoinedGraph, WhatTheKernelKnowsOfAWaitCountsFirst) {
  Picture picture = Across();
  picture.threads.waits.push_back(WaitOf(Thread(10), {Thread(12)}));
  EXPECT_TRUE(Found(picture).empty());
}

TEST(JoinedGraph, ThreeMayTakePartAndOthersWaitForThem) {
  Picture picture = Across();
  picture.scope.waits = {WaitOf(Core(0), {Core(1)}), WaitOf(Core(2), {Core(0)})};
  picture.threads.waits = {WaitOf(Thread(11), {Thread(12)}), WaitOf(Thread(13), {Thread(10)})};
  picture.threads.still_threads = {10, 11, 12, 13};
  const std::vector<Finding> found = Found(picture);
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].subjects.size(), 3u);
  EXPECT_EQ(found[0].subjects[0].thread, 10);
  EXPECT_EQ(found[0].subjects[1].thread, 11);
  EXPECT_EQ(found[0].subjects[2].thread, 12);
  ASSERT_EQ(found[0].victims.size(), 1u);
  EXPECT_EQ(found[0].victims[0].thread, 13);
}

// A core that says nothing while it waits in the kernel looks silent.
TEST(JoinedGraph, WhatOneSourceSaysOfAPartIsEvidence) {
  Picture picture = Across();
  Finding silent;
  silent.kind = FindingKind::kSilent;
  silent.source = Source::kScope;
  silent.confidence = Confidence::kLikely;
  silent.summary = "silent, core 1 stands still and waits for nothing";
  silent.subjects = {Core(1)};
  picture.scope.findings = {silent};
  const Verdict verdict = JudgePicture(picture, kJoinedRules);
  ASSERT_EQ(verdict.findings.size(), 1u);
  EXPECT_EQ(verdict.findings[0].kind, FindingKind::kDeadlock);
  EXPECT_TRUE(HasText(verdict.findings[0].evidence, "the scope: " + silent.summary));
}

TEST(JoinedGraph, IsPartialWhileOtherThreadsMove) {
  Picture picture = Across();
  picture.threads.moving = {"12 worker"};
  const Verdict verdict = JudgePicture(picture, kJoinedRules);
  EXPECT_EQ(verdict.state, State::kPartial);
  EXPECT_EQ(verdict.goes_on, "12 worker");
}

}  // namespace
}  // namespace hangscope
