// Which cores people mean, and what they want of them.
#include "watch/core_set.h"

#include <gtest/gtest.h>

#include "hangscope/abi/watch.h"
#include "watch/target_settings.h"

namespace hangscope {
namespace {

using Cores = std::vector<uint32_t>;

// Two by two nodes of a reader and a writer each; core 2n reads, 2n+1 writes.
class CoreSetTest : public ::testing::Test {
 protected:
  CoreSetTest() {
    for (uint32_t node = 0; node < 4; ++node) {
      nodes_.push_back({node % 2, node / 2});
      cores_.push_back({true, node, "reader", ""});
      cores_.push_back({true, node, "writer", ""});
    }
  }
  Cores Of(const std::vector<std::string>& words) {
    auto cores = ParseCoreSet(words, cores_, nodes_);
    EXPECT_TRUE(cores.ok()) << cores.status().message();
    return cores.value_or({});
  }
  std::string WhyNot(const std::string& word) {
    auto cores = ParseCoreSet({word}, cores_, nodes_);
    EXPECT_FALSE(cores.ok()) << word;
    EXPECT_EQ(cores.status().code(), Status::Code::kUsage) << word;
    return cores.status().message();
  }

  std::vector<CoreIdentity> cores_;
  std::vector<NodePlace> nodes_;
};

TEST_F(CoreSetTest, CoresAreNamedByNumberRangeAndAll) {
  EXPECT_EQ(Of({"3"}), Cores({3}));
  EXPECT_EQ(Of({"1-3"}), Cores({1, 2, 3}));
  EXPECT_EQ(Of({"all"}), Cores({0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(CoreSetTest, NodesAreNamedByCoordinatesAndRectangles) {
  EXPECT_EQ(Of({"(1,0)"}), Cores({2, 3}));
  EXPECT_EQ(Of({"(0,0)-(0,1)"}), Cores({0, 1, 4, 5}));
  EXPECT_EQ(Of({"(1,1)-(0,1)"}), Cores({4, 5, 6, 7}));  // from either end
}

TEST_F(CoreSetTest, ARoleOfANodeIsThatRoleThereAndAListIsAllThatItNames) {
  EXPECT_EQ(Of({"writer@(0,0)"}), Cores({1}));
  EXPECT_EQ(Of({"writer@(0,0)-(1,0)"}), Cores({1, 3}));
  EXPECT_EQ(Of({"all@(1,1)", "reader@(0,0)"}), Cores({0, 6, 7}));
  EXPECT_EQ(Of({"0-3@(1,0)"}), Cores({2, 3}));
  EXPECT_EQ(Of({"writer@1,0"}), Cores({3}));  // the whole word, without brackets
  EXPECT_EQ(Of({"writer (0,0)"}), Cores({0, 1, 3, 5, 7}));
  EXPECT_EQ(WhyNot("writer@(7,7)"),
            "cores '(7,7)': no core is there; the target has nodes from (0,0) to (1,1)");
  EXPECT_EQ(WhyNot("1@(1,1)"), "cores '1@(1,1)': (1,1) has no core 1");
  EXPECT_EQ(WhyNot("writer@0"),
            "cores 'writer@0': cores of a node are NAME@(x,y); for example writer@(0,0)");
  EXPECT_EQ(WhyNot("rider@(0,0)"),
            "cores 'rider': no core has this role or name; did you mean reader?");
}

TEST_F(CoreSetTest, NumbersAreWrittenAsTheyAreRead) {
  EXPECT_EQ(CoreNumbersText({0, 1, 2, 5, 7, 8}), "0-2 5 7-8");
  EXPECT_EQ(CoreNumbersText({4}), "4");
  EXPECT_EQ(Of({"1", "3"}), Cores({1, 3}));  // as a shell splits "1 3"
}

TEST_F(CoreSetTest, TwoNumbersAreANodeOnAGridAndCoresOnASingleNode) {
  EXPECT_EQ(Of({"1,0"}), Cores({2, 3}));
  EXPECT_EQ(Of({"1,0,2"}), Cores({0, 1, 2}));
  nodes_.resize(1);
  EXPECT_EQ(Of({"1,0"}), Cores({0, 1}));
}

TEST_F(CoreSetTest, RolesAndThreadsAreNamedByTheirNames) {
  EXPECT_EQ(Of({"writer"}), Cores({1, 3, 5, 7}));
  cores_[4].name = "decoder";
  EXPECT_EQ(Of({"decoder"}), Cores({4}));
}

TEST_F(CoreSetTest, ListsMayBeMixedAndNameACoreTwice) {
  EXPECT_EQ(Of({"0,(1,0) 7", "1-2", "2"}), Cores({0, 1, 2, 3, 7}));
}

TEST_F(CoreSetTest, AllAndRolesLeaveOutWhatNobodyUses) {
  cores_[0].in_use = cores_[3].in_use = false;
  EXPECT_EQ(Of({"all"}), Cores({1, 2, 4, 5, 6, 7}));
  EXPECT_EQ(Of({"writer"}), Cores({1, 5, 7}));
  EXPECT_EQ(Of({"3"}), Cores({3}));  // asked for by its number
}

TEST_F(CoreSetTest, ErrorsNameThePartThatIsWrong) {
  EXPECT_EQ(WhyNot("1,2,8"), "cores '8': there are cores 0 to 7");
  EXPECT_EQ(WhyNot("3-1"), "cores '3-1': a range begins with the smaller number: 1-3");
  EXPECT_EQ(WhyNot("1x"), "cores '1x': a core's number, or a range of them; for example 1-3");
  EXPECT_EQ(WhyNot("0 wrter"),
            "cores 'wrter': no core has this role or name; did you mean writer?");
  EXPECT_EQ(WhyNot("(2,0)"),
            "cores '(2,0)': no core is there; the target has nodes from (0,0) to (1,1)");
  EXPECT_EQ(WhyNot("4294967296"),
            "cores '4294967296': a core's number, or a range of them; for example 1-3");
  for (const char* word : {"(0,0", "(0)", "()", "(0,0)-(1)", "(0,0)-", "(a,b)"}) {
    EXPECT_NE(WhyNot(word).find("a rectangle of them (x1,y1)-(x2,y2)"), std::string::npos) << word;
  }
  EXPECT_NE(WhyNot("").find("no cores are named"), std::string::npos);
  EXPECT_NE(WhyNot("helicopter").find("role: reader, writer"), std::string::npos);
}

TEST(DelaySettingsTest, KindsAndSeedAreRead) {
  auto delays = ParseDelaySettings({"read=100,write=random:500", "seed=0x7"});
  ASSERT_TRUE(delays.ok()) << delays.status().message();
  EXPECT_EQ(delays->delays[0], 100u);
  EXPECT_EQ(delays->delays[1], 500u | HANGSCOPE_DELAY_RANDOM);
  EXPECT_EQ(delays->delays[2], std::nullopt);  // stays as it is
  EXPECT_EQ(delays->seed, 7u);
}

TEST(DelaySettingsTest, ZeroAndOffAreOff) {
  auto delays = ParseDelaySettings({"read=0,write=off,atomic=random:0"});
  ASSERT_TRUE(delays.ok()) << delays.status().message();
  for (const auto& delay : delays->delays) EXPECT_EQ(delay, 0u);
}

TEST(DelaySettingsTest, WhatIsUnknownOrOutOfRangeIsNamed) {
  EXPECT_EQ(ParseDelaySettings({"wrote=1"}).status().message(),
            "unknown setting 'wrote', did you mean 'write'?");
  EXPECT_EQ(ParseDelaySettings({"cycles=1"}).status().message(),
            "unknown setting 'cycles'; there are read, write, atomic, seed");
  for (const char* word : {"read=2147483648", "read=", "read=random:", "read=1,2", "read=-1",
                           "read=random:2147483648", "seed=x", "seed="}) {
    EXPECT_EQ(ParseDelaySettings({word}).status().code(), Status::Code::kUsage) << word;
  }
  EXPECT_FALSE(ParseDelaySettings({}).ok());
}

TEST(MaskSettingTest, ClassesAreNamesNumbersAndMasks) {
  EXPECT_EQ(ParseMaskSetting({"classes=task,isr"}).value_or(0), 5u);
  EXPECT_EQ(ParseMaskSetting({"classes=user,7"}).value_or(0), 16u | 128u);
  EXPECT_EQ(ParseMaskSetting({"classes=0x15"}).value_or(0), 0x15u);
  EXPECT_EQ(ParseMaskSetting({"classes=all"}).value_or(0), 0xffffffffu);
  EXPECT_EQ(ParseMaskSetting({"classes=task,history"}).value_or(0), 0x80000001u);
  EXPECT_EQ(ParseMaskSetting({"classes=0"}).value_or(1), 0u);
  EXPECT_EQ(ParseMaskSetting({"clases=all"}).status().message(),
            "unknown setting 'clases', did you mean 'classes'?");
  EXPECT_NE(ParseMaskSetting({"classes=tsk"}).status().message().find("did you mean 'task'?"),
            std::string::npos);
  for (const char* word : {"classes=31", "classes=0x100000000", "classes=", "classes=task,,isr"})
    EXPECT_FALSE(ParseMaskSetting({word}).ok()) << word;
  EXPECT_FALSE(ParseMaskSetting({}).ok());
}

TEST(FreezeSettingTest, RecordsToComeMayBeGiven) {
  EXPECT_EQ(ParseFreezeSetting({}).value_or(1), 0u);
  EXPECT_EQ(ParseFreezeSetting({"after=100"}).value_or(0), 100u);
  EXPECT_FALSE(ParseFreezeSetting({"after=2147483648"}).ok());
  EXPECT_EQ(ParseFreezeSetting({"afte=1"}).status().message(),
            "unknown setting 'afte', did you mean 'after'?");
}

TEST(FeatureSettingsTest, SwitchesChangeWhatIsNamedAndNothingElse) {
  constexpr uint32_t kBuilt = HANGSCOPE_WATCH_WAITS | HANGSCOPE_WATCH_BUS | HANGSCOPE_WATCH_PAUSES;
  EXPECT_EQ(ParseFeatureSettings({"waits=0"}, kBuilt, kBuilt).value_or(0),
            kBuilt & ~uint32_t{HANGSCOPE_WATCH_WAITS});
  EXPECT_EQ(ParseFeatureSettings({"all=off,bus=on"}, kBuilt, kBuilt).value_or(0),
            uint32_t{HANGSCOPE_WATCH_BUS});
  EXPECT_EQ(ParseFeatureSettings({"all=1"}, kBuilt, 0).value_or(0), kBuilt);
  EXPECT_EQ(ParseFeatureSettings({"delays=1"}, kBuilt, 0).status().message(),
            "'delays=1': the target was built without it");
  EXPECT_EQ(ParseFeatureSettings({"delays=0"}, kBuilt, kBuilt).value_or(0), kBuilt);
  EXPECT_EQ(ParseFeatureSettings({"wait=0"}, kBuilt, 0).status().message(),
            "unknown setting 'wait', did you mean 'waits'?");
  EXPECT_EQ(ParseFeatureSettings({"waits=2"}, kBuilt, 0).status().message(),
            "'waits=2': 1 or on, 0 or off");
  EXPECT_EQ(FeaturesText(kBuilt, HANGSCOPE_WATCH_BUS), "waits off, pauses off, bus on");
}

}  // namespace
}  // namespace hangscope
