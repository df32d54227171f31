// A machine of a few CPUs, simulated instant by instant and byte by byte, that knows what became of
// every byte: held in a ring, held in a sink, or lost, and how. What rings and sinks would tell of
// it is the input of a window; the truth is what the window is measured by. Shares no code with
// src/window.
#ifndef HANGSCOPE_TESTS_UNIT_WINDOW_WINDOW_MODEL_H
#define HANGSCOPE_TESTS_UNIT_WINDOW_WINDOW_MODEL_H

#include <algorithm>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "window/find_window.h"

namespace hangscope {

constexpr TimeNs kModelBegin = 1'000'000;
constexpr int kInstantsPerTick = 12;

enum class Fate {
  kHeld,         // in the ring
  kInSink,       // not drained yet
  kOverwritten,  // in the ring, or damaged there without a word
  kOwnSink,      // in the sink, by newer data of its own ring
  kOthersSink,   // in the sink, by another ring's
  kReported,     // dropped, torn or blind; the recorder says so
  kNotRecorded,  // before or after the recording, or without a word
};

struct ModelByte {
  int from = 0;  // instants
  int to = 0;
  Fate fate = Fate::kNotRecorded;
  bool counted = false;  // has an offset in the ring
  uint64_t offset = 0;
};

struct ModelRing {
  RingHistory history;  // all but the held spans, until Tell()
  uint64_t capacity = 0;
  std::vector<ModelByte> bytes;  // that a perfect recorder would have, by time
  std::deque<size_t> in_ring;
  int since = 0;
  int until = 0;
  uint64_t reported_records = 0;
};

struct ModelSink {
  uint64_t capacity = 0;
  bool tells_capacity = true;
  std::deque<std::pair<size_t, size_t>> bytes;  // ring, index of its bytes
};

struct ModelOptions {
  bool clean = false;  // nothing but overwriting
  bool runs_trusted = true;
};

class WindowModel {
 public:
  WindowModel(uint64_t seed, ModelOptions options) : random_(seed), options_(options) {
    MakeMachine();
    for (int tick = 0; tick < ticks_; ++tick) Tick(tick);
    if (!options_.clean) DamageRings();
    Tell();
  }

  WindowInput input;
  std::vector<ModelRing> rings;
  int end = 0;  // instants simulated
  bool shared_sink = false;
  std::vector<std::vector<int64_t>> task_on;  // [cpu][instant]; -1: nobody that is looked at

