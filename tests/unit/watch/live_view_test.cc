// The live view without a terminal: layout at sizes, picking, sorting, pages, and how often it
// draws.
#include "watch/live_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <numeric>
#include <set>

#include "fakes/fake_clock.h"
#include "fakes/fake_live_screen.h"
#include "watch/live_display.h"

namespace hangscope {
namespace {

using Kind = LiveKey::Kind;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr TimeNs kNow = 100 * kSecond;

uint32_t Waypoint(std::string_view text) {
  uint32_t word = 0;
  for (size_t i = 0; i < text.size(); ++i)
    word |= static_cast<uint32_t>(static_cast<uint8_t>(text[i])) << 8 * i;
  return word;
}

// Cores that run, as many as a test wants; it makes some of them wait.
class LiveViewTest : public ::testing::Test {
 protected:
  LiveViewTest() : names_(catalog_, nullptr, 0) { Cores(4); }
  void Cores(uint32_t count, uint32_t tasks = 0) {
    subjects_.clear();
    for (uint32_t core = 0; core < count; ++core) {
      SubjectState subject;
      subject.subject = {SubjectId::Kind::kCore, core};
      subject.activity = Activity::kRunning;
      subject.since = kNow - 2 * kSecond;
      subject.sample.in_use = true;
      subject.sample.waypoint = Waypoint("MULR");
      subjects_.push_back(subject);
    }
    for (uint32_t task = 0; task < tasks; ++task) {
      SubjectState subject;
      subject.subject = {SubjectId::Kind::kTask, task};
      subject.activity = Activity::kRunning;
      subject.task = 70 + task;
      subjects_.push_back(subject);
    }
  }
  void Wait(uint32_t core, TimeNs age) {
    subjects_[core].activity = Activity::kWaiting;
    subjects_[core].wait = WaitState{7, 0x1003, ResourceKind::kChannel, 0};
    subjects_[core].since = kNow - age;
    subjects_[core].sample.waypoint = Waypoint("CRBW");
  }
  void Deadlock(const std::vector<uint32_t>& cores) {
    ScopeFinding finding;
    finding.kind = FindingKind::kDeadlock;
    finding.confidence = Confidence::kCertain;
    for (const uint32_t core : cores) {
      Wait(core, 31 * kSecond);
      finding.subjects.push_back({SubjectId::Kind::kCore, core});
    }
    findings_.push_back(finding);
    data_.headline = "HANG: deadlock, 2 of 4 cores wait for each other (certain)";
    data_.headline_is_bad = data_.headline_holds = true;
    data_.bad_findings = 1;
  }
  LiveData Data() {
    LiveData data = data_;
    data.targets.push_back({{"fw", false, &subjects_, &names_, &nodes_, kNow, false},
                            &findings_,
                            LiveTarget::State::kWatched});
    return data;
  }
  std::vector<std::string> Lines(LiveSize size = {24, 80}) {
    view_.Update(Data());
    frame_ = view_.Frame(size, FakeLiveScreen::Columns, messages_);
    return FakeLiveScreen::LinesOf(frame_);
  }
  std::string Screen(LiveSize size = {24, 80}) {
    std::string text;
    for (const std::string& line : Lines(size)) text += line + "\n";
    return text;
  }
  LiveAction Press(Kind kind) { return view_.OnKey({kind, 0}, kNow); }
  LiveAction Press(std::string_view characters) {
    LiveAction action = LiveAction::kNone;
    for (const char c : characters)
      action = view_.OnKey({Kind::kCharacter, static_cast<char32_t>(c)}, kNow);
    return action;
  }
  // The number of the picked core.
  uint32_t Picked() { return view_.picked()->subject.index; }
  // Every row is within the screen, and no span lies on another.
  void ExpectFits(LiveSize size) {
    ASSERT_EQ(frame_.rows.size(), static_cast<size_t>(size.rows));
    const LivePainter ruler({1, 1000}, FakeLiveScreen::Columns);
    for (const auto& row : frame_.rows) {
      int end = 0;
      for (const LiveSpan& span : row) {
        EXPECT_GE(span.column, end) << span.text;
        end = span.column + ruler.Columns(span.text);
      }
      EXPECT_LE(end, size.columns) << (row.empty() ? "" : row.back().text);
    }
  }

