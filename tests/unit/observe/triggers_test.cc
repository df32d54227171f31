// When snapshots are due, with time that the tests move.
#include "observe/triggers.h"

#include <gtest/gtest.h>

#include "fakes/fake_clock.h"
#include "stream/line_matcher.h"

namespace hangscope {
namespace {

// Two streams and triggers that watch them.
class TriggersTest : public ::testing::Test {
 protected:
  TriggersTest() : streams_{{"stdout", 0, 0, false}, {"stderr", 0, 0, false}} {}

  void Start(const TriggerOptions& options) {
    triggers_ = std::make_unique<Triggers>(options, clock_.Monotonic());
    triggers_->Sample(clock_.Monotonic(), streams_);
  }
  void Print(uint64_t bytes, size_t stream = 0) {
    streams_[stream].total_bytes += bytes;
    streams_[stream].last_byte = clock_.Monotonic();
  }
  // Looks every 50 ms while `rate` bytes a second come.
  std::vector<DueSnapshot> Pass(TimeNs time, uint64_t rate = 0) {
    std::vector<DueSnapshot> due;
    for (TimeNs passed = 0; passed < time; passed += kTick) {
      clock_.Advance(kTick);
      if (rate > 0) Print(rate / 20);
      triggers_->Sample(clock_.Monotonic(), streams_);
      for (DueSnapshot& snapshot : triggers_->DrainDue()) due.push_back(snapshot);
    }
    return due;
  }
  Trigger Line(const std::string& pattern, uint64_t end_offset = 0) {
    Trigger trigger;
    trigger.kind = TriggerKind::kRegex;
    trigger.name = "regex: " + pattern;
    trigger.stream = "stdout";
    trigger.end_offset = end_offset;
    trigger.time = clock_.Monotonic();
    return trigger;
  }
  Trigger Of(TriggerKind kind) {
    Trigger trigger;
    trigger.kind = kind;
    trigger.name = TriggerKindName(kind);
    trigger.time = clock_.Monotonic();
    return trigger;
  }

