// Windows of random machines, measured by what really happened to every byte.
#include <gtest/gtest.h>

#include <bitset>

#include "unit/window/window_model.h"

namespace hangscope {
namespace {

constexpr int kMaxInstants = 400;
using Instants = std::bitset<kMaxInstants>;

constexpr uint64_t kSeeds = 4000;

Instants InstantsOf(const TimeSpan& span) {
  Instants instants;
  for (TimeNs t = std::max<TimeNs>(span.from - kModelBegin, 0);
       t < std::min<TimeNs>(span.to - kModelBegin, kMaxInstants); ++t) {
    instants.set(static_cast<size_t>(t));
  }
  return instants;
}

Instants InstantsOf(const std::vector<TimeSpan>& spans) {
  Instants instants;
  for (const TimeSpan& span : spans) instants |= InstantsOf(span);
  return instants;
}

Instants InstantsOf(const ModelByte& byte) {
  return InstantsOf(TimeSpan{kModelBegin + byte.from, kModelBegin + byte.to});
}

// The truth of one ring.
struct Truth {
  Instants written;  // by a perfect recorder
  Instants lost;
  Instants recording;
  Instants ran;

  // Bytes before `last_head` are an earlier snapshot's business.
  Truth(const WindowModel& model, size_t cpu, uint64_t last_head = 0) {
    const ModelRing& ring = model.rings[cpu];
    for (const ModelByte& byte : ring.bytes) {
      if (byte.counted && byte.offset < last_head) continue;
      // Bytes follow on each other without a break, but what a sink that others use overwrites are
      // single ones.
      const bool single =
          model.shared_sink && (byte.fate == Fate::kOwnSink || byte.fate == Fate::kOthersSink);
      const Instants instants =
          single ? InstantsOf(TimeSpan{kModelBegin + byte.from, kModelBegin + byte.from + 1})
                 : InstantsOf(byte);
      written |= instants;
      if (WindowModel::IsLost(byte)) lost |= instants;
    }
    recording = InstantsOf(TimeSpan{kModelBegin + ring.since, kModelBegin + ring.until});
    for (int x = 0; x < model.end; ++x)
      ran[static_cast<size_t>(x)] = model.task_on[cpu][static_cast<size_t>(x)] >= 0;
  }
};

Instants GapsOf(const Window& window, size_t ring) {
  Instants instants;
  for (const Gap& gap : window.gaps) {
    if (gap.ring == ring) instants |= InstantsOf(gap.time);
  }
  return instants;
}

void ExpectNothingIsCoveredThatIsNot(const WindowModel& model, const Window& window,
                                     const std::vector<uint64_t>& last_heads = {}) {
  const Instants inside = InstantsOf(window.time);
  for (size_t cpu = 0; cpu < model.rings.size(); ++cpu) {
    const Truth truth(model, cpu, last_heads.empty() ? 0 : last_heads[cpu]);
    const Instants covered = InstantsOf(window.rings[cpu].covered);
    const Instants idle = InstantsOf(window.rings[cpu].idle);
    const Instants gaps = GapsOf(window, cpu);
    EXPECT_TRUE((covered & truth.lost).none()) << "CPU " << cpu << " covers what was lost";
    EXPECT_TRUE((covered & ~truth.recording).none())
        << "CPU " << cpu << " covers what it did not record";
    EXPECT_TRUE((covered & ~inside).none()) << "CPU " << cpu << " covers more than the window";
    EXPECT_TRUE((idle & truth.written).none())
        << "CPU " << cpu << " had something to record where it is idle";
    if (model.rings[cpu].history.always_on) {
      EXPECT_TRUE((idle & ~truth.recording).none())
          << "CPU " << cpu << " idle where it did not record";
    } else {
      EXPECT_TRUE((idle & truth.ran).none()) << "CPU " << cpu << " idle where somebody ran";
    }
    EXPECT_TRUE((truth.lost & inside & ~gaps).none())
        << "CPU " << cpu << " lost something that no gap shows";
    EXPECT_TRUE((gaps & ~inside).none()) << "CPU " << cpu << " has a gap outside the window";
    EXPECT_TRUE((covered & gaps).none() && (idle & (covered | gaps)).none())
        << "CPU " << cpu << " says two things of one instant";
  }
}

// Every instant inside is covered, idle or in a gap, but for what an earlier snapshot has.
void ExpectEveryInstantIsTold(const WindowModel& model, const Window& window) {
  const Instants inside =
      InstantsOf(window.time) & InstantsOf(TimeSpan{kModelBegin, kModelBegin + model.end});
  for (size_t cpu = 0; cpu < model.rings.size(); ++cpu) {
    const Instants told = InstantsOf(window.rings[cpu].covered) |
                          InstantsOf(window.rings[cpu].idle) | GapsOf(window, cpu);
    EXPECT_TRUE((inside & ~told).none()) << "CPU " << cpu << " says nothing of an instant";
  }
}

void ExpectTasksAreJudgedRight(const WindowModel& model, const Window& window) {
  const Instants inside = InstantsOf(window.time);
  for (const TaskCoverage& task : window.tasks) {
    Instants known;
    for (const TaskRun& run : model.input.runs) {
      if (run.task == task.task) known |= InstantsOf(run.time);
    }
    EXPECT_EQ(InstantsOf(task.ran), known & inside);
    Instants lost;
    for (size_t cpu = 0; cpu < model.rings.size(); ++cpu) {
      Instants on_cpu;
      for (int x = 0; x < model.end; ++x)
        on_cpu[static_cast<size_t>(x)] = model.task_on[cpu][static_cast<size_t>(x)] == task.task;
      lost |= on_cpu & Truth(model, cpu).lost & known & inside;
    }
    const Instants breaks = InstantsOf(task.breaks);
    EXPECT_TRUE((lost & ~breaks).none())
        << "task " << task.task << " lost something where it does not break";
    EXPECT_TRUE((breaks & ~InstantsOf(task.ran)).none())
        << "task " << task.task << " breaks where it did not run";
    EXPECT_TRUE(lost.none() || !task.continuous) << "task " << task.task << " is called continuous";
  }
}

void ExpectRingsAreDescribed(const WindowModel& model, const Window& window) {
  for (size_t cpu = 0; cpu < model.rings.size(); ++cpu) {
    uint64_t held = 0;
    for (const ModelByte& byte : model.rings[cpu].bytes) held += WindowModel::IsLost(byte) ? 0 : 1;
    const RingCoverage& ring = window.rings[cpu];
    EXPECT_EQ(ring.bytes_held, held) << "CPU " << cpu;
    EXPECT_LE(ring.bytes_inside, held) << "CPU " << cpu;
    for (const StaleSpan& stale : ring.stale) {
      EXPECT_LE(stale.time.to, window.time.from) << "CPU " << cpu;
      EXPECT_EQ(stale.age, window.time.from - stale.time.to) << "CPU " << cpu;
    }
  }
}

void ExpectSound(const WindowModel& model, const Window& window) {
  ExpectNothingIsCoveredThatIsNot(model, window);
  ExpectEveryInstantIsTold(model, window);
  ExpectTasksAreJudgedRight(model, window);
  ExpectRingsAreDescribed(model, window);
}

WindowRequest RandomRequest(WindowModel& model, WindowPolicy policy) {
  WindowRequest request;
  request.policy = policy;
  request.trigger =
      kModelBegin + (model.Chance(70) ? model.end : model.Pick(model.end / 2, model.end));
  request.length = model.Pick(0, model.end + 20);
  request.bytes = static_cast<uint64_t>(model.Pick(0, 120));
  return request;
}

ModelOptions OptionsOf(uint64_t seed) { return {seed % 2 == 0, seed % 3 != 0}; }

TEST(WindowProperties, NothingIsDeclaredCoveredThatIsNot) {
  for (uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    WindowModel model(seed, OptionsOf(seed));
    const WindowPolicy policy = static_cast<WindowPolicy>(seed % 4);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", policy " +
                 std::string(WindowPolicyName(policy)));
    ExpectSound(model, FindWindow(model.input, RandomRequest(model, policy)));
  }
}

// One instant earlier something that was overwritten would be inside. Where nobody knows at which
// of many instants it was, the latest of them counts.
TEST(WindowProperties, ACoherentWindowIsAsLongAsItCanBe) {
  int limited = 0;
  for (uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    WindowModel model(seed, {true, true});
    if (model.shared_sink) continue;
    const bool always_on = model.rings[0].history.always_on;
    // nobody knows what was lost in the sink, or when
    if (always_on && !model.input.sinks.empty()) continue;
    SCOPED_TRACE("seed " + std::to_string(seed));
    WindowRequest request = RandomRequest(model, WindowPolicy::kCoherent);
    // What was lost between two that are held may have been before or after a trigger between them.
    if (always_on) request.trigger = kModelBegin + model.end;
    const int trigger = static_cast<int>(request.trigger - kModelBegin);
    int begin = 0;
    bool overwritten = false;
    for (const ModelRing& ring : model.rings) {
      if (always_on) begin = std::max(begin, std::min(ring.since, trigger));
      for (size_t i = 0; i < ring.bytes.size(); ++i) {
        const ModelByte& byte = ring.bytes[i];
        if (byte.from > trigger) break;
        const bool before = byte.fate == Fate::kNotRecorded && byte.from < ring.since;
        const bool counts = byte.fate == Fate::kOverwritten || byte.fate == Fate::kOwnSink;
        if (!before && !counts) continue;
        overwritten |= counts;
        int to = std::min(byte.to, before ? ring.since : byte.to);
        if (always_on)
          to =
              i + 1 < ring.bytes.size() ? std::min(ring.bytes[i + 1].from, ring.until) : ring.until;
        if (always_on && before) to = ring.since;
        begin = std::max(begin, std::min(to, trigger));
      }
    }
    const Window window = FindWindow(model.input, request);
    if (overwritten) {
      ++limited;
      EXPECT_EQ(window.time.from - kModelBegin, begin);
      ASSERT_TRUE(window.limited_by.has_value());
    } else {
      // A ring whose begin is not known may have lost something before all that is.
      const bool begin_known =
          std::all_of(model.input.rings.begin(), model.input.rings.end(),
                      [](const RingHistory& r) { return r.recording_since != 0; });
      EXPECT_TRUE(window.from_the_start || !begin_known);
      EXPECT_TRUE(!window.limited_by || !begin_known);
      EXPECT_GE(window.time.from - kModelBegin, begin);
    }
  }
  EXPECT_GT(limited, 500) << "the machines are too harmless";
}

// No gap of a coherent window is one of overwritten data.
TEST(WindowProperties, ACoherentWindowHasNothingOverwrittenInside) {
  for (uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    WindowModel model(seed, OptionsOf(seed));
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Window window = FindWindow(model.input, RandomRequest(model, WindowPolicy::kCoherent));
    for (const Gap& gap : window.gaps) EXPECT_NE(gap.reason, GapReason::kOverwritten);
    const Instants inside = InstantsOf(window.time);
    for (size_t cpu = 0; cpu < model.rings.size(); ++cpu) {
      for (const ModelByte& byte : model.rings[cpu].bytes) {
        if (byte.fate == Fate::kOverwritten && byte.counted && OptionsOf(seed).clean) {
          EXPECT_TRUE((InstantsOf(byte) & inside).none()) << "CPU " << cpu;
        }
      }
    }
  }
}

// A window over all of the recording: no gap is cut, so the amounts add up to the truth.
TEST(WindowProperties, AmountsOfGapsAddUpToWhatWasLost) {
  uint64_t all = 0;
  for (uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    WindowModel model(seed, OptionsOf(seed));
    SCOPED_TRACE("seed " + std::to_string(seed));
    WindowRequest request;
    request.policy = WindowPolicy::kSinceLast;
    request.trigger = kModelBegin + model.end;
    request.last_trigger = kModelBegin;
    request.last_heads.assign(model.rings.size(), 0);
    const Window window = FindWindow(model.input, request);
    for (size_t cpu = 0; cpu < model.rings.size(); ++cpu) {
      uint64_t bytes = 0, records = 0, lost_bytes = 0;
      bool all_known = true;
      for (const Gap& gap : window.gaps) {
        if (gap.ring == cpu && gap.unit == AmountUnit::kUnknown &&
            gap.reason != GapReason::kNotRecorded)
          all_known = false;
        if (gap.ring == cpu && gap.unit == AmountUnit::kBytes) bytes += gap.amount;
        if (gap.ring == cpu && gap.unit == AmountUnit::kRecords) records += gap.amount;
      }
      for (const ModelByte& byte : model.rings[cpu].bytes)
        lost_bytes += byte.counted && WindowModel::IsLost(byte) ? 1 : 0;
      EXPECT_LE(bytes, lost_bytes) << "CPU " << cpu;
      if (all_known) {
        EXPECT_EQ(bytes, lost_bytes) << "CPU " << cpu;
      }
      EXPECT_EQ(records, model.rings[cpu].reported_records) << "CPU " << cpu;
      all += bytes;
    }
  }
  EXPECT_GT(all, 10000u) << "the machines lose too little";
}

TEST(WindowProperties, TheLastBytesAreAsManyAsWereAsked) {
  for (uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    WindowModel model(seed, OptionsOf(seed));
    SCOPED_TRACE("seed " + std::to_string(seed));
    WindowRequest request = RandomRequest(model, WindowPolicy::kLastBytes);
    request.trigger = kModelBegin + model.end;
    const Window window = FindWindow(model.input, request);
    uint64_t inside = 0, held = 0;
    for (const RingCoverage& ring : window.rings) {
      inside += ring.bytes_inside;
      held += ring.bytes_held;
    }
    // An instant's bytes of all rings and a rounding of each come or go together.
    const uint64_t rounding = 2 * model.rings.size();
    EXPECT_LE(inside, request.bytes + rounding);
    EXPECT_GE(inside + rounding, std::min(request.bytes, held));
  }
}

// Two snapshots of one recording, the second since the first: each byte is in one of them.
TEST(WindowProperties, SnapshotsSinceTheLastShareNoByte) {
  for (uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    WindowModel model(seed, OptionsOf(seed));
    SCOPED_TRACE("seed " + std::to_string(seed));
    const int cut = model.Pick(0, model.end / kInstantsPerTick) * kInstantsPerTick;
    WindowRequest request;
    request.policy = WindowPolicy::kSinceLast;
    request.trigger = kModelBegin + model.end;
    request.last_trigger = kModelBegin + cut;
    std::vector<uint64_t> newer(model.rings.size(), 0);
    for (size_t cpu = 0; cpu < model.rings.size(); ++cpu) {
      uint64_t head = 0;
      for (const ModelByte& byte : model.rings[cpu].bytes) {
        if (byte.counted && byte.from < cut) head = byte.offset + 1;
      }
      // Bytes that were still in the sink then have later offsets than ones that were not.
      for (const ModelByte& byte : model.rings[cpu].bytes) {
        newer[cpu] +=
            byte.fate == Fate::kInSink || (byte.fate == Fate::kHeld && byte.offset >= head) ? 1 : 0;
      }
      request.last_heads.push_back(head);
    }
    const Window window = FindWindow(model.input, request);
    EXPECT_EQ(window.time, (TimeSpan{request.last_trigger, request.trigger}));
    ExpectNothingIsCoveredThatIsNot(model, window, request.last_heads);
    for (size_t cpu = 0; cpu < model.rings.size(); ++cpu) {
      if (model.input.rings[cpu].sink) continue;
      EXPECT_EQ(window.rings[cpu].bytes_inside, newer[cpu]) << "CPU " << cpu;
      uint64_t stale = 0;
      for (const StaleSpan& span : window.rings[cpu].stale) stale += span.bytes;
      EXPECT_EQ(window.rings[cpu].bytes_held, newer[cpu] + stale) << "CPU " << cpu;
    }
  }
}

// Whatever it is given, it returns, and every span lies inside the window.
TEST(WindowProperties, NonsenseNeitherCrashesNorLeavesTheWindow) {
  std::mt19937_64 random(1);
  const auto any = [&](std::initializer_list<int64_t> few) {
    const uint64_t r = random();
    return r % 3 == 0   ? few.begin()[(r >> 8) % few.size()]
           : r % 3 == 1 ? static_cast<int64_t>(random())
                        : static_cast<int64_t>(random() % 100);
  };
  const auto time = [&] { return any({0, INT64_MIN, INT64_MAX, -1, 50}); };
  const auto number = [&] { return static_cast<uint64_t>(any({0, -1, 1, INT64_MIN, INT64_MAX})); };
  for (int round = 0; round < 3000 && !HasFailure(); ++round) {
    WindowInput input;
    for (uint64_t r = random() % 4; r > 0; --r) {
      RingHistory ring;
      ring.ring.kind = static_cast<RingKind>(random() % 5);
      ring.ring.number = static_cast<int64_t>(random() % 3);
      ring.head = number();
      ring.recording_since = time();
      ring.recorded_until = time();
      ring.always_on = random() % 2 == 0;
      if (random() % 2 == 0) ring.sink = random() % 3;
      for (uint64_t i = random() % 5; i > 0; --i)
        ring.held.push_back({{time(), time()}, number(), number(), {}});
      for (uint64_t i = random() % 3; i > 0; --i) {
        ring.losses.push_back({{time(), time()},
                               static_cast<GapReason>(random() % 8),
                               number(),
                               AmountUnit::kBytes,
                               {}});
      }
      input.rings.push_back(ring);
    }
    input.sinks.resize(random() % 3);
    for (SinkHistory& sink : input.sinks) {
      sink.capacity_bytes = number();
      for (uint64_t i = random() % 3; i > 0; --i)
        sink.rest.push_back({random() % 5, {time(), time()}, number()});
    }
    for (uint64_t i = random() % 4; i > 0; --i) {
      input.runs.push_back({static_cast<int64_t>(random() % 3),
                            static_cast<int64_t>(random() % 3),
                            {time(), time()}});
    }
    if (random() % 2 == 0) input.runs_known_since = time();
    WindowRequest request{static_cast<WindowPolicy>(random() % 5),
                          time(),
                          time(),
                          number(),
                          {number(), number()},
                          time()};
    const Window window = FindWindow(input, request);
    ASSERT_LE(window.time.from, window.time.to);
    for (const RingCoverage& ring : window.rings) {
      TimeNs last = window.time.from;
      for (const TimeSpan& span : ring.covered) {
        EXPECT_TRUE(span.from >= last && span.from < span.to && span.to <= window.time.to);
        last = span.to;
      }
    }
    for (const Gap& gap : window.gaps)
      EXPECT_TRUE(gap.time.from >= window.time.from && gap.time.to <= window.time.to);
  }
}

}  // namespace
}  // namespace hangscope
