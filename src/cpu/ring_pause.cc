#include "cpu/ring_pause.h"

namespace hangscope {
namespace {

constexpr size_t kMostTimes = 64;  // what is older has long been overwritten

}  // namespace

void RingPause::Note(uint64_t written, TimeNs now) {
  noted_ = written;
  noted_at_ = now;
}

bool RingPause::ComesWithin(uint64_t bytes, TimeNs time, uint64_t written, TimeNs now) const {
  if (noted_at_ == 0 || now <= noted_at_ || written <= noted_) return false;
  const double rate = static_cast<double>(written - noted_) / static_cast<double>(now - noted_at_);
  return rate * static_cast<double>(time) >= static_cast<double>(bytes);
}

void RingPause::Begin(TimeNs now) {
  if (is_off_ || !switch_(true)) return;
  is_off_ = true;
  off_since_ = now;
}

void RingPause::End(TimeNs now) {
  if (!is_off_) return;
  switch_(false);
  is_off_ = false;
  if (was_off_.size() == kMostTimes) was_off_.erase(was_off_.begin());
  was_off_.push_back({off_since_, now});
}

}  // namespace hangscope
