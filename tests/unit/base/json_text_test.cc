#include "base/json_text.h"

#include <gtest/gtest.h>

namespace hangscope {
namespace {

std::string TextOf(const char* text) { return JsonText(nlohmann::ordered_json(text)); }

// A terminal takes them for commands: U+009B begins one as ESC [ does.
TEST(JsonText, HasNoControlCharactersInIt) {
  EXPECT_EQ(TextOf("\x1b[2J"), R"("\u001b[2J")");
  EXPECT_EQ(TextOf("a\u009b2J"), R"("a\u009b2J")");
  EXPECT_EQ(TextOf("\u0080\u0085\u009f"), R"("\u0080\u0085\u009f")");
}

TEST(JsonText, LeavesOtherCharactersAsTheyAre) {
  EXPECT_EQ(TextOf("\u00a0\u00e9\u2028\U0001f600"), "\"\u00a0\u00e9\u2028\U0001f600\"");
  EXPECT_EQ(TextOf("a\xc2"), "\"a\ufffd\"");
  EXPECT_EQ(TextOf("\\u009b"), R"("\\u009b")");
}

}  // namespace
}  // namespace hangscope
