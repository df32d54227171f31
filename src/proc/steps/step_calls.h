// System calls that a thread may be carried through while it is stepped: those that ask whether
// something has come, and change nothing where it has not.
#ifndef HANGSCOPE_PROC_STEPS_STEP_CALLS_H
#define HANGSCOPE_PROC_STEPS_STEP_CALLS_H

#include <vector>

#include "proc/process_memory.h"
#include "proc/steps/step_trace.h"

namespace hangscope {

enum class CallUse {
  kAsks,    // may be carried out; its result tells whether it changed anything
  kYields,  // gives up the CPU, no more
  kClock,   // its result is another one each time: a time, a CPU
  kNever,   // may change the world, or sleeps
};

// What a thread asks that is before the instruction which makes a system call; without its result.
StepCall CallAt(const StepState& state);

// `call` has no result yet.
CallUse UseOf(const StepCall& call, const ReadMemory& read);

// Whether the world outside the thread's memory is as it was before, as its result tells. Of a call
// whose use is another than kNever.
bool ChangedNothing(const StepCall& call);

// The memory that the kernel reads for it or writes. Empty also where it does neither.
std::vector<StepRange> MemoryOf(const StepCall& call);

}  // namespace hangscope

#endif
