// AUX areas on simulated pages: heads of both kinds over wraps, snapshots, sinks of one and of
// several CPUs.
#include "cpu/aux_ring.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "fakes/simulated_sink.h"
#include "unit/window/window_story.h"

namespace hangscope {
namespace {

unsigned char ByteAt(uint64_t offset) {
  return static_cast<unsigned char>(1 + (offset * 31 + offset / 255) % 255);
}

void WriteBytes(SimulatedAux& aux, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) aux.Write(ByteAt(aux.written()));
}

// The bytes are those that were written at their offsets.
void ExpectTheBytesOfTheirOffsets(const AuxSnapshot& snapshot) {
  for (size_t i = 0; i < snapshot.ring.bytes.size(); ++i) {
    ASSERT_EQ(static_cast<unsigned char>(snapshot.ring.bytes[i]), ByteAt(snapshot.begin_offset + i))
        << "at " << i;
  }
}

class AuxRingTest : public testing::TestWithParam<AuxHeadKind> {};

// Steps of any size below a round, however often it wraps: head and bytes are those that were
// written.
TEST_P(AuxRingTest, FollowsTheHeadOverWraps) {
  std::mt19937 random(1);
  SimulatedAux aux(1000, GetParam());
  AuxReader reader(aux.area(), 3, -1);
  for (int i = 0; i < 200; ++i) {
    WriteBytes(aux, random() % 1000);
    const AuxSnapshot snapshot = reader.Take(false, 1, {});
    ASSERT_EQ(snapshot.ring.head, aux.written());
    EXPECT_EQ(snapshot.ring.bytes.size(), std::min<uint64_t>(1000, aux.written()));
    EXPECT_EQ(snapshot.ring.lost_before, aux.written() > 1000);
    EXPECT_EQ(snapshot.ring.cpu, 3);
    EXPECT_FALSE(snapshot.head_is_at_least);
    ExpectTheBytesOfTheirOffsets(snapshot);
  }
}

TEST_P(AuxRingTest, TakesNoByteTwiceSinceTheLast) {
  std::mt19937 random(2);
  SimulatedAux aux(1000, GetParam());
  AuxReader reader(aux.area(), 0, -1);
  uint64_t taken = 0;
  for (int i = 0; i < 200; ++i) {
    WriteBytes(aux, i % 3 == 0 ? 0 : random() % 900);
    const AuxSnapshot snapshot = reader.Take(true, 1, {});
    EXPECT_EQ(snapshot.begin_offset, taken);
    taken += snapshot.ring.bytes.size();
    EXPECT_EQ(taken, aux.written());
    EXPECT_FALSE(snapshot.ring.lost_before);
    ExpectTheBytesOfTheirOffsets(snapshot);
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, AuxRingTest,
                         testing::Values(AuxHeadKind::kCountsAll, AuxHeadKind::kWithinArea),
                         [](const auto& param) {
                           return param.param == AuxHeadKind::kCountsAll ? "CountAll" : "StartOver";
                         });

TEST(AuxRing, SaysWhatWasOverwrittenSinceTheLast) {
  SimulatedAux aux(1000, AuxHeadKind::kCountsAll);
  AuxReader reader(aux.area(), 0, -1);
  WriteBytes(aux, 100);
  reader.Take(true, 1, {});
  WriteBytes(aux, 2500);
  const AuxSnapshot snapshot = reader.Take(true, 1, {});
  EXPECT_EQ(snapshot.begin_offset, 1600u);
  EXPECT_TRUE(snapshot.ring.lost_before);
}

TEST(AuxRing, SeesAFullRoundByTheBytesThatChanged) {
  SimulatedAux aux(1000, AuxHeadKind::kWithinArea);
  AuxReader reader(aux.area(), 0, -1);
  WriteBytes(aux, 400);
  reader.ReadHead();
  WriteBytes(aux, 1100);  // the head is 100 further than it was
  const AuxSnapshot snapshot = reader.Take(true, 1, {});
  EXPECT_EQ(snapshot.ring.head, 1500u);
  EXPECT_TRUE(snapshot.head_is_at_least);
  EXPECT_EQ(snapshot.begin_offset, 500u);
  ExpectTheBytesOfTheirOffsets(snapshot);
}

TEST(AuxRing, SeesAtTheFirstLookThatItWentRound) {
  SimulatedAux aux(1000, AuxHeadKind::kWithinArea);
  WriteBytes(aux, 1300);
  AuxReader reader(aux.area(), 0, -1);
  const AuxSnapshot snapshot = reader.Take(false, 1, {});
  EXPECT_EQ(snapshot.ring.head, 1300u);
  EXPECT_TRUE(snapshot.head_is_at_least);
  EXPECT_TRUE(snapshot.ring.lost_before);
  ExpectTheBytesOfTheirOffsets(snapshot);
  SimulatedAux fresh(1000, AuxHeadKind::kWithinArea);
  WriteBytes(fresh, 300);
  EXPECT_EQ(AuxReader(fresh.area(), 0, -1).Take(false, 1, {}).ring.bytes.size(), 300u);
}

// A tracer that never stops: sooner or later a snapshot meets it, and keeps only what was not
// written over.
TEST(AuxRing, DiscardsWhatWasLappedWhileItWasCopied) {
  const std::vector<unsigned char> bytes(1000, 1);
  uint64_t head = 1300;
  AuxReader reader({bytes.data(), bytes.size(), &head, AuxHeadKind::kCountsAll}, 0, -1);
  EXPECT_EQ(reader.Take(false, 1, {}).lapped_bytes, 0u);
  std::atomic<bool> stop{false};
  std::thread tracer([&] {
    while (!stop) __atomic_fetch_add(&head, 1, __ATOMIC_RELEASE);
  });
  bool met = false;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!met && std::chrono::steady_clock::now() < deadline) {
    const AuxSnapshot snapshot = reader.Take(false, 1, {});
    EXPECT_EQ(snapshot.begin_offset + snapshot.ring.bytes.size(), snapshot.ring.head);
    EXPECT_EQ(snapshot.ring.bytes.size() + snapshot.lapped_bytes, 1000u);
    met = snapshot.lapped_bytes > 0;
  }
  stop = true;
  tracer.join();
  EXPECT_TRUE(met) << "no snapshot met the tracer";
}

// What cannot be known: a full round of the very same bytes.
TEST(AuxRing, CannotSeeARoundOfTheSameBytes) {
  SimulatedAux aux(100, AuxHeadKind::kWithinArea);
  AuxReader reader(aux.area(), 0, -1);
  for (int i = 0; i < 50; ++i) aux.Write(1);
  EXPECT_EQ(reader.Take(false, 1, {}).ring.head, 50u);
  for (int i = 0; i < 50; ++i) aux.Write(1);
  EXPECT_EQ(reader.Take(false, 1, {}).ring.head, 100u);
  for (int i = 0; i < 100; ++i) aux.Write(1);
  EXPECT_EQ(reader.Take(false, 1, {}).ring.head, 100u);
}

TEST(AuxRing, KeepsWhatRecordsSayOfLosses) {
  SimulatedAux aux(1000, AuxHeadKind::kCountsAll);
  AuxReader reader(aux.area(), 0, -1);
  WriteBytes(aux, 300);
  reader.HandleRecord(At(0), At(10), 300, 300, PERF_AUX_FLAG_OVERWRITE, 7);
  WriteBytes(aux, 900);
  reader.HandleRecord(At(15), At(20), 300, 900, PERF_AUX_FLAG_TRUNCATED, 7);
  reader.HandleRecord(At(20), At(30), 1200, 0, PERF_AUX_FLAG_COLLISION, 7);
  ASSERT_EQ(reader.losses().size(), 2u);
  EXPECT_EQ(reader.losses()[0].time, Between(10, 20));
  EXPECT_EQ(reader.losses()[1].time, Between(20, 30));
  reader.Take(false, At(40), {});
  // Of the first only the end is left, and nobody knows when that was written.
  const std::vector<AuxSpan> held = reader.held();
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held[0].time, Between(10, 10));
  EXPECT_EQ(held[0].begin_offset, 200u);
  EXPECT_EQ(held[1].time, Between(15, 20));
  EXPECT_EQ(held[1].end_offset, 1200u);
}