  static constexpr TimeNs kTick = 50 * kMillisecond;
  FakeClock clock_;
  std::vector<StreamProgress> streams_;
  std::unique_ptr<Triggers> triggers_;
};

TEST_F(TriggersTest, LineIsDueAtOnce) {
  Start({});
  EXPECT_TRUE(triggers_->Fire(Line("a")));
  EXPECT_EQ(triggers_->DrainDue().size(), 1u);
  EXPECT_TRUE(triggers_->DrainDue().empty());
}

TEST_F(TriggersTest, QuietPeriodIsEachTriggersOwnAndCountsWhatItSwallows) {
  Start({});
  EXPECT_TRUE(triggers_->Fire(Line("a"), 7));
  EXPECT_FALSE(triggers_->Fire(Line("a"), 2));
  EXPECT_TRUE(triggers_->Fire(Line("b")));
  clock_.Advance(kSecond - 1);
  EXPECT_FALSE(triggers_->Fire(Line("a")));
  clock_.Advance(1);
  EXPECT_TRUE(triggers_->Fire(Line("a")));
  const auto due = triggers_->DrainDue();
  ASSERT_EQ(due.size(), 3u);
  EXPECT_EQ(due[0].trigger.suppressed, 0u);
  EXPECT_EQ(due[2].trigger.suppressed, 11u);
  EXPECT_TRUE(triggers_->Suppressed().empty());
  EXPECT_FALSE(triggers_->Fire(Line("a")));
  EXPECT_EQ(triggers_->Suppressed()["regex: a"], 1u);
}

TEST_F(TriggersTest, WhoAsksIsNeverSuppressed) {
  Start({});
  for (int i = 1; i <= 3; ++i) triggers_->Request(Of(TriggerKind::kSnap), false, i == 2, i);
  const auto due = triggers_->DrainDue();
  ASSERT_EQ(due.size(), 3u);
  EXPECT_EQ(due[1].ticket, 2);
  EXPECT_TRUE(due[1].since_last);
  EXPECT_FALSE(due[2].since_last);
}

TEST_F(TriggersTest, PostOfATimeGivesEachTriggerItsOwnSnapshot) {
  TriggerOptions options;
  options.post.time = 3 * kSecond;
  Start(options);
  EXPECT_TRUE(triggers_->Fire(Line("a")));
  const TimeNs first = clock_.Monotonic();
  EXPECT_TRUE(Pass(2 * kSecond).empty());
  EXPECT_TRUE(triggers_->Fire(Line("a")));
  const TimeNs second = clock_.Monotonic();
  const auto due = Pass(3 * kSecond);
  ASSERT_EQ(due.size(), 2u);
  EXPECT_EQ(due[0].trigger.time, first);
  EXPECT_EQ(due[1].trigger.time, second);
  EXPECT_EQ(triggers_->DrainPutOff().size(), 2u);
  EXPECT_TRUE(triggers_->DrainPutOff().empty());
}

TEST_F(TriggersTest, PostOfBytesCountsTheStreamThatFiredFromItsLineOn) {
  TriggerOptions options;
  options.post.bytes = 1000;
  Start(options);
  Print(5000);
  EXPECT_TRUE(triggers_->Fire(Line("a", 4200)));  // seen late
  Print(5000, 1);
  EXPECT_TRUE(Pass(kTick).empty());
  Print(199);
  EXPECT_TRUE(Pass(kTick).empty());
  Print(1);
  EXPECT_EQ(Pass(kTick).size(), 1u);
}

TEST_F(TriggersTest, PostOfBytesAfterAnythingElseCountsAllStreams) {
  TriggerOptions options;
  options.post.bytes = 1000;
  Start(options);
  Print(700);
  Pass(kTick);
  triggers_->Request(Of(TriggerKind::kSignal), false, false, 0);
  Print(500);
  EXPECT_TRUE(Pass(kTick).empty());
  Print(500, 1);
  EXPECT_EQ(Pass(kTick).size(), 1u);
}

TEST_F(TriggersTest, PostOfBytesDoesNotWaitForAStreamThatFellSilent) {
  TriggerOptions options;
  options.post.bytes = 1000;
  Start(options);
  Print(10);
  EXPECT_TRUE(triggers_->Fire(Line("a", 10)));
  EXPECT_TRUE(Pass(3 * kSecond).empty());
  Print(10);
  EXPECT_TRUE(Pass(4 * kSecond).empty());
  EXPECT_EQ(Pass(kSecond).size(), 1u);
}

TEST_F(TriggersTest, NowIgnoresThePost) {
  TriggerOptions options;
  options.post.time = kSecond;
  Start(options);
  triggers_->Request(Of(TriggerKind::kSnap), true, false, 1);
  EXPECT_EQ(triggers_->DrainDue().size(), 1u);
}

TEST_F(TriggersTest, EndTakesAllThatWait) {
  TriggerOptions options;
  options.post.time = kSecond;
  Start(options);
  EXPECT_TRUE(triggers_->Fire(Line("a")));
  EXPECT_TRUE(triggers_->Fire(Line("b")));
  EXPECT_TRUE(triggers_->DrainDue().empty());
  EXPECT_EQ(triggers_->DrainAll().size(), 2u);
  EXPECT_TRUE(triggers_->DrainAll().empty());
}

TEST_F(TriggersTest, ExitWaitsForTheLastWords) {
  Start({});
  EXPECT_TRUE(triggers_->Fire(Of(TriggerKind::kExit)));
  EXPECT_TRUE(triggers_->DrainDue().empty());
  EXPECT_EQ(Pass(kSecond).size(), 1u);
}

TEST_F(TriggersTest, FarTooManyAreBounded) {
  TriggerOptions options;
  options.post.time = 3600 * kSecond;
  Start(options);
  int taken = 0;
  for (int i = 0; i < 1000; ++i) {
    clock_.Advance(kSecond);
    taken += triggers_->Fire(Line("a")) ? 1 : 0;
  }
  EXPECT_EQ(taken, 64);
  EXPECT_EQ(triggers_->Suppressed()["regex: a"], 1000u - 64);
}

TEST_F(TriggersTest, SilenceFiresOnceUntilSomethingComes) {
  TriggerOptions options;
  options.silence = 3 * kSecond;
  Start(options);
  EXPECT_TRUE(Pass(2 * kSecond).empty());
  Print(1, 1);
  EXPECT_TRUE(Pass(2900 * kMillisecond).empty());
  const auto due = Pass(60 * kSecond);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].trigger.kind, TriggerKind::kSilence);
  EXPECT_EQ(due[0].trigger.name, "silence: 3.0 s");
  Print(1);
  EXPECT_EQ(Pass(4 * kSecond).size(), 1u);
}

TEST_F(TriggersTest, SilenceWhileNobodyTakesTheOutputIsNotTheProgramsOwn) {
  TriggerOptions options;
  options.silence = kSecond;
  Start(options);
  streams_[0].blocked = true;
  EXPECT_TRUE(Pass(10 * kSecond).empty());
  streams_[0].blocked = false;
  EXPECT_EQ(Pass(2 * kSecond).size(), 1u);
}

