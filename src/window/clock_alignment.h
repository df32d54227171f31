// From a target's clock to the host's: which instant is a count of guest cycles, and how wrong may
// that be?
#ifndef HANGSCOPE_WINDOW_CLOCK_ALIGNMENT_H
#define HANGSCOPE_WINDOW_CLOCK_ALIGNMENT_H

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace hangscope {

// The target's clock was read at some instant between two readings of the host's.
struct ClockSample {
  TimeNs before = 0;    // monotonic
  uint64_t target = 0;  // of the target's clock
  TimeNs after = 0;
};

struct ClockAlignment {
  uint64_t target = 0;  // this count ...
  TimeNs host = 0;      // ... was at this instant
  double ns_per_count = 0;
  TimeNs error = 0;  // either way, between the first and the last sample

  TimeNs HostTime(uint64_t target_time) const;
};

// `counts_per_second`: as the target says; 0: it does not, and two samples at least are needed.
// Nothing where the samples contradict each other (the clock stood still or ran backwards).
std::optional<ClockAlignment> AlignClocks(const std::vector<ClockSample>& samples,
                                          uint64_t counts_per_second);

}  // namespace hangscope

#endif
