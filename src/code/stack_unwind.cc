#include "code/stack_unwind.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>

#include <cstring>

namespace hangscope {
namespace {

constexpr size_t kMostFramesUnwound = 32;
constexpr pid_t kTheThread = 1;  // libdwfl wants one; there is no process

}  // namespace

// A return address, where a program that lies elsewhere than its ELF says keeps it: as the ELF has
// it. Whatever leads to no instruction of it is no such address.
uint64_t StackUnwinder::AsInProgram(uint64_t word) const {
  if (registers_.program_at == 0) return word;
  const uint64_t mask = xlen_ == 32 ? UINT32_MAX : UINT64_MAX;
  const uint64_t address = (word - registers_.program_at) & mask;
  Dwarf_Addr at = address + bias_;
  Dwfl_Module* const module = dwfl_addrmodule(dwfl_, at);
  Dwarf_Addr ignored = 0;
  Elf_Scn* const section =
      module == nullptr ? nullptr : dwfl_module_address_section(module, &at, &ignored);
  GElf_Shdr header;
  const bool is_code = section != nullptr && gelf_getshdr(section, &header) != nullptr &&
                       (header.sh_flags & SHF_EXECINSTR) != 0;
  return is_code ? address + bias_ : word;
}

pid_t StackUnwinder::NextThread(Dwfl*, void* of, void** thread) {
  if (*thread != nullptr) return 0;
  *thread = of;
  return kTheThread;
}

bool StackUnwinder::ReadMemory(Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* of) {
  const auto& self = *static_cast<StackUnwinder*>(of);
  const size_t bytes = static_cast<size_t>(self.xlen_) / 8;
  const uint64_t at = address - self.registers_.x[CoreRegisters::kStackPointer];
  if (at > self.stack_.size() || self.stack_.size() - at < bytes) return false;
  *word = 0;
  std::memcpy(word, self.stack_.data() + at, bytes);  // RISC-V's data are little-endian
  *word = self.AsInProgram(*word);
  return true;
}

bool StackUnwinder::SetRegisters(Dwfl_Thread* thread, void* of) {
  const auto& self = *static_cast<StackUnwinder*>(of);
  const CoreRegisters& registers = self.registers_;
  dwfl_thread_state_register_pc(thread, registers.pc - registers.program_at + self.bias_);
  for (size_t i = 0; i < CoreRegisters::kCount; ++i) {
    if ((registers.known >> i & 1) == 0) continue;
    const Dwarf_Word word = self.AsInProgram(registers.x[i]);
    if (!dwfl_thread_state_registers(thread, static_cast<int>(i), 1, &word)) return false;
  }
  return true;
}

int StackUnwinder::NoteFrame(Dwfl_Frame* frame, void* of) {
  auto& self = *static_cast<StackUnwinder*>(of);
  Dwarf_Addr pc = 0;
  bool is_activation = false;
  if (!dwfl_frame_pc(frame, &pc, &is_activation)) return DWARF_CB_ABORT;
  // A caller goes on behind the call.
  if (!self.places_.empty() && !is_activation) --pc;
  if (dwfl_addrmodule(self.dwfl_, pc) == nullptr) return DWARF_CB_ABORT;
  self.places_.push_back(pc - self.bias_);
  return self.places_.size() < kMostFramesUnwound ? DWARF_CB_OK : DWARF_CB_ABORT;
}

std::vector<uint64_t> StackUnwinder::Unwind(const CoreRegisters& registers,
                                            std::string_view stack) {
  static const Dwfl_Thread_Callbacks kCallbacks = {.next_thread = NextThread,
                                                   .get_thread = nullptr,
                                                   .memory_read = ReadMemory,
                                                   .set_initial_registers = SetRegisters,
                                                   .detach = nullptr,
                                                   .thread_detach = nullptr};
  if (registers.x.size() != CoreRegisters::kCount) return {};
  if (!attached_) works_ = dwfl_attach_state(dwfl_, nullptr, kTheThread, &kCallbacks, this);
  attached_ = true;
  if (!works_) return {};
  registers_ = registers;
  stack_ = stack;
  places_.clear();
  // It ends with an error where nobody knows who called; what it found until then is known.
  (void)dwfl_getthread_frames(dwfl_, kTheThread, NoteFrame, this);
  return std::move(places_);
}

}  // namespace hangscope
