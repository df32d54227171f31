// A program that hops over CPUs: P1 on CPU 0, P2 on CPU 3, P3 on CPU 1, P4 on CPU 2, P5 on CPU 1,
// ten milliseconds each. It writes ten bytes of trace a millisecond. What is the window, in every
// arrangement of rings and sinks? The rows are reasoned out, in the comment above each group; none
// is copied from a run.
#include <gtest/gtest.h>

#include "unit/window/window_story.h"

namespace hangscope {
namespace {

constexpr int64_t kProgram = 7;
constexpr int kCpuOfPeriod[] = {0, 3, 1, 2, 1};

struct Arrangement {
  bool whole_machine;   // every CPU is recorded all the time; else only while the program is on it
  bool one_sink;        // for all CPUs; else one each
  bool ring_is_larger;  // than the sink
  // at the trigger, which is then at 50; else it has ended, and the trigger is at 60
  bool p5_runs;
  bool p3_overwritten;
};

std::string Name(const Arrangement& a) {
  return std::string(a.whole_machine ? "whole machine" : "per thread") + ", " +
         (a.one_sink ? "one sink" : "a sink per CPU") + ", ring " +
         (a.ring_is_larger ? "larger" : "smaller") + " than the sink, P5 " +
         (a.p5_runs ? "runs" : "ended") + ", P3 " + (a.p3_overwritten ? "overwritten" : "kept");
}

WindowInput FourCpus(const Arrangement& a) {
  WindowInput input;
  for (int cpu = 0; cpu < 4; ++cpu) {
    RingHistory ring;
    ring.ring = {RingKind::kCpu, cpu};
    ring.recording_since = At(0);
    ring.recorded_until = At(a.p5_runs ? 50 : 60);
    ring.always_on = a.whole_machine;
    ring.sink = a.one_sink ? 0 : cpu;
    input.rings.push_back(ring);
    if (cpu == 0 || !a.one_sink) input.sinks.emplace_back();
  }
  for (int period = 0; period < 5; ++period) {
    input.runs.push_back({kProgram, kCpuOfPeriod[period], Between(period * 10, period * 10 + 10)});
  }
  input.runs_known_since = At(0);
  return input;
}

// Drained into the ring: ten bytes a millisecond from `from` to `to`.
void Drain(RingHistory& ring, int64_t from, int64_t to) {
  const uint64_t bytes = static_cast<uint64_t>(to - from) * 10;
  ring.held.push_back({Between(from, to), ring.head, ring.head + bytes, {}});
  ring.head += bytes;
}

void LeaveInSink(WindowInput& input, size_t cpu, int64_t from, int64_t to) {
  input.sinks[*input.rings[cpu].sink].rest.push_back(
      {cpu, Between(from, to), static_cast<uint64_t>(to - from) * 10});
}

// The tracer stops when the program leaves the CPU, and what is in the sink is drained into that
// CPU's ring. A sink smaller than the ring has the newest 60 bytes of a period then, a larger one
// all 100.
WindowInput PerThread(const Arrangement& a) {
  WindowInput input = FourCpus(a);
  const int64_t kept = a.ring_is_larger ? 6 : 10;
  for (SinkHistory& sink : input.sinks) sink.capacity_bytes = a.ring_is_larger ? 60 : 400;
  for (int period = 0; period < 5; ++period) {
    const size_t cpu = static_cast<size_t>(kCpuOfPeriod[period]);
    const int64_t end = period * 10 + 10;
    // While P5 runs, it is in the sink and could not overwrite P3, unless the trigger drains it.
    if (period == 4 && a.p5_runs && !a.p3_overwritten) {
      LeaveInSink(input, cpu, end - kept, end);
    } else {
      Drain(input.rings[cpu], end - kept, end);
    }
  }
  if (a.p3_overwritten) input.rings[1].held.erase(input.rings[1].held.begin());
  return input;
}

// All CPUs trace all the time, and only the trigger drains: at best the newest that the sink has,
// which is 60 or 400 bytes of each CPU. A larger ring is not filled, so that it stays in the sink
// here; a smaller one takes what fits, which is 100 bytes where P3 is overwritten and 390 where it
// is not.
WindowInput WholeMachine(const Arrangement& a) {
  WindowInput input = FourCpus(a);
  const int64_t end = a.p5_runs ? 50 : 60;
  const int64_t in_sink = a.ring_is_larger && a.p3_overwritten ? 6 : 40;
  for (SinkHistory& sink : input.sinks)
    sink.capacity_bytes = static_cast<uint64_t>(in_sink) * (a.one_sink ? 40 : 10);
  for (size_t cpu = 0; cpu < 4; ++cpu) {
    if (a.ring_is_larger) {
      LeaveInSink(input, cpu, end - in_sink, end);
    } else {
      input.rings[cpu].head = a.p3_overwritten ? 300 : 10;
      Drain(input.rings[cpu], end - (a.p3_overwritten ? 10 : 39), end);
    }
  }
  return input;
}

struct Row {
  Arrangement arrangement;
  const char* time;
  const char* cpu0;
  const char* cpu1;
  const char* cpu2;
  const char* cpu3;
};

constexpr bool kAll = true, kThread = false;
constexpr bool kOneSink = true, kSinkEach = false;
constexpr bool kLarger = true, kSmaller = false;
constexpr bool kRuns = true, kEnded = false;
constexpr bool kLost = true, kKept = false;

const Row kRows[] = {
    // The sink cuts the first 4 ms of every period. Nothing older than P5's newest 6 ms is without
    // a hole, and
    // P5 follows on P3 with one: the older periods are there, look continuous, and are stale. One
    // sink for all
    // changes nothing, for the program is on one CPU at a time and the sink is drained when it
    // leaves.
    {{kThread, kSinkEach, kLarger, kRuns, kKept},
     "44..50 by CPU1",
     "idle 44..50 stale 4..10(34)",
     "covered 44..50 stale 24..30(14)",
     "idle 44..50 stale 34..40(4)",
     "idle 44..50 stale 14..20(24)"},
    {{kThread, kSinkEach, kLarger, kRuns, kLost},
     "44..50 by CPU1",
     "idle 44..50 stale 4..10(34)",
     "covered 44..50",
     "idle 44..50 stale 34..40(4)",
     "idle 44..50 stale 14..20(24)"},
    {{kThread, kSinkEach, kLarger, kEnded, kKept},
     "44..60 by CPU1",
     "idle 44..60 stale 4..10(34)",
     "covered 44..50 idle 50..60 stale 24..30(14)",
     "idle 44..60 stale 34..40(4)",
     "idle 44..60 stale 14..20(24)"},
    {{kThread, kSinkEach, kLarger, kEnded, kLost},
     "44..60 by CPU1",
     "idle 44..60 stale 4..10(34)",
     "covered 44..50 idle 50..60",
     "idle 44..60 stale 34..40(4)",
     "idle 44..60 stale 14..20(24)"},
    {{kThread, kOneSink, kLarger, kRuns, kKept},
     "44..50 by CPU1",
     "idle 44..50 stale 4..10(34)",
     "covered 44..50 stale 24..30(14)",
     "idle 44..50 stale 34..40(4)",
     "idle 44..50 stale 14..20(24)"},
    {{kThread, kOneSink, kLarger, kRuns, kLost},
     "44..50 by CPU1",
     "idle 44..50 stale 4..10(34)",
     "covered 44..50",
     "idle 44..50 stale 34..40(4)",
     "idle 44..50 stale 14..20(24)"},
    {{kThread, kOneSink, kLarger, kEnded, kKept},
     "44..60 by CPU1",
     "idle 44..60 stale 4..10(34)",
     "covered 44..50 idle 50..60 stale 24..30(14)",
     "idle 44..60 stale 34..40(4)",
     "idle 44..60 stale 14..20(24)"},
    {{kThread, kOneSink, kLarger, kEnded, kLost},
     "44..60 by CPU1",
     "idle 44..60 stale 4..10(34)",
     "covered 44..50 idle 50..60",
     "idle 44..60 stale 34..40(4)",
     "idle 44..60 stale 14..20(24)"},
    // The sink holds a whole period. Without P3 the window begins where P3 ended: P4 and P5 are all
    // there, P1 and
    // P2 are stale. With it nothing was ever lost.
    {{kThread, kSinkEach, kSmaller, kRuns, kKept},
     "0..50 from the start",
     "covered 0..10 idle 10..50",
     "covered 20..30,40..50 idle 0..20,30..40",
     "covered 30..40 idle 0..30,40..50",
     "covered 10..20 idle 0..10,20..50"},
    {{kThread, kSinkEach, kSmaller, kRuns, kLost},
     "30..50 by CPU1",
     "idle 30..50 stale 0..10(20)",
     "covered 40..50 idle 30..40",
     "covered 30..40 idle 40..50",
     "idle 30..50 stale 10..20(10)"},
    {{kThread, kSinkEach, kSmaller, kEnded, kKept},
     "0..60 from the start",
     "covered 0..10 idle 10..60",
     "covered 20..30,40..50 idle 0..20,30..40,50..60",
     "covered 30..40 idle 0..30,40..60",
     "covered 10..20 idle 0..10,20..60"},
    {{kThread, kSinkEach, kSmaller, kEnded, kLost},
     "30..60 by CPU1",
     "idle 30..60 stale 0..10(20)",
     "covered 40..50 idle 30..40,50..60",
     "covered 30..40 idle 40..60",
     "idle 30..60 stale 10..20(10)"},
    {{kThread, kOneSink, kSmaller, kRuns, kKept},
     "0..50 from the start",
     "covered 0..10 idle 10..50",
     "covered 20..30,40..50 idle 0..20,30..40",
     "covered 30..40 idle 0..30,40..50",
     "covered 10..20 idle 0..10,20..50"},
    {{kThread, kOneSink, kSmaller, kRuns, kLost},
     "30..50 by CPU1",
     "idle 30..50 stale 0..10(20)",
     "covered 40..50 idle 30..40",
     "covered 30..40 idle 40..50",
     "idle 30..50 stale 10..20(10)"},
    {{kThread, kOneSink, kSmaller, kEnded, kKept},
     "0..60 from the start",
     "covered 0..10 idle 10..60",
     "covered 20..30,40..50 idle 0..20,30..40,50..60",
     "covered 30..40 idle 0..30,40..60",
     "covered 10..20 idle 0..10,20..60"},
    {{kThread, kOneSink, kSmaller, kEnded, kLost},
     "30..60 by CPU1",
     "idle 30..60 stale 0..10(20)",
     "covered 40..50 idle 30..40,50..60",
     "covered 30..40 idle 40..60",
     "idle 30..60 stale 10..20(10)"},
    // Every CPU has its newest, of equal length, and that is the window. Older rings have nothing
    // stale.
    {{kAll, kSinkEach, kLarger, kRuns, kKept},
     "10..50 by CPU0",
     "covered 10..50",
     "covered 10..50",
     "covered 10..50",
     "covered 10..50"},
    {{kAll, kSinkEach, kLarger, kRuns, kLost},
     "44..50 by CPU0",
     "covered 44..50",
     "covered 44..50",
     "covered 44..50",
     "covered 44..50"},
    {{kAll, kSinkEach, kLarger, kEnded, kKept},
     "20..60 by CPU0",
     "covered 20..60",
     "covered 20..60",
     "covered 20..60",
     "covered 20..60"},
    {{kAll, kSinkEach, kLarger, kEnded, kLost},
     "54..60 by CPU0",
     "covered 54..60",
     "covered 54..60",
     "covered 54..60",
     "covered 54..60"},
    {{kAll, kOneSink, kLarger, kRuns, kKept},
     "10..50 by CPU0",
     "covered 10..50",
     "covered 10..50",
     "covered 10..50",
     "covered 10..50"},
    {{kAll, kOneSink, kLarger, kRuns, kLost},
     "44..50 by CPU0",
     "covered 44..50",
     "covered 44..50",
     "covered 44..50",
     "covered 44..50"},
    {{kAll, kOneSink, kLarger, kEnded, kKept},
     "20..60 by CPU0",
     "covered 20..60",
     "covered 20..60",
     "covered 20..60",
     "covered 20..60"},
    {{kAll, kOneSink, kLarger, kEnded, kLost},
     "54..60 by CPU0",
     "covered 54..60",
     "covered 54..60",
     "covered 54..60",
     "covered 54..60"},
    {{kAll, kSinkEach, kSmaller, kRuns, kKept},
     "11..50 by CPU0",
     "covered 11..50",
     "covered 11..50",
     "covered 11..50",
     "covered 11..50"},
    {{kAll, kSinkEach, kSmaller, kRuns, kLost},
     "40..50 by CPU0",
     "covered 40..50",
     "covered 40..50",
     "covered 40..50",
     "covered 40..50"},
    {{kAll, kSinkEach, kSmaller, kEnded, kKept},
     "21..60 by CPU0",
     "covered 21..60",
     "covered 21..60",
     "covered 21..60",
     "covered 21..60"},
    {{kAll, kSinkEach, kSmaller, kEnded, kLost},
     "50..60 by CPU0",
     "covered 50..60",
     "covered 50..60",
     "covered 50..60",
     "covered 50..60"},
    {{kAll, kOneSink, kSmaller, kRuns, kKept},
     "11..50 by CPU0",
     "covered 11..50",
     "covered 11..50",
     "covered 11..50",
     "covered 11..50"},
    {{kAll, kOneSink, kSmaller, kRuns, kLost},
     "40..50 by CPU0",
     "covered 40..50",
     "covered 40..50",
     "covered 40..50",
     "covered 40..50"},
    {{kAll, kOneSink, kSmaller, kEnded, kKept},
     "21..60 by CPU0",
     "covered 21..60",
     "covered 21..60",
     "covered 21..60",
     "covered 21..60"},
    {{kAll, kOneSink, kSmaller, kEnded, kLost},
     "50..60 by CPU0",
     "covered 50..60",
     "covered 50..60",
     "covered 50..60",
     "covered 50..60"},
};

TEST(WindowOfAMigratingProgram, IsWhatAllRingsCoverTogether) {
  ASSERT_EQ(std::size(kRows), 32u);
  for (const Row& row : kRows) {
    SCOPED_TRACE(Name(row.arrangement));
    WindowRequest request;
    request.trigger = At(row.arrangement.p5_runs ? 50 : 60);
    const Window window = FindWindow(
        row.arrangement.whole_machine ? WholeMachine(row.arrangement) : PerThread(row.arrangement),
        request);
    EXPECT_EQ(ReportedTime(window), row.time);
    EXPECT_EQ(ReportedRing(window, 0), row.cpu0);
    EXPECT_EQ(ReportedRing(window, 1), row.cpu1);
    EXPECT_EQ(ReportedRing(window, 2), row.cpu2);
    EXPECT_EQ(ReportedRing(window, 3), row.cpu3);
    // A coherent window has no hole here, and what the program did in it is all there, if it did
    // anything.
    EXPECT_EQ(ReportedGaps(window), "");
    EXPECT_EQ(ReportedTasks(window), window.time.from < At(50) ? "7 continuous" : "");
  }
}

// The same, but everything that is held is asked for: now every hole must show, with whose it is
// and why.
TEST(WindowOfAMigratingProgram, ShowsEveryHoleWhenAskedForEverything) {
  WindowRequest request;
  request.policy = WindowPolicy::kEverything;
  request.trigger = At(60);
  Window window = FindWindow(PerThread({kThread, kSinkEach, kSmaller, kEnded, kLost}), request);
  EXPECT_EQ(ReportedTime(window), "0..60");
  EXPECT_EQ(ReportedGaps(window), "CPU1 20..30 overwritten of 7 100 bytes");
  EXPECT_EQ(ReportedTasks(window), "7 breaks 20..30");
  EXPECT_EQ(ReportedRing(window, 1), "covered 40..50 idle 0..20,30..40,50..60");

  window = FindWindow(PerThread({kThread, kOneSink, kLarger, kEnded, kKept}), request);
  EXPECT_EQ(ReportedTime(window), "4..60");
  EXPECT_EQ(
      ReportedGaps(window),
      "CPU3 10..14 overwritten of 7; CPU1 20..24 overwritten of 7; CPU2 30..34 overwritten of 7; "
      "CPU1 40..44 overwritten of 7");
  EXPECT_EQ(ReportedTasks(window), "7 breaks 10..14,20..24,30..34,40..44");
}

// One sink for all that is drained only at the trigger: what is left in it is P5 and the end of P4.
// The others' data was overwritten there by their neighbours', though no ring says so.
TEST(WindowOfAMigratingProgram, AttributesWhatIsLeftInASharedSink) {
  WindowInput input = FourCpus({kThread, kOneSink, kLarger, kRuns, kLost});
  input.sinks[0].capacity_bytes = 140;
  LeaveInSink(input, 2, 36, 40);
  LeaveInSink(input, 1, 40, 50);
  WindowRequest request;
  request.trigger = At(50);
  Window window = FindWindow(input, request);
  EXPECT_EQ(ReportedTime(window), "36..50 by CPU2");
  EXPECT_EQ(ReportedGaps(window), "");
  EXPECT_EQ(ReportedRing(window, 2), "covered 36..40 idle 40..50");
  EXPECT_EQ(ReportedRing(window, 1), "covered 40..50 idle 36..40");
  EXPECT_EQ(ReportedRing(window, 0), "idle 36..50");
  EXPECT_EQ(window.rings[1].bytes_inside, 100u);
  EXPECT_EQ(window.rings[2].bytes_inside, 40u);
  EXPECT_EQ(ReportedTasks(window), "7 continuous");

  request.policy = WindowPolicy::kLastTime;
  request.length = 35 * kMillisecond;
  window = FindWindow(input, request);
  EXPECT_EQ(ReportedTime(window), "15..50");
  EXPECT_EQ(ReportedGaps(window),
            "CPU3 15..20 shared sink overwritten of 7; CPU1 20..30 shared sink overwritten of 7; "
            "CPU2 30..36 shared sink overwritten of 7");
  EXPECT_EQ(ReportedTasks(window), "7 breaks 15..36");
}

}  // namespace
}  // namespace hangscope
