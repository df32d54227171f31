// What the instructions of a loop read and write, from the registers that a thread had before each
// of them.
#ifndef HANGSCOPE_PROCESS_SPIN_LOOP_H
#define HANGSCOPE_PROCESS_SPIN_LOOP_H

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "proc/process_memory.h"
#include "proc/steps/step_trace.h"
#include "process/steps/loop_slice.h"

namespace hangscope {

struct LoopAccess {
  using Range = StepRange;
  // each place once, in the order of its first use; the stack's included, and what the kernel reads
  // and writes for the system calls
  std::vector<Range> reads;
  std::vector<Range> writes;
  bool understood = true;     // false: there are instructions whose memory is not known
  bool calls_kernel = false;  // for what a stepped thread is not carried through
  bool yields = false;
  bool reads_clock = false;
  bool uses_vectors = false;  // or floating point
  uint64_t begin = 0;         // lowest address, and the highest instruction's end
  uint64_t end = 0;
};

// `states` are those before consecutive instructions. Understands x86-64, with capstone; else
// nothing is `understood`.
LoopAccess ExamineSteps(std::span<const StepState> states, const ReadMemory& read);

// What a thread has written since its first step.
class LoopMemory final : public StepMemory {
 public:
  explicit LoopMemory(const ReadMemory& read);
  ~LoopMemory() override;

  void Before(const StepState& state) override;
  uint64_t After() override;

  // false: it has carried out instructions whose memory is not known, or written to too many words
  bool is_understood() const { return is_understood_; }
  bool uses_vectors() const { return uses_vectors_; }  // or floating point
  // Some instruction has counted on by the same number again and again, to the last: such a loop
  // does not come back to where it was.
  bool Counts() const;
  // The same, as far as that was by constant steps of what decides on its way.
  bool CountsIn(const LoopSlice& slice) const;
  // All that it has stored, as far as that is understood.
  const std::vector<LoopStore>& stores() const { return stores_; }
  StepExaminer& examiner() { return *examiner_; }
  // From now on, keep what it loads.
  void KeepLoads() { keeps_loads_ = true; }
  // What it has loaded from there last, four bytes; nothing: it has not.
  std::optional<uint32_t> Loaded(uint64_t part) const;
  // Words that held another value after a store than before it, since TakeChanged().
  const std::set<uint64_t>& changed() const { return changed_; }
  std::vector<uint64_t> TakeChanged();

 private:
  struct Progression {
    uint64_t last = 0;
    uint64_t step = 0;
    int length = 0;     // how often in a row it has been that step
    uint64_t word = 0;  // where it was last, in memory
    void Add(uint64_t value);
  };
  void Know(uint64_t word, uint64_t value);
  void Load(const StepRange& range);
  void Touch(const StepRange& range);

  const ReadMemory& read_;
  const std::unique_ptr<StepExaminer> examiner_;
  bool is_understood_ = true;
  bool uses_vectors_ = false;
  uint64_t contents_ = 0;  // a sum over all words that are not what they were at first
  std::unordered_map<uint64_t, std::pair<uint64_t, uint64_t>> words_;  // at first, now
  std::vector<StepRange> touched_;                                     // by what comes next
  std::set<uint64_t> changed_;
  std::vector<LoopStore> stores_;
  size_t step_ = 0;
  bool keeps_loads_ = false;
  std::unordered_map<uint64_t, uint32_t> loads_;
  std::map<std::pair<uint64_t, size_t>, Progression> progressions_;  // by pc and register
  std::pair<uint64_t, size_t> counting_;  // what comes next; the register, or kMemory
  bool is_counting_ = false;
};

}  // namespace hangscope

#endif
