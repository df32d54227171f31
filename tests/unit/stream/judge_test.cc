#include "stream/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_code.h"

namespace hangscope {
namespace {

constexpr TimeNs kStart = 1000 * kSecond;
constexpr TimeNs kStall = 10 * kSecond;
constexpr size_t kMostTracks = 8;

// A run, told second by second.
class JudgeTest : public ::testing::Test {
 protected:
  JudgeTest() : judge_(kStall, kStart), program_(&code_) {
    tracks_.reserve(kMostTracks);  // the stream and the tests point into them
    streams_.resize(1);
    streams_[0].name = "stdout";
    child_.known = true;
  }

  // `seconds` pass; each brings `bytes` and costs the child `cpu` seconds.
  Verdict Pass(int seconds, uint64_t bytes, double cpu = 1.0) {
    for (int i = 0; i < seconds; ++i) {
      now_ += kSecond;
      child_.cpu_time += static_cast<TimeNs>(cpu * 1e9);
      if (bytes > 0) {
        streams_[0].total_bytes += bytes;
        streams_[0].last_byte = now_;
        for (CoreTrack& core : tracks_) core.last_seen = now_;
      }
      verdict_ = judge_.Assess(now_, streams_, child_, &program_);
      if (verdict_.IsHang()) ++hangs_;
    }
    return verdict_;
  }
  void BeTrace() {
    streams_[0].is_trace = true;
    streams_[0].format = "Spike";
  }
  CoreFinding* AddCore(const std::string& name, CoreFinding::Motion motion) {
    CoreTrack& track = tracks_.emplace_back();
    track.name = name;
    track.last_seen = track.loop_since = track.places_since = now_;
    CoreFinding* finding = &track.finding;
    finding->motion = motion;
    finding->loop = {0x1000, 0x1002};
    finding->loop_places = {0x1000, 0x1002};
    finding->polls = {0x2000};
    finding->polls_known = true;
    finding->basis = LoopBasis::kValues;
    streams_[0].cores = tracks_;
    CoreProof& proof = proof_.cores.emplace_back();
    proof.looping = true;
    proof.since = now_;
    proof.rounds = 1000;
    return finding;
  }
  void Prove() { streams_[0].proof = &proof_; }
  // Logs are judged by their lines, or by places that the user's rule takes from them.
  CoreFinding* AddLog(bool by_rule = false, const std::string& name = "stdout") {
    streams_[0].texts = &texts_;
    streams_[0].by_rule = by_rule;
    CoreFinding* finding = AddCore(name, CoreFinding::Motion::kSpinning);
    finding->basis = by_rule ? LoopBasis::kPlaces : LoopBasis::kLines;
    texts_.Note(0x1000, "waiting for link");
    texts_.Note(0x1002, "no link, retry");
    return finding;
  }

