#include "base/numbers.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace hangscope {
namespace {

TEST(ParseWhole, TakesATextThatIsANumberFromItsBeginToItsEnd) {
  EXPECT_EQ(ParseWhole<int>("4711"), 4711);
  EXPECT_EQ(ParseWhole<int>("-3"), -3);
  EXPECT_EQ(ParseWhole<int>("007"), 7);
  EXPECT_EQ(ParseWhole<uint64_t>("18446744073709551615"), UINT64_MAX);
}

TEST(ParseWhole, RefusesWhatIsMoreOrLessThanANumber) {
  for (const char* text : {"", " 3", "3 ", "3\n", "+3", "3x", "0x3", "3.0", "1e3", "-", "--3"})
    EXPECT_EQ(ParseWhole<int>(text), std::nullopt) << text;
  EXPECT_EQ(ParseWhole<int>(std::string_view("3\0", 2)), std::nullopt);
}

TEST(ParseWhole, RefusesASignAndASizeThatTheTypeDoesNotHave) {
  EXPECT_EQ(ParseWhole<uint32_t>("-1"), std::nullopt);
  EXPECT_EQ(ParseWhole<uint32_t>("-0"), std::nullopt);
  EXPECT_EQ(ParseWhole<uint8_t>("256"), std::nullopt);
  EXPECT_EQ(ParseWhole<int>("2147483648"), std::nullopt);
  EXPECT_EQ(ParseWhole<uint64_t>("18446744073709551616"), std::nullopt);
}

TEST(ParseWhole, KeepsToItsRange) {
  EXPECT_EQ(ParseWhole<int>("0", 1, 9999), std::nullopt);
  EXPECT_EQ(ParseWhole<int>("1", 1, 9999), 1);
  EXPECT_EQ(ParseWhole<int>("9999", 1, 9999), 9999);
  EXPECT_EQ(ParseWhole<int>("10000", 1, 9999), std::nullopt);
}

TEST(ParseHex, TakesDigitsWithAndWithoutTheirPrefix) {
  EXPECT_EQ(ParseHex<uint32_t>("1f"), 0x1fu);
  EXPECT_EQ(ParseHex<uint32_t>("0x1F"), 0x1fu);
  EXPECT_EQ(ParseHex<uint32_t>("0X1f"), 0x1fu);
  for (const char* text : {"", "0x", "0x0x1", "-1", "0x-1", "1g", "1ffffffff"})
    EXPECT_EQ(ParseHex<uint32_t>(text), std::nullopt) << text;
}

TEST(ParseDecimalOrHex, TellsThemApartByThePrefix) {
  EXPECT_EQ(ParseDecimalOrHex<uint64_t>("31"), 31u);
  EXPECT_EQ(ParseDecimalOrHex<uint64_t>("0x1f"), 0x1fu);
  EXPECT_EQ(ParseDecimalOrHex<uint64_t>("010"), 10u);
  EXPECT_EQ(ParseDecimalOrHex<uint64_t>("1f"), std::nullopt);
}

TEST(ParseRange, TakesANumberOrTwo) {
  EXPECT_EQ(ParseRange<int>("3"), std::pair(3, 3));
  EXPECT_EQ(ParseRange<int>("0-7"), std::pair(0, 7));
  EXPECT_EQ(ParseRange<int>("7-0"), std::pair(7, 0));
  for (const char* text : {"", "-", "3-", "-3", "0-7-9", "0 - 7", "a-b"})
    EXPECT_EQ(ParseRange<int>(text), std::nullopt) << text;
}

}  // namespace
}  // namespace hangscope
