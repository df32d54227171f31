// The registers of a core that stands still.
#ifndef HANGSCOPE_CODE_CORE_REGISTERS_H
#define HANGSCOPE_CODE_CORE_REGISTERS_H

#include <cstdint>
#include <vector>

namespace hangscope {

// Of RISC-V.
struct CoreRegisters {
  static constexpr size_t kCount = 32;  // x0 to x31: also their numbers in DWARF
  static constexpr size_t kStackPointer = 2;

  uint64_t pc = 0;
  std::vector<uint64_t> x;  // kCount of them
};

}  // namespace hangscope

#endif