  ScopeCatalog catalog_;
  WatchNames names_;
  std::vector<NodeSample> nodes_;
  std::vector<SubjectState> subjects_;
  std::vector<ScopeFinding> findings_;
  LiveData data_;
  std::vector<std::string> messages_;
  LiveView view_;
  LiveFrame frame_;
};

TEST_F(LiveViewTest, FewCoresAreALineEachWithStateWaypointWaitAndSinceWhen) {
  Deadlock({1, 2});
  const std::vector<std::string> lines = Lines();
  EXPECT_THAT(lines[1], StartsWith("HANG: deadlock, 2 of 4 cores wait for each other (certain)"));
  EXPECT_THAT(lines[2], HasSubstr("R 2 running  W 2 waiting"));
  EXPECT_EQ(lines[3], "   core  activity  at    waits for  since");
  EXPECT_EQ(lines[4], ">  0     running   MULR  -          -");
  EXPECT_EQ(lines[5], " ! 1     waiting   CRBW  0x1003     31.0 s");
  EXPECT_THAT(lines[20], HasSubstr("core 0: runs at MULR"));
}

TEST_F(LiveViewTest, WithoutAFindingItSaysThatThereWasNone) {
  EXPECT_THAT(Screen(), HasSubstr("no hang found so far"));
}

TEST_F(LiveViewTest, AFindingThatDoesNotHoldAnyMoreIsSaidToBeOver) {
  Deadlock({1, 2});
  data_.headline_holds = false;
  EXPECT_THAT(Screen(), HasSubstr("it was, and is over: HANG: deadlock"));
}

TEST_F(LiveViewTest, NothingIsLostAt40x10ButNamed) {
  Deadlock({1, 2});
  subjects_[1].sample.kernel = 12;
  const LiveSize size = {10, 40};
  std::vector<std::string> lines = Lines(size);
  ExpectFits(size);
  EXPECT_EQ(lines[0], "HANG: deadlock, 2 of 4 cores wait for");
  EXPECT_EQ(lines[1], "  each other (certain)");
  EXPECT_THAT(lines[2], StartsWith("4 cores  R 2 running  W 2 waiting"));
  EXPECT_EQ(lines[4], " !W1 CRBW  31s 0x1003") << "cells have room for all";
  Press("vvv");  // cells, small cells, lines
  Press(Kind::kHome);
  lines = Lines(size);
  EXPECT_THAT(lines[2], StartsWith("1-3 of 4  ")) << "and how many of all are seen";
  EXPECT_EQ(lines[8], "no room for: kernel");
  Press(Kind::kEnd);
  lines = Lines(size);
  EXPECT_THAT(lines[2], StartsWith("2-4 of 4  "));
  EXPECT_THAT(lines[7], StartsWith("> core 3: runs"));
}

TEST_F(LiveViewTest, EverySizeFits) {
  Deadlock({1, 2});
  Wait(3, 90 * 86400 * kSecond);
  for (const uint32_t cores : {4u, 1024u}) {
    if (cores == 1024) Cores(1024, 5);
    for (const auto& [rows, columns] : std::vector<std::pair<int, int>>{{5, 20},
                                                                        {6, 21},
                                                                        {7, 33},
                                                                        {9, 40},
                                                                        {10, 40},
                                                                        {16, 61},
                                                                        {24, 80},
                                                                        {60, 200},
                                                                        {3, 30},
                                                                        {24, 10},
                                                                        {1, 1}}) {
      for (const char* page : {"", "m", "?"}) {
        for (int form = 0; form < 4; ++form) {
          Press("v");
          Press(page);
          (void)Lines({rows, columns});
          ExpectFits({rows, columns});
          Press(Kind::kEscape);
        }
      }
    }
  }
}

TEST_F(LiveViewTest, AScreenThatIsTooSmallSaysSo) {
  EXPECT_EQ(Lines({4, 60})[0], "60x4 is too small, 20x5 will do");
}

TEST_F(LiveViewTest, A1024CoresAreSeenAtOnceWhereThereIsRoom) {
  Cores(1024);
  const std::string screen = Screen({60, 200});
  for (const uint32_t core : {0u, 511u, 1023u})
    EXPECT_THAT(screen, HasSubstr("R" + std::string(4 - std::to_string(core).size(), ' ') +
                                  std::to_string(core)));
  EXPECT_THAT(screen, HasSubstr("1024 cores  R 1024 running"));
}

TEST_F(LiveViewTest, Of1024CoresEachIsReachedByScrollingAt80x24) {
  Cores(1024);
  Wait(700, 3 * kSecond);
  std::set<std::string> seen;
  for (int page = 0; page < 40; ++page) {
    const std::string screen = Screen();
    for (uint32_t core = 0; core < 1024; ++core) {
      const std::string label =
          std::string(4 - std::to_string(core).size(), ' ') + std::to_string(core);
      if (screen.find("R" + label + " MULR") != std::string::npos ||
          screen.find("W" + label + " CRBW 3.0s") != std::string::npos)
        seen.insert(label);
    }
    Press(Kind::kPageDown);
  }
  EXPECT_EQ(seen.size(), 1024u);
  EXPECT_EQ(Picked(), 1023u);
  EXPECT_THAT(Screen(), HasSubstr("of 1024  R 1023 running  W 1 waiting"));
}

TEST_F(LiveViewTest, KeysPickANeighbour) {
  Cores(1024);
  (void)Lines();
  const auto in_row = [&] {  // found by moving down
    Press(Kind::kDown);
    return Picked();
  }();
  EXPECT_GT(in_row, 1u);
  Press("l");
  EXPECT_EQ(Picked(), in_row + 1);
  Press("k");
  EXPECT_EQ(Picked(), 1u);
  Press("h");
  Press(Kind::kLeft);
  EXPECT_EQ(Picked(), 0u);
  Press(Kind::kEnd);
  EXPECT_EQ(Picked(), 1023u);
  Press("j");
  EXPECT_EQ(Picked(), 1023u);
  Press(Kind::kPageUp);
  EXPECT_LT(Picked(), 1023u);
  Press(Kind::kHome);
  EXPECT_EQ(Picked(), 0u);
}

TEST_F(LiveViewTest, ATypedNumberPicksThatCoreAndItIsScrolledTo) {
  Cores(1024, 1);
  Press("7");
  (void)Lines();
  Press("31");
  EXPECT_EQ(Picked(), 731u);
  EXPECT_THAT(Screen(), HasSubstr("> R 731 MULR")) << "scrolled to it";
  view_.OnKey({Kind::kCharacter, '5'}, kNow + 2 * kSecond);
  EXPECT_EQ(Picked(), 5u) << "later digits begin anew";
  Press("q");
  Press("9999");
  EXPECT_EQ(Picked(), 999u);
  EXPECT_THAT(Screen(), HasSubstr("no core or task 9999 is shown"));
  Press("s");
  Press("70");
  EXPECT_EQ(Picked(), 70u) << "cores before tasks";
}

TEST_F(LiveViewTest, TheFirstThatIsBadIsFoundAndThenTheNext) {
  Cores(1024);
  Deadlock({600, 12});
  (void)Lines();
  Press("f");
  EXPECT_EQ(Picked(), 12u);
  Press("f");
  EXPECT_EQ(Picked(), 600u);
  Press("f");
  EXPECT_EQ(Picked(), 12u);
  Press("f");
  Press(Kind::kHome);
  Press("f");
  EXPECT_EQ(Picked(), 12u);
  findings_.clear();
  (void)Lines();
  Press("f");
  EXPECT_THAT(Screen(), HasSubstr("nothing is wrong with any core or task"));
}

TEST_F(LiveViewTest, SortingPutsTheBadFirstAndThePickStays) {
  Cores(1024);
  Deadlock({600, 12});
  subjects_[800].activity = Activity::kHalted;
  (void)Lines();
  Press("3s");
  const std::vector<std::string> lines = Lines();
  EXPECT_EQ(Picked(), 3u);
  EXPECT_THAT(lines[3], HasSubstr("!W  12 CRBW  31s")) << "bad ones by number";
  EXPECT_LT(lines[3].find("W  12"), lines[3].find("W 600"));
  EXPECT_LT(lines[3].find("W 600"), lines[3].find("H 800"));
  Press("s");
  EXPECT_THAT(Lines()[3], HasSubstr("R   0 MULR"));
}

TEST_F(LiveViewTest, AFilterShowsOnlyThoseWithIt) {
  Cores(30);
  Deadlock({3, 4});
  Press("/WAIT");
  EXPECT_THAT(Screen(), HasSubstr("/WAIT_"));
  EXPECT_EQ(Press("q"), LiveAction::kNone) << "while it is typed, q is a letter";
  EXPECT_THAT(Screen(), HasSubstr("no core or task passes the filter"));
  EXPECT_FALSE(view_.picked());
  Press(Kind::kBackspace);
  Press(Kind::kEnter);
  EXPECT_THAT(Screen(), HasSubstr("with 'WAIT'  W 2 waiting"));
  EXPECT_THAT(Screen(), Not(HasSubstr("MULR")));
  EXPECT_EQ(Picked(), 3u);
  Press(Kind::kEscape);
  EXPECT_THAT(Screen(), HasSubstr("R 28 running"));
  EXPECT_EQ(Picked(), 3u);
}

TEST_F(LiveViewTest, EnterOpensDetailsAndNothingElseAndEscapeLeadsBack) {
  Deadlock({1, 2});
  (void)Lines();
  Press("1");
  EXPECT_FALSE(view_.WantsDetails());
  EXPECT_EQ(Press(Kind::kEnter), LiveAction::kNone) << "the habit of plain mode resumes nothing";
  ASSERT_TRUE(view_.WantsDetails());
  EXPECT_THAT(Screen(), HasSubstr("being read ..."));
  LiveDetails details;
  details.suppliers = {"core 2"};
  details.ring.ring.emplace();
  details.ring.ring->counts = {100, 6, 90, 1, 2, 1, 0};
  details.ring.events = {{"1.5", "older"}, {"12.5", "copied block 7"}};
  details.debug = {{2, 1, 0xabcd}, {1, 1, 0x1234}};
  view_.SetDetails(*view_.WantsDetails(), details);
  const std::string screen = Screen();
  EXPECT_THAT(screen, StartsWith("core 1 of fw\nHANG: deadlock, 2 of 4 cores wait for each other "
                                 "(certain)\nwaits 31.0 s at CRBW for 0x1003\n"));
  EXPECT_THAT(screen, HasSubstr("provided   by core 2\n"));
  EXPECT_THAT(screen, HasSubstr("ring       100 emitted: 6 there, 90 overwritten, 1 torn, 2 "
                                "refused, 1 being\n    written\n"));
  EXPECT_THAT(screen, HasSubstr("  12.5  copied block 7\n   1.5  older\n"));
  EXPECT_THAT(screen, HasSubstr("0000abcd 00001234   (core 1)"));
  EXPECT_EQ(Press(Kind::kEnter), LiveAction::kNone);
  EXPECT_EQ(Press("q"), LiveAction::kNone) << "back";
  EXPECT_FALSE(view_.WantsDetails());
  EXPECT_EQ(Press("q"), LiveAction::kQuit);
}

TEST_F(LiveViewTest, APageThatIsTooLongScrolls) {
  for (int i = 0; i < 50; ++i) messages_.push_back("line " + std::to_string(i));
  Press("m");
  EXPECT_THAT(Screen({10, 40}), HasSubstr("1-8 of 50 lines"));
  Press(Kind::kEnd);
  EXPECT_THAT(Screen({10, 40}), HasSubstr("line 49\n"));
  EXPECT_THAT(Screen({10, 40}), HasSubstr("43-50 of 50"));
  Press("k");
  EXPECT_THAT(Screen({10, 40}), Not(HasSubstr("line 49")));
}

TEST_F(LiveViewTest, HelpFitsAScreenAndSaysWhatLettersMean) {
  Press("?");
  const std::string screen = Screen();
  EXPECT_THAT(screen, HasSubstr("r          lets all paused cores go on"));
  EXPECT_THAT(screen, HasSubstr("! a bad finding"));
  EXPECT_THAT(screen, HasSubstr("ESC back"));
  EXPECT_THAT(screen, Not(HasSubstr(" lines, arrows")));
}

TEST_F(LiveViewTest, PausedTheDisplayStaysAsItWasWhateverHappens) {
  (void)Lines();
  Press("p");
  Deadlock({1, 2});
  data_.headline.clear();
  EXPECT_THAT(Screen(), HasSubstr("R 4 running\n"));
  EXPECT_THAT(Screen(), HasSubstr("DISPLAY PAUSED"));
  Press("j");
  EXPECT_EQ(Picked(), 1u) << "keys go on";
  Press("p");
  EXPECT_THAT(Screen(), HasSubstr("W 2 waiting"));
}

TEST_F(LiveViewTest, PausedCoresAreNamedWithTheKeyThatResumesThem) {
  subjects_[2].activity = Activity::kPaused;
  EXPECT_THAT(Screen(), HasSubstr("1 paused: r lets it go on"));
  EXPECT_EQ(Press("r"), LiveAction::kResume);
}

TEST_F(LiveViewTest, SeveralTargetsAreToldApart) {
  view_.Update(Data());
  LiveData data = Data();
  data.targets.push_back(data.targets[0]);
  data.targets[1].scene.target = "other";
  data.targets[1].state = LiveTarget::State::kOver;
  view_.Update(data);
  std::vector<std::string> lines =
      FakeLiveScreen::LinesOf(view_.Frame({24, 80}, FakeLiveScreen::Columns, {}));
  EXPECT_THAT(lines[0], HasSubstr("1: fw, 2: other (ended)"));
  EXPECT_THAT(lines[4], StartsWith(">  1:0 "));
  EXPECT_THAT(lines[8], StartsWith("   2:0 "));
}

TEST_F(LiveViewTest, TextOfTheTargetStaysText) {
  data_.headline_holds = true;
  data_.headline =
      "FAULT: \x1b[2J\x9b"
      "31m \xe2\x80\xae \xe4\xb8\xad\xe6\x96\x87 e\xcc\x81";
  const std::string line = Lines()[1];
  EXPECT_THAT(line,
              StartsWith("FAULT: \\x1b[2J\\x9b31m \\xe2\\x80\\xae \xe4\xb8\xad\xe6\x96\x87 e?"));
}

TEST(LivePainter, CutsAndSaysSo) {
  LivePainter painter({1, 5}, FakeLiveScreen::Columns);
  EXPECT_EQ(painter.Put(0, 0, "abcdefg"), 5);
  EXPECT_EQ(painter.Take().rows[0][0].text, "abcd~");
  LivePainter wide({1, 4}, FakeLiveScreen::Columns);
  EXPECT_EQ(wide.Put(0, 0, "\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad"), 3)
      << "half a character is none";
}

TEST(LivePainter, WrapsBetweenWordsAndThroughLongOnes) {
  const LivePainter painter({1, 10}, FakeLiveScreen::Columns);
  EXPECT_EQ(painter.Wrap("one two three", 2), (std::vector<std::string>{"one two", "  three"}));
  EXPECT_EQ(painter.Wrap("0123456789abcdefghij", 2),
            (std::vector<std::string>{"0123456789", "  abcdefgh", "  ij"}));
  EXPECT_EQ(painter.Wrap("exactlyten x", 0), (std::vector<std::string>{"exactlyten", "x"}));
  EXPECT_EQ(painter.Wrap("", 2), std::vector<std::string>{""});
}

TEST(ShortElapsed, FitsFourColumns) {
  EXPECT_EQ(ShortElapsed(0), "0.0s");
  EXPECT_EQ(ShortElapsed(9'990 * kMillisecond), "9.9s");
  EXPECT_EQ(ShortElapsed(10 * kSecond), "10s");
  EXPECT_EQ(ShortElapsed(100 * kSecond), "1m");
  EXPECT_EQ(ShortElapsed(100 * 60 * kSecond), "1h");
  EXPECT_EQ(ShortElapsed(5 * 86400 * kSecond), "5d");
}

// The display over a clock that the test moves.
class LiveDisplayTest : public LiveViewTest {
 protected:
  LiveDisplayTest()
      : display_(screen_, clock_,
                 LiveCallbacks{[this] { return Data(); },
                               [this](const LiveSubject&) {
                                 ++details_read_;
                                 clock_.Advance(details_take_);
                                 return LiveDetails();
                               },
                               [this] { ++resumed_; }}) {
    EXPECT_TRUE(display_.Open().ok());
  }
  // As a watcher that polls every 10 ms.
  void Run(TimeNs length) {
    for (const TimeNs end = clock_.Monotonic() + length; clock_.Monotonic() < end;
         clock_.Advance(10 * kMillisecond)) {
      data_.elapsed = clock_.Monotonic();
      display_.Tick();
    }
  }

  FakeClock clock_;
  FakeLiveScreen screen_;
  int details_read_ = 0;
  TimeNs details_take_ = 0;
  int resumed_ = 0;
  LiveDisplay display_;
};

TEST_F(LiveDisplayTest, ItDrawsAtMostTenTimesASecondHoweverMuchIsNew) {
  for (const TimeNs end = clock_.Monotonic() + 5 * kSecond; clock_.Monotonic() < end;
       clock_.Advance(kMillisecond)) {
    data_.elapsed += kSecond;
    screen_.keys.push_back({Kind::kCharacter, 's'});
    display_.OnInput();
    display_.Tick();
  }
  EXPECT_EQ(screen_.shown, 50);
}

TEST_F(LiveDisplayTest, WhatDidNotChangeIsNotShownAgain) {
  display_.Tick();
  EXPECT_EQ(screen_.shown, 1);
  clock_.Advance(10 * kSecond);
  display_.Tick();
  EXPECT_EQ(screen_.shown, 1);
}

TEST_F(LiveDisplayTest, AFindingIsSeenWithinATenthOfASecond) {
  Run(kSecond);
  Deadlock({1, 2});
  display_.Say("hangscope: HANG\n  core 1\n");
  Run(110 * kMillisecond);
  EXPECT_THAT(screen_.lines[1], StartsWith("HANG: deadlock"));
}

TEST_F(LiveDisplayTest, WhatWasSaidIsKeptForTheEndWithinABound) {
  display_.Say("one\ntwo\n");
  display_.Close();
  EXPECT_FALSE(screen_.open);
  EXPECT_EQ(display_.DrainSaid(), "one\ntwo\n");
  for (int i = 0; i < 6; ++i) display_.Say(std::string(1u << 20, 'x') + "\n");
  const std::string said = display_.DrainSaid();
  EXPECT_LT(said.size(), (4u << 20) + 200);
  EXPECT_THAT(said.substr(0, 80), HasSubstr("2 older lines are left out here"));
}

TEST_F(LiveDisplayTest, SignalsOfTheTerminalActAtOnce) {
  display_.Tick();
  screen_.next = {10, 40};
  EXPECT_TRUE(display_.OnSignal(SIGWINCH));
  EXPECT_EQ(screen_.lines.size(), 10u) << "drawn in the new size without waiting";
  EXPECT_TRUE(display_.OnSignal(SIGTSTP));
  EXPECT_EQ(screen_.suspended, 1);
  EXPECT_FALSE(display_.OnSignal(SIGINT));
}

TEST_F(LiveDisplayTest, InTheBackgroundNothingIsDrawnAndThenAllOfIt) {
  display_.Tick();
  screen_.ours = false;
  Run(2 * kSecond);
  EXPECT_EQ(screen_.shown, 1);
  screen_.ours = true;
  Run(300 * kMillisecond);
  EXPECT_GE(screen_.shown, 2);
}

TEST_F(LiveDisplayTest, DetailsAreReadTwiceASecondAndMoreSeldomWhereThatTakesLong) {
  display_.Tick();
  screen_.keys.push_back({Kind::kEnter, 0});
  display_.OnInput();
  Run(5 * kSecond);
  EXPECT_GE(details_read_, 7);
  EXPECT_LE(details_read_, 11);
  details_read_ = 0;
  details_take_ = 100 * kMillisecond;
  Run(10 * kSecond);
  EXPECT_LE(details_read_, 6);
}

TEST_F(LiveDisplayTest, KeysQuitAndResume) {
  display_.Tick();
  screen_.keys.push_back({Kind::kCharacter, 'r'});
  display_.OnInput();
  EXPECT_EQ(resumed_, 1);
  EXPECT_FALSE(display_.quits());
  screen_.keys.push_back({Kind::kCharacter, 'q'});
  display_.OnInput();
  EXPECT_TRUE(display_.quits());
}

}  // namespace
}  // namespace hangscope