// In overwrite mode the kernel's records say where the head is, behind the bytes; and of Intel PT
// the whole area is told as what was written.
TEST(AuxRing, TakesOffsetsAsTheKernelTellsThemOfAnAreaThatOverwritesItself) {
  for (const AuxHeadKind kind : {AuxHeadKind::kCountsAll, AuxHeadKind::kWithinArea}) {
    SimulatedAux aux(1000, kind);
    AuxReader reader(aux.area(), 0, -1);
    for (int i = 1; i <= 3; ++i) {
      WriteBytes(aux, 400);
      const bool all = kind == AuxHeadKind::kCountsAll;
      reader.HandleRecord(At(i * 10), At(i * 10 + 5), all ? i * 400u : i * 400u % 1000,
                          all ? 400 : 1000, PERF_AUX_FLAG_OVERWRITE, i);
    }
    reader.Take(false, At(40), {});
    const std::vector<AuxSpan> held = reader.held();
    ASSERT_EQ(held.size(), 3u);
    EXPECT_EQ(held[0].begin_offset, 200u);
    EXPECT_EQ(held[1].begin_offset, 400u);
    EXPECT_EQ(held[1].end_offset, 800u);
    EXPECT_EQ(held[2].end_offset, 1200u);
    EXPECT_EQ(held[2].task, 3);
  }
}

