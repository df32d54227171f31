#include "process/spin_loop.h"

#include "base/build_features.h"
#if HANGSCOPE_HAS_CAPSTONE
#include <capstone/capstone.h>
#endif
#include <sys/syscall.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>

namespace hangscope {
namespace {

#if HANGSCOPE_HAS_CAPSTONE

constexpr size_t kMostRanges = 256;  // more writes, and the loop is not understood

// `understood`: becomes false where there are too many; null: the first ones will do.
void AddRange(std::vector<LoopAccess::Range>* ranges, uint64_t address, uint64_t bytes,
              bool* understood) {
  for (const LoopAccess::Range& range : *ranges) {
    if (range.address == address && range.bytes == bytes) return;
  }
  if (ranges->size() < kMostRanges)
    ranges->push_back({address, bytes});
  else if (understood != nullptr)
    *understood = false;
}

// DWARF's number of a general register of 64 bits; nothing of others.
std::optional<size_t> NumberOf(unsigned capstone_register) {
  switch (capstone_register) {
    case X86_REG_RAX:
      return 0;
    case X86_REG_RDX:
      return 1;
    case X86_REG_RCX:
      return 2;
    case X86_REG_RBX:
      return 3;
    case X86_REG_RSI:
      return 4;
    case X86_REG_RDI:
      return 5;
    case X86_REG_RBP:
      return 6;
    case X86_REG_RSP:
      return 7;
    case X86_REG_R8:
      return 8;
    case X86_REG_R9:
      return 9;
    case X86_REG_R10:
      return 10;
    case X86_REG_R11:
      return 11;
    case X86_REG_R12:
      return 12;
    case X86_REG_R13:
      return 13;
    case X86_REG_R14:
      return 14;
    case X86_REG_R15:
      return 15;
    default:
      return std::nullopt;
  }
}

std::optional<uint64_t> Value(unsigned capstone_register, const StepState& state,
                              uint64_t next_pc) {
  if (capstone_register == X86_REG_INVALID) return 0;
  if (capstone_register == X86_REG_RIP) return next_pc;
  const auto number = NumberOf(capstone_register);
  return number ? std::optional<uint64_t>(state.general[*number]) : std::nullopt;
}

std::optional<uint64_t> AddressOf(const x86_op_mem& memory, const StepState& state,
                                  uint64_t next_pc) {
  const auto base = Value(memory.base, state, next_pc);
  const auto index = Value(memory.index, state, next_pc);
  if (!base || !index) return std::nullopt;
  uint64_t address =
      *base + *index * static_cast<uint64_t>(memory.scale) + static_cast<uint64_t>(memory.disp);
  if (memory.segment == X86_REG_FS) address += state.segments[0];
  if (memory.segment == X86_REG_GS) address += state.segments[1];
  return address;
}

// Instructions whose memory operand is not accessed.
bool OnlyNamesMemory(unsigned id) {
  switch (id) {
    case X86_INS_LEA:
    case X86_INS_NOP:
    case X86_INS_PREFETCH:
    case X86_INS_PREFETCHNTA:
    case X86_INS_PREFETCHT0:
    case X86_INS_PREFETCHT1:
    case X86_INS_PREFETCHT2:
    case X86_INS_PREFETCHW:
      return true;
    default:
      return false;
  }
}

class Examiner {
 public:
  explicit Examiner(const ReadMemory& read) : read_(read) {
    is_open_ = cs_open(CS_ARCH_X86, CS_MODE_64, &capstone_) == CS_ERR_OK;
    if (is_open_) cs_option(capstone_, CS_OPT_DETAIL, CS_OPT_ON);
  }
  ~Examiner() {
    for (auto& [pc, instruction] : instructions_) {
      if (instruction != nullptr) cs_free(instruction, 1);
    }
    if (is_open_) cs_close(&capstone_);
  }
  Examiner(const Examiner&) = delete;
  Examiner& operator=(const Examiner&) = delete;

  void Take(const StepState& state, LoopAccess* access) {
    const cs_insn* const instruction = At(state.pc);
    if (instruction == nullptr) {
      access->understood = false;
      return;
    }
    const uint64_t next_pc = state.pc + instruction->size;
    access->begin = access->begin == 0 ? state.pc : std::min(access->begin, state.pc);
    access->end = std::max(access->end, next_pc);
    if (instruction->id == X86_INS_SYSCALL)
      (state.general[0] == SYS_sched_yield ? access->yields : access->calls_kernel) = true;
    if (instruction->id == X86_INS_RDTSC || instruction->id == X86_INS_RDTSCP)
      access->reads_clock = true;
    CollectOperands(*instruction, state, next_pc, access);
    CollectStack(*instruction, state, access);
  }

 private:
  const cs_insn* At(uint64_t pc) {
    const auto known = instructions_.find(pc);
    if (known != instructions_.end()) return known->second;
    constexpr size_t kLongest = 15;
    uint8_t code[kLongest] = {};
    size_t size = kLongest;
    while (size > 0 && !read_(pc, code, size)) --size;  // it may be the last of its mapping
    cs_insn* instruction = nullptr;
    if (is_open_ && size > 0 && cs_disasm(capstone_, code, size, pc, 1, &instruction) != 1)
      instruction = nullptr;
    return instructions_[pc] = instruction;
  }

  void CollectOperands(const cs_insn& instruction, const StepState& state, uint64_t next_pc,
                       LoopAccess* access) {
    if (OnlyNamesMemory(instruction.id)) return;
    const cs_x86& x86 = instruction.detail->x86;
    for (int i = 0; i < x86.op_count; ++i) {
      const cs_x86_op& operand = x86.operands[i];
      if (operand.type != X86_OP_MEM) continue;
      const auto address = AddressOf(operand.mem, state, next_pc);
      if (!address) {
        access->understood = false;
        continue;
      }
      // Whether it is only read, the disassembler does not always know; of what it does not, the
      // worse is taken.
      const bool writes = operand.access != CS_AC_READ;
      if (writes) AddRange(&access->writes, *address, operand.size, &access->understood);
      if (operand.access != CS_AC_WRITE) AddRange(&access->reads, *address, operand.size, nullptr);
    }
  }

  void CollectStack(const cs_insn& instruction, const StepState& state, LoopAccess* access) {
    constexpr uint64_t kWord = 8;
    const uint64_t sp = state.general[7];
    switch (instruction.id) {
      case X86_INS_PUSH:
      case X86_INS_CALL:
        AddRange(&access->writes, sp - kWord, kWord, &access->understood);
        break;
      case X86_INS_POP:
      case X86_INS_RET:
        AddRange(&access->reads, sp, kWord, nullptr);
        break;
      case X86_INS_LEAVE:
        AddRange(&access->reads, state.general[6], kWord, nullptr);
        break;
      default:
        break;
    }
  }

  const ReadMemory& read_;
  csh capstone_ = 0;
  bool is_open_ = false;
  std::unordered_map<uint64_t, cs_insn*> instructions_;
};

#endif

}  // namespace

LoopAccess ExamineSteps(std::span<const StepState> states, const ReadMemory& read) {
  LoopAccess access;
#if HANGSCOPE_HAS_CAPSTONE
  Examiner examiner(read);
  for (const StepState& state : states) examiner.Take(state, &access);
#else
  (void)read;
  access.understood = false;
  for (const StepState& state : states) {
    access.begin = access.begin == 0 ? state.pc : std::min(access.begin, state.pc);
    access.end = std::max(access.end, state.pc + 4);
  }
#endif
  return access;
}

}  // namespace hangscope
