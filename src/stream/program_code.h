// What is known of the program from its ELF and from the trace, together.
#ifndef HANGSCOPE_STREAM_PROGRAM_CODE_H
#define HANGSCOPE_STREAM_PROGRAM_CODE_H

#include <string>
#include <unordered_map>

#include "base/generations.h"
#include "code/code_source.h"
#include "model/verdict.h"
#include "stream/step_reader.h"

namespace hangscope {

// Where the code after a step leads.
struct StepEnd {
  enum class Kind {
    kUnknown,
    kStraight,  // to next
    kBranch,    // to next or target
    kJump,      // to target
    kIndirect,  // anywhere
    kReturnFromTrap,
  };
  Kind kind = Kind::kUnknown;
  uint64_t next = 0;
  uint64_t next_short = 0;  // another possible next, where the length is not known; else 0
  uint64_t target = 0;
  bool sleeps = false;  // contains a wfi

  // Whether control may get from there to `pc` without a trap.
  bool MayLeadTo(uint64_t pc) const {
    switch (kind) {
      case Kind::kStraight:
        return pc == next || (next_short != 0 && pc == next_short);
      case Kind::kBranch:
        return pc == next || pc == target;
      case Kind::kJump:
        return pc == target;
      default:
        return true;
    }
  }
};

// One thread at a time.
class ProgramCode final : public CodeSource {
 public:
  // `elf` may be null; it outlives this.
  explicit ProgramCode(CodeSource* elf) : elf_(elf) {}

  // The trace prints 64-bit addresses.
  void SetWide() { wide_ = true; }
  // Adds what a stretch of the trace said about the code.
  void Learn(const std::unordered_map<uint64_t, TracedCode>& code);

  std::optional<uint32_t> InsnAt(uint64_t pc) override;
  Location Locate(uint64_t pc) override;
  bool InMemory(uint64_t address) override { return elf_ != nullptr && elf_->InMemory(address); }
  int xlen() const override;

  StepEnd EndOf(const Step& step);
  Place PlaceOf(uint64_t pc);
  // Addresses the trace showed being accessed at `pc`.
  const std::vector<uint64_t>& AddressesAt(uint64_t pc) const;
  bool has_elf() const { return elf_ != nullptr; }

 private:
  StepEnd ExamineEnd(const Step& step);
  StepEnd EndByMnemonic(uint64_t pc) const;

  CodeSource* elf_;
  // A trace names any places, and a recorder runs for weeks: what was not seen for long is
  // forgotten.
  Generations<uint64_t, TracedCode, 65536> traced_;
  Generations<uint64_t, StepEnd, 65536> ends_;
  bool wide_ = false;  // the code is RV64's, as far as the trace tells
};

}  // namespace hangscope

#endif
