#include "base/units.h"

#include <gtest/gtest.h>

namespace hangscope {
namespace {

TEST(ParseSize, TakesBinarySuffixes) {
  EXPECT_EQ(ParseSize("--size", "4096").value(), 4096u);
  EXPECT_EQ(ParseSize("--size", "64K").value(), 64u << 10);
  EXPECT_EQ(ParseSize("--size", "500M").value(), 500u << 20);
  EXPECT_EQ(ParseSize("--size", "1.5GiB").value(), 3u << 29);
  EXPECT_EQ(ParseSize("--size", "2tb").status().code(), Status::Code::kUsage);
  EXPECT_EQ(ParseSize("--size", "2TB").value(), uint64_t{2} << 40);
}

TEST(ParseSize, RefusesNonsenseWithTheReasonAndAnExample) {
  const struct {
    const char* text;
    const char* reason;
  } kCases[] = {
      {"0", "holds nothing"},
      {"-5M", "negative"},
      {"0.0001", "less than one byte"},
      {"99999999999T", "larger than"},
      {"", "not a size"},
      {"M", "not a size"},
      {"5X", "unknown suffix 'X'"},
      {"1.2.3", "not a size"},
      {"1e3", "unknown suffix"},
      {"nan", "not a size"},
      {"0x10", "unknown suffix"},
      {"18446744073709551616", "larger than"},
  };
  for (const auto& c : kCases) {
    const auto result = ParseSize("--size", c.text);
    ASSERT_FALSE(result.ok()) << c.text;
    EXPECT_NE(result.status().message().find(c.reason), std::string::npos)
        << result.status().message();
    EXPECT_NE(result.status().message().find("for example --size 500M"), std::string::npos);
  }
}

TEST(ParseDuration, TakesSecondsAndUnits) {
  EXPECT_EQ(ParseDuration("--stall", "10").value(), 10 * kSecond);
  EXPECT_EQ(ParseDuration("--stall", "2.5s").value(), 2500 * kMillisecond);
  EXPECT_EQ(ParseDuration("--stall", "500ms").value(), 500 * kMillisecond);
  EXPECT_EQ(ParseDuration("--stall", "2m").value(), 120 * kSecond);
}

TEST(ParseDuration, RefusesNonsense) {
  for (const char* text : {"0", "-1", "ten", "5d", "1000h", "0.0001", ""}) {
    EXPECT_FALSE(ParseDuration("--stall", text).ok()) << text;
  }
}

TEST(Format, ReadsWell) {
  EXPECT_EQ(FormatSize(512), "512 B");
  EXPECT_EQ(FormatSize(1536), "1.50 KiB");
  EXPECT_EQ(FormatSize(1572864000), "1.46 GiB");
  EXPECT_EQ(FormatRate(56'120'000), "56.1 MB/s");
  EXPECT_EQ(FormatElapsed(41'200 * kMillisecond), "41.2 s");
  EXPECT_EQ(FormatElapsed(187 * kSecond), "3 m 07 s");
  EXPECT_EQ(FormatElapsed(7500 * kSecond), "2 h 05 m");
  EXPECT_EQ(FormatCount(1203345), "1 203 345");
  EXPECT_EQ(FormatWallTime(0), "1970-01-01T00:00:00.000Z");
}

TEST(ParseWallTime, TakesWhatFormatWallTimeWrites) {
  const TimeNs wall = 1'700'000'041 * kSecond + 7 * kMillisecond;
  EXPECT_EQ(ParseWallTime(FormatWallTime(wall)), wall);
  for (const char* text :
       {"", "soon", "2023-11-14", "1969-01-01T00:00:00.000Z", "2023-11-14T22:14:01.007"})
    EXPECT_EQ(ParseWallTime(text), std::nullopt) << text;
}

TEST(ParseTimeOrSize, TakesATimeOrASize) {
  EXPECT_EQ(ParseTimeOrSize("--post", "2")->time, 2 * kSecond);
  EXPECT_EQ(ParseTimeOrSize("--post", "500ms")->time, 500 * kMillisecond);
  EXPECT_EQ(ParseTimeOrSize("--post", "2m")->time, 120 * kSecond);
  EXPECT_EQ(ParseTimeOrSize("--post", "16M")->bytes, 16u << 20);
  EXPECT_FALSE(ParseTimeOrSize("--post", "0").ok());
  EXPECT_FALSE(ParseTimeOrSize("--post", "soon").ok());
}

}  // namespace
}  // namespace hangscope
