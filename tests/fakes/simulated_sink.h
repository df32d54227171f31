// A hardware tracer as CoreSight has them: CPUs write into a sink (of one CPU, or of several),
// which overwrites its oldest. Whoever stops it last, its drivers copy all of it into that CPU's
// AUX area, and publish the head.
#ifndef HANGSCOPE_TESTS_FAKES_SIMULATED_SINK_H
#define HANGSCOPE_TESTS_FAKES_SIMULATED_SINK_H

#include <cstdint>
#include <deque>
#include <vector>

#include "cpu/aux_ring.h"
#include "fakes/frame_bytes.h"
#include "window/find_window.h"

namespace hangscope {

// Pages of an AUX area, with a head of either kind.
class SimulatedAux {
 public:
  SimulatedAux(uint64_t capacity, AuxHeadKind kind) : bytes_(capacity, 0), kind_(kind) {}

  void Write(unsigned char byte) {
    bytes_[written_ % bytes_.size()] = byte;
    ++written_;
    // Pairs with the acquire in AuxReader::Load.
    __atomic_store_n(&head_, kind_ == AuxHeadKind::kCountsAll ? written_ : written_ % bytes_.size(),
                     __ATOMIC_RELEASE);
  }
  AuxArea area() const { return {bytes_.data(), bytes_.size(), &head_, kind_}; }
  uint64_t written() const { return written_; }

 private:
  std::vector<unsigned char> bytes_;
  AuxHeadKind kind_;
  uint64_t written_ = 0;
  uint64_t head_ = 0;
};

class SimulatedSink {
 public:
  // `frames`: what is written into it are a formatter's, of which it overwrites whole ones.
  explicit SimulatedSink(uint64_t capacity, bool frames = false)
      : capacity_(capacity), oldest_bytes_(frames ? kFrameBarrier.size() : 1) {}

  void Write(size_t cpu, TimeNs time, unsigned char byte) {
    bytes_.push_back({cpu, time, byte});
    if (bytes_.size() <= capacity_) return;
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(oldest_bytes_));
    overwritten_ = true;
  }

  // The last of its tracers stops, on the CPU of `area`. Returns how many bytes there were, whoever
  // wrote them: the oldest frame is a barrier where older ones were overwritten.
  uint64_t Drain(SimulatedAux& area) {
    const uint64_t drained = bytes_.size();
    size_t at = 0;
    for (const Byte& byte : bytes_) {
      const bool barrier = overwritten_ && oldest_bytes_ > 1 && at < kFrameBarrier.size();
      area.Write(barrier ? static_cast<unsigned char>(kFrameBarrier[at]) : byte.value);
      ++at;
    }
    bytes_.clear();
    overwritten_ = false;
    return drained;
  }

  // What is left, as a window takes it: runs of one CPU's bytes, each a nanosecond long.
  SinkHistory Rest() const {
    SinkHistory history;
    history.capacity_bytes = capacity_;
    for (const Byte& byte : bytes_) {
      if (history.rest.empty() || history.rest.back().ring != byte.cpu)
        history.rest.push_back({byte.cpu, {byte.time, byte.time}, 0});
      history.rest.back().time.to = byte.time + 1;
      ++history.rest.back().bytes;
    }
    return history;
  }

 private:
  struct Byte {
    size_t cpu;
    TimeNs time;
    unsigned char value;
  };
  uint64_t capacity_;
  uint64_t oldest_bytes_;  // that are overwritten at once
  bool overwritten_ = false;
  std::deque<Byte> bytes_;
};

}  // namespace hangscope

#endif
