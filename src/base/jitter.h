// Intervals that vary around their mean, so that looks never keep step with what they look at: at
// exactly 100 ms a scheduler with slices of 50 ms shows the same task in every look.
#ifndef HANGSCOPE_BASE_JITTER_H
#define HANGSCOPE_BASE_JITTER_H

#include <cstdint>

#include "base/clock.h"

namespace hangscope {

// The same seed gives the same intervals. One thread.
class Jitter {
 public:
  explicit Jitter(uint64_t seed = 1) : state_(seed) {}

  // From half of `mean` to one and a half of it, each as likely.
  TimeNs Next(TimeNs mean) {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t bits = state_;  // splitmix64
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    const double share = static_cast<double>((bits ^ bits >> 31) >> 11) * 0x1p-53;
    return static_cast<TimeNs>((0.5 + share) * static_cast<double>(mean));
  }

 private:
  uint64_t state_;
};

}  // namespace hangscope

#endif
