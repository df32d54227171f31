// What the instructions of a loop read and write, from the registers that a thread had before each
// of them.
#ifndef HANGSCOPE_PROCESS_SPIN_LOOP_H
#define HANGSCOPE_PROCESS_SPIN_LOOP_H

#include <cstdint>
#include <span>
#include <vector>

#include "proc/process_memory.h"
#include "proc/step_trace.h"

namespace hangscope {

struct LoopAccess {
  struct Range {
    uint64_t address = 0;
    uint64_t bytes = 0;
  };
  // each place once, in the order of its first use; the stack's included
  std::vector<Range> reads;
  std::vector<Range> writes;
  bool understood = true;     // false: there are instructions whose memory is not known
  bool calls_kernel = false;  // for more than to give up the CPU
  bool yields = false;
  bool reads_clock = false;
  uint64_t begin = 0;  // lowest address, and the highest instruction's end
  uint64_t end = 0;
};

// `states` are those before consecutive instructions. Understands x86-64, with capstone; else
// nothing is `understood`.
LoopAccess ExamineSteps(std::span<const StepState> states, const ReadMemory& read);

}  // namespace hangscope

#endif