TEST_F(TriggersTest, TimeInWhichNobodyLookedIsNeitherSilentNorSlow) {
  TriggerOptions options;
  options.silence = 10 * kSecond;
  options.rate_share = 0.5;
  options.rate_window = kSecond;
  Start(options);
  EXPECT_TRUE(Pass(20 * kSecond, 10000).empty());
  clock_.Advance(3600 * kSecond);  // stopped
  triggers_->Sample(clock_.Monotonic(), streams_);
  EXPECT_TRUE(triggers_->DrainDue().empty());
  EXPECT_TRUE(Pass(9 * kSecond, 10000).empty());
  clock_.JumpWall(-7200 * kSecond);  // and what the wall clock does is no matter
  EXPECT_TRUE(Pass(2 * kSecond, 10000).empty());
}

TEST_F(TriggersTest, RateDropFiresOnceAndAgainAfterARecovery) {
  TriggerOptions options;
  options.rate_share = 0.1;
  options.rate_window = 2 * kSecond;
  Start(options);
  EXPECT_TRUE(Pass(20 * kSecond, 100000).empty());
  EXPECT_TRUE(Pass(6 * kSecond, 20000).empty());
  const auto due = Pass(6 * kSecond, 5000);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].trigger.kind, TriggerKind::kRate);
  EXPECT_EQ(due[0].trigger.name, "rate: 10%");
  EXPECT_NE(due[0].trigger.detail.find("100 kB/s is usual"), std::string::npos)
      << due[0].trigger.detail;
  EXPECT_TRUE(Pass(6 * kSecond, 100000).empty());
  EXPECT_EQ(Pass(6 * kSecond, 0).size(), 1u);
}

TEST_F(TriggersTest, SlowStartIsNoDrop) {
  TriggerOptions options;
  options.rate_share = 0.5;
  options.rate_window = kSecond;
  Start(options);
  EXPECT_TRUE(Pass(10 * kSecond, 0).empty());
  EXPECT_TRUE(Pass(10 * kSecond, 1000).empty());
}

TEST(RunningMedian, IsThatOfAllValuesAlsoWhenItKeepsFewer) {
  RunningMedian median;
  for (int i = 0; i < 100000; ++i) median.Add(i % 100);
  EXPECT_NEAR(median.Median(), 50, 2);
  EXPECT_LE(median.count(), 8192u);
}

TEST(RateMeter, KeepsFewSamplesAndMeasuresTheWindow) {
  RateMeter meter(10 * kSecond);
  for (TimeNs now = 0; now <= 60 * kSecond; now += kMillisecond)
    meter.Add(now, static_cast<uint64_t>(now / kMillisecond));
  EXPECT_TRUE(meter.covers_window());
  EXPECT_NEAR(meter.bytes_per_second(), 1000, 20);
}

TEST(ParseTriggerRate, TakesAShareAndATime) {
  TriggerOptions options;
  EXPECT_TRUE(ParseTriggerRate("--trigger-rate", "12.5%", &options).ok());
  EXPECT_DOUBLE_EQ(options.rate_share, 0.125);
  EXPECT_EQ(options.rate_window, 5 * kSecond);
  EXPECT_TRUE(ParseTriggerRate("--trigger-rate", "10%/2s", &options).ok());
  EXPECT_EQ(options.rate_window, 2 * kSecond);
  for (const char* bad : {"10", "%", "0%", "100%", "x%", "10%2s", "10%/", "10%/1ms", "-5%"}) {
    EXPECT_FALSE(ParseTriggerRate("--trigger-rate", bad, &options).ok()) << bad;
  }
}

class LineMatcherTest : public ::testing::Test {
 protected:
  void Watch(const std::vector<std::string>& patterns) {
    auto compiled = LinePatterns::Compile("--trigger", patterns);
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    matcher_ = std::make_unique<LineMatcher>(*compiled,
                                             [this](const LineHit& hit) { hits_.push_back(hit); });
  }
  void Print(std::string_view text) {
    matcher_->Add(text, offset_);
    offset_ += text.size();
  }
  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    for (const LineHit& hit : hits_) lines.push_back(hit.line);
    return lines;
  }
  using Texts = std::vector<std::string>;

  std::unique_ptr<LineMatcher> matcher_;
  std::vector<LineHit> hits_;
  uint64_t offset_ = 0;
};

