// The registers of a core that stands still, or some of them.
#ifndef HANGSCOPE_CODE_CORE_REGISTERS_H
#define HANGSCOPE_CODE_CORE_REGISTERS_H

#include <cstdint>
#include <vector>

namespace hangscope {

// Of RISC-V.
struct CoreRegisters {
  static constexpr size_t kCount = 32;  // x0 to x31: also their numbers in DWARF
  static constexpr size_t kReturnAddress = 1;
  static constexpr size_t kStackPointer = 2;
  static constexpr size_t kFramePointer = 8;
  static constexpr uint32_t kAll = UINT32_MAX;

  uint64_t pc = 0;
  std::vector<uint64_t> x;  // kCount of them
  uint32_t known = kAll;    // bit n: x[n] is
  // Where address 0 of its program's ELF lies, by which the pc, these and the stack's words count.
  uint64_t program_at = 0;
};

}  // namespace hangscope

#endif
