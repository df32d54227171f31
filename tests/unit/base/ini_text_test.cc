// Settings as other programs write them.
#include "base/ini_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(IniText, HasSectionsOfValues) {
  const IniText ini = ParseIni(
      "; made by hand\r\n[first]\r\n name = \"a board\" \r\nempty=\n[ Second ]\nname=b # no more\n"
      "name=c\n[first]\nlate=1");
  ASSERT_EQ(ini.sections.size(), 3u);
  EXPECT_THAT(ini.sections[0].values, ElementsAre(Pair("name", "a board"), Pair("empty", "")));
  EXPECT_EQ(ini.Find("FIRST")->Find("Name"), "a board");
  EXPECT_EQ(ini.Find("second")->Find("name"), "b") << "the first counts";
  EXPECT_EQ(ini.Find("second")->Find("none"), "");
  EXPECT_EQ(ini.Find("none"), nullptr);
  EXPECT_EQ(ini.odd_lines, 0u);
}

TEST(IniText, CountsLinesThatAreNeither) {
  const IniText ini = ParseIni("lost=1\n[a]\nword\n[open\nb=c");
  EXPECT_EQ(ini.odd_lines, 3u);
  EXPECT_EQ(ini.Find("a")->Find("b"), "c");
  EXPECT_THAT(ParseIni("").sections, IsEmpty());
}

TEST(IniText, SplitsListsAtCommas) {
  EXPECT_THAT(SplitList("buffer0, buffer1 ,,b"), ElementsAre("buffer0", "buffer1", "b"));
  EXPECT_THAT(SplitList(" , "), IsEmpty());
}

}  // namespace
}  // namespace hangscope