// P1 to P5 on CPUs 0, 3, 1, 2, 1, a byte each 100 us, through real sinks and areas into a window.
class Migration {
 public:
  Migration(bool one_sink, uint64_t sink_bytes, uint64_t ring_bytes, AuxHeadKind kind) {
    for (int cpu = 0; cpu < 4; ++cpu) areas_.emplace_back(ring_bytes, kind);
    for (int cpu = 0; cpu < 4; ++cpu)
      readers_.emplace_back(areas_[static_cast<size_t>(cpu)].area(), cpu, -1);
    sinks_.assign(one_sink ? 1 : 4, SimulatedSink(sink_bytes));
  }

  Window Run(bool drain) {
    constexpr size_t kCpus[] = {0, 3, 1, 2, 1};
    WindowInput input;
    for (int period = 0; period < 5; ++period) {
      const size_t cpu = kCpus[period];
      for (int us = 0; us < 10000; us += 100) {
        SinkOf(cpu).Write(cpu, At(period * 10) + us * 1000,
                          ByteAt(static_cast<uint64_t>(us / 100 + period * 77)));
      }
      input.runs.push_back({7, static_cast<int64_t>(cpu), Between(period * 10, period * 10 + 10)});
      if (drain) Drain(cpu, period);
    }
    input.runs_known_since = At(0);
    for (size_t cpu = 0; cpu < 4; ++cpu) input.rings.push_back(History(cpu));
    for (const SimulatedSink& sink : sinks_) input.sinks.push_back(sink.Rest());
    WindowRequest request;
    request.trigger = At(50);
    return FindWindow(input, request);
  }

 private:
  SimulatedSink& SinkOf(size_t cpu) { return sinks_[sinks_.size() == 1 ? 0 : cpu]; }

  void Drain(size_t cpu, int period) {
    const uint64_t before = areas_[cpu].written();
    const uint64_t bytes = SinkOf(cpu).Drain(areas_[cpu]);
    // A byte each 100 us: what the sink lost was the begin.
    const TimeNs since = At(period * 10 + 10) - static_cast<TimeNs>(bytes) * 100'000;
    const AuxArea area = areas_[cpu].area();
    const uint64_t offset =
        area.head_kind == AuxHeadKind::kCountsAll ? before : before % area.capacity;
    readers_[cpu].HandleRecord(since, At(period * 10 + 10), offset, bytes, 0, 7);
  }

  RingHistory History(size_t cpu) {
    const AuxSnapshot snapshot = readers_[cpu].Take(false, At(50), {});
    RingHistory ring;
    ring.ring = {RingKind::kCpu, static_cast<int64_t>(cpu)};
    ring.head = snapshot.ring.head;
    ring.recording_since = At(0);
    ring.recorded_until = At(50);
    ring.always_on = false;
    ring.sink = sinks_.size() == 1 ? 0 : cpu;
    for (const AuxSpan& span : readers_[cpu].held())
      ring.held.push_back({span.time, span.begin_offset, span.end_offset, span.task});
    return ring;
  }

  std::vector<SimulatedAux> areas_;
  std::vector<AuxReader> readers_;
  std::vector<SimulatedSink> sinks_;
};

TEST(AuxRing, GivesTheWindowOfAMigratingProgram) {
  for (const AuxHeadKind kind : {AuxHeadKind::kCountsAll, AuxHeadKind::kWithinArea}) {
    for (const bool one_sink : {false, true}) {
      // P5 goes over P3 in a ring of one period.
      EXPECT_EQ(ReportedTime(Migration(one_sink, 400, 100, kind).Run(true)), "30..50 by CPU1");
      EXPECT_EQ(ReportedTime(Migration(one_sink, 400, 250, kind).Run(true)),
                "0..50 from the start");
      EXPECT_EQ(ReportedTime(Migration(one_sink, 60, 250, kind).Run(true)), "44..50 by CPU1");
    }
    // Never drained: the sink of all has P5 and the end of P4; each CPU's own has its newest
    // period.
    const Window shared = Migration(true, 140, 400, kind).Run(false);
    EXPECT_EQ(ReportedTime(shared), "36..50 by CPU2");
    EXPECT_EQ(ReportedTasks(shared), "7 breaks 39.900001..40,49.900001..50");
    EXPECT_EQ(shared.rings[1].bytes_inside, 100u);
    EXPECT_EQ(shared.rings[2].bytes_inside, 40u);
  }
}

}  // namespace
}  // namespace hangscope
