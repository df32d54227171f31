// Single-steps a thread, in a process of its own.
//
// A thread whose tracer is killed goes on, as a rule. Not one that was told to carry out a single
// instruction: the kernel leaves the CPU's trap flag on, and the next instruction kills the program
// with SIGTRAP. So a helper steps, which ends within the time it is given whatever becomes of this
// process, and lets go before it says what it has seen.
#ifndef HANGSCOPE_PROCESS_STEP_HELPER_H
#define HANGSCOPE_PROCESS_STEP_HELPER_H

#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "process/spin_loop.h"

namespace hangscope {

struct SteppedLoop {
  uint64_t steps = 0;
  // 0: it was not in the same state twice; else memory and vectors were the same, too
  uint64_t period = 0;
  // what it writes is not the same after a period as before; or that is not known
  bool changes_memory = true;
  uint64_t stack_pointer = 0;  // at its end
  TimeNs held = 0;             // for how long the thread was stopped
  LoopAccess access;           // of the period; without one, of all steps
  struct Call {
    StepCall call;
    uint64_t times = 0;
  };
  std::vector<Call> calls;  // of the same; each once
  // Words that held something else for a part of the period: who polls them sees that.
  std::vector<uint64_t> flickers;
  bool flickers_cut = false;  // there are more
};

struct StepTimes {
  TimeNs usual = 0;    // for every thread
  TimeNs longest = 0;  // for one that may be in a long circle
};

struct SteppedThread {
  int tid = 0;
  ReadMemory read;  // of its memory
};

// Holds `threads`, all at one time, and steps one after another: each for about `times.usual`, or,
// where it may still come back to where it was, until all of them took `times.longest`. While one
// is stepped, the others stand. What each did, in their order; fails where one could not be held.
Result<std::vector<SteppedLoop>> StepInHelper(Clock& clock,
                                              const std::vector<SteppedThread>& threads,
                                              const StepTimes& times);

}  // namespace hangscope

#endif
