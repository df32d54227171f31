#include "process/steps/step_examiner.h"

#include "base/build_features.h"
#if HANGSCOPE_HAS_CAPSTONE
#include <capstone/capstone.h>
#endif
#include <algorithm>
#include <array>

namespace hangscope {

#if HANGSCOPE_HAS_CAPSTONE

namespace {

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

// Of a part of a register, the whole.
unsigned Whole(unsigned capstone_register) {
  constexpr std::array<unsigned, 5> kParts[] = {
      {X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL, X86_REG_AH},
      {X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL, X86_REG_DH},
      {X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL, X86_REG_CH},
      {X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL, X86_REG_BH},
      {X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL, X86_REG_SIL},
      {X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL, X86_REG_DIL},
      {X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL, X86_REG_BPL},
      {X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL, X86_REG_SPL},
      {X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B, X86_REG_R8B},
      {X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B, X86_REG_R9B},
      {X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B, X86_REG_R10B},
      {X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B, X86_REG_R11B},
      {X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B, X86_REG_R12B},
      {X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B, X86_REG_R13B},
      {X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B, X86_REG_R14B},
      {X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B, X86_REG_R15B}};
  for (const auto& parts : kParts) {
    if (std::find(parts.begin(), parts.end(), capstone_register) != parts.end()) return parts[0];
  }
  return capstone_register;
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

bool IsAddition(unsigned id) {
  return id == X86_INS_ADD || id == X86_INS_SUB || id == X86_INS_INC || id == X86_INS_DEC ||
         id == X86_INS_XADD;
}

// What it computes with may be in registers that are not part of a StepState.
bool UsesVectors(const cs_insn& instruction) {
  const cs_detail& detail = *instruction.detail;
  return std::any_of(detail.groups, detail.groups + detail.groups_count, [](unsigned group) {
    switch (group) {
      case X86_GRP_CMOV:
      case X86_GRP_BMI:
      case X86_GRP_BMI2:
      case X86_GRP_ADX:
      case X86_GRP_MODE32:
      case X86_GRP_MODE64:
      case X86_GRP_NOT64BITMODE:
        return false;
      default:
        return group >= X86_GRP_VM;  // of those before it every machine has some
    }
  });
}

bool ReadsClock(unsigned id) {
  // Or what is another number each time.
  return id == X86_INS_RDTSC || id == X86_INS_RDTSCP || id == X86_INS_RDPMC ||
         id == X86_INS_RDRAND || id == X86_INS_RDSEED || id == X86_INS_LSL;
}

void CollectCall(const StepCall& call, const ReadMemory& read, StepEffect* effect) {
  constexpr uint64_t kMost = 1 << 16;
  effect->use = UseOf(call, read);
  effect->reads_clock = effect->reads_clock || effect->use == CallUse::kClock;
  effect->reads = effect->writes = MemoryOf(call);
  for (const StepRange& range : effect->writes)
    effect->understood = effect->understood && range.bytes <= kMost;
}

void CollectOperands(const cs_insn& instruction, const StepState& state, StepEffect* effect) {
  if (OnlyNamesMemory(instruction.id)) return;
  const uint64_t next_pc = state.pc + instruction.size;
  const cs_x86& x86 = instruction.detail->x86;
  for (int i = 0; i < x86.op_count; ++i) {
    const cs_x86_op& operand = x86.operands[i];
    if (i == 0 && IsAddition(instruction.id))
      effect->counts =
          operand.type == X86_OP_REG ? NumberOf(Whole(operand.reg)) : std::optional(kCountsMemory);
    if (operand.type != X86_OP_MEM) continue;
    const auto address = AddressOf(operand.mem, state, next_pc);
    if (!address || operand.size == 0) {
      effect->understood = false;
      continue;
    }
    // Whether it is only read, the disassembler does not always know; of what it does not, the
    // worse is taken.
    if (operand.access != CS_AC_READ) effect->writes.push_back({*address, operand.size});
    if (operand.access != CS_AC_WRITE) effect->reads.push_back({*address, operand.size});
  }
}

void CollectStack(const cs_insn& instruction, const StepState& state, StepEffect* effect) {
  constexpr uint64_t kPushed = 8;
  const uint64_t sp = state.general[7];
  switch (instruction.id) {
    case X86_INS_PUSH:
    case X86_INS_CALL:
      effect->writes.push_back({sp - kPushed, kPushed});
      break;
    case X86_INS_POP:
    case X86_INS_RET:
      effect->reads.push_back({sp, kPushed});
      break;
    case X86_INS_LEAVE:
      effect->reads.push_back({state.general[6], kPushed});
      break;
    default:
      break;
  }
}

// Nothing: its value is always the same, or of no interest.
std::optional<StepPlace> PlaceOf(unsigned capstone_register) {
  const unsigned whole = Whole(capstone_register);
  if (const auto number = NumberOf(whole)) return static_cast<StepPlace>(*number);
  if (whole >= X86_REG_XMM0 && whole <= X86_REG_XMM31)
    return static_cast<StepPlace>(kFirstOtherPlace + whole - X86_REG_XMM0);
  if (whole >= X86_REG_YMM0 && whole <= X86_REG_YMM31)
    return static_cast<StepPlace>(kFirstOtherPlace + whole - X86_REG_YMM0);
  if (whole >= X86_REG_ZMM0 && whole <= X86_REG_ZMM31)
    return static_cast<StepPlace>(kFirstOtherPlace + whole - X86_REG_ZMM0);
  switch (whole) {
    case X86_REG_INVALID:
    case X86_REG_RIP:
    case X86_REG_EIP:
    case X86_REG_IP:
    case X86_REG_CS:
    case X86_REG_DS:
    case X86_REG_ES:
    case X86_REG_SS:
    case X86_REG_FS:
    case X86_REG_GS:
      return std::nullopt;
    case X86_REG_EFLAGS:
      return kFlagsPlace;
    default:
      return static_cast<StepPlace>(kFirstOtherPlace + 32 + whole);
  }
}

// Its first operand holds nothing of what it held, where that is a whole register.
bool ReplacesTarget(unsigned id) {
  switch (id) {
    case X86_INS_MOV:
    case X86_INS_MOVABS:
    case X86_INS_MOVZX:
    case X86_INS_MOVSX:
    case X86_INS_MOVSXD:
    case X86_INS_LEA:
    case X86_INS_POP:
    case X86_INS_MOVAPS:
    case X86_INS_MOVUPS:
    case X86_INS_MOVDQA:
    case X86_INS_MOVDQU:
    case X86_INS_MOVQ:
    case X86_INS_VMOVAPS:
    case X86_INS_VMOVUPS:
    case X86_INS_VMOVDQA:
    case X86_INS_VMOVDQU:
      return true;
    default:
      return false;
  }
}

// All flags that anybody asks about.
bool ReplacesFlags(unsigned id) {
  switch (id) {
    case X86_INS_CMP:
    case X86_INS_TEST:
    case X86_INS_ADD:
    case X86_INS_SUB:
    case X86_INS_AND:
    case X86_INS_OR:
    case X86_INS_XOR:
    case X86_INS_NEG:
      return true;
    default:
      return false;
  }
}

bool IsClearing(const cs_insn& instruction) {
  const cs_x86& x86 = instruction.detail->x86;
  return (instruction.id == X86_INS_XOR || instruction.id == X86_INS_SUB) && x86.op_count == 2 &&
         x86.operands[0].type == X86_OP_REG && x86.operands[1].type == X86_OP_REG &&
         x86.operands[0].reg == x86.operands[1].reg && x86.operands[0].size >= 4;
}

// The same of a vector; flags stay.
bool IsClearingVector(const cs_insn& instruction) {
  const cs_x86& x86 = instruction.detail->x86;
  switch (instruction.id) {
    case X86_INS_PXOR:
    case X86_INS_XORPS:
    case X86_INS_XORPD:
    case X86_INS_VPXOR:
    case X86_INS_VXORPS:
    case X86_INS_VXORPD: {
      const cs_x86_op& one = x86.operands[x86.op_count - 1];
      const cs_x86_op& other = x86.operands[x86.op_count - 2];
      return one.type == X86_OP_REG && other.type == X86_OP_REG && one.reg == other.reg;
    }
    default:
      return false;
  }
}

bool Decides(const cs_insn& instruction) {
  const cs_detail& detail = *instruction.detail;
  const auto is_of = [&](unsigned group) {
    return std::count(detail.groups, detail.groups + detail.groups_count, group) != 0;
  };
  // A call to a fixed address goes there whatever any register holds; a plain jump does, too, and
  // uses none.
  return is_of(X86_GRP_JUMP) || is_of(X86_GRP_RET) || is_of(X86_GRP_CALL) || is_of(X86_GRP_INT);
}

void AddPlace(unsigned capstone_register, std::vector<StepPlace>* places) {
  const auto place = PlaceOf(capstone_register);
  if (place && std::count(places->begin(), places->end(), *place) == 0) places->push_back(*place);
}

void CollectTarget(const cs_insn& instruction, StepFlow* flow) {
  const cs_x86_op& target = instruction.detail->x86.operands[0];
  const bool replaces = ReplacesTarget(instruction.id) && target.size >= 4;
  if (target.type == X86_OP_MEM) flow->stores_whole = replaces;
  if (target.type != X86_OP_REG) return;
  // What only compares leaves it as it is; of what is not known, the worse is taken.
  const bool compares = instruction.id == X86_INS_CMP || instruction.id == X86_INS_TEST;
  if (!compares && target.access != CS_AC_READ) AddPlace(target.reg, &flow->defines);
  if (replaces) AddPlace(target.reg, &flow->replaces);
  if (!replaces) AddPlace(target.reg, &flow->uses);
}

StepFlow FlowOf(size_t capstone, const cs_insn& instruction) {
  StepFlow flow;
  cs_regs read, written;
  uint8_t read_count = 0, written_count = 0;
  if (cs_regs_access(capstone, &instruction, read, &read_count, written, &written_count) !=
      CS_ERR_OK)
    return flow;
  flow.understood = true;
  flow.decides = Decides(instruction);
  if (IsClearing(instruction) || IsClearingVector(instruction)) {
    AddPlace(instruction.detail->x86.operands[0].reg, &flow.defines);
    if (IsClearing(instruction)) flow.defines.push_back(kFlagsPlace);
    flow.replaces = flow.defines;
    return flow;
  }
  const cs_x86& x86 = instruction.detail->x86;
  flow.jumps_by_memory = flow.decides && x86.op_count > 0 && x86.operands[0].type == X86_OP_MEM;
  for (int i = 0; i < x86.op_count; ++i) {
    const cs_x86_op& operand = x86.operands[i];
    if (operand.type == X86_OP_MEM) {
      for (const unsigned part : {operand.mem.base, operand.mem.index}) {
        AddPlace(part, &flow.uses);
        if (!OnlyNamesMemory(instruction.id)) AddPlace(part, &flow.addresses);
      }
    }
    if (i > 0 && operand.type == X86_OP_REG) {
      AddPlace(operand.reg, &flow.uses);
      if (operand.access != CS_AC_READ) AddPlace(operand.reg, &flow.defines);
    }
  }
  if (x86.op_count > 0) CollectTarget(instruction, &flow);
  const auto is_replaced = [&](unsigned each) {
    const auto place = PlaceOf(each);
    return place && std::count(flow.replaces.begin(), flow.replaces.end(), *place) != 0;
  };
  const auto is_address = [&](unsigned each) {
    const auto place = PlaceOf(each);
    return place && std::count(flow.uses.begin(), flow.uses.end(), *place) != 0;
  };
  for (uint8_t i = 0; i < read_count; ++i) {
    if (!is_replaced(read[i]) || is_address(read[i])) AddPlace(read[i], &flow.uses);
  }
  for (uint8_t i = 0; i < written_count; ++i) AddPlace(written[i], &flow.defines);
  if (ReplacesFlags(instruction.id)) AddPlace(X86_REG_EFLAGS, &flow.replaces);
  if (instruction.id == X86_INS_PUSH || instruction.id == X86_INS_CALL) flow.stores_whole = true;
  return flow;
}

}  // namespace

StepExaminer::StepExaminer(const ReadMemory& read) : read_(read) {
  is_open_ = cs_open(CS_ARCH_X86, CS_MODE_64, &capstone_) == CS_ERR_OK;
  if (is_open_) cs_option(capstone_, CS_OPT_DETAIL, CS_OPT_ON);
}

StepExaminer::~StepExaminer() {
  for (auto& [pc, instruction] : instructions_) {
    if (instruction != nullptr) cs_free(instruction, 1);
  }
  if (is_open_) cs_close(&capstone_);
}

StepEffect StepExaminer::EffectOf(const StepState& state) {
  StepEffect effect;
  const cs_insn* const instruction = At(state.pc);
  if (instruction == nullptr) {
    effect.understood = false;
    return effect;
  }
  effect.size = instruction->size;
  effect.reads_clock = ReadsClock(instruction->id);
  effect.uses_vectors = UsesVectors(*instruction);
  effect.is_call = instruction->id == X86_INS_SYSCALL;
  if (effect.is_call) CollectCall(CallAt(state), read_, &effect);
  CollectOperands(*instruction, state, &effect);
  CollectStack(*instruction, state, &effect);
  return effect;
}

const cs_insn* StepExaminer::At(uint64_t pc) {
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

const StepFlow& StepExaminer::FlowAt(uint64_t pc) {
  const auto known = flows_.find(pc);
  if (known != flows_.end()) return known->second;
  const cs_insn* const instruction = At(pc);
  return flows_[pc] = instruction != nullptr ? FlowOf(capstone_, *instruction) : StepFlow();
}

#else

StepExaminer::StepExaminer(const ReadMemory& read) : read_(read) {}
StepExaminer::~StepExaminer() = default;

StepEffect StepExaminer::EffectOf(const StepState&) {
  StepEffect effect;
  effect.understood = false;
  return effect;
}

const cs_insn* StepExaminer::At(uint64_t) { return nullptr; }
const StepFlow& StepExaminer::FlowAt(uint64_t pc) { return flows_[pc]; }

#endif

}  // namespace hangscope
