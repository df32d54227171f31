// A window as people and programs read it.
#include "window/window_text.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "unit/window/window_story.h"
#include "window/window_json.h"

namespace hangscope {
namespace {

using testing::HasSubstr;
using testing::Not;

// Two seconds up to 10 s: CPU 1 was overwritten before, and lost something twice; CPU 0 has
// something stale.
Window TwoSeconds() {
  Window window;
  window.time = {8 * kSecond, 10 * kSecond};
  window.limited_by = 1;
  window.rings.resize(3);
  for (size_t i = 0; i < 3; ++i)
    window.rings[i].ring = {RingKind::kCpu, static_cast<int64_t>(i), {}};
  window.rings[0].stale = {{{kSecond, 2 * kSecond}, 6 * kSecond, 2048}};
  window.rings[0].idle = {{8 * kSecond, 10 * kSecond}};
  window.rings[1].covered = {{8 * kSecond, 9 * kSecond}, {9500 * kMillisecond, 10 * kSecond}};
  window.rings[1].bytes_inside = 1 << 20;
  window.rings[2].covered = {{9 * kSecond, 10 * kSecond}};
  window.rings[2].idle = {{8 * kSecond, 9 * kSecond}};
  window.rings[2].ring.what = "cs_\x1b[1metm";
  window.gaps = {
      {1, 7, {9 * kSecond, 9500 * kMillisecond}, GapReason::kSharedSink, 4096, AmountUnit::kBytes},
      {1,
       {},
       {9700 * kMillisecond, 9700 * kMillisecond},
       GapReason::kNoRoom,
       0,
       AmountUnit::kUnknown}};
  window.lost_before = {
      {2, 7, {6 * kSecond, 7 * kSecond}, GapReason::kSharedSink, 0, AmountUnit::kUnknown}};
  window.tasks = {
      {7, "worker", false, {{8 * kSecond, 10 * kSecond}}, {{9 * kSecond, 9500 * kMillisecond}}},
      {8, "other", true, {{9 * kSecond, 10 * kSecond}}, {}},
      {9, "", false, {}, {}}};
  return window;
}

WindowTextOptions Narrow() {
  WindowTextOptions options;
  options.columns = 20;
  return options;
}

TEST(WindowText, SaysFirstHowLongAndWhyItBeginsThere) {
  Window window = TwoSeconds();
  EXPECT_EQ(WindowLine(window, {}),
            "window 2.00 s: -2.000000 s .. trigger, begins where CPU 1 was overwritten");
  WindowTextOptions options;
  options.wall_minus_monotonic = 36000 * kSecond - 7 * kSecond;
  EXPECT_EQ(WindowLine(window, options),
            "window 2.00 s: 10:00:01.000 .. trigger, begins where CPU 1 was overwritten");
  window.time.from = window.time.to - 20 * kMillisecond;
  window.limited_by.reset();
  window.from_the_start = true;
  EXPECT_EQ(WindowLine(window, {}),
            "window 20.0 ms: -0.020000 s .. trigger, from the recording's start: nothing was "
            "overwritten");
}

TEST(WindowText, DrawsEachRingOverTheWindow) {
  const std::string text = WindowText(TwoSeconds(), Narrow());
  EXPECT_THAT(text, HasSubstr("2.00 KiB stale, 6.0 s old |....................| 0 B\n"));
  EXPECT_THAT(text, HasSubstr("|##########sssss##d##| 1.00 MiB\n"));
  EXPECT_THAT(text, HasSubstr("|..........##########| 0 B\n"));
  EXPECT_THAT(
      text,
      HasSubstr("  # covered, . idle, s shared sink overwritten, d dropped for want of room\n"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos)
      << "a target's name reaches the terminal as it is";
}

TEST(WindowText, TellsEachGapWithWhoWhenWhyAndHowMuch) {
  const std::string text = WindowText(TwoSeconds(), Narrow());
  EXPECT_THAT(
      text,
      HasSubstr("  gap: CPU 1, -1.000000 .. -0.500000 s (500.0 ms), task worker (7): shared sink "
                "overwritten, 4.00 KiB\n"
                "  gap: CPU 1, at -0.300000 s: dropped for want of room, how much is not known\n"
                "  lost before the window: CPU 2 cs_\\x1b[1metm, -4.000000 .. -3.000000 s (1.0 s), "
                "task worker "
                "(7): shared sink overwritten\n"));
  EXPECT_THAT(text, HasSubstr("  1 of 3 tasks covered without a break\n"
                              "  task worker (7) breaks -1.000000 .. -0.500000 s (500.0 ms)\n"
                              "  task 9 may have run where nobody knows\n"));
  Window window = TwoSeconds();
  window.gaps.clear();
  window.clock_error = 1500;
  EXPECT_THAT(WindowText(window, Narrow()), HasSubstr("  no gaps\n"));
  EXPECT_THAT(WindowText(window, Narrow()), HasSubstr("may be off by 2 us, either way\n"));
}

TEST(WindowText, SaysWhatTheKernelGivesToNoRing) {
  const char* const unrecorded =
      "  not in CPU rings: wake-ups by interrupts on idle CPUs; without --all-cpus, by other "
      "programs, too\n";
  Window window = TwoSeconds();
  EXPECT_EQ(WindowText(window, Narrow()).find(unrecorded), std::string::npos) << "of traces";
  window.rings[0].ring.what = "events";
  EXPECT_THAT(WindowText(window, Narrow()), HasSubstr(unrecorded));
}

TEST(WindowText, FitsOnAScreenHoweverManyRingsThereAre) {
  Window window = TwoSeconds();
  window.rings.resize(1000, window.rings[2]);
  for (size_t i = 0; i < 1000; ++i)
    window.rings[i].ring = {RingKind::kCpu, static_cast<int64_t>(i), {}};
  for (size_t i = 900; i < 1000; ++i) {
    window.gaps.push_back({i,
                           {},
                           {9900 * kMillisecond, 9950 * kMillisecond},
                           GapReason::kTorn,
                           1,
                           AmountUnit::kRecords});
  }
  for (int64_t task = 100; task < 300; ++task) window.tasks.push_back({task, "", false, {}, {}});
  const std::string text = WindowText(window, {});
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 45);
  // that limits it, and those with gaps, before those without
  EXPECT_THAT(text, HasSubstr("  CPU 1  "));
  EXPECT_THAT(text, HasSubstr("  CPU 914  "));
  EXPECT_THAT(text, Not(HasSubstr("  CPU 2  ")));
  EXPECT_THAT(text, HasSubstr("  and 984 more rings, 85 of them with gaps\n"));
  EXPECT_THAT(text, HasSubstr("  and 94 older gaps\n"));
  EXPECT_THAT(text, HasSubstr("  and 194 more tasks that break\n"));
}

TEST(WindowText, OfAnEmptyWindowDrawsNothing) {
  Window window = TwoSeconds();
  window.time.from = window.time.to;
  EXPECT_THAT(WindowText(window, Narrow()), HasSubstr("|                    |"));
}

TEST(WindowJson, HasAllOfAWindow) {
  Window window = TwoSeconds();
  window.clock_error = 5;
  const nlohmann::ordered_json json = WindowObject(window);
  EXPECT_EQ(json["from_ns"], 8 * kSecond);
  EXPECT_EQ(json["to_ns"], 10 * kSecond);
  EXPECT_EQ(json["policy"], "coherent");
  EXPECT_EQ(json["from_the_start"], false);
  EXPECT_EQ(json["limited_by"],
            (nlohmann::ordered_json{{"kind", "CPU"}, {"number", 1}, {"what", ""}}));
  EXPECT_EQ(json["clock_error_ns"], 5);
  ASSERT_EQ(json["gaps"].size(), 2u);
  EXPECT_EQ(json["gaps"][0]["why"], "shared sink overwritten");
  EXPECT_EQ(json["gaps"][0]["thread"], 7);
  EXPECT_EQ(json["gaps"][0]["lost_bytes"], 4096);
  EXPECT_TRUE(json["gaps"][0]["lost_records"].is_null());
  EXPECT_TRUE(json["gaps"][1]["thread"].is_null());
  ASSERT_EQ(json["lost_before"].size(), 1u);
  EXPECT_EQ(json["lost_before"][0]["ring"]["number"], 2);
  EXPECT_EQ(json["lost_before"][0]["to_ns"], 7 * kSecond);
  ASSERT_EQ(json["rings"].size(), 3u);
  EXPECT_TRUE(json["rings"][0]["held"].is_null());
  EXPECT_EQ(json["rings"][0]["stale"][0]["age_ns"], 6 * kSecond);
  EXPECT_EQ(json["rings"][1]["covered"].size(), 2u);
  EXPECT_EQ(json["rings"][1]["inside_bytes"], 1 << 20);
  EXPECT_EQ(json["threads"][0]["breaks"][0]["from_ns"], 9 * kSecond);
  EXPECT_EQ(json["threads"][1]["continuous"], true);
  window.limited_by.reset();
  EXPECT_TRUE(WindowObject(window)["limited_by"].is_null());
}

}  // namespace
}  // namespace hangscope
