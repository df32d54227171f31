#include "verdict/judge_picture.h"

#include <gtest/gtest.h>

#include "verdict/text.h"

namespace hangscope {
namespace {

constexpr TimeNs kNow = 100 * kSecond;
constexpr JudgeRules kRules{10 * kSecond};

// What the streams say at 100 s; silent ones since 80 s.
Picture Streams(State state, Confidence confidence) {
  Picture picture;
  picture.now = kNow;
  picture.streams.state = state;
  picture.streams.confidence = confidence;
  picture.streams.time = kNow;
  picture.streams.summary = state == State::kSilent ? "silent, child asleep in futex"
                                                    : "looping, the only core seen spins";
  picture.streams.streams = {
      {"stdout", state, "", state == State::kSilent ? 80 * kSecond : kNow, 100}};
  return picture;
}

// The same of a simulator, whose stream is a trace.
Picture Trace(State state, Confidence confidence) {
  Picture picture = Streams(state, confidence);
  picture.streams.streams[0].format = "qemu-exec";
  return picture;
}

// Looked into, and nothing of it stands still but what a test adds.
Picture Silent() {
  Picture picture = Streams(State::kSilent, Confidence::kPossible);
  picture.streams.doubts = {"lines may sit in a buffer"};
  picture.suspected_since = 95 * kSecond;
  picture.threads.attached = true;
  picture.threads.as_of = 99 * kSecond;
  return picture;
}

Finding OfScope(FindingKind kind, Confidence confidence, const std::string& summary) {
  Finding found;
  found.source = Source::kScope;
  found.kind = kind;
  found.confidence = confidence;
  found.since = 70 * kSecond;
  found.summary = summary;
  found.lines = {"core 1  waits for cb3"};
  return found;
}

std::vector<FindingSubject> Threads(const std::vector<int>& threads) {
  std::vector<FindingSubject> subjects;
  for (const int thread : threads) {
    subjects.push_back({std::to_string(thread)});
    subjects.back().thread = thread;
  }
  return subjects;
}

Finding Locked(Confidence confidence) {
  Finding finding;
  finding.kind = FindingKind::kDeadlock;
  finding.confidence = confidence;
  finding.summary = "deadlock, 2 of 3 threads wait for each other";
  finding.lines = {"7 worker  waits for mutex lock"};
  finding.evidence = {"each of these waits is the same in 2 looks"};
  finding.subjects = Threads({7, 8});
  finding.since = 80 * kSecond;
  return finding;
}

bool Has(const std::vector<std::string>& texts, const std::string& part) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

TEST(JudgePicture, AStopSeenTwiceIsOne) {
  Picture picture = Trace(State::kLooping, Confidence::kCertain);
  picture.scope.findings = {
      OfScope(FindingKind::kDeadlock, Confidence::kCertain, "deadlock of two")};
  const Verdict verdict = JudgePicture(picture, kRules);
  EXPECT_EQ(verdict.state, State::kDeadlock);
  EXPECT_EQ(verdict.since, 70 * kSecond);
  EXPECT_TRUE(verdict.IsHang());
  const std::string text = VerdictText(verdict, 0, "");
  EXPECT_NE(text.find("HANG after 1 m 40 s: deadlock of two (certain)\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("  core 1  waits for cb3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  the streams: looping, the only core seen spins\n"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("deadlock of two", text.find("deadlock of two") + 1), std::string::npos)
      << text;
}

TEST(JudgePicture, AHartThatTheScopeAndATraceTellOfIsOne) {
  Picture picture = Trace(State::kLooping, Confidence::kCertain);
  for (const uint32_t hart : {5, 6, 7}) {
    CoreVerdict& core = picture.streams.cores.emplace_back();
    core.name = "hart " + std::to_string(hart);
    core.hart = hart;
    core.state = State::kSilent;
    core.since = 80 * kSecond;
    core.place.function = "lock_acquire";
  }
  picture.scope.findings = {
      OfScope(FindingKind::kDeadlock, Confidence::kCertain, "deadlock of two")};
  for (const uint32_t hart : {5, 6}) {
    FindingSubject& core = picture.scope.findings[0].subjects.emplace_back();
    core.core = hart - 5;
    core.hart = hart;
  }
  picture.streams.cores[0].callers = {{0x20, "push", "ring.c:9"}, {0x10, "main", "main.c:4"}};
  for (FindingSubject& core : picture.scope.findings[0].subjects) {
    core.at = "LCKW";
    core.where = "lock.c:7 in lock_acquire";
    core.functions = {core.core == 0 ? "lock_acquire" : "cb_push"};
  }
  picture.scope.findings[0].lines = {"core 0  waits   lock.c:7 in lock_acquire", "core 1  waits"};
  const Verdict verdict = JudgePicture(picture, kRules);
  const std::vector<FindingSubject>& told = verdict.findings[0].subjects;
  EXPECT_EQ(told[0].where, "push  ring.c:9");
  EXPECT_EQ(told[0].inside, "lock.c:7 in lock_acquire");
  EXPECT_EQ(told[0].callers, std::vector<std::string>{"main  main.c:4"});
  EXPECT_EQ(verdict.findings[0].lines[0],
            "core 0  waits   lock.c:7 in lock_acquire <- push  ring.c:9  <- main");
  EXPECT_EQ(told[1].where, "lock.c:7 in lock_acquire") << "the trace shows it elsewhere";
  EXPECT_TRUE(told[1].callers.empty());
  const std::string words = "the trace: hart 6  silent since 20.0 s";
  EXPECT_TRUE(Has(verdict.findings[0].evidence, words));
  const std::string text = VerdictText(verdict, 0, "");
  EXPECT_NE(text.find("  " + words), std::string::npos) << text;
  EXPECT_EQ(text.find("hart 6", text.find("hart 6") + 1), std::string::npos) << text;
  EXPECT_NE(text.find("  hart 7  silent"), std::string::npos) << text;
  picture.streams.cores[2].hart = 6;
  EXPECT_FALSE(Has(JudgePicture(picture, kRules).findings[0].evidence, words))
      << "which of two it is nobody knows";
}

TEST(JudgePicture, TheScopeSeesWhatTheStreamsDoNot) {
  Picture picture = Trace(State::kProgressing, Confidence::kPossible);
  picture.scope.findings = {OfScope(FindingKind::kStarved, Confidence::kLikely, "starved")};
  const Verdict verdict = JudgePicture(picture, kRules);
  EXPECT_EQ(verdict.state, State::kStarved);
  EXPECT_EQ(verdict.confidence, Confidence::kLikely);
  EXPECT_TRUE(verdict.evidence.empty());
}

TEST(JudgePicture, TheSurestFindingIsTheHeadlineThenTheMostSpecific) {
  Picture picture = Trace(State::kProgressing, Confidence::kPossible);
  picture.scope.findings = {OfScope(FindingKind::kSilent, Confidence::kLikely, "silent"),
                            OfScope(FindingKind::kCorrupt, Confidence::kCertain, "corrupt"),
                            OfScope(FindingKind::kFault, Confidence::kPossible, "perhaps"),
                            OfScope(FindingKind::kStarved, Confidence::kCertain, "starved"),
                            OfScope(FindingKind::kDeadlock, Confidence::kCertain, "deadlock")};
  const Verdict verdict = JudgePicture(picture, kRules);
  EXPECT_EQ(verdict.summary, "deadlock");
  ASSERT_EQ(verdict.findings.size(), 5u);
  EXPECT_EQ(verdict.findings[1].summary, "starved");
  EXPECT_EQ(verdict.findings[2].summary, "silent");
  const std::string text = VerdictText(verdict, 0, "");
  for (const char* other :
       {"also: silent (likely)", "also: corrupt (certain)", "also: perhaps (possible)"})
    EXPECT_NE(text.find(other), std::string::npos) << text;
}

TEST(JudgePicture, CoresThatGoOnTakeAHangBack) {
  for (const State state : {State::kLooping, State::kSilent}) {
    Picture picture = Trace(state, Confidence::kCertain);
    picture.scope.moving = {"core 2"};
    const Verdict verdict = JudgePicture(picture, kRules);
    EXPECT_EQ(verdict.state, state);
    EXPECT_FALSE(verdict.IsHang());
    EXPECT_EQ(verdict.doubts,
              std::vector<std::string>{"the scope says who makes progress: core 2"});
  }
}

TEST(JudgePicture, AMerelyPossibleFindingChangesNothing) {
  Picture picture = Trace(State::kProgressing, Confidence::kCertain);
  picture.scope.findings = {OfScope(FindingKind::kSilent, Confidence::kPossible, "silent")};
  EXPECT_EQ(JudgePicture(picture, kRules).state, State::kProgressing);
}

TEST(JudgePicture, AnEndStaysAnEnd) {
  for (const State state : {State::kFinished, State::kDead}) {
    Picture picture = Trace(state, Confidence::kCertain);
    picture.scope.findings = {OfScope(FindingKind::kFault, Confidence::kCertain, "assert")};
    const Verdict verdict = JudgePicture(picture, kRules);
    EXPECT_EQ(verdict.state, state);
    EXPECT_EQ(verdict.findings.size(), 1u);
  }
}

TEST(JudgePicture, ThreadsSayWhyAProgramIsSilent) {
  Picture picture = Silent();
  picture.threads.findings = {Locked(Confidence::kCertain)};
  const Verdict verdict = JudgePicture(picture, kRules);
  EXPECT_EQ(verdict.state, State::kDeadlock);
  EXPECT_TRUE(verdict.IsHang());
  const std::string text = VerdictText(verdict, 0, "");
  EXPECT_EQ(text.find("hangscope: HANG after 1 m 40 s: deadlock, 2 of 3 threads wait for each "
                      "other (certain)\n  7 worker  waits for mutex lock\n"),
            0u)
      << text;
  EXPECT_NE(text.find("  the streams: silent, child asleep in futex\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("buffer"), std::string::npos) << text;
}

TEST(JudgePicture, ADeadlockIsOneAlsoWithoutAnySilence) {
  Picture picture = Streams(State::kProgressing, Confidence::kLikely);
  picture.streams.streams[0].last_byte = 80 * kSecond;
  picture.threads.attached = true;
  picture.threads.findings = {Locked(Confidence::kCertain)};
  EXPECT_EQ(JudgePicture(picture, kRules).state, State::kDeadlock);
}

// The kernel sees the same threads move, and calls them otherwise.
TEST(JudgePicture, WhoMovesIsCountedOnceWhereTwoSourcesSeeIt) {
  Picture picture;
  picture.now = 20 * kSecond;
  picture.scope.attached = picture.threads.attached = true;
  picture.scope.moving = {"thread reader", "thread writer", "thread pack"};
  picture.threads.moving = {"11 reader", "12 writer", "13 pack"};
  EXPECT_EQ(JudgePicture(picture, {}).goes_on, "thread reader, thread writer and 1 more");
  picture.scope.moving.clear();
  EXPECT_EQ(JudgePicture(picture, {}).goes_on, "11 reader, 12 writer and 1 more");
}

TEST(JudgePicture, WhereOthersGoOnItIsPartial) {
  Picture prints = Streams(State::kProgressing, Confidence::kLikely);
  prints.threads.attached = true;
  prints.threads.findings = {Locked(Confidence::kCertain)};
  Picture moves = Silent();
  moves.threads.findings = {Locked(Confidence::kCertain)};
  moves.threads.moving = {"9 server"};
  for (const Picture& picture : {prints, moves}) {
    const Verdict verdict = JudgePicture(picture, kRules);
    EXPECT_EQ(verdict.state, State::kPartial);
    EXPECT_TRUE(verdict.IsHang());
    EXPECT_FALSE(ActOn().Covers(verdict));
    EXPECT_TRUE((ActOn{Confidence::kLikely, true}.Covers(verdict)));
    EXPECT_FALSE(verdict.goes_on.empty());
  }
  // A ticker that sleeps again and again hides nothing.
  moves.threads.moving.clear();
  moves.threads.timed = {"9 ticker"};
  EXPECT_EQ(JudgePicture(moves, kRules).state, State::kDeadlock);
}

TEST(JudgePicture, SilenceIsNoHangByItself) {
  struct Case {
    const char* what;
    std::vector<std::string> Sightings::*list;
    const char* said;
    State state;
  };
  const Case cases[] = {
      {"nothing is known", nullptr, "what could end that is not known", State::kSilent},
      {"computes", &Sightings::moving, "7 x runs, or ran in the meantime", State::kSilent},
      {"sleeps", &Sightings::timed, "7 x sleeps for a set time", State::kSilent},
      {"is stopped", &Sightings::halted, "7 x", State::kSilent},
      {"unknown", &Sightings::unknown, "7 x", State::kSilent},
      {"serves", &Sightings::outside, "", State::kIdle},
  };
  for (const Case& each : cases) {
    Picture picture = Silent();
    picture.streams.confidence = Confidence::kLikely;
    if (each.list != nullptr) picture.threads.*each.list = {"7 x"};
    const Verdict verdict = JudgePicture(picture, kRules);
    EXPECT_FALSE(verdict.IsHang()) << each.what;
    EXPECT_EQ(verdict.state, each.state) << each.what;
    if (each.state != State::kIdle) {
      EXPECT_NE(verdict.doubts.at(0).find(each.said), std::string::npos) << each.what;
    }
  }
}

TEST(JudgePicture, WhoMovesIsOneOrSeveral) {
  const auto said = [](const std::vector<std::string>& who) {
    Picture picture = Silent();
    picture.threads.moving = who;
    return JudgePicture(picture, kRules).doubts.at(0);
  };
  EXPECT_EQ(said({"7 a"}), "7 a runs, or ran in the meantime: it may be computing");
  EXPECT_EQ(said({"7 a", "8 b"}), "7 a, 8 b run, or ran in the meantime: they may be computing");
}

TEST(JudgePicture, NobodyIsIdleBesideSomebodyUnknown) {
  Picture picture = Silent();
  picture.threads.outside = {"7 x waits for a connection"};
  picture.threads.timed = {"8 ticker"};
  EXPECT_EQ(JudgePicture(picture, kRules).state, State::kIdle);
  EXPECT_EQ(JudgePicture(picture, kRules).summary, "idle, 7 x waits for a connection");
  picture.threads.incomplete = "not all could be looked at";
  EXPECT_EQ(JudgePicture(picture, kRules).state, State::kSilent);
  picture.threads.incomplete.clear();
  picture.threads.unknown = {"9 y sleeps: what for is not known"};
  EXPECT_EQ(JudgePicture(picture, kRules).state, State::kSilent);
}

TEST(JudgePicture, WhereNobodyWillComeTheWaitForThemIsAHang) {
  Picture picture = Silent();
  picture.threads.outside = {"7 x waits for a connection"};
  JudgeRules closed = kRules;
  closed.closed = true;
  EXPECT_TRUE(JudgePicture(picture, closed).IsHang());
  picture.threads.moving = {"8 y"};
  EXPECT_FALSE(JudgePicture(picture, closed).IsHang());
}

TEST(JudgePicture, WhereOutputIsExpectedSilenceIsAHang) {
  Picture picture = Silent();
  picture.threads.outside = {"7 x waits for a connection"};
  JudgeRules rules = kRules;
  rules.expect_output = 20 * kSecond;
  const Verdict verdict = JudgePicture(picture, rules);
  EXPECT_EQ(verdict.summary, "silent, where output is expected every 20.0 s");
  EXPECT_TRUE(ActOn().Covers(verdict));
  EXPECT_TRUE(Has(verdict.evidence, "idle, 7 x waits for a connection"));
  rules.expect_output = 21 * kSecond;
  EXPECT_EQ(JudgePicture(picture, rules).state, State::kIdle);
}

// hangscope itself may have been stopped: what came meanwhile nobody has seen.
TEST(JudgePicture, SilenceEndsWhereTheStreamsWereLookedAtLast) {
  Picture picture = Silent();
  picture.threads.outside = {"7 x waits for a connection"};
  JudgeRules rules = kRules;
  rules.expect_output = 20 * kSecond;
  picture.streams.time = picture.now - kSecond;
  EXPECT_EQ(JudgePicture(picture, rules).state, State::kIdle);
  picture.streams.time = picture.now;
  EXPECT_EQ(JudgePicture(picture, rules).state, State::kSilent);
}

TEST(JudgePicture, ASimulatorsThreadsSayNothingOfItsCoresUnlessTheyAreStuckForCertain) {
  Picture picture = Trace(State::kSilent, Confidence::kLikely);
  picture.threads.attached = true;
  picture.threads.as_of = 99 * kSecond;
  picture.threads.outside = {"7 qemu waits for its terminal"};
  picture.threads.findings = {Locked(Confidence::kLikely)};
  EXPECT_EQ(JudgePicture(picture, kRules).state, State::kSilent);
  EXPECT_TRUE(JudgePicture(picture, kRules).IsHang());
  picture.threads.findings = {Locked(Confidence::kCertain)};
  EXPECT_EQ(JudgePicture(picture, kRules).state, State::kDeadlock);
}

TEST(JudgePicture, AProvenLoopIsSurerThanALikelyCause) {
  Picture picture = Streams(State::kLooping, Confidence::kCertain);
  picture.threads.findings = {Locked(Confidence::kLikely)};
  EXPECT_EQ(JudgePicture(picture, kRules).state, State::kLooping);
}

// Lines that repeat are the program's own: a sign of life beside threads that are stuck.
TEST(JudgePicture, AMereLogKnowsNoBetterThanThreads) {
  Picture picture = Streams(State::kLooping, Confidence::kPossible);
  CoreVerdict& core = picture.streams.cores.emplace_back();
  core.name = core.stream = "stdout";
  core.loop.emplace();
  core.loop->basis = LoopBasis::kLines;
  picture.threads.attached = true;
  picture.threads.findings = {Locked(Confidence::kLikely)};
  Verdict verdict = JudgePicture(picture, kRules);
  EXPECT_EQ(verdict.state, State::kPartial);
  EXPECT_EQ(verdict.goes_on, "its output");
  EXPECT_EQ(verdict.summary, "deadlock, 2 of 3 threads wait for each other");
  EXPECT_TRUE(Has(verdict.evidence, "the streams: looping"));
  // The lines are of a rule's, which says what counts.
  core.name = "hart 0";
  verdict = JudgePicture(picture, kRules);
  EXPECT_EQ(verdict.state, State::kLooping);
}

TEST(JudgePicture, ADeadlockThatScopeAndThreadsTellOfIsOne) {
  Picture picture = Silent();
  picture.scope.attached = true;
  picture.scope.findings = {OfScope(FindingKind::kDeadlock, Confidence::kLikely,
                                    "deadlock, 2 of 3 cores wait for each other")};
  picture.scope.findings[0].subjects = Threads({8, 7});
  Finding zombie;
  zombie.kind = FindingKind::kZombie;
  zombie.summary = "9 child is a zombie";
  picture.threads.findings = {Locked(Confidence::kCertain), zombie};
  const Verdict verdict = JudgePicture(picture, kRules);
  EXPECT_EQ(verdict.state, State::kDeadlock);
  EXPECT_EQ(verdict.confidence, Confidence::kCertain) << "the surer witness counts";
  const std::string text = VerdictText(verdict, 0, "");
  EXPECT_EQ(
      text.find(
          "hangscope: HANG after 1 m 40 s: deadlock, 2 of 3 cores wait for each other (certain)\n"),
      0u)
      << text;
  EXPECT_NE(
      text.find("  the threads' own waits say the same:\n    7 worker  waits for mutex lock\n"),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find("2 of 3 threads"), std::string::npos) << "told twice: " << text;
  EXPECT_NE(text.find("also: 9 child is a zombie"), std::string::npos) << text;
}

TEST(JudgePicture, WhatIsSaidOfTheSameThreadsIsNoSecondHang) {
  Picture picture = Silent();
  picture.scope.findings = {OfScope(FindingKind::kSilent, Confidence::kLikely, "core 2 is silent")};
  picture.scope.findings[0].subjects = Threads({8});
  picture.threads.findings = {Locked(Confidence::kCertain)};
  const Verdict verdict = JudgePicture(picture, kRules);
  ASSERT_EQ(verdict.findings.size(), 1u);
  EXPECT_TRUE(Has(verdict.evidence, "the scope: core 2 is silent"));
}

TEST(JudgePicture, WithoutStreamsItIsWhatTheOthersSaw) {
  Picture picture;
  picture.now = kNow;
  picture.threads.attached = true;
  picture.threads.as_of = kNow;
  EXPECT_EQ(JudgePicture(picture, {}).state, State::kSilent);
  EXPECT_EQ(JudgePicture(picture, {}).confidence, Confidence::kPossible);
  picture.threads.outside = {"7 server waits for a connection"};
  EXPECT_EQ(JudgePicture(picture, {}).state, State::kIdle);
  picture.threads.moving = {"8 worker"};
  EXPECT_EQ(JudgePicture(picture, {}).state, State::kProgressing);
  EXPECT_EQ(JudgePicture(picture, {}).confidence, Confidence::kPossible) << "it may spin";
  picture.threads.findings = {Locked(Confidence::kCertain)};
  EXPECT_EQ(JudgePicture(picture, {}).state, State::kPartial);
  EXPECT_EQ(JudgePicture(picture, {}).goes_on, "8 worker");
  picture.threads = {};
  picture.scope.attached = true;
  picture.scope.findings = {OfScope(FindingKind::kDead, Confidence::kCertain, "signal 6")};
  EXPECT_EQ(JudgePicture(picture, {}).state, State::kDead);
  EXPECT_EQ(JudgePicture(picture, {}).summary, "signal 6");
}

TEST(JudgePicture, OfOtherThreadsItIsAnother) {
  for (const std::vector<int>& threads :
       {std::vector<int>{7, 9}, std::vector<int>{0, 7}, std::vector<int>{}}) {
    Picture picture = Silent();
    picture.scope.findings = {
        OfScope(FindingKind::kDeadlock, Confidence::kLikely, "deadlock of two")};
    picture.scope.findings[0].subjects = Threads(threads);
    picture.threads.findings = {Locked(Confidence::kLikely)};
    const Verdict verdict = JudgePicture(picture, kRules);
    EXPECT_EQ(verdict.findings.size(), 2u);
    EXPECT_EQ(verdict.summary, "deadlock of two") << "of equal ones the scope knows more names";
    EXPECT_EQ(verdict.confidence, Confidence::kLikely);
  }
}

TEST(JudgePicture, WhoIsStoppedOrHasEndedDoesNotHang) {
  for (const FindingKind kind : {FindingKind::kStopped, FindingKind::kZombie}) {
    Picture picture = Silent();
    picture.threads.findings = {Locked(Confidence::kCertain)};
    picture.threads.findings[0].kind = kind;
    EXPECT_FALSE(JudgePicture(picture, kRules).IsHang());
  }
}

TEST(JudgePicture, SourcesThatMayKnowMoreAreWaitedForAWhile) {
  Picture picture = Trace(State::kSilent, Confidence::kLikely);
  picture.suspected_since = kNow - kSecond / 2;
  EXPECT_FALSE(JudgePicture(picture, kRules).undecided) << "there is nobody else to ask";
  picture.scope.attached = true;
  EXPECT_TRUE(JudgePicture(picture, kRules).undecided);
  picture.scope.findings = {OfScope(FindingKind::kDeadlock, Confidence::kLikely, "deadlock")};
  EXPECT_FALSE(JudgePicture(picture, kRules).undecided);
  picture.scope.findings.clear();
  picture.suspected_since = kNow - kLongestWaitForSources;
  EXPECT_FALSE(JudgePicture(picture, kRules).undecided) << "not for ever";
  picture.scope.attached = false;
  picture.suspected_since = kNow - kSecond / 2;
  picture.threads.attached = true;
  EXPECT_TRUE(JudgePicture(picture, kRules).undecided);
  picture.threads.as_of = kNow;
  EXPECT_FALSE(JudgePicture(picture, kRules).undecided);
}

TEST(JudgePicture, AScopeIsWaitedForUntilItWasLookedAtTwice) {
  Picture picture = Silent();
  picture.threads.findings = {Locked(Confidence::kCertain)};
  picture.threads.found_at = kNow - 2 * kSecond;
  picture.scope.attached = true;
  EXPECT_FALSE(JudgePicture(picture, kRules).undecided) << "it was never seen";
  picture.scope.as_of = kNow;
  picture.scope.before_that = kNow - 3 * kSecond;
  EXPECT_TRUE(JudgePicture(picture, kRules).undecided);
  picture.threads.found_at = kNow - kLongestWaitForSlowScope;
  EXPECT_FALSE(JudgePicture(picture, kRules).undecided) << "not for ever";
  picture.threads.found_at = kNow - 2 * kSecond;
  picture.scope.before_that = kNow - kSecond;
  EXPECT_FALSE(JudgePicture(picture, kRules).undecided) << "it was looked at twice";
}

TEST(JudgePicture, ASurerOrBetterVerdictTakesThePlaceOfAnother) {
  const auto of = [](FindingKind kind, Confidence confidence, bool partial) {
    Picture picture = Silent();
    picture.threads.findings = {Locked(confidence)};
    picture.threads.findings[0].kind = kind;
    if (partial) picture.threads.moving = {"9 x"};
    return JudgePicture(picture, kRules);
  };
  Verdict silent = Trace(State::kSilent, Confidence::kLikely).streams;
  const Verdict held = of(FindingKind::kHeld, Confidence::kLikely, false);
  const Verdict deadlock = of(FindingKind::kDeadlock, Confidence::kLikely, false);
  const Verdict certain = of(FindingKind::kHeld, Confidence::kCertain, false);
  const Verdict partial = of(FindingKind::kDeadlock, Confidence::kLikely, true);
  EXPECT_TRUE(Supersedes(held, silent));
  EXPECT_TRUE(Supersedes(deadlock, held));
  EXPECT_TRUE(Supersedes(certain, deadlock));
  EXPECT_TRUE(Supersedes(deadlock, partial));
  EXPECT_FALSE(Supersedes(held, held));
  EXPECT_FALSE(Supersedes(deadlock, certain));
  EXPECT_FALSE(Supersedes(partial, deadlock));
  EXPECT_FALSE(Supersedes(Silent().streams, silent));
}

TEST(ActOn, CoversWhatIsSureEnough) {
  Verdict verdict = Trace(State::kSilent, Confidence::kPossible).streams;
  EXPECT_FALSE(ActOn().Covers(verdict));
  EXPECT_TRUE((ActOn{Confidence::kPossible, false}.Covers(verdict)));
  verdict.confidence = Confidence::kLikely;
  EXPECT_TRUE(ActOn().Covers(verdict));
  EXPECT_FALSE((ActOn{Confidence::kCertain, false}.Covers(verdict)));
  verdict.state = State::kFault;
  EXPECT_TRUE((ActOn{Confidence::kCertain, false}.Covers(verdict))) << "a fault always counts";
  verdict.state = State::kIdle;
  EXPECT_FALSE((ActOn{Confidence::kPossible, true}.Covers(verdict)));
}

}  // namespace
}  // namespace hangscope
