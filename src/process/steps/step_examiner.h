// What single instructions do: to memory, as the registers before them tell, and to registers.
#ifndef HANGSCOPE_PROCESS_STEPS_STEP_EXAMINER_H
#define HANGSCOPE_PROCESS_STEPS_STEP_EXAMINER_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "proc/process_memory.h"
#include "proc/steps/step_calls.h"
#include "proc/steps/step_trace.h"

struct cs_insn;

namespace hangscope {

// What one instruction does to memory, as the registers before it tell.
struct StepEffect {
  bool understood = true;
  uint64_t size = 0;  // of the instruction
  std::vector<StepRange> reads;
  std::vector<StepRange> writes;
  CallUse use = CallUse::kAsks;  // of a system call
  bool is_call = false;          // a system call
  bool reads_clock = false;
  bool uses_vectors = false;
  std::optional<size_t> counts;  // adds to this register; kCountsMemory: to what it writes
};
constexpr size_t kCountsMemory = std::tuple_size_v<decltype(StepState::general)>;

// Where a value is: the general registers by DWARF's numbers, then these.
using StepPlace = uint16_t;
constexpr StepPlace kGeneralPlaces = 16;
constexpr StepPlace kFlagsPlace = 16;
constexpr StepPlace kFirstOtherPlace = 17;  // vectors, masks, the stack of floating point

// What becomes of the values in registers, whatever they are. Memory aside.
struct StepFlow {
  bool understood = false;
  std::vector<StepPlace> uses;  // the addresses of its memory included
  std::vector<StepPlace> addresses;
  std::vector<StepPlace> defines;   // which hold another value afterwards, or may
  std::vector<StepPlace> replaces;  // of these: nothing is left there of what was before
  bool stores_whole = false;        // nor in the memory that it writes
  bool decides = false;             // on what comes next
  bool jumps_by_memory = false;     // to where a word of memory says: a table of functions
};

// Understands x86-64, with capstone; else nothing is understood.
class StepExaminer {
 public:
  explicit StepExaminer(const ReadMemory& read);
  ~StepExaminer();
  StepExaminer(const StepExaminer&) = delete;
  StepExaminer& operator=(const StepExaminer&) = delete;

  StepEffect EffectOf(const StepState& state);
  const StepFlow& FlowAt(uint64_t pc);

 private:
  const cs_insn* At(uint64_t pc);

  const ReadMemory& read_;
  size_t capstone_ = 0;
  bool is_open_ = false;
  std::unordered_map<uint64_t, cs_insn*> instructions_;
  std::unordered_map<uint64_t, StepFlow> flows_;
};

}  // namespace hangscope

#endif
