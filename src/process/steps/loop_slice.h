// Whether a thread that was stepped around a loop goes the same way around for ever: where what
// decides on its way is the same again, though it counts, or keeps the time, beside that.
#ifndef HANGSCOPE_PROCESS_STEPS_LOOP_SLICE_H
#define HANGSCOPE_PROCESS_STEPS_LOOP_SLICE_H

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "proc/process_memory.h"
#include "proc/steps/step_trace.h"
#include "process/steps/step_examiner.h"

namespace hangscope {

// What a step has left in a word of memory.
struct LoopStore {
  size_t step = 0;
  uint64_t word = 0;
  uint64_t before = 0;
  uint64_t after = 0;
};

struct LoopSlice {
  // What decides on its way is the same at the round's end as at its begin. Nothing else that the
  // thread itself does changes it, and no clock.
  bool closes = false;
  size_t steps = 0;  // of the round
  // Memory that decides on its way, its own stack included, of four bytes each.
  std::vector<uint64_t> polls;
  // Words that the round leaves other than they were.
  std::vector<uint64_t> changed;
  // Registers that decide on its way.
  std::vector<StepPlace> registers;
};

// The code that the kernel gives to each program, which reads its clocks.
using CodeRange = std::pair<uint64_t, uint64_t>;

// `round`: the states before its steps, and the one after the last of these, where it is where it
// began. `begin`: the step of `round`'s first state, as `stores` count them. A system call of the
// round has the same result each time. `naps`: the last step is a call, of the kernel or of a
// function, that sleeps for a time.
LoopSlice SliceLoop(std::span<const StepState> round, size_t begin,
                    const std::vector<LoopStore>& stores, const CodeRange& clock_code, bool naps,
                    StepExaminer& examiner);

// The newest round of `states`, as its first step, whose way is the same for ever; nothing of those
// that depend on nothing. `slice` tells of it.
std::optional<size_t> FindSteadyRound(const std::vector<StepState>& states,
                                      const std::vector<LoopStore>& stores,
                                      const CodeRange& clock_code, StepExaminer& examiner,
                                      LoopSlice* slice);

}  // namespace hangscope

#endif