TEST_F(LineMatcherTest, TellsTheLineAndItsPlace) {
  Watch({"panic"});
  Print("all is well\nkernel panic: 7\nwell\n");
  ASSERT_EQ(Lines(), Texts{"kernel panic: 7"});
  EXPECT_EQ(hits_[0].begin_offset, 12u);
  EXPECT_EQ(hits_[0].end_offset, 28u);
}

TEST_F(LineMatcherTest, FindsALineHoweverItIsCutIntoBlocks) {
  const std::string text = "one\nkernel panic: 7\nthree\n";
  for (size_t first = 0; first <= text.size(); ++first) {
    for (size_t second = first; second <= text.size(); ++second) {
      hits_.clear();
      offset_ = 0;
      Watch({"^kernel.*7$"});
      Print(text.substr(0, first));
      Print(text.substr(first, second - first));
      Print(text.substr(second));
      ASSERT_EQ(Lines(), Texts{"kernel panic: 7"}) << first << ' ' << second;
      EXPECT_EQ(hits_[0].begin_offset, 4u);
      EXPECT_EQ(hits_[0].end_offset, 20u);
    }
  }
}

TEST_F(LineMatcherTest, EachPatternMatchesEachLineOnce) {
  Watch({"a", "b+", "(?i)C"});
  Print("ab a\nx\nbb\nc\n");
  ASSERT_EQ(hits_.size(), 4u);
  EXPECT_EQ(hits_[0].pattern, 0u);
  EXPECT_EQ(hits_[1].pattern, 1u);
  EXPECT_EQ(hits_[2].pattern, 1u);
  EXPECT_EQ(hits_[3].pattern, 2u);
}

TEST_F(LineMatcherTest, NothingMatchesAcrossTheEndOfALine) {
  for (const char* pattern : {"a[^x]b", "a\\sb", "a(.|\\n)b"}) {
    hits_.clear();
    Watch({pattern});
    Print("a\nb\n");
    EXPECT_EQ(Lines(), Texts{}) << pattern;
    Print("a b\n");
    EXPECT_EQ(Lines(), Texts{"a b"}) << pattern;
  }
}

TEST_F(LineMatcherTest, EmptyLineIsOneOnlyWhereThereIsOne) {
  Watch({"^$"});
  Print("a\nb\n");
  EXPECT_EQ(hits_.size(), 0u);
  Print("\nc\n");
  EXPECT_EQ(hits_.size(), 1u);
}

TEST_F(LineMatcherTest, OpenLineMatchesOnceWhateverFollows) {
  Watch({"login:", "failed"});
  Print("x\nlogin: ");
  EXPECT_EQ(hits_.size(), 0u);
  matcher_->MatchOpenLine();
  matcher_->MatchOpenLine();
  EXPECT_EQ(hits_.size(), 1u);
  Print("root");
  matcher_->MatchOpenLine();
  Print(" failed\nlogin:\n");
  ASSERT_EQ(hits_.size(), 3u);
  EXPECT_EQ(hits_[1].line, "login: root failed");
  EXPECT_EQ(hits_[1].pattern, 1u);
  EXPECT_EQ(hits_[2].line, "login:");
}

TEST_F(LineMatcherTest, EndlessLineIsSearchedAndGivenUp) {
  Watch({"x"});
  const std::string piece(10000, 'a');
  for (int i = 0; i < 6; ++i) Print(piece);
  Print("x");
  for (int i = 0; i < 1000; ++i) Print(piece);
  EXPECT_EQ(hits_.size(), 1u);
}

TEST_F(LineMatcherTest, WhatFollowsALossIsNoContinuation) {
  Watch({"^ab$"});
  Print("a");
  matcher_->Cut();
  Print("b\nab\n");
  EXPECT_EQ(hits_.size(), 1u);
}

TEST_F(LineMatcherTest, GroupsOfOneNameInTwoPatterns) {
  Watch({"(?P<n>a)", "(?P<n>b)"});
  Print("a\nb\n");
  EXPECT_EQ(Lines(), (Texts{"a", "b"}));
}

TEST(LinePatterns, WhatIsNoExpressionIsToldWithAnExample) {
  for (const char* bad : {"a(b", "*", ""}) {
    auto compiled = LinePatterns::Compile("--trigger", {"fine", bad});
    ASSERT_FALSE(compiled.ok()) << bad;
    EXPECT_EQ(compiled.status().code(), Status::Code::kUsage);
    EXPECT_NE(compiled.status().message().find("for example --trigger"), std::string::npos);
  }
}

}  // namespace
}  // namespace hangscope
