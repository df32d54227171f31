// What a log line says, and with which values.
#include "stream/log_line.h"

#include <gtest/gtest.h>

#include "stream/log_reader.h"
#include "stream/place_rule.h"

namespace hangscope {
namespace {

std::string TextOf(std::string_view line) {
  std::string text;
  NormalizeLogLine(line, &text);
  return text;
}

uint64_t ValuesOf(std::string_view line) {
  std::string text;
  return NormalizeLogLine(line, &text).values;
}

struct Sample {
  const char* line;
  const char* text;
};

TEST(LogLine, NumbersBecomePlaceholders) {
  const Sample samples[] = {
      {"foo retry 3", "foo retry <n>"},
      {"test 17 ... ok", "test <n> ... ok"},
      {"[ 12%] Building CXX object", "[ <n>%] Building CXX object"},
      {"[12/91] Linking", "[<n>/<n>] Linking"},
      {"took 1.25s, 3 MB of 1,024", "took <n>s, <n> MB of <n>"},
      {"addr 0x7fff1234 len 0X10", "addr <hex> len <hex>"},
      {"commit 3f2a9c41 pushed", "commit <hex> pushed"},
      {"id 123e4567-e89b-12d3-a456-426614174000 done", "id <id> done"},
      {"from 192.168.1.17:8080", "from <n>:<n>"},
      {"eth0: link x86 uint8_t", "eth0: link x86 uint8_t"},
      {"test_17 test-18", "test_<n> test-<n>"},
      {"deadbeef facade cafe", "deadbeef facade cafe"},
      {"a   b\tc  ", "a b c"},
      {"\033[32mPASS\033[0m \033]0;title\007x", "PASS x"},
      {"gr\xc3\xbc\xc3\x9f 7 mal", "gr\xc3\xbc\xc3\x9f <n> mal"},
      {"bell\a and \x01 nul", "bell and nul"},
      {"1e-05", "<n>e-<n>"},
      {"0x", "<n>x"},
      {"12.345 MB copied", "<n> MB copied"},
      {"30 s remaining", "<n> s remaining"},
      {"waited for 00:01:23", "waited for <n>:<n>:<n>"},
      {"", ""},
  };
  for (const Sample& sample : samples) EXPECT_EQ(TextOf(sample.line), sample.text) << sample.line;
}

TEST(LogLine, TimeStampsAreNoValues) {
  const Sample samples[] = {
      {"[   12.345678] foo", "[ <time>] foo"},
      {"[   12.345678][  T123] foo", "[ <time>][ T123] foo"},
      {"Nov 21 12:31:54 host kernel: [   12.345678] foo", "<time> host kernel: [ <time>] foo"},
      {"2026-11-21T12:31:54.518Z foo", "<time> foo"},
      {"2026-11-21 12:31:54,518 +0100 INFO foo", "<time> INFO foo"},
      {"INFO 12:31:54 foo", "INFO <time> foo"},
      {"(at 2026/11/21) foo", "(at <time>) foo"},
      {"[00:00:01.234,567] <inf> foo", "[<time>] <inf> foo"},
      {"I (12345) wifi: foo", "I (<time>) wifi: foo"},
      {"I1121 12:31:54.518123 foo", "<time> foo"},
      {"Fri Nov 21 12:31:54 2026 foo", "<time> foo"},
      {"11-21 12:31:54.518 foo", "<time> foo"},
      {"127.0.0.1 - - [21/Nov/2026:12:31:54 +0000] GET", "<n> - - [<time>] GET"},
      {"1732191114.123 foo", "<time> foo"},
      {"level=info ts=1732191114.123 msg=foo", "level=info ts=<time> msg=foo"},
      {"UVM_INFO top.sv(88) @ 12300: foo", "UVM_INFO top.sv(<n>) @ <time>: foo"},
      {"@ 12300 ns: foo", "@ <time>: foo"},
      {"12300 ns: foo", "<time>: foo"},
      {"0.123456 foo", "<time> foo"},
  };
  for (const Sample& sample : samples) EXPECT_EQ(TextOf(sample.line), sample.text) << sample.line;
  EXPECT_EQ(ValuesOf("[   12.345678] foo 3"), ValuesOf("[   99.000001] foo 3"));
  EXPECT_EQ(ValuesOf("2026-11-21 12:31:54 foo 3"), ValuesOf("2027-01-02 00:00:00 foo 3"));
}

TEST(LogLine, EveryOtherNumberIsAValue) {
  EXPECT_NE(ValuesOf("retry 3"), ValuesOf("retry 4"));
  EXPECT_NE(ValuesOf("[ 12%] x"), ValuesOf("[ 13%] x"));
  EXPECT_NE(ValuesOf("took 1.2s"), ValuesOf("took 1.3s"));
  EXPECT_NE(ValuesOf("a 0x10"), ValuesOf("a 0x11"));
  EXPECT_NE(ValuesOf("12.345 MB copied"), ValuesOf("12.346 MB copied"));
  EXPECT_NE(ValuesOf("time=00:00:12"), ValuesOf("time=00:00:13"));
  EXPECT_NE(ValuesOf("1 2"), ValuesOf("2 1"));
}

// What cannot be looked at in full is compared in full all the same.
TEST(LogLine, EndOfALongLineCounts) {
  const std::string long_part(5000, 'x');
  EXPECT_NE(ValuesOf(long_part + "1"), ValuesOf(long_part + "2"));
  EXPECT_EQ(ValuesOf(long_part + "1"), ValuesOf(long_part + "1"));
  EXPECT_LE(TextOf(long_part).size(), kLongestPlaceText);
}

TEST(LogLine, WhatTheCarriageReturnOverwritesIsGone) {
  std::string text;
  const LogLine bar = NormalizeLogLine("10%\r 20%\r done", &text);
  EXPECT_EQ(text, "done");
  EXPECT_TRUE(bar.redrawn);
  for (const char* plain : {"done\r", "\rdone", "\r\rdone\r"}) {
    EXPECT_FALSE(NormalizeLogLine(plain, &text).redrawn) << plain;
    EXPECT_EQ(text, "done");
  }
}

TEST(LogLine, RulersAndDotsAndMereTimesSayNothing) {
  std::string text;
  for (const char* line :
       {"", "   ", "-----", "=== ... ===", "........", "12:31:54", "[   12.345678]"}) {
    EXPECT_FALSE(NormalizeLogLine(line, &text).has_place) << line;
  }
  EXPECT_TRUE(NormalizeLogLine("7", &text).has_place);
}

TEST(LogLine, AnyBytesAreTaken) {
  std::string text;
  for (int seed = 0; seed < 200; ++seed) {
    std::string line;
    uint32_t state = static_cast<uint32_t>(seed) * 2654435761u + 1;
    for (int i = 0; i < 300; ++i) {
      state = state * 1664525 + 1013904223;
      line += static_cast<char>(
          seed % 2 == 0 ? state >> 24 : "0123456789abcxf:-./[]@ \033\rT"[(state >> 24) % 26]);
    }
    for (size_t length = 0; length < line.size(); length += 7)
      NormalizeLogLine(std::string_view(line).substr(0, length), &text);
  }
}

class PlaceRuleTest : public ::testing::Test {
 protected:
  static std::string ErrorOf(const std::string& pattern) {
    auto rule = PlaceRule::Compile(pattern);
    return rule.ok() ? "" : rule.status().message();
  }
};

TEST_F(PlaceRuleTest, TakesThePlaceAndTheCore) {
  auto rule = PlaceRule::Compile(R"(core (?P<core>\d+): state (?P<place>\w+))");
  ASSERT_TRUE(rule.ok());
  const auto match = (*rule)->Find("[1] core 3: state WAIT at 7");
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->place, "WAIT");
  EXPECT_EQ(match->core, "3");
  EXPECT_FALSE((*rule)->Find("something else").has_value());
}

TEST_F(PlaceRuleTest, FirstGroupIsThePlaceWhereNoneHasThatName) {
  auto first = PlaceRule::Compile(R"(at (\w+) (\w+))");
  EXPECT_EQ((*first)->Find("at one two")->place, "one");
  auto beside_core = PlaceRule::Compile(R"((?P<core>\w+) at (\w+))");
  EXPECT_EQ((*beside_core)->Find("pe0 at one")->place, "one");
}

TEST_F(PlaceRuleTest, EmptyPlaceIsNone) {
  auto rule = PlaceRule::Compile(R"(at (\w*))");
  EXPECT_FALSE((*rule)->Find("at !").has_value());
}

TEST_F(PlaceRuleTest, ErrorsSayWhatIsWrongAndGiveAnExample) {
  const std::pair<const char*, const char*> cases[] = {
      {"a(b", "missing )"},
      {"abc", "no group"},
      {"(?P<plcae>x)", "'plcae' is neither"},
      {"(?P<core>x)", "none for the place"},
      {"(?<place>x)", "(?P<name>...)"},
      {"[z-a](x)", "invalid character class range"},
  };
  for (const auto& [pattern, why] : cases) {
    const std::string error = ErrorOf(pattern);
    EXPECT_NE(error.find(std::string("--place-regex '") + pattern + "'"), std::string::npos)
        << error;
    if (std::string(pattern) != "(?<place>x)") {
      EXPECT_NE(error.find(why), std::string::npos) << error;
    }
    EXPECT_NE(error.find("for example --place-regex"), std::string::npos) << error;
  }
}

class LogReaderTest : public ::testing::Test {
 protected:
  void Read(std::string_view text, const PlaceRule* rule = nullptr, size_t chunk = 1000) {
    LogReader reader(&names_, rule, &texts_, "stdout",
                     [this](uint32_t core, const Step& step) { steps_.emplace_back(core, step); });
    for (size_t at = 0; at < text.size(); at += chunk) reader.Feed(text.substr(at, chunk), at);
    reader.Flush();
  }
  std::vector<std::string> Places(const std::string& core) const {
    std::vector<std::string> places;
    for (const auto& [number, step] : steps_) {
      if (names_.name(number) == core) places.push_back(texts_.Find(step.pc));
    }
    return places;
  }