  int Pick(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  bool Chance(int percent) { return Pick(1, 100) <= percent; }

  static bool IsLost(const ModelByte& byte) {
    return byte.fate != Fate::kHeld && byte.fate != Fate::kInSink;
  }

 private:
  void MakeMachine() {
    ticks_ = Pick(5, 30);
    end = ticks_ * kInstantsPerTick;
    const int cpus = Pick(1, 4);
    const int sink_kind = Pick(0, 2);  // none, one each, one for all
    always_on_ = Chance(40);
    shared_sink = sink_kind == 2 && cpus > 1;
    for (int cpu = 0; cpu < cpus; ++cpu) {
      ModelRing ring;
      ring.history.ring = {RingKind::kCpu, cpu, {}};
      ring.history.always_on = always_on_;
      ring.capacity = static_cast<uint64_t>(Pick(1, 60));
      ring.since = Chance(80) ? 0 : Pick(0, ticks_ / 2) * kInstantsPerTick;
      ring.until = Chance(90) ? end : Pick(ticks_ / 2, ticks_) * kInstantsPerTick;
      ring.history.recording_since = ring.since == 0 && Chance(30) ? 0 : kModelBegin + ring.since;
      ring.history.recorded_until = kModelBegin + ring.until;
      if (sink_kind == 1) ring.history.sink = cpu;
      if (sink_kind == 2) ring.history.sink = 0;
      rings.push_back(std::move(ring));
    }
    sinks_.resize(sink_kind == 0 ? 0 : sink_kind == 1 ? static_cast<size_t>(cpus) : 1);
    for (ModelSink& sink : sinks_) {
      sink.capacity = static_cast<uint64_t>(Pick(1, 60));
      sink.tells_capacity = Chance(80);
    }
    const int tasks = Pick(1, 4);
    place_.assign(static_cast<size_t>(tasks), -1);
    task_on.assign(rings.size(), std::vector<int64_t>(static_cast<size_t>(end), -1));
    blind_.assign(rings.size(), 0);
    silent_.assign(rings.size(), false);
  }

  // Tasks move, come and go; then every CPU records for a tick.
  void Tick(int tick) {
    for (size_t task = 0; task < place_.size(); ++task) {
      if (!Chance(35)) continue;
      const int to = Pick(-1, static_cast<int>(rings.size()) - 1);
      const bool taken = to >= 0 && std::find(place_.begin(), place_.end(), to) != place_.end();
      if (taken) continue;
      if (place_[task] >= 0 && !always_on_) Leave(place_[task]);
      place_[task] = to;
    }
    if (Chance(10) && !sinks_.empty())
      Drain(static_cast<size_t>(Pick(0, static_cast<int>(sinks_.size()) - 1)));
    std::vector<std::vector<ModelByte>> made(rings.size());
    for (size_t cpu = 0; cpu < rings.size(); ++cpu) made[cpu] = MakeBytes(cpu, tick);
    // In the order of time, for they may meet in a sink.
    for (int x = tick * kInstantsPerTick; x < (tick + 1) * kInstantsPerTick; ++x) {
      for (size_t cpu = 0; cpu < rings.size(); ++cpu) {
        for (const ModelByte& byte : made[cpu]) {
          if (byte.from == x) Record(cpu, byte);
        }
      }
    }
  }

  // The tracer stops where a task leaves; what it wrote is drained, mostly.
  void Leave(int cpu) {
    const auto sink = rings[static_cast<size_t>(cpu)].history.sink;
    if (sink && Chance(60)) Drain(*sink);
  }

  std::vector<ModelByte> MakeBytes(size_t cpu, int tick) {
    const auto on = std::find(place_.begin(), place_.end(), static_cast<int>(cpu));
    const bool runs = on != place_.end();
    const int begin = tick * kInstantsPerTick;
    if (runs) {
      std::fill_n(task_on[cpu].begin() + begin, kInstantsPerTick, on - place_.begin());
    }
    if (!options_.clean && blind_[cpu] == 0 && Chance(4)) blind_[cpu] = Pick(1, 3);
    if (blind_[cpu] > 0) {
      --blind_[cpu];
      Report(cpu, {begin, begin + kInstantsPerTick}, GapReason::kBlind, 0);
      blind_now_ |= uint64_t{1} << cpu;
    } else {
      blind_now_ &= ~(uint64_t{1} << cpu);
    }
    silent_[cpu] = !options_.clean && options_.runs_trusted && !always_on_ && Chance(5);
    // A tracer writes while its program runs; a ring of all that happens may have nothing for a
    // while.
    const int count = always_on_ ? Pick(0, 3) : runs ? Pick(1, 3) : 0;
    std::vector<ModelByte> bytes;
    for (int i = 0; i < count; ++i) {
      const int length = kInstantsPerTick / count;
      bytes.push_back({begin + i * length, begin + (i + 1) * length});
    }
    return bytes;
  }

  void Record(size_t cpu, ModelByte byte) {
    ModelRing& ring = rings[cpu];
    ring.bytes.push_back(byte);
    ModelByte& made = ring.bytes.back();
    if (made.from < ring.since || made.to > ring.until || silent_[cpu]) return;
    if ((blind_now_ >> cpu & 1) != 0) {
      made.fate = Fate::kReported;
      return;
    }
    if (!options_.clean && Chance(3)) {
      made.fate = Fate::kReported;
      ++ring.reported_records;
      Report(cpu, {made.from, made.to}, GapReason::kNoRoom, 1, AmountUnit::kRecords);
      return;
    }
    const size_t index = ring.bytes.size() - 1;
    if (ring.history.sink) {
      PutIntoSink(*ring.history.sink, cpu, index);
    } else {
      PutIntoRing(cpu, index);
    }
  }

  void PutIntoSink(size_t number, size_t cpu, size_t index) {
    ModelSink& sink = sinks_[number];
    sink.bytes.emplace_back(cpu, index);
    rings[cpu].bytes[index].fate = Fate::kInSink;
    if (sink.bytes.size() <= sink.capacity) return;
    const auto [victim, at] = sink.bytes.front();
    sink.bytes.pop_front();
    rings[victim].bytes[at].fate = victim == cpu ? Fate::kOwnSink : Fate::kOthersSink;
  }

  void PutIntoRing(size_t cpu, size_t index) {
    ModelRing& ring = rings[cpu];
    ModelByte& byte = ring.bytes[index];
    byte.fate = Fate::kHeld;
    byte.counted = true;
    byte.offset = ring.history.head++;
    ring.in_ring.push_back(index);
    if (ring.in_ring.size() <= ring.capacity) return;
    ring.bytes[ring.in_ring.front()].fate = Fate::kOverwritten;
    ring.in_ring.pop_front();
  }

  void Drain(size_t number) {
    ModelSink& sink = sinks_[number];
    for (const auto& [cpu, index] : sink.bytes) PutIntoRing(cpu, index);
    sink.bytes.clear();
  }

  // A few bytes of what is held cannot be read: told with or without an amount, or not at all.
  void DamageRings() {
    for (size_t cpu = 0; cpu < rings.size(); ++cpu) {
      ModelRing& ring = rings[cpu];
      if (!Chance(30) || ring.in_ring.empty()) continue;
      const int first = Pick(0, static_cast<int>(ring.in_ring.size()) - 1);
      const int last = std::min(first + Pick(0, 4), static_cast<int>(ring.in_ring.size()) - 1);
      const int how = Pick(0, 2);
      for (int i = first; i <= last; ++i) {
        ModelByte& byte = ring.bytes[ring.in_ring[static_cast<size_t>(i)]];
        byte.fate = how == 0 ? Fate::kOverwritten : Fate::kReported;
        if (how == 1) Report(cpu, {byte.from, byte.to}, GapReason::kTorn, 1, AmountUnit::kBytes);
        if (how == 2) Report(cpu, {byte.from, byte.to}, GapReason::kTorn, 0);
      }
    }
  }

  void Report(size_t cpu, std::pair<int, int> time, GapReason reason, uint64_t amount,
              AmountUnit unit = AmountUnit::kUnknown) {
    rings[cpu].history.losses.push_back(
        {{kModelBegin + time.first, kModelBegin + time.second}, reason, amount, unit, {}});
  }

  // What rings, sinks and the scheduler say.
  void Tell() {
    for (ModelRing& ring : rings) {
      TellHeld(ring);
      ring.history.capacity_bytes = ring.capacity;
      input.rings.push_back(ring.history);
    }
    for (const ModelSink& sink : sinks_) TellSink(sink);
    TellRuns();
  }

  void TellHeld(ModelRing& ring) {
    const bool quiet_is_known = always_on_ && !ring.history.sink;
    bool open = false;
    for (const ModelByte& byte : ring.bytes) {
      if (byte.fate != Fate::kHeld) {
        // A loss that is told may lie inside a held span, for the ring has no byte of it.
        if (byte.counted || byte.fate != Fate::kReported || !quiet_is_known) open = false;
        continue;
      }
      auto& held = ring.history.held;
      const bool touches =
          open && (quiet_is_known || held.back().time.to == kModelBegin + byte.from);
      if (touches && !Chance(20)) {
        held.back().time.to = kModelBegin + byte.to;
        ++held.back().end_offset;
      } else {
        held.push_back(
            {{kModelBegin + byte.from, kModelBegin + byte.to}, byte.offset, byte.offset + 1, {}});
      }
      open = true;
    }
  }

  void TellSink(const ModelSink& sink) {
    SinkHistory history;
    history.capacity_bytes = sink.tells_capacity ? sink.capacity : 0;
    for (const auto& [cpu, index] : sink.bytes) {
      const ModelByte& byte = rings[cpu].bytes[index];
      history.rest.push_back({cpu, {kModelBegin + byte.from, kModelBegin + byte.to}, 1});
    }
    input.sinks.push_back(std::move(history));
  }

  void TellRuns() {
    const int known_since = options_.clean || Chance(70) ? 0 : Pick(0, end);
    if (options_.runs_trusted) input.runs_known_since = kModelBegin + known_since;
    for (size_t cpu = 0; cpu < rings.size(); ++cpu) {
      for (int from = 0; from < end;) {
        int to = from + 1;
        while (to < end &&
               task_on[cpu][static_cast<size_t>(to)] == task_on[cpu][static_cast<size_t>(from)])
          ++to;
        const int64_t task = task_on[cpu][static_cast<size_t>(from)];
        const bool told =
            options_.runs_trusted ? to > known_since : !LostWithItsRing(rings[cpu], from, to);
        if (task >= 0 && told) {
          const int begin = options_.runs_trusted ? std::max(from, known_since) : from;
          input.runs.push_back(
              {task, static_cast<int64_t>(cpu), {kModelBegin + begin, kModelBegin + to}});
        }
        from = to;
      }
    }
    std::shuffle(input.runs.begin(), input.runs.end(), random_);
  }

  // The records that told of the run were overwritten with what it wrote, sometimes.
  bool LostWithItsRing(const ModelRing& ring, int from, int to) {
    if (ring.history.sink || !Chance(50)) return false;
    return std::all_of(ring.bytes.begin(), ring.bytes.end(), [&](const ModelByte& byte) {
      return byte.to <= from || byte.from >= to ||
             (byte.counted && byte.fate == Fate::kOverwritten);
    });
  }

  std::mt19937_64 random_;
  ModelOptions options_;
  int ticks_ = 0;
  bool always_on_ = false;
  std::vector<ModelSink> sinks_;
  std::vector<int> place_;  // by task: its CPU, -1: none
  std::vector<int> blind_;  // by CPU: ticks left
  std::vector<bool> silent_;
  uint64_t blind_now_ = 0;
};

}  // namespace hangscope

#endif