  PlaceTexts texts_;
  StreamJudge judge_;
  FakeCode code_;
  ProgramCode program_;
  std::vector<StreamView> streams_;
  std::vector<CoreTrack> tracks_;  // of the first stream
  Proof proof_;
  ChildView child_;
  TimeNs now_ = kStart;
  Verdict verdict_;
  int hangs_ = 0;
};

using Motion = CoreFinding::Motion;

TEST_F(JudgeTest, AWayIsToldOnlyWhileItLeadsThere) {
  BeTrace();
  AddCore("hart 0", Motion::kSpinning)->last.offset = 500;
  proof_.cores[0].entered_offset = 400;
  std::vector<CoreWay> ways = {{400, {WayStep{Place{0x10, "main", ""}}}}};
  streams_[0].ways = ways;
  Prove();
  EXPECT_EQ(Pass(12, 1000).cores[0].way.size(), 1u);
  proof_.cores[0].entered_offset = 450;  // another loop
  EXPECT_EQ(Pass(1, 1000).cores[0].way.size(), 0u);
  EXPECT_EQ(Pass(12, 0).cores[0].way.size(), 0u);  // silent, and it has gone on since
  ways[0].at = 500;
  EXPECT_EQ(Pass(1, 0).cores[0].way.size(), 1u);
}

TEST_F(JudgeTest, OutputIsProgress) {
  EXPECT_EQ(Pass(60, 1000).state, State::kProgressing);
  EXPECT_EQ(hangs_, 0);
}

TEST_F(JudgeTest, SleepingChildFallsSilent) {
  Pass(20, 1000);
  EXPECT_EQ(Pass(9, 0, 0).state, State::kProgressing);
  EXPECT_EQ(Pass(2, 0, 0).state, State::kSilent);
  EXPECT_TRUE(verdict_.IsHang());
  EXPECT_NE(verdict_.summary.find("child asleep"), std::string::npos);
  EXPECT_EQ(verdict_.since, kStart + 20 * kSecond);
}

TEST_F(JudgeTest, BurningChildWithAPlainLogIsOnlyPossible) {
  Pass(20, 1000);
  EXPECT_EQ(Pass(60, 0, 1.0).state, State::kSilent);
  EXPECT_EQ(verdict_.confidence, Confidence::kPossible);
  EXPECT_EQ(hangs_, 0);
}

TEST_F(JudgeTest, ChildThatIsGivenNoProcessorIsOnlyPossible) {
  child_.runnable = true;  // on a busy machine
  Pass(20, 1000);
  EXPECT_EQ(Pass(60, 0, 0).state, State::kSilent);
  EXPECT_EQ(verdict_.confidence, Confidence::kPossible);
  EXPECT_EQ(hangs_, 0);
}

TEST_F(JudgeTest, TraceThatFallsSilentWhileTheSimulatorBurnsCpuIsAHang) {
  BeTrace();  // as gvsoc does when the firmware sleeps in a wfi
  Pass(20, 1000);
  Pass(12, 0, 1.0);
  EXPECT_TRUE(verdict_.IsHang());
  EXPECT_NE(verdict_.summary.find("uses 100 % of a CPU"), std::string::npos);
}

TEST_F(JudgeTest, TraceOfASimulatorThatIsGivenNoProcessorIsOnlyPossible) {
  BeTrace();
  Pass(20, 1000);
  child_.runnable = true;
  Pass(49, 0, 0.1);
  EXPECT_EQ(verdict_.state, State::kSilent);
  EXPECT_EQ(verdict_.doubts[0], "it would run, and was given a processor for only 4.9 s since");
  EXPECT_EQ(hangs_, 0);
  Pass(2, 0, 0.1);
  EXPECT_TRUE(verdict_.IsHang()) << "it ran for half of the stall time";
}

TEST_F(JudgeTest, ChainedOrTranslatedTracesProveNothingBySilence) {
  BeTrace();
  streams_[0].chained = true;
  Pass(20, 1000);
  Pass(60, 0, 1.0);
  EXPECT_EQ(hangs_, 0);
  EXPECT_EQ(verdict_.state, State::kSilent);
  streams_[0].chained = false;
  streams_[0].only_translations = true;
  Pass(1, 0, 1.0);
  EXPECT_EQ(hangs_, 0);
}

TEST_F(JudgeTest, LongInitialisationIsNoHang) {
  Pass(100, 0, 1.0);
  EXPECT_EQ(hangs_, 0);
  Pass(5, 1000);
  EXPECT_EQ(verdict_.state, State::kProgressing);
}

TEST_F(JudgeTest, EarlierGapsBuyPatience) {
  Pass(8, 1000);
  for (int i = 0; i < 3; ++i) {
    Pass(8, 0, 0);
    Pass(1, 1000);
  }
  Pass(15, 0, 0);  // longer than the stall time, not than three of its gaps
  EXPECT_EQ(hangs_, 0);
  Pass(15, 0, 0);
  EXPECT_GT(hangs_, 0);
}

TEST_F(JudgeTest, TimedSleepAndStoppedChildAreOnlyPossible) {
  Pass(20, 1000);
  child_.timed_sleep = true;
  Pass(30, 0, 0);
  EXPECT_EQ(hangs_, 0);
  child_.timed_sleep = false;
  child_.stopped = true;
  Pass(5, 0, 0);
  EXPECT_EQ(hangs_, 0);
}

TEST_F(JudgeTest, SlowIsBelowTheRunsOwnRateAndNoHang) {
  Pass(60, 1'000'000);
  EXPECT_EQ(Pass(20, 1000).state, State::kSlow);
  EXPECT_EQ(hangs_, 0);
  EXPECT_EQ(Pass(30, 1'000'000).state, State::kProgressing);
}

TEST_F(JudgeTest, AllCoresProvenToSpinIsCertain) {
  BeTrace();
  AddCore("hart 0", Motion::kSpinning);
  AddCore("hart 1", Motion::kSpinning);
  Pass(11, 1000);
  EXPECT_EQ(hangs_, 0);  // not proven yet
  EXPECT_TRUE(judge_.SuspectsLoop(streams_[0], now_));
  Prove();
  Pass(1, 1000);
  EXPECT_EQ(verdict_.state, State::kLooping);
  EXPECT_EQ(verdict_.confidence, Confidence::kCertain);
  EXPECT_EQ(verdict_.cores[0].loop->rounds, 1000u);
  EXPECT_TRUE(verdict_.doubts.empty());
}

TEST_F(JudgeTest, RingShorterThanTheStallTimeIsMadeUpForBySamples) {
  BeTrace();
  AddCore("hart 0", Motion::kSpinning);
  Prove();
  proof_.time = kStart + 11 * kSecond;
  proof_.only_sampled_before = kStart + 9 * kSecond;
  Pass(11, 1000);
  EXPECT_EQ(verdict_.state, State::kLooping);
  EXPECT_EQ(verdict_.confidence, Confidence::kLikely);
  EXPECT_NE(verdict_.doubts.at(0).find("holds only the last 2.0 s"), std::string::npos);
}

TEST_F(JudgeTest, SilentCoresAreSilentWhereverTheyWere) {
  BeTrace();
  AddCore("hart 0", Motion::kSpinning);
  Pass(1, 1000);
  Pass(12, 0, 1.0);
  EXPECT_EQ(verdict_.state, State::kSilent);
  EXPECT_EQ(verdict_.cores[0].state, State::kSilent);
}

TEST_F(JudgeTest, CoreThatFellSilentAwakeMayOnlyHaveBeenGivenNoProcessor) {
  BeTrace();
  AddCore("hart 0", Motion::kSpinning);
  AddCore("hart 1", Motion::kMoving);
  proof_.cores[1].looping = false;
  Prove();
  const TimeNs last_word = now_;
  const auto pass = [&] {
    now_ += kSecond;
    streams_[0].total_bytes += 1000;
    streams_[0].last_byte = tracks_[0].last_seen = now_;
    verdict_ = judge_.Assess(now_, streams_, child_, &program_);
  };
  while (now_ < last_word + 29 * kSecond) {
    pass();
    EXPECT_FALSE(verdict_.IsHang());
  }
  pass();
  EXPECT_EQ(verdict_.state, State::kLooping);
  EXPECT_EQ(verdict_.confidence, Confidence::kLikely);
  ASSERT_EQ(verdict_.doubts.size(), 1u);
  EXPECT_EQ(verdict_.doubts[0], "hart 1: has printed nothing for 30.0 s");
}

TEST_F(JudgeTest, OneCoreThatComputesIsProgress) {
  BeTrace();
  AddCore("hart 0", Motion::kSpinning);
  AddCore("hart 1", Motion::kComputing);
  Prove();
  Pass(60, 1000);
  EXPECT_EQ(hangs_, 0);
  EXPECT_FALSE(judge_.SuspectsLoop(streams_[0], now_));
  EXPECT_EQ(verdict_.cores[0].state, State::kLooping);
  EXPECT_EQ(verdict_.cores[1].state, State::kProgressing);
}

TEST_F(JudgeTest, CoreThatStaysInAWaitThatItUsedToLeaveIsPartial) {
  BeTrace();
  AddCore("hart 0", Motion::kSpinning);
  AddCore("hart 1", Motion::kComputing);
  tracks_[0].left_loops[0x1000] = {3, 2 * kSecond};
  streams_[0].part_proof = &proof_;
  Pass(29, 1000);
  EXPECT_EQ(verdict_.state, State::kProgressing);
  Pass(2, 1000);
  EXPECT_EQ(verdict_.state, State::kPartial);
  EXPECT_EQ(verdict_.confidence, Confidence::kLikely);
  EXPECT_EQ(verdict_.goes_on, "hart 1");
  EXPECT_NE(verdict_.summary.find("hart 0 spins"), std::string::npos) << verdict_.summary;
  EXPECT_FALSE(ActOn().Covers(verdict_));
}

TEST_F(JudgeTest, CoreThatMayHaveNothingToDoBesideOthersIsProgress) {
  BeTrace();
  AddCore("hart 0", Motion::kSpinning);
  AddCore("hart 1", Motion::kComputing);
  streams_[0].part_proof = &proof_;
  Pass(300, 1000);  // it was never seen to leave the loop
  tracks_[0].left_loops[0x1000] = {2, 2 * kSecond};
  Pass(300, 1000);
  tracks_[0].left_loops[0x1000] = {9, 300 * kSecond};  // it has waited for as long before
  Pass(200, 1000);
  tracks_[0].left_loops[0x1000] = {9, 2 * kSecond};
  tracks_[0].finding.polls.clear();  // nobody could end it: it ended so by design
  Pass(200, 1000);
  EXPECT_EQ(hangs_, 0);
  EXPECT_EQ(verdict_.state, State::kProgressing);
}

TEST_F(JudgeTest, LoopYoungerThanTheStallTimeIsNoHang) {
  BeTrace();
  AddCore("hart 0", Motion::kSpinning);
  Prove();
  Pass(9, 1000);
  EXPECT_EQ(hangs_, 0);
}

TEST_F(JudgeTest, PlacesAloneTriggerNothing) {
  BeTrace();
  AddCore("hart 0", Motion::kRepeating);
  Prove();
  Pass(30, 1000);
  EXPECT_EQ(verdict_.state, State::kLooping);
  EXPECT_EQ(verdict_.confidence, Confidence::kPossible);
  EXPECT_EQ(hangs_, 0);
}

TEST_F(JudgeTest, WhatLowersTheConfidenceIsSaid) {
  BeTrace();
  CoreFinding* finding = AddCore("hart 0", Motion::kSpinning);
  Prove();
  Pass(12, 1000);
  ASSERT_EQ(verdict_.confidence, Confidence::kCertain);

  finding->polls = {0x10000000};  // a UART
  Pass(1, 1000);
  EXPECT_EQ(verdict_.confidence, Confidence::kLikely);
  EXPECT_EQ(verdict_.doubts.size(), 1u);
  finding->polls = {0x2000};
  proof_.cores[0].traps = 5;
  Pass(1, 1000);
  EXPECT_EQ(verdict_.confidence, Confidence::kLikely);
  finding->handler_writes_polls = true;
  Pass(1, 1000);
  EXPECT_EQ(verdict_.confidence, Confidence::kPossible);
  finding->handler_writes_polls = false;
  proof_.cores[0].traps = 0;
  proof_.lost_bytes = 100;
  Pass(1, 1000);
  EXPECT_EQ(verdict_.confidence, Confidence::kLikely);
  streams_[0].chained = true;
  Pass(1, 1000);
  EXPECT_EQ(verdict_.confidence, Confidence::kPossible);
  EXPECT_EQ(verdict_.doubts.size(), 2u);
}

TEST_F(JudgeTest, CoreAsleepMayBeWokenAndLowersTheConfidence) {
  BeTrace();
  AddCore("hart 0", Motion::kSpinning);
  CoreFinding* sleeper = AddCore("hart 1", Motion::kTooShort);
  sleeper->sleeps = true;
  Prove();
  Pass(1, 1000);
  for (int i = 0; i < 12; ++i) {
    tracks_[1].last_seen = kStart + kSecond;
    Pass(1, 1000);
    tracks_[1].last_seen = kStart + kSecond;
  }
  tracks_[1].last_seen = kStart + kSecond;
  verdict_ = judge_.Assess(now_, streams_, child_, &program_);
  EXPECT_EQ(verdict_.state, State::kLooping);
  EXPECT_EQ(verdict_.confidence, Confidence::kLikely);
  EXPECT_TRUE(verdict_.cores[1].asleep);
}

TEST_F(JudgeTest, IdleLoopOfEveryCoreIsOnlyPossible) {
  code_.Add(0x1000, {0x10500073, 0xbff5});  // wfi; j
  BeTrace();
  CoreFinding* finding = AddCore("hart 0", Motion::kSpinning);
  finding->loop = {0x1000, 0x1004};
  Prove();
  Pass(30, 1000);
  EXPECT_EQ(verdict_.confidence, Confidence::kPossible);
  EXPECT_EQ(hangs_, 0);
}

TEST_F(JudgeTest, LogThatSaysNothingElseIsLikelyAndNeverCertain) {
  AddLog();
  Pass(11, 1000);
  EXPECT_EQ(verdict_.state, State::kProgressing);  // not proven yet
  Prove();
  Pass(1, 1000);
  EXPECT_EQ(verdict_.state, State::kLooping);
  EXPECT_EQ(verdict_.confidence, Confidence::kLikely);
  EXPECT_EQ(verdict_.summary, "looping, stdout repeats the same 2 log lines");
  EXPECT_EQ(verdict_.since, kStart);
  EXPECT_NE(verdict_.doubts.at(0).find("these are log lines"), std::string::npos);
  EXPECT_EQ(verdict_.cores.at(0).place.text, "waiting for link");
  EXPECT_EQ(verdict_.cores[0].confidence, Confidence::kLikely);
}

TEST_F(JudgeTest, LogLinesAsSlowAsASignOfLifeAreOnlyPossible) {
  AddLog();
  Pass(11, 1000);
  Prove();
  proof_.cores.at(0).rounds = 12;
  proof_.cores[0].looping = true;
  proof_.cores[0].since = kStart;
  proof_.time = kStart + 12 * kSecond;
  Pass(1, 1000);
  EXPECT_EQ(verdict_.state, State::kLooping);
  EXPECT_EQ(verdict_.confidence, Confidence::kPossible);
  EXPECT_THAT(verdict_.doubts, testing::Contains(testing::HasSubstr("a round takes 1.0 s")));
  EXPECT_EQ(hangs_, 0);
  proof_.cores[0].rounds = 120;
  Pass(1, 1000);
  EXPECT_EQ(verdict_.confidence, Confidence::kLikely);
}

TEST_F(JudgeTest, YoungLogLoopIsProgress) {
  AddLog();
  Prove();
  Pass(9, 1000);
  EXPECT_EQ(verdict_.state, State::kProgressing);
}

TEST_F(JudgeTest, LinesWhoseValuesChangeAreOnlyPossible) {
  CoreFinding* finding = AddLog();
  finding->motion = Motion::kRepeating;
  finding->basis = LoopBasis::kPlaces;
  Pass(30, 1000);
  EXPECT_EQ(verdict_.state, State::kLooping);
  EXPECT_EQ(verdict_.confidence, Confidence::kPossible);
  EXPECT_EQ(verdict_.summary, "stdout repeats 2 log lines with changing values");
  EXPECT_EQ(hangs_, 0);
  EXPECT_EQ(verdict_.cores.size(), 1u);
  child_.ended = true;
  EXPECT_TRUE(Pass(1, 1000).cores.empty());  // of no interest in the end
}

TEST_F(JudgeTest, LongRoundOfTheSameLinesIsOnlyPossible) {
  AddLog()->motion = Motion::kRepeating;
  Pass(30, 1000);
  EXPECT_EQ(verdict_.confidence, Confidence::kPossible);
  EXPECT_EQ(verdict_.summary, "looping, stdout repeats the same 2 log lines");
}

TEST_F(JudgeTest, SignsOfLifeAreOnlyPossible) {
  CoreFinding* finding = AddLog();
  Prove();
  finding->came_before = true;
  Pass(30, 1000);
  EXPECT_EQ(hangs_, 0);
  finding->came_before = false;
  proof_.cores[0].nothing_else = true;
  Pass(10, 1000);
  EXPECT_EQ(hangs_, 0);
  EXPECT_EQ(verdict_.confidence, Confidence::kPossible);
}

TEST_F(JudgeTest, RuleMakesPlacesCountAlone) {
  CoreFinding* finding = AddLog(true);
  Prove();
  proof_.cores[0].nothing_else = finding->came_before = true;
  Pass(12, 1000);
  EXPECT_TRUE(verdict_.IsHang());
  EXPECT_EQ(verdict_.summary, "looping, stdout repeats 2 places");
}

TEST_F(JudgeTest, CoreOfALogThatWorksIsProgress) {
  AddLog(true, "core 0");
  CoreFinding* other = AddLog(true, "core 1");
  other->motion = Motion::kMoving;
  Prove();
  Pass(30, 1000);
  EXPECT_EQ(hangs_, 0);
  EXPECT_EQ(verdict_.cores.size(), 2u);
  EXPECT_EQ(verdict_.cores[0].state, State::kLooping);
}

TEST_F(JudgeTest, OtherStreamThatSpeaksIsProgress) {
  AddLog();
  Prove();
  streams_.resize(2);
  streams_[1].name = "stderr";
  for (int i = 0; i < 30; ++i) {
    streams_[1].last_byte = now_ + kSecond;
    Pass(1, 1000);
  }
  EXPECT_EQ(hangs_, 0);
  Pass(11, 1000);
  EXPECT_GT(hangs_, 0);  // once it is silent
}

TEST_F(JudgeTest, LogBesideATraceSaysNothingUnlessARuleSaysSo) {
  AddLog();
  Prove();
  streams_.resize(2);
  streams_[1].name = "stderr";
  streams_[1].is_trace = true;
  for (int i = 0; i < 30; ++i) {
    streams_[1].last_byte = now_ + kSecond;
    Pass(1, 1000);
  }
  EXPECT_EQ(hangs_, 0);
  streams_[0].by_rule = streams_[1].by_rule = true;
  Pass(1, 1000);
  EXPECT_EQ(hangs_, 1);
}

TEST_F(JudgeTest, LoopsThatEndedBeforeBuyPatience) {
  AddLog();
  Prove();
  tracks_[0].longest_loop = 8 * kSecond;
  Pass(23, 1000);
  EXPECT_EQ(hangs_, 0);
  Pass(2, 1000);
  EXPECT_GT(hangs_, 0);
}

TEST_F(JudgeTest, EndsAreToldApart) {
  Pass(3, 1000);
  child_.ended = true;
  EXPECT_EQ(Pass(1, 0).state, State::kFinished);
  child_.exit_signal = 11;
  EXPECT_EQ(Pass(1, 0).state, State::kDead);
  EXPECT_EQ(verdict_.summary, "killed by signal 11 (Segmentation fault)");
  child_.exit_signal = 2;
  child_.was_told_to = true;
  EXPECT_EQ(Pass(1, 0).state, State::kFinished);
  EXPECT_EQ(verdict_.summary, "ended by signal 2 (Interrupt), which was passed on to it");
}

TEST_F(JudgeTest, LongLoopIsSuspectedWhenNoNewPlacesCome) {
  BeTrace();
  AddCore("hart 0", Motion::kMoving);
  Pass(5, 1000);
  EXPECT_FALSE(judge_.SuspectsLongLoop(streams_[0], now_));
  Pass(6, 1000);
  EXPECT_TRUE(judge_.SuspectsLongLoop(streams_[0], now_));
  tracks_[0].places_since = now_;
  EXPECT_FALSE(judge_.SuspectsLongLoop(streams_[0], now_));
}

}  // namespace
}  // namespace hangscope
