// The rules of windows, one at a time; docs/windows.md states them. Times are milliseconds.
#include <gtest/gtest.h>

#include "unit/window/window_story.h"

namespace hangscope {
namespace {

constexpr TimeNs kMs = kMillisecond;

// A CPU's ring that records all the time, from 0, and was read at 100.
RingHistory Cpu(int64_t number) {
  RingHistory ring;
  ring.ring = {RingKind::kCpu, number};
  ring.recording_since = At(0);
  ring.recorded_until = At(100);
  return ring;
}

// `bytes` that were written from `from` to `to`, after `skipped` that are not held.
void Hold(RingHistory& ring, int64_t from, int64_t to, uint64_t bytes, uint64_t skipped = 0) {
  const uint64_t begin = ring.head + skipped;
  ring.held.push_back({Between(from, to), begin, begin + bytes, {}});
  ring.head = begin + bytes;
}

KnownLoss Loss(int64_t from, int64_t to, GapReason reason, uint64_t amount = 0,
               AmountUnit unit = AmountUnit::kUnknown) {
  return {Between(from, to), reason, amount, unit, {}};
}

Window Find(const WindowInput& input, WindowPolicy policy = WindowPolicy::kCoherent,
            int64_t trigger = 100) {
  WindowRequest request;
  request.policy = policy;
  request.trigger = At(trigger);
  return FindWindow(input, request);
}

TEST(Window, BeginsAtTheLatestOfTheOldestOfRingsThatLostSomething) {
  WindowInput input;
  input.rings = {Cpu(0), Cpu(1), Cpu(2)};
  Hold(input.rings[0], 20, 100, 800, 5000);
  Hold(input.rings[1], 60, 100, 400, 900);
  Hold(input.rings[2], 80, 100, 10);  // has all that it ever had: its late begin limits nothing
  const Window window = Find(input);
  EXPECT_EQ(ReportedTime(window), "60..100 by CPU1");
  EXPECT_EQ(ReportedRing(window, 0), "covered 60..100 stale 20..60(0)");
  EXPECT_EQ(ReportedRing(window, 2), "covered 80..100 idle 60..80");
  EXPECT_EQ(window.rings[0].bytes_held, 800u);
  EXPECT_EQ(window.rings[0].bytes_inside, 400u);
  EXPECT_TRUE(window.rings[0].lost_any);
  EXPECT_FALSE(window.rings[2].lost_any);
  EXPECT_EQ(ReportedGaps(window), "");
}

TEST(Window, BeginsWhereTheRecordingBeganWhenNothingWasEverLost) {
  WindowInput input;
  input.rings = {Cpu(0), Cpu(1)};
  input.rings[1].recording_since = At(3);
  Hold(input.rings[0], 10, 100, 1);
  const Window window = Find(input);
  // CPU 1 did not record before 3, and nobody knows what happened there.
  EXPECT_EQ(ReportedTime(window), "3..100 from the start");
  EXPECT_EQ(ReportedRing(window, 1), "idle 3..100");
}

TEST(Window, OfNoRingsAtAllIsEmpty) {
  const Window window = Find({});
  EXPECT_EQ(window.time, Between(100, 100));
  EXPECT_TRUE(window.rings.empty());
  EXPECT_EQ(ReportedGaps(window), "");
}

TEST(Window, ShowsAHoleThatNobodyReported) {
  WindowInput input;
  input.rings = {Cpu(0)};
  Hold(input.rings[0], 0, 30, 300);
  Hold(input.rings[0], 50, 100, 500, 77);
  EXPECT_EQ(ReportedTime(Find(input)), "50..100 by CPU0");
  const Window all = Find(input, WindowPolicy::kEverything);
  EXPECT_EQ(ReportedTime(all), "0..100");
  EXPECT_EQ(ReportedGaps(all), "CPU0 30..50 overwritten 77 bytes");
  EXPECT_EQ(ReportedRing(all, 0), "covered 0..30,50..100");
}

TEST(Window, TakesReasonAndPlaceOfAHoleFromWhoReportedIt) {
  WindowInput input;
  input.rings = {Cpu(0)};
  Hold(input.rings[0], 0, 30, 300);
  Hold(input.rings[0], 50, 100, 500, 77);
  // Placed and counted: the rest of the time between is quiet.
  input.rings[0].losses = {Loss(35, 40, GapReason::kTorn, 77, AmountUnit::kBytes)};
  Window window = Find(input);
  EXPECT_EQ(ReportedTime(window), "0..100 from the start");
  EXPECT_EQ(ReportedGaps(window), "CPU0 35..40 torn 77 bytes");
  EXPECT_EQ(ReportedRing(window, 0), "covered 0..30,50..100 idle 30..35,40..50");
  // Counted in part: what is left may be anywhere between.
  input.rings[0].losses[0].amount = 70;
  window = Find(input, WindowPolicy::kEverything);
  EXPECT_EQ(ReportedGaps(window), "CPU0 30..50 overwritten 7 bytes; CPU0 35..40 torn 70 bytes");
  EXPECT_EQ(ReportedRing(window, 0), "covered 0..30,50..100");
  // Not counted: it is the reason, and the hole is as large as it is.
  input.rings[0].losses[0].amount = 0;
  window = Find(input);
  EXPECT_EQ(ReportedGaps(window), "CPU0 30..50 torn 77 bytes");
  // While it was blind nothing was written that could be missing: those bytes were overwritten.
  input.rings[0].losses[0].reason = GapReason::kBlind;
  EXPECT_EQ(ReportedTime(Find(input)), "50..100 by CPU0");
  window = Find(input, WindowPolicy::kEverything);
  EXPECT_EQ(ReportedGaps(window),
            "CPU0 30..50 overwritten 77 bytes; CPU0 35..40 blind while copying");
}

TEST(Window, DropsNothingThatWasLostInsideAHeldSpan) {
  WindowInput input;
  input.rings = {Cpu(0), Cpu(1)};
  Hold(input.rings[0], 0, 100, 1000);
  Hold(input.rings[1], 0, 100, 1000);
  input.rings[0].losses = {Loss(20, 20, GapReason::kNoRoom, 3, AmountUnit::kRecords),
                           Loss(40, 45, GapReason::kBlind)};
  input.runs = {{7, 0, Between(10, 60)}, {8, 1, Between(10, 60)}};
  input.runs_known_since = At(0);
  const Window window = Find(input);
  EXPECT_EQ(ReportedTime(window), "0..100 from the start");
  EXPECT_EQ(
      ReportedGaps(window),
      "CPU0 @20 dropped for want of room of 7 3 records; CPU0 40..45 blind while copying of 7");
  EXPECT_EQ(ReportedRing(window, 0), "covered 0..20,20..40,45..100");
  EXPECT_EQ(ReportedTasks(window), "7 breaks @20,40..45; 8 continuous");
}

TEST(Window, BreaksATaskWhereItsRingLostSomethingWhileItWasQuiet) {
  WindowInput input;
  input.rings = {Cpu(0)};
  Hold(input.rings[0], 0, 30, 100);
  input.rings[0].losses = {Loss(50, 50, GapReason::kNoRoom, 1, AmountUnit::kRecords)};
  input.runs = {{7, 0, Between(10, 60)}, {8, 0, Between(60, 70)}};
  input.runs_known_since = At(0);
  const Window window = Find(input);
  EXPECT_EQ(ReportedRing(window, 0), "covered 0..30 idle 30..100");
  EXPECT_EQ(ReportedTasks(window), "7 breaks @50; 8 continuous");
}

TEST(Window, KnowsTheAmountOnlyOfAGapThatIsWhollyInside) {
  WindowInput input;
  input.rings = {Cpu(0)};
  Hold(input.rings[0], 0, 30, 300);
  Hold(input.rings[0], 50, 100, 500, 77);
  WindowRequest request;
  request.policy = WindowPolicy::kLastTime;
  request.trigger = At(100);
  request.length = 60 * kMs;
  EXPECT_EQ(ReportedGaps(FindWindow(input, request)), "CPU0 40..50 overwritten");
  EXPECT_EQ(FindWindow(input, request).gaps[0].amount, 0u);
  request.length = 70 * kMs;
  EXPECT_EQ(ReportedGaps(FindWindow(input, request)), "CPU0 30..50 overwritten 77 bytes");
}

TEST(Window, CoversNothingAfterARingWasRead) {
  WindowInput input;
  input.rings = {Cpu(0), Cpu(1)};
  Hold(input.rings[0], 0, 100, 1000);
  Hold(input.rings[1], 0, 60, 600);
  input.rings[1].recorded_until = At(70);
  Window window = Find(input);
  EXPECT_EQ(ReportedGaps(window), "CPU1 70..100 not recorded");
  EXPECT_EQ(ReportedRing(window, 1), "covered 0..60 idle 60..70");
  // A span that goes on after that is not believed beyond it.
  Hold(input.rings[1], 60, 90, 300);
  window = Find(input);
  EXPECT_EQ(ReportedRing(window, 1), "covered 0..70");
}

TEST(Window, CallsARingIdleOnlyWhereTheRunsSaySo) {
  WindowInput input;
  input.rings = {Cpu(0), Cpu(1)};
  for (RingHistory& ring : input.rings) ring.always_on = false;
  Hold(input.rings[0], 0, 50, 500);
  Hold(input.rings[1], 60, 100, 400);
  // Nobody knows who ran: no byte is missing, and still a run may have left none.
  Window window = Find(input, WindowPolicy::kEverything);
  EXPECT_EQ(ReportedRing(window, 0), "covered 0..50");
  EXPECT_EQ(ReportedGaps(window), "CPU1 0..60 not recorded; CPU0 50..100 not recorded");
  input.runs = {{7, 0, Between(0, 50)}, {7, 1, Between(60, 100)}};
  window = Find(input);
  EXPECT_EQ(ReportedRing(window, 0), "covered 0..50 idle 50..100");
  EXPECT_EQ(ReportedRing(window, 1), "covered 60..100 idle 0..60");
  EXPECT_EQ(ReportedGaps(window), "");
  // It ran there, and the ring has nothing of it.
  input.runs = {{7, 0, Between(0, 50)}, {7, 1, Between(55, 100)}};
  window = Find(input);
  EXPECT_EQ(ReportedGaps(window), "CPU1 55..60 not recorded of 7");
  EXPECT_EQ(ReportedTasks(window), "7 breaks 55..60");
}

TEST(Window, KnowsThatNobodyRanOnlySinceTheRunsAreKnown) {
  WindowInput input;
  input.rings = {Cpu(0)};
  input.rings[0].always_on = false;
  EXPECT_EQ(ReportedTime(Find(input)), "100..100 from the start");
  input.runs_known_since = At(30);  // and there were none: a program that hung all the time
  const Window window = Find(input);
  EXPECT_EQ(ReportedTime(window), "30..100 from the start");
  EXPECT_EQ(ReportedRing(window, 0), "idle 30..100");
}

// P3 ran on CPU 1 and was overwritten with its switch events, so that no run tells of it.
TEST(Window, DoesNotTakeIncompleteRunsForProofOfIdleness) {
  WindowInput input;
  input.rings = {Cpu(0), Cpu(1), Cpu(2)};
  for (RingHistory& ring : input.rings) ring.always_on = false;
  Hold(input.rings[0], 0, 10, 100);
  Hold(input.rings[1], 40, 50, 100, 100);
  Hold(input.rings[2], 30, 40, 100);
  input.runs = {{7, 0, Between(0, 10)}, {7, 2, Between(30, 40)}, {7, 1, Between(40, 50)}};
  EXPECT_EQ(ReportedTime(Find(input)), "40..100 by CPU1");
  // An older run of the ring is no proof either, unless somebody vouches for the runs.
  input.runs.insert(input.runs.begin() + 1, {7, 1, Between(10, 12)});
  EXPECT_EQ(ReportedTime(Find(input)), "40..100 by CPU1");
  input.runs_known_since = At(0);
  EXPECT_EQ(ReportedTime(Find(input)), "12..100 by CPU1");
}

TEST(Window, FindsARunOnACpuThatNoRingRecords) {
  WindowInput input;
  input.rings = {Cpu(0)};
  Hold(input.rings[0], 0, 100, 100);
  input.runs = {{7, 0, Between(0, 50)}, {7, 5, Between(50, 70)}};
  input.task_names = {{7, "worker"}, {8, "elsewhere"}};
  const Window window = Find(input);
  EXPECT_EQ(ReportedTasks(window), "7 breaks 50..70");
  ASSERT_EQ(window.tasks.size(), 1u);
  EXPECT_EQ(window.tasks[0].name, "worker");
  EXPECT_EQ(Reported(window.tasks[0].ran), "0..70");
}

// A stream has a number, too.
TEST(Window, LetsNoStreamStandInForTheCpuOfItsNumber) {
  WindowInput input;
  input.rings = {Cpu(0), Cpu(0)};
  input.rings[1].ring = {RingKind::kStream, 0, "stdout"};
  Hold(input.rings[0], 0, 40, 100);
  Hold(input.rings[0], 60, 100, 100, 50);
  Hold(input.rings[1], 0, 100, 100);
  input.runs = {{7, 0, Between(30, 70)}};
  const Window window = Find(input, WindowPolicy::kEverything);
  ASSERT_EQ(window.tasks.size(), 1u);
  EXPECT_FALSE(window.tasks[0].continuous);
  EXPECT_EQ(Reported(window.tasks[0].breaks), "40..60");
}

TEST(Window, FollowsRunsWhoseCpuIsNotKnownInTheRingOfAll) {
  WindowInput input;
  input.rings = {Cpu(0)};
  input.rings[0].ring = {RingKind::kStream, 0, "events"};
  input.rings[0].of_unknown_cpus = true;
  Hold(input.rings[0], 0, 100, 100);
  input.runs = {{7, -1, Between(10, 70)}, {8, -1, Between(20, 60)}};
  const Window window = Find(input);
  ASSERT_EQ(window.tasks.size(), 2u);
  EXPECT_TRUE(window.tasks[0].continuous);
  EXPECT_TRUE(window.tasks[1].continuous);
}

TEST(Window, FollowsAThreadInItsOwnRing) {
  WindowInput input;
  input.rings = {Cpu(70), Cpu(71)};
  for (RingHistory& ring : input.rings) {
    ring.ring.kind = RingKind::kThread;
    ring.always_on = false;
  }
  input.rings[1].recording_since = At(60);  // born then
  Hold(input.rings[0], 20, 100, 100, 50);
  Hold(input.rings[1], 60, 100, 100);
  input.runs = {{70, 0, Between(0, 10)}, {70, 3, Between(20, 100)}, {71, 0, Between(60, 100)}};
  input.runs_known_since = At(0);
  const Window window = Find(input);
  EXPECT_EQ(ReportedTime(window), "10..100 by thread70");
  EXPECT_EQ(ReportedRing(window, 1), "covered 60..100 idle 10..60");
  EXPECT_EQ(ReportedTasks(window), "70 continuous; 71 continuous");
}

TEST(Window, NeverCallsATaskContinuousWhoseRunsAreNotKnown) {
  WindowInput input;
  input.rings = {Cpu(0)};
  Hold(input.rings[0], 0, 100, 100);
  input.rings[0].held[0].task = 7;
  EXPECT_EQ(ReportedTasks(Find(input)), "7");
  input.runs_known_since = At(0);
  EXPECT_EQ(ReportedTasks(Find(input)), "7 continuous");
}

TEST(Window, OfTheWholeMachineDoesNotTrustSilenceBehindASink) {
  WindowInput input;
  input.rings = {Cpu(0), Cpu(1)};
  input.rings[0].sink = input.rings[1].sink = 0;
  // Each was drained at some time; between, the other may have overwritten it in the sink.
  Hold(input.rings[0], 10, 20, 100);
  Hold(input.rings[0], 40, 100, 600);
  Hold(input.rings[1], 0, 100, 900);
  input.sinks.resize(1);
  input.sinks[0].capacity_bytes = 1000;
  const Window window = Find(input);
  EXPECT_EQ(ReportedTime(window), "10..100 by CPU0");
  EXPECT_EQ(ReportedGaps(window), "CPU0 20..40 shared sink overwritten");
  // Alone on a sink it was its own data; that is as if its ring had been too small.
  input.sinks.resize(2);
  input.rings[1].sink = 1;
  EXPECT_EQ(ReportedTime(Find(input)), "40..100 by CPU0");
}

TEST(Window, KnowsWhatASinkThatIsNotFullStillHas) {
  WindowInput input;
  input.rings = {Cpu(0), Cpu(1)};
  input.rings[0].sink = input.rings[1].sink = 0;
  input.sinks.resize(1);
  input.sinks[0].rest = {
      {1, Between(50, 60), 100}, {0, Between(60, 70), 100}, {9, Between(70, 80), 100}};
  input.sinks[0].capacity_bytes = 301;
  EXPECT_EQ(ReportedTime(Find(input)), "0..100 from the start");
  EXPECT_EQ(ReportedRing(Find(input), 0), "covered 60..70 idle 0..60,70..100");
  input.sinks[0].capacity_bytes = 300;  // full: what came before its oldest is gone
  // Of CPU 0, too, but for what it wrote at the very same instant.
  EXPECT_EQ(Find(input).time, (TimeSpan{At(50) + 1, At(100)}));
  input.sinks[0].capacity_bytes = 0;  // not known: as if it were full
  EXPECT_EQ(Find(input).time, (TimeSpan{At(50) + 1, At(100)}));
  input.rings[0].sink = 5;  // one that nobody described
  EXPECT_EQ(ReportedTime(Find(input)), "100..100 by CPU0");
}

// What contradicts itself is held, and covers nothing.
TEST(Window, BelievesNothingThatContradictsItself) {
  const struct {
    const char* what;
    std::vector<HeldSpan> held;
    uint64_t head;
  } kCases[] = {
      {"time runs backwards", {{{At(80), At(20)}, 0, 100, {}}}, 100},
      {"offsets run backwards", {{Between(20, 80), 100, 0, {}}}, 100},
      {"beyond its head", {{Between(20, 80), 0, 100, {}}}, 99},
      {"overlap in time", {{Between(20, 60), 0, 50, {}}, {Between(50, 80), 50, 100, {}}}, 100},
      {"overlap in offsets", {{Between(20, 50), 0, 60, {}}, {Between(50, 80), 50, 100, {}}}, 100},
      {"the second is older", {{Between(50, 80), 0, 50, {}}, {Between(20, 50), 50, 100, {}}}, 100},
      {"one contains the other",
       {{Between(20, 80), 0, 100, {}}, {Between(30, 40), 20, 30, {}}},
       100},
      {"beyond all numbers",
       {{{INT64_MIN, INT64_MAX}, 0, UINT64_MAX, {}}, {Between(1, 2), 1, 2, {}}},
       UINT64_MAX},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.what);
    for (const WindowPolicy policy :
         {WindowPolicy::kCoherent, WindowPolicy::kEverything, WindowPolicy::kLastTime,
          WindowPolicy::kLastBytes, WindowPolicy::kSinceLast}) {
      WindowInput input;
      input.rings = {Cpu(0)};
      input.rings[0].held = c.held;
      input.rings[0].head = c.head;
      WindowRequest request;
      request.policy = policy;
      request.trigger = At(100);
      request.length = 100 * kMs;
      request.bytes = 1000;
      request.last_trigger = At(0);
      const Window window = FindWindow(input, request);
      for (const TimeSpan& covered : window.rings[0].covered)
        ADD_FAILURE() << "covered " << Reported(covered);
      if (window.time == Between(0, 100)) {
        EXPECT_NE(ReportedGaps(window).find("unreadable"), std::string::npos);
      }
    }
  }
}

TEST(Window, OfWhatIsUnreadableSaysSoAndKeepsTheRest) {
  WindowInput input;
  input.rings = {Cpu(0)};
  Hold(input.rings[0], 0, 20, 200);
  Hold(input.rings[0], 30, 50, 100);
  Hold(input.rings[0], 40, 60, 100);  // overlaps the one before
  Hold(input.rings[0], 70, 100, 300);
  const Window window = Find(input);
  EXPECT_EQ(ReportedTime(window), "0..100 from the start");
  EXPECT_EQ(ReportedRing(window, 0), "covered 0..20,70..100");
  EXPECT_EQ(ReportedGaps(window), "CPU0 20..70 unreadable 200 bytes; CPU0 30..60 unreadable");
}

TEST(Window, OfTheLastTimeIsAsLongAsAsked) {
  WindowInput input;
  input.rings = {Cpu(0), Cpu(1)};
  Hold(input.rings[0], 10, 100, 900, 10);
  Hold(input.rings[1], 70, 100, 300, 10);
  WindowRequest request;
  request.policy = WindowPolicy::kLastTime;
  request.trigger = At(100);
  request.length = 50 * kMs;
  Window window = FindWindow(input, request);
  EXPECT_EQ(ReportedTime(window), "50..100");
  EXPECT_EQ(ReportedGaps(window), "CPU1 50..70 overwritten");
  request.length = 500 * kMs;  // longer than it recorded
  window = FindWindow(input, request);
  EXPECT_EQ(ReportedTime(window), "0..100");
}

TEST(Window, OfTheLastBytesCountsOverAllRings) {
  WindowInput input;
  input.rings = {Cpu(0), Cpu(1)};
  Hold(input.rings[0], 0, 100, 1000);  // 10 a ms
  Hold(input.rings[1], 60, 80, 400);   // 20 a ms
  WindowRequest request;
  request.policy = WindowPolicy::kLastBytes;
  request.trigger = At(100);
  for (const auto& [bytes, time] :
       std::vector<std::pair<uint64_t, const char*>>{{0, "100..100"},
                                                     {100, "90..100"},
                                                     {200, "80..100"},
                                                     {500, "70..100"},
                                                     {800, "60..100"},
                                                     {900, "50..100"},
                                                     {1400, "0..100 from the start"},
                                                     {9999, "0..100 from the start"}}) {
    request.bytes = bytes;
    const Window window = FindWindow(input, request);
    EXPECT_EQ(ReportedTime(window), time) << bytes;
    const uint64_t inside = window.rings[0].bytes_inside + window.rings[1].bytes_inside;
    EXPECT_EQ(inside, std::min<uint64_t>(bytes, 1400));
  }
}

TEST(Window, SinceTheLastSharesNoByteWithTheSnapshotBefore) {
  WindowInput input;
  input.rings = {Cpu(0), Cpu(1)};
  Hold(input.rings[0], 0, 40, 400);
  Hold(input.rings[0], 40, 100, 600);
  Hold(input.rings[1], 80, 100, 200, 700);
  WindowRequest request;
  request.policy = WindowPolicy::kSinceLast;
  request.trigger = At(100);
  request.last_trigger = At(60);
  request.last_heads = {600, 450};
  Window window = FindWindow(input, request);
  EXPECT_EQ(ReportedTime(window), "60..100");
  EXPECT_EQ(window.rings[0].bytes_inside, 400u);
  EXPECT_EQ(window.rings[0].bytes_held, 1000u);
  EXPECT_EQ(ReportedRing(window, 0), "covered 60..100 stale 0..60(0)");
  EXPECT_EQ(ReportedRing(window, 1), "covered 80..100");
  // 450 of the 700 were in that snapshot: only the others are missing.
  EXPECT_EQ(ReportedGaps(window), "CPU1 60..80 overwritten 250 bytes");
  // Two at once: nothing new, nothing lost.
  request.last_heads = {1000, 900};
  request.last_trigger = At(100);
  window = FindWindow(input, request);
  EXPECT_EQ(ReportedTime(window), "100..100");
  EXPECT_EQ(window.rings[0].bytes_inside + window.rings[1].bytes_inside, 0u);
  EXPECT_EQ(ReportedGaps(window), "");
  // A head that ran backwards: of what is held nobody can say what is new.
  request.last_heads = {1001, 900};
  request.last_trigger = At(60);
  window = FindWindow(input, request);
  EXPECT_EQ(ReportedRing(window, 0), "");
  EXPECT_EQ(ReportedGaps(window), "CPU0 60..100 unreadable");
}

TEST(Window, CarriesTheErrorOfTheClocks) {
  WindowInput input;
  input.clock_error = 42;
  EXPECT_EQ(Find(input).clock_error, 42);
}

}  // namespace
}  // namespace hangscope
