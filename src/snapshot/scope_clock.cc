#include "snapshot/scope_clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "hangscope/abi/scope.h"

namespace hangscope {
namespace {

// A reading during which this thread was put aside says little: the shortest of several counts.
constexpr int kReadings = 5;
// More add nothing that an alignment is better for, and each pair of them is looked at.
constexpr size_t kMostSamples = 64;
// A program reads CLOCK_MONOTONIC first and its counter next, and may be put aside between the two.
constexpr TimeNs kLongestBetween = kSecond;
// Of a clock of which only one sample is known: it may run so much faster or slower than it says.
constexpr double kRateTolerance = 500e-6;

// The first and the last stay.
void Thin(std::vector<ClockSample>* samples) {
  if (samples->size() <= kMostSamples) return;
  std::vector<ClockSample> kept;
  for (size_t i = 0; i < samples->size(); i += 2) kept.push_back((*samples)[i]);
  if (samples->size() % 2 == 0) kept.push_back(samples->back());
  *samples = std::move(kept);
}

Result<AlignedClock> AlignSamples(const std::vector<ClockSample>& samples,
                                  uint64_t counts_per_second, const std::string& clock) {
  auto alignment = AlignClocks(samples, counts_per_second);
  if (!alignment) {
    return Status::NotFound(
        fmt::format("{} samples of {} and of CLOCK_MONOTONIC are too few, or contradict each other",
                    samples.size(), clock));
  }
  return AlignedClock{*alignment, samples.front().target, samples.back().target};
}

}  // namespace

uint64_t ReadMachineCounter() {
#if defined(__x86_64__)
  // Without the fences the counter may be read before or after what stands around it.
  __builtin_ia32_lfence();
  const uint64_t now = __builtin_ia32_rdtsc();
  __builtin_ia32_lfence();
  return now;
#elif defined(__aarch64__)
  uint64_t now;
  __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(now)::"memory");
  return now;
#else
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
#endif
}

bool CountsAsMachine(const ScopeLayout& layout) {
  return (layout.features & HANGSCOPE_FEATURE_THREADS) != 0 && layout.sync_ns != 0;
}

TimeNs AlignedClock::ErrorAt(uint64_t time) const {
  const auto counts = [](uint64_t from, uint64_t to) {
    return static_cast<double>(static_cast<int64_t>(to - from));
  };
  const double outside =
      std::max({0.0, counts(time, first), counts(last, time)}) * alignment.ns_per_count;
  const double span = counts(first, last) * alignment.ns_per_count;
  // At both ends of the samples the line may be wrong by the error, once this way and once that
  // way.
  const double rate = span > 0 ? 2 * static_cast<double>(alignment.error) / span : kRateTolerance;
  const double error = static_cast<double>(alignment.error) + outside * rate;
  return static_cast<TimeNs>(std::ceil(std::min(error, 1e18)));
}

void ScopeClock::ReadMachine() {
  ClockSample best;
  for (int i = 0; i < kReadings; ++i) {
    ClockSample sample;
    sample.before = clock_.Monotonic();
    sample.target = counter_();
    sample.after = clock_.Monotonic();
    if (i == 0 || sample.after - sample.before < best.after - best.before) best = sample;
  }
  machine_.push_back(best);
  Thin(&machine_);
}

void ScopeClock::SawNewest(uint32_t core, uint64_t newest, TimeNs before, TimeNs after) {
  auto& samples = targets_[core];
  // Several cores' newest come one after the other, but are not always found so.
  if (!samples.empty() && newest <= samples.back().target) return;
  samples.push_back({before, newest, after});
  Thin(&samples);
}

Result<AlignedClock> ScopeClock::Align(const ScopeLayout& layout, uint32_t core) const {
  return CountsAsMachine(layout) ? AlignMachine(layout) : AlignTarget(layout, core);
}

Result<AlignedClock> ScopeClock::AlignMachine(const ScopeLayout& layout) const {
  auto aligned = AlignSamples(machine_, layout.clock_hz, "this machine's counter");
  if (!aligned.ok()) return aligned;
  const TimeNs error = aligned->ErrorAt(layout.sync_time);
  const TimeNs said = static_cast<TimeNs>(std::min<uint64_t>(layout.sync_ns, INT64_MAX / 4));
  const TimeNs found = aligned->HostTime(layout.sync_time);
  if (found < said - error || found > said + error + kLongestBetween) {
    return Status::NotFound(
        "the scope does not count with this machine's counter: what it says of both clocks "
        "contradicts that");
  }
  return aligned;
}

Result<AlignedClock> ScopeClock::AlignTarget(const ScopeLayout& layout, uint32_t core) const {
  const auto samples = targets_.find(layout.shared_clock() ? 0 : core);
  if (samples == targets_.end())
    return Status::NotFound(
        "no event came while it was watched, so nothing tells how late its clock was when");
  return AlignSamples(samples->second, layout.clock_hz, "the target's clock");
}

}  // namespace hangscope
