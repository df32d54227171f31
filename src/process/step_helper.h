// Steps the twins of threads, in a process of its own: when that ends, whatever becomes of this
// one, the kernel lets go of all that it holds.
#ifndef HANGSCOPE_PROCESS_STEP_HELPER_H
#define HANGSCOPE_PROCESS_STEP_HELPER_H

#include <functional>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "proc/proc_text.h"
#include "process/spin_loop.h"

namespace hangscope {

struct SteppedLoop {
  uint64_t steps = 0;
  // 0: it was not in the same state twice; else memory and vectors were the same, too
  uint64_t period = 0;
  // what it writes is not the same after a period as before; or that is not known
  bool changes_memory = true;
  uint64_t stack_pointer = 0;  // at its end
  TimeNs held = 0;             // for how long the thread stood still at a time, at most
  LoopAccess access;           // of the period; without one, of all steps
  struct Call {
    StepCall call;
    uint64_t times = 0;
  };
  std::vector<Call> calls;  // of the same; each once
  // Words that held something else for a part of the period: who polls them sees that.
  std::vector<uint64_t> flickers;
  bool flickers_cut = false;  // there are more
  // Only what decides on its way was the same again, as LoopSlice has it; the reads are those then.
  bool in_part = false;
  StepRange kernel_words;  // as ThreadMoment has them
  // Of one that naps: stands for what the reads were in the round; see HashOfParts.
  uint64_t found = 0;
};

// Of what memory holds at `parts`, of four bytes each. `value`: of one of them; nothing: unknown.
uint64_t HashOfParts(const std::vector<uint64_t>& parts,
                     const std::function<std::optional<uint32_t>(uint64_t)>& value);

// Where a thread naps: in a system call, which a function of the program has made, or a function of
// the C library that that one has called.
struct NapPlace {
  uint64_t pc = 0;  // behind the system call
  uint64_t stack_pointer = 0;
  uint64_t back = 0;  // in the function, where the call returns to; `pc`: it is the system call
  uint64_t stack_pointer_back = 0;
};

// For how long a twin is stepped. No thread stands still for that.
struct StepTimes {
  TimeNs usual = 0;    // for every thread
  TimeNs longest = 0;  // for one that may be in a long circle; 0: for none
  // Of one that naps: from there to there, instead of from where it is.
  std::optional<NapPlace> nap;
  TimeNs longest_nap = 0;  // that is waited for
};

struct SteppedThread {
  int tid = 0;
  ReadMemory read;  // of its memory
  const std::vector<MemoryMapping>* mappings = nullptr;
  // Where they are there; nothing: not known.
  CodeRange clock_code;
  CodeRange stack;
};

// Copies `threads`, all at one time, and steps the twin of one after another. What each did, in
// their order; fails where one could not be held. One that naps is one alone. Of a circle the
// thread itself was seen to be in it a few times more.
Result<std::vector<SteppedLoop>> StepInHelper(Clock& clock,
                                              const std::vector<SteppedThread>& threads,
                                              const StepTimes& times);

}  // namespace hangscope

#endif
