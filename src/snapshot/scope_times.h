// The times of a scope's cores as nanoseconds: of the target's own clock, or CLOCK_MONOTONIC's
// where it is known how the two went together.
#ifndef HANGSCOPE_SNAPSHOT_SCOPE_TIMES_H
#define HANGSCOPE_SNAPSHOT_SCOPE_TIMES_H

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "model/manifest.h"
#include "scope/scope_reader.h"

namespace hangscope {

// Any thread may ask.
class ScopeTimes {
 public:
  // `layout` outlives this.
  ScopeTimes(const ScopeLayout& layout, std::vector<ScopeClockFit> fits)
      : layout_(layout), fits_(std::move(fits)) {}

  // Nobody knows the clock's rate: times are counts.
  bool counts() const { return fits_.empty() && !layout_.Nanoseconds(0); }
  // False: `core`'s times cannot be told beside the others'.
  bool knows(uint32_t core) const { return fits_.empty() || Find(core) != nullptr; }

  TimeNs Of(uint32_t core, uint64_t count) const {
    if (const ScopeClockFit* fit = Find(core)) {
      const double since = std::round(
          static_cast<double>(static_cast<int64_t>(count - fit->count)) * fit->ns_per_count);
      return std::clamp(fit->at, -kMost, kMost) +
             static_cast<TimeNs>(
                 std::clamp(since, static_cast<double>(-kMost), static_cast<double>(kMost)));
    }
    const auto most = static_cast<uint64_t>(std::numeric_limits<TimeNs>::max());
    return layout_.Nanoseconds(count).value_or(static_cast<TimeNs>(std::min(count, most)));
  }

 private:
  // what is more is damaged, and sums must not overflow
  static constexpr TimeNs kMost = TimeNs{1} << 61;

  // Of several cores that share a clock any core's fit is all cores'.
  const ScopeClockFit* Find(uint32_t core) const {
    for (const ScopeClockFit& fit : fits_) {
      if (fit.core == core) return &fit;
    }
    return fits_.empty() || !layout_.shared_clock() ? nullptr : &fits_.front();
  }

  const ScopeLayout& layout_;
  const std::vector<ScopeClockFit> fits_;
};

}  // namespace hangscope

#endif
