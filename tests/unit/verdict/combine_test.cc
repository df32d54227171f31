#include "verdict/combine.h"

#include <gtest/gtest.h>

#include "verdict/text.h"

namespace hangscope {
namespace {

Verdict Streams(State state, Confidence confidence) {
  Verdict verdict;
  verdict.state = state;
  verdict.confidence = confidence;
  verdict.time = 100 * kSecond;
  verdict.summary = "looping, the only core seen spins";
  return verdict;
}

ScopeFinding Found(FindingKind kind, Confidence confidence, const std::string& summary) {
  ScopeFinding found;
  found.kind = kind;
  found.confidence = confidence;
  found.time = 101 * kSecond;
  found.since = 70 * kSecond;
  found.summary = summary;
  found.lines = {"core 1  waits for cb3"};
  return found;
}

TEST(Combine, AStopSeenTwiceIsOne) {
  const Verdict verdict =
      Combine(Streams(State::kLooping, Confidence::kCertain),
              {{Found(FindingKind::kDeadlock, Confidence::kCertain, "deadlock of two")}, ""});
  EXPECT_EQ(verdict.state, State::kDeadlock);
  EXPECT_EQ(verdict.summary, "deadlock of two");
  EXPECT_EQ(verdict.since, 70 * kSecond);
  EXPECT_TRUE(verdict.IsHang());
  const std::string text = VerdictText(verdict, 0, "");
  EXPECT_NE(text.find("HANG after"), std::string::npos) << text;
  EXPECT_NE(text.find("  core 1  waits for cb3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  the streams: looping, the only core seen spins\n"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("deadlock of two", text.find("deadlock of two") + 1), std::string::npos)
      << text;
}

TEST(Combine, TheScopeSeesWhatTheStreamsDoNot) {
  const Verdict verdict =
      Combine(Streams(State::kProgressing, Confidence::kPossible),
              {{Found(FindingKind::kStarved, Confidence::kLikely, "starved")}, "core 0"});
  EXPECT_EQ(verdict.state, State::kStarved);
  EXPECT_EQ(verdict.confidence, Confidence::kLikely);
  EXPECT_TRUE(verdict.evidence.empty());
}

TEST(Combine, TheWeightiestFindingIsTheHeadline) {
  const Verdict verdict =
      Combine(Streams(State::kProgressing, Confidence::kPossible),
              {{Found(FindingKind::kSilent, Confidence::kLikely, "silent"),
                Found(FindingKind::kCorrupt, Confidence::kCertain, "corrupt"),
                Found(FindingKind::kFault, Confidence::kPossible, "perhaps"),
                Found(FindingKind::kDeadlock, Confidence::kCertain, "deadlock")},
               ""});
  EXPECT_EQ(verdict.summary, "deadlock");
  ASSERT_EQ(verdict.findings.size(), 4u);
  const std::string text = VerdictText(verdict, 0, "");
  for (const char* other :
       {"also: silent (likely)", "also: corrupt (certain)", "also: perhaps (possible)"})
    EXPECT_NE(text.find(other), std::string::npos) << text;
}

TEST(Combine, CoresThatGoOnTakeAHangBack) {
  for (const State state : {State::kLooping, State::kSilent}) {
    const Verdict verdict = Combine(Streams(state, Confidence::kCertain), {{}, "core 2"});
    EXPECT_EQ(verdict.state, state);
    EXPECT_EQ(verdict.confidence, Confidence::kPossible);
    EXPECT_FALSE(verdict.IsHang());
    ASSERT_EQ(verdict.doubts.size(), 1u);
    EXPECT_EQ(verdict.doubts[0], "the scope says that core 2 makes progress");
  }
}

TEST(Combine, AMerelyPossibleFindingChangesNothing) {
  const Verdict verdict =
      Combine(Streams(State::kProgressing, Confidence::kCertain),
              {{Found(FindingKind::kSilent, Confidence::kPossible, "silent")}, ""});
  EXPECT_EQ(verdict.state, State::kProgressing);
  EXPECT_EQ(verdict.summary, "looping, the only core seen spins");
}

TEST(Combine, AnEndStaysAnEnd) {
  for (const State state : {State::kFinished, State::kDead}) {
    const Verdict verdict =
        Combine(Streams(state, Confidence::kCertain),
                {{Found(FindingKind::kFault, Confidence::kCertain, "assert")}, "core 1"});
    EXPECT_EQ(verdict.state, state);
    EXPECT_EQ(verdict.findings.size(), 1u);
  }
}

TEST(Combine, WithoutAScopeNothingChanges) {
  const Verdict verdict = Combine(Streams(State::kLooping, Confidence::kCertain), {});
  EXPECT_EQ(verdict.confidence, Confidence::kCertain);
  EXPECT_TRUE(verdict.IsHang());
}

ProcessFinding Locked(Confidence confidence) {
  ProcessFinding finding;
  finding.kind = FindingKind::kDeadlock;
  finding.confidence = confidence;
  finding.summary = "deadlock, 2 of 3 threads wait for each other";
  finding.lines = {"7 worker  waits for mutex lock"};
  finding.evidence = {"each of these waits is the same in 2 looks"};
  return finding;
}

TEST(Combine, ThreadsSayWhyAProgramIsSilent) {
  Verdict silent = Streams(State::kSilent, Confidence::kLikely);
  silent.summary = "silent, child asleep in futex";
  silent.doubts = {"lines may sit in a buffer"};
  const Verdict verdict = CombineThreads(silent, std::vector{Locked(Confidence::kCertain)});
  EXPECT_EQ(verdict.state, State::kDeadlock);
  EXPECT_EQ(verdict.confidence, Confidence::kCertain);
  EXPECT_TRUE(verdict.IsHang());
  const std::string text = VerdictText(verdict, 0, "");
  EXPECT_EQ(text.find("hangscope: HANG after 1 m 40 s: deadlock, 2 of 3 threads wait for each "
                      "other (certain)\n  7 worker  waits for mutex lock\n"),
            0u)
      << text;
  EXPECT_NE(text.find("  the streams: silent, child asleep in futex\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("buffer"), std::string::npos) << text;
}

TEST(Combine, ADeadlockThatScopeAndThreadsTellOfIsOne) {
  ScopeFinding scopes = Found(FindingKind::kDeadlock, Confidence::kLikely,
                              "deadlock, 2 of 3 cores wait for each other");
  scopes.threads = {8, 7};
  ProcessFinding locked = Locked(Confidence::kCertain);
  locked.threads = {7, 8};
  ProcessFinding zombie;
  zombie.summary = "9 child is a zombie";
  const Verdict verdict = CombineThreads(
      Combine(Streams(State::kSilent, Confidence::kLikely), {{scopes}, ""}), {locked, zombie});
  EXPECT_EQ(verdict.state, State::kDeadlock);
  EXPECT_EQ(verdict.confidence, Confidence::kCertain) << "the surer witness counts";
  const std::string text = VerdictText(verdict, 0, "");
  EXPECT_EQ(
      text.find(
          "hangscope: HANG after 1 m 41 s: deadlock, 2 of 3 cores wait for each other (certain)\n"),
      0u)
      << text;
  EXPECT_NE(
      text.find("  the threads' own waits say the same:\n    7 worker  waits for mutex lock\n"),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find("2 of 3 threads"), std::string::npos) << "told twice: " << text;
  EXPECT_NE(text.find("also: 9 child is a zombie"), std::string::npos) << text;
}

TEST(Combine, OfOtherThreadsItIsAnother) {
  for (const std::vector<int>& threads :
       {std::vector<int>{7, 9}, std::vector<int>{7}, std::vector<int>{}}) {
    ScopeFinding scopes = Found(FindingKind::kDeadlock, Confidence::kLikely, "deadlock of two");
    scopes.threads = threads;
    ProcessFinding locked = Locked(Confidence::kCertain);
    locked.threads = {7, 8};
    const Verdict before = Combine(Streams(State::kSilent, Confidence::kLikely), {{scopes}, ""});
    const Verdict verdict = CombineThreads(before, {locked});
    EXPECT_EQ(verdict.confidence, Confidence::kLikely);
    EXPECT_EQ(verdict.evidence, before.evidence);
  }
}

TEST(Combine, ThreadsChangeNoOtherVerdict) {
  const std::vector sure{Locked(Confidence::kCertain)};
  EXPECT_EQ(CombineThreads(Streams(State::kLooping, Confidence::kCertain), sure).state,
            State::kLooping);
  EXPECT_EQ(CombineThreads(Streams(State::kSilent, Confidence::kPossible), sure).state,
            State::kSilent);
  EXPECT_EQ(CombineThreads(Streams(State::kSilent, Confidence::kLikely),
                           std::vector{Locked(Confidence::kPossible)})
                .state,
            State::kSilent);
  // A simulator's own threads say nothing about the cores that it simulates.
  Verdict simulated = Streams(State::kSilent, Confidence::kLikely);
  simulated.cores.emplace_back();
  EXPECT_EQ(CombineThreads(simulated, sure).state, State::kSilent);
}

}  // namespace
}  // namespace hangscope
