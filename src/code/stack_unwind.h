// The calls that led to where a core stands, by the call frame information of its program and a
// copy of its stack. RISC-V.
#ifndef HANGSCOPE_CODE_STACK_UNWIND_H
#define HANGSCOPE_CODE_STACK_UNWIND_H

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "code/core_registers.h"

namespace hangscope {

// As CodeSource::Unwind. Attaches a state to `dwfl`, and detaches none: once for each `dwfl`.
class StackUnwinder {
 public:
  // `dwfl` outlives this; its one program counts addresses from `bias`.
  StackUnwinder(Dwfl* dwfl, uint64_t bias, int xlen) : dwfl_(dwfl), bias_(bias), xlen_(xlen) {}

  std::vector<uint64_t> Unwind(const CoreRegisters& registers, std::string_view stack);

 private:
  uint64_t AsInProgram(uint64_t word) const;
  static pid_t NextThread(Dwfl* dwfl, void* of, void** thread);
  static bool ReadMemory(Dwfl* dwfl, Dwarf_Addr address, Dwarf_Word* word, void* of);
  static bool SetRegisters(Dwfl_Thread* thread, void* of);
  static int NoteFrame(Dwfl_Frame* frame, void* of);

  Dwfl* const dwfl_;
  const uint64_t bias_;
  const int xlen_;
  bool attached_ = false;
  bool works_ = false;
  // Of the call that is under way.
  CoreRegisters registers_;
  std::string_view stack_;
  std::vector<uint64_t> places_;
};

}  // namespace hangscope

#endif
