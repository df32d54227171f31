// Loops of log lines, and what becomes of them over time.
#include "stream/log_analysis.h"

#include <gtest/gtest.h>

#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "ring/ring_store.h"
#include "stream/log_reader.h"
#include "stream/stream_analyst.h"

namespace hangscope {
namespace {

using Motion = CoreFinding::Motion;

std::vector<Step> StepsOf(const std::string& text) {
  CoreNames names;
  std::vector<Step> steps;
  LogReader reader(&names, nullptr, nullptr, "stdout",
                   [&](uint32_t, const Step& step) { steps.push_back(step); });
  reader.Feed(text, 0);
  return steps;
}

std::string Times(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

CoreFinding Analyze(const std::string& text, uint64_t old_offset) {
  const std::vector<Step> steps = StepsOf(text);
  return AnalyzeLog(steps, old_offset);
}

const std::string kBoot = "starting\nmounting\nprobing eth0\n";
const std::string kWait = "waiting for eth0\nno link, retry\n";

TEST(AnalyzeLog, SameLinesWithTheSameValuesSpin) {
  const CoreFinding finding = Analyze(kBoot + Times(kWait, 4), 40);
  EXPECT_EQ(finding.motion, Motion::kSpinning);
  EXPECT_EQ(finding.basis, LoopBasis::kLines);
  EXPECT_EQ(finding.loop.size(), 2u);
  EXPECT_EQ(finding.loop_begin, kBoot.size());
  EXPECT_FALSE(finding.came_before);
}

TEST(AnalyzeLog, ValuesThatChangeOnlyRepeat) {
  std::string text = kBoot;
  for (int i = 0; i < 20; ++i) text += "retry " + std::to_string(i) + "\n";
  const CoreFinding finding = Analyze(text, kBoot.size() + 10);
  EXPECT_EQ(finding.motion, Motion::kRepeating);
  EXPECT_EQ(finding.basis, LoopBasis::kPlaces);
}

TEST(AnalyzeLog, TimeStampsMayChange) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "[   " + std::to_string(10 + i) + ".000001] retry 3\n";
  EXPECT_EQ(Analyze(text, 1).motion, Motion::kSpinning);
}

// The last lines may well be equal by chance while the values have changed for long.
TEST(AnalyzeLog, LongRepetitionOfPlacesWinsOverAYoungOneOfValues) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "retry " + std::to_string(i) + "\n";
  text += Times("retry 20\n", 4);
  EXPECT_EQ(Analyze("x\n" + text, 10).motion, Motion::kRepeating);
  EXPECT_EQ(Analyze("x\n" + text, text.size() - 5).motion, Motion::kSpinning);
}

TEST(AnalyzeLog, GrowingLogHasNoLoop) {
  std::string text;
  for (int i = 0; i < 50; ++i)
    text += std::string("building ") + static_cast<char>('a' + i % 26) +
            static_cast<char>('a' + i / 26) + "\n";
  EXPECT_EQ(Analyze(text, 100).motion, Motion::kMoving);
}

TEST(AnalyzeLog, LongRoundOnlyRepeats) {
  std::string round;
  for (char c = 'a'; c <= 'z'; ++c) round += std::string("step ") + c + "\n" + "done " + c + "\n";
  EXPECT_EQ(Analyze(Times(round, 5), 10).motion, Motion::kRepeating);
}

TEST(AnalyzeLog, LinesThatCameBetweenOthersBeforeAreASignOfLife) {
  std::string text;
  for (char c = 'a'; c <= 'f'; ++c) text += std::string("work ") + c + "\nalive\n";
  const CoreFinding finding =
      Analyze(text + "end of work\n" + Times("alive\n", 10), text.size() + 12);
  EXPECT_EQ(finding.motion, Motion::kSpinning);
  EXPECT_TRUE(finding.came_before);
}

TEST(ArrivalLog, NeverClaimsThatSomethingCameEarlierThanItDid) {
  ArrivalLog log;
  for (uint64_t i = 1; i <= 5000; ++i) log.Note(i * 10, static_cast<TimeNs>(i) * kSecond);
  for (uint64_t offset = 0; offset < 50'000; offset += 7) {
    const TimeNs arrived = static_cast<TimeNs>(offset / 10 + 1) * kSecond;
    ASSERT_GE(log.ArrivedBy(offset).value(), arrived);
  }
  EXPECT_EQ(log.ArrivedBy(49'995), 5000 * kSecond);  // what is new is exact
  EXPECT_FALSE(log.ArrivedBy(50'000).has_value());
  EXPECT_EQ(log.OffsetBefore(4990 * kSecond), 49'900u);
  EXPECT_EQ(log.OffsetBefore(0), 0u);
  for (TimeNs time = kSecond; time < 5000 * kSecond; time += 7 * kSecond) {
    ASSERT_LE(log.OffsetBefore(time), static_cast<uint64_t>(time / kSecond) * 10);
  }
}

// A stream that is printed and looked at second by second.
class LogStreamTest : public ::testing::Test {
 protected:
  void Open(const PlaceRule* rule = nullptr, const char* size = "1M") {
    auto plan = PlanRing(size, "1", 10);
    auto store = RingStore::Create(disk_, clock_, "dir/log", "stdout", *plan, 7);
    store_ = std::move(*store);
    store_->Append("begin of it\n", clock_.Monotonic());
    auto reader = BlockReader::Open(disk_, "dir/log");
    ASSERT_TRUE(reader.ok());
    analyst_ = std::make_unique<StreamAnalyst>(std::move(*reader), nullptr, rule, 10 * kSecond);
  }
  void Print(const std::string& text) {
    clock_.Advance(kSecond);
    store_->Append(text, clock_.Monotonic());
    analyst_->Sample(clock_.Monotonic());
  }
  const CoreTrack& Log() { return analyst_->cores().at(0); }
  TimeNs LoopAge() { return clock_.Monotonic() - Log().loop_since; }

  FakeFileSystem disk_;
  FakeClock clock_;
  std::unique_ptr<RingStore> store_;
  std::unique_ptr<StreamAnalyst> analyst_;
};

TEST_F(LogStreamTest, SlowLoopIsAsOldAsItsFirstLine) {
  Open();
  for (int i = 0; i < 5; ++i) Print(kBoot + std::to_string(i) + "\n");
  for (int i = 0; i < 12; ++i) Print(kWait);
  EXPECT_TRUE(analyst_->is_log());
  EXPECT_EQ(Log().finding.motion, Motion::kSpinning);
  EXPECT_EQ(LoopAge(), 11 * kSecond);
  const auto proofs =
      analyst_->Prove(analyst_->OffsetAt(clock_.Monotonic() - 10 * kSecond), [] { return false; });
  EXPECT_EQ(proofs[0].rounds, 12u);
  EXPECT_EQ(analyst_->TimeOf(proofs[0].entered_offset), Log().loop_since);
  EXPECT_EQ(analyst_->texts().Find(Log().finding.loop.at(0)), "waiting for eth0");
}

TEST_F(LogStreamTest, FastLoopIsOldOnceManySamplesShowedIt) {
  Open(nullptr, "16M");
  for (int i = 0; i < 12; ++i) Print(Times(kWait, 10'000));
  EXPECT_EQ(Log().finding.motion, Motion::kSpinning);
  EXPECT_GE(LoopAge(), 10 * kSecond);
  EXPECT_EQ(analyst_->Prove(0, [] { return false; })[0].rounds, 120'000u);
}

TEST_F(LogStreamTest, LineBetweenBeginsTheLoopAnew) {
  Open();
  for (int i = 0; i < 20; ++i) Print(kWait);
  Print("eth0 is up\n");
  for (int i = 0; i < 5; ++i) Print(kWait);
  EXPECT_EQ(LoopAge(), 4 * kSecond);
  EXPECT_GE(Log().longest_loop, 19 * kSecond);
}

TEST_F(LogStreamTest, OtherValuesAreAnotherLoop) {
  Open();
  for (int i = 0; i < 20; ++i) Print("no link, error 3\n");
  for (int i = 0; i < 30; ++i) Print("no link, error 4\n");
  EXPECT_EQ(LoopAge(), 29 * kSecond);
}

TEST_F(LogStreamTest, OtherValuesAreAnotherLoopAlsoWhereASampleShowsNothingElse) {
  Open(nullptr, "16M");
  for (int i = 0; i < 12; ++i) Print(Times("no link, error 3\n", 20'000));
  EXPECT_GE(LoopAge(), 10 * kSecond);
  Print(Times("no link, error 4\n", 20'000));
  EXPECT_EQ(LoopAge(), 0);
}

TEST_F(LogStreamTest, RuleCountsPlacesAloneCoreByCore) {
  auto rule = PlaceRule::Compile(R"(core (?P<core>\d+) (?P<place>\w+))");
  Open(rule->get());
  for (int i = 0; i < 15; ++i) {
    Print("core 0 WAIT " + std::to_string(i) + "\nunrelated " + std::to_string(i * 7) +
          "\ncore 0 POLL 1\n");
    Print("core 1 w" + std::to_string(i) + "\n");
  }
  ASSERT_EQ(analyst_->cores().size(), 2u);
  EXPECT_EQ(Log().name, "core 0");
  EXPECT_EQ(Log().finding.motion, Motion::kSpinning);
  EXPECT_EQ(Log().finding.basis, LoopBasis::kPlaces);
  EXPECT_EQ(analyst_->cores()[1].finding.motion, Motion::kMoving);
}

TEST_F(LogStreamTest, TraceThatFollowsABootLogIsATrace) {
  Open();
  for (int i = 0; i < 3; ++i) Print(kBoot);
  EXPECT_TRUE(analyst_->is_log());
  Print(Times("core   0: 3 0x80000010 (0x00072783) x15 0x00000000 mem 0x8000b210\n", 200));
  EXPECT_TRUE(analyst_->is_trace());
  EXPECT_FALSE(analyst_->is_log());
  EXPECT_EQ(Log().name, "hart 0");
}

TEST_F(LogStreamTest, BinaryInputIsTakenAndForgotten) {
  Open(nullptr, "16M");
  uint32_t state = 1;
  for (int second = 0; second < 20; ++second) {
    std::string noise(300'000, '\0');
    for (char& byte : noise) {
      state = state * 1664525 + 1013904223;
      byte = static_cast<char>(state >> 24);
    }
    Print(noise);
  }
  EXPECT_FALSE(Log().finding.IsLoop());
  EXPECT_LE(analyst_->texts().size(), 2 * PlaceTexts::kMostInGeneration);
  EXPECT_LE(Log().places.size(), 50'000u);
}

}  // namespace
}  // namespace hangscope
