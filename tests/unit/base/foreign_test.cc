// What anybody may have written: bounded, and for a terminal.
#include <gtest/gtest.h>

#include "base/generations.h"
#include "base/json_text.h"
#include "base/utf8.h"

namespace hangscope {
namespace {

TEST(Generations, HoldTwiceTheirNumberAndForgetTheOldest) {
  Generations<int, int, 4> known;
  for (int i = 0; i < 100; ++i) known.Put(i, i);
  EXPECT_LE(known.size(), 8u);
  EXPECT_EQ(known.Find(0), nullptr);
  ASSERT_NE(known.Find(99), nullptr);
  EXPECT_EQ(*known.Find(99), 99);
}

TEST(Generations, WhatIsAskedForWithAtStays) {
  Generations<int, int, 4> known;
  known.At(1000) = 7;
  for (int i = 0; i < 100; ++i) {
    known.Put(i, i);
    EXPECT_EQ(known.At(1000), 7);
  }
  EXPECT_EQ(known.At(2000), 0);
}

TEST(Generations, TheFirstValueStays) {
  Generations<int, int, 4> known;
  known.Put(1, 1);
  known.Put(1, 2);
  EXPECT_EQ(*known.Find(1), 1);
}

TEST(ForeignJson, DepthIsThatOfListsAndObjectsAndNotOfTexts) {
  EXPECT_EQ(JsonDepth("7"), 0u);
  EXPECT_EQ(JsonDepth(R"({"a": [1, [2]], "b": {}})"), 3u);
  EXPECT_EQ(JsonDepth(R"(["[[[", "\"[[", "\\"])"), 1u);
  EXPECT_EQ(JsonDepth("]]]]["), 1u);
}

TEST(ForeignJson, WhatLiesTooDeepIsDiscarded) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_FALSE(ParseForeignJson(nested(kDeepestJson)).is_discarded());
  EXPECT_TRUE(ParseForeignJson(nested(kDeepestJson + 1)).is_discarded());
  EXPECT_TRUE(ParseForeignJson("{").is_discarded());
  EXPECT_EQ(ParseForeignJson("[1]")[0], 1);
}

TEST(Utf8, LinesStayWhereTheRestIsEscaped) {
  EXPECT_EQ(PrintableLines("a\x1b[2J\nb\n\nc"), "a\\x1b[2J\nb\n\nc");
  EXPECT_EQ(PrintableLines("\n"), "\n");
  EXPECT_EQ(PrintableLines(""), "");
}

}  // namespace
}  // namespace hangscope
