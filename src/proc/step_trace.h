// What a thread's steps, one instruction each, have shown of it.
#ifndef HANGSCOPE_PROC_STEP_TRACE_H
#define HANGSCOPE_PROC_STEP_TRACE_H

#include <array>
#include <cstdint>
#include <vector>

namespace hangscope {

// All of a thread's registers but those for floating point and vectors, before an instruction.
struct StepState {
  // x86-64: by DWARF's numbers, 0..15. aarch64: x0..x30, sp.
  std::array<uint64_t, 32> general = {};
  uint64_t pc = 0;
  uint64_t flags = 0;
  std::array<uint64_t, 2> segments = {};  // x86-64: where fs and gs begin

  bool operator==(const StepState&) const = default;
};

struct StepTrace {
  std::vector<StepState> states;  // oldest first
  // it came to a system call that may take long, and was not let into it
  bool wants_kernel = false;
  // After so many steps it was in exactly the same state as before, and at the last one; 0: it was
  // not.
  size_t period = 0;
};

}  // namespace hangscope

#endif
