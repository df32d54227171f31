// Which instant of this machine is a time in a scope, and how wrong may that be?
//
// A Linux program records with the counter of the machine that it runs on: that is read here beside
// CLOCK_MONOTONIC, whether the program runs yet or not, and what the program itself says of both
// clocks tells whether it is the same. Firmware's clock cannot be read from outside: that an event
// is there which was not there at the look before is all that is known of its instant, and so the
// error is that of two looks.
#ifndef HANGSCOPE_SNAPSHOT_SCOPE_CLOCK_H
#define HANGSCOPE_SNAPSHOT_SCOPE_CLOCK_H

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "scope/scope_reader.h"
#include "window/clock_alignment.h"

namespace hangscope {

// What the Linux port counts with on this machine.
uint64_t ReadMachineCounter();
// Whether the scope is that of a Linux program.
bool CountsAsMachine(const ScopeLayout& layout);

// An alignment, and how far it can be trusted.
struct AlignedClock {
  ClockAlignment alignment;
  uint64_t first = 0;  // of the samples, in counts
  uint64_t last = 0;

  TimeNs HostTime(uint64_t time) const { return alignment.HostTime(time); }
  // Either way; grows with the distance from the samples.
  TimeNs ErrorAt(uint64_t time) const;
};

// One thread.
class ScopeClock {
 public:
  explicit ScopeClock(Clock& clock, std::function<uint64_t()> counter = ReadMachineCounter)
      : clock_(clock), counter_(std::move(counter)) {}

  // To be called a few times a second, from the recording's start on.
  void ReadMachine();
  // An event of `newest` was there at a look that ended at `after`, and not at the one that began
  // at `before`. Times must be those of one start of the target.
  void SawNewest(uint32_t core, uint64_t newest, TimeNs before, TimeNs after);
  // The target began anew, and its clock, too.
  void ForgetTarget() { targets_.clear(); }

  // Of the times of a core. Fails with one sentence where they cannot be aligned.
  Result<AlignedClock> Align(const ScopeLayout& layout, uint32_t core) const;

 private:
  Result<AlignedClock> AlignMachine(const ScopeLayout& layout) const;
  Result<AlignedClock> AlignTarget(const ScopeLayout& layout, uint32_t core) const;

  Clock& clock_;
  const std::function<uint64_t()> counter_;
  std::vector<ClockSample> machine_;
  std::map<uint32_t, std::vector<ClockSample>> targets_;  // by core
};

}  // namespace hangscope

#endif