  CoreNames names_;
  PlaceTexts texts_;
  std::vector<std::pair<uint32_t, Step>> steps_;
};

using Strings = std::vector<std::string>;

TEST_F(LogReaderTest, EachLineIsAStepHoweverItIsCut) {
  for (const size_t chunk : {1u, 3u, 1000u}) {
    steps_.clear();
    Read("try 1\n\n-----\ntry 2\nhalf", nullptr, chunk);
    EXPECT_EQ(Places("stdout"), (Strings{"try <n>", "try <n>"}));
    EXPECT_EQ(steps_[1].second.offset, 13u);
    EXPECT_TRUE(steps_[0].second.is_text);
    EXPECT_NE(steps_[0].second.values, steps_[1].second.values);
  }
}

TEST_F(LogReaderTest, RuleNamesCoresAndIgnoresOtherLines) {
  auto rule = PlaceRule::Compile(R"(^(?P<core>\w+): (?P<place>\w+))");
  Read("0: WAIT\nnoise\n\033[31mpe1: RUN\033[0m\n0: POLL\n", rule->get());
  EXPECT_EQ(Places("core 0"), (Strings{"WAIT", "POLL"}));
  EXPECT_EQ(Places("pe1"), (Strings{"RUN"}));
  EXPECT_EQ(names_.size(), 2u);
}

TEST_F(LogReaderTest, BarThatIsRedrawnMovesWhateverItShows) {
  Read("50%\r60%\n50%\r60%\n");
  ASSERT_EQ(steps_.size(), 2u);
  EXPECT_NE(steps_[0].second.values, steps_[1].second.values);
}

TEST_F(LogReaderTest, LineThatIsTooLongIsNeverTheSameAgain) {
  const std::string line(200'000, 'x');
  Read(line + "\n" + line + "\nshort\n", nullptr, 4096);
  ASSERT_EQ(steps_.size(), 3u);
  EXPECT_NE(steps_[0].second.values, steps_[1].second.values);
  EXPECT_EQ(Places("stdout")[2], "short");
}

TEST_F(LogReaderTest, CoresAndTextsAreBounded) {
  auto rule = PlaceRule::Compile(R"((?P<core>\w+) (?P<place>\w+))");
  std::string text;
  for (int i = 0; i < 20'000; ++i)
    text += "c" + std::to_string(i) + " p" + std::to_string(i) + "\n";
  Read(text, rule->get());
  EXPECT_LE(names_.size(), kMostCores + 1);
  EXPECT_LE(texts_.size(), 2 * PlaceTexts::kMostInGeneration);
  EXPECT_EQ(texts_.Find(steps_.back().second.pc), "p19999");
}

}  // namespace
}  // namespace hangscope
