// A ring that overwrites itself faster than it is copied loses what a trigger asked for. It is
// switched off until it has been copied: what comes meanwhile is lost instead, and the time of
// that is known.
#ifndef HANGSCOPE_CPU_RING_PAUSE_H
#define HANGSCOPE_CPU_RING_PAUSE_H

#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "model/window.h"

namespace hangscope {

// Of one ring. One thread.
class RingPause {
 public:
  // Switches the ring off (true) and on; false: that was refused.
  using Switch = std::function<bool(bool)>;
  explicit RingPause(Switch off) : switch_(std::move(off)) {}

  // So many bytes were ever written to it; to be called a few times a second.
  void Note(uint64_t written, TimeNs now);
  // Whether `bytes` more come within `time`, if they come as since the note before.
  bool ComesWithin(uint64_t bytes, TimeNs time, uint64_t written, TimeNs now) const;

  void Begin(TimeNs now);
  void End(TimeNs now);
  bool is_off() const { return is_off_; }
  // When it was off, the newest last; not since when it is.
  const std::vector<TimeSpan>& was_off() const { return was_off_; }

 private:
  Switch switch_;
  uint64_t noted_ = 0;
  TimeNs noted_at_ = 0;  // 0: never
  bool is_off_ = false;
  TimeNs off_since_ = 0;
  std::vector<TimeSpan> was_off_;
};

}  // namespace hangscope

#endif
