// What a thread's steps, one instruction each, have shown of it.
#ifndef HANGSCOPE_PROC_STEPS_STEP_TRACE_H
#define HANGSCOPE_PROC_STEPS_STEP_TRACE_H

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
  uint64_t memory = 0;                    // what StepMemory says of what the steps have written

  bool operator==(const StepState&) const = default;
};

// A system call that was carried out between two steps.
struct StepCall {
  int number = 0;
  std::array<uint64_t, 6> arguments = {};
  int64_t result = 0;  // below 0: an errno value, negative

  bool operator==(const StepCall&) const = default;
};

// Bytes of the thread's memory.
struct StepRange {
  uint64_t address = 0;
  uint64_t bytes = 0;

  bool operator==(const StepRange&) const = default;
};

struct StepTrace {
  std::vector<StepState> states;  // oldest first
  std::vector<StepCall> calls;
  std::vector<size_t> call_steps;  // by the index of `calls`: the state before it
  // It came to a system call that it was not let into, or that slept, or changed something outside
  // the thread's memory.
  bool wants_kernel = false;
  // After so many steps it was in exactly the same state as before, and at the last one; 0: it was
  // not.
  size_t period = 0;
};

// Follows what a thread writes while it is stepped, so that its memory is part of its state.
class StepMemory {
 public:
  virtual ~StepMemory() = default;
  // Before each step and each system call.
  virtual void Before(const StepState& state) = 0;
  // After it: a number that stands for all that was written since the first step. The same number
  // means the same contents.
  virtual uint64_t After() = 0;
};

}  // namespace hangscope

#endif
