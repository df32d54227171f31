#include "window/clock_alignment.h"

#include <algorithm>
#include <cmath>

#include "window/spans.h"

namespace hangscope {
namespace {

// A quartz is no worse than that.
constexpr double kDrift = 500e-6;

// Counts from `from` to `to`, backwards where `to` is older; right over the wrap of 64 bits, for
// spans below 2^63.
int64_t CountsBetween(uint64_t from, uint64_t to) { return static_cast<int64_t>(to - from); }

// The fastest and slowest rate at which the clock may have run.
struct Rates {
  double least = 0;  // ns per count
  double most = INFINITY;
};

bool Usable(const std::vector<ClockSample>& samples) {
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].before > samples[i].after || samples[i].before < kBeginOfTime ||
        samples[i].after > kEndOfTime)
      return false;
    if (i == 0) continue;
    // Between two readings that do not overlap, time passed: the clock must have gone on.
    const int64_t counts = CountsBetween(samples[i - 1].target, samples[i].target);
    if (counts < 0 || samples[i].before < samples[i - 1].before) return false;
    if (counts == 0 && samples[i].before > samples[i - 1].after) return false;
  }
  return !samples.empty();
}

// By every pair of samples: the clock was read somewhere between `before` and `after` of each.
std::optional<Rates> RatesOf(const std::vector<ClockSample>& samples) {
  Rates rates;
  for (size_t i = 0; i < samples.size(); ++i) {
    for (size_t j = i + 1; j < samples.size(); ++j) {
      const auto counts = static_cast<double>(CountsBetween(samples[i].target, samples[j].target));
      if (counts == 0) continue;
      rates.least =
          std::max(rates.least, static_cast<double>(samples[j].before - samples[i].after) / counts);
      rates.most =
          std::min(rates.most, static_cast<double>(samples[j].after - samples[i].before) / counts);
    }
  }
  // No clock runs at one rate through all of these, but for rounding.
  if (rates.least > rates.most * (1 + 1e-12) || rates.most <= 0) return {};
  return rates;
}

}  // namespace

TimeNs ClockAlignment::HostTime(uint64_t target_time) const {
  const double after = static_cast<double>(CountsBetween(target, target_time)) * ns_per_count;
  const double limit = static_cast<double>(kEndOfTime);
  return std::clamp(host + static_cast<TimeNs>(std::llround(std::clamp(after, -limit, limit))),
                    kBeginOfTime, kEndOfTime);
}

std::optional<ClockAlignment> AlignClocks(const std::vector<ClockSample>& samples,
                                          uint64_t counts_per_second) {
  if (!Usable(samples)) return {};
  const auto rates = RatesOf(samples);
  if (!rates) return {};
  ClockAlignment alignment;
  alignment.target = samples.front().target;
  const int64_t counts = CountsBetween(samples.front().target, samples.back().target);
  // Measured over the samples: what a clock says of its own rate is rounded, and it drifts. Of one
  // sample there is only what it says; and of samples that are so wide that they tell less, and do
  // not contradict it.
  const double said = counts_per_second > 0 ? 1e9 / static_cast<double>(counts_per_second) : 0;
  const bool measured = counts > 0 && std::isfinite(rates->most) && rates->least > 0;
  const bool said_is_better =
      said > rates->least && said < rates->most && rates->most - rates->least > said * kDrift;
  if (measured && !said_is_better) {
    alignment.ns_per_count = (rates->least + rates->most) / 2;
  } else if (counts_per_second > 0) {
    alignment.ns_per_count = said;
  } else {
    return {};
  }
  // The straight line at that rate whose largest distance from the samples is smallest.
  double earliest = INFINITY, latest = -INFINITY;
  for (const ClockSample& sample : samples) {
    const double since = static_cast<double>(CountsBetween(alignment.target, sample.target)) *
                         alignment.ns_per_count;
    earliest =
        std::min(earliest, static_cast<double>(sample.before - samples.front().before) - since);
    latest = std::max(latest, static_cast<double>(sample.after - samples.front().before) - since);
  }
  const double middle = (earliest + latest) / 2;
  alignment.host = samples.front().before + static_cast<TimeNs>(std::llround(middle));
  alignment.error = static_cast<TimeNs>(std::ceil((latest - earliest) / 2)) + 1;
  return alignment;
}

}  // namespace hangscope
