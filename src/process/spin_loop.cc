#include "process/spin_loop.h"

#include "base/build_features.h"
#if HANGSCOPE_HAS_CAPSTONE
#include <capstone/capstone.h>
#endif
#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <unordered_set>

#include "proc/step_calls.h"

namespace hangscope {
namespace {

#if HANGSCOPE_HAS_CAPSTONE

constexpr size_t kMostWrites = 256;  // more, and the loop is not understood
constexpr size_t kMostReads = 65536;

// Ranges, each once.
class RangeSet {
 public:
  explicit RangeSet(std::vector<StepRange>* ranges) : ranges_(ranges) {}
  void Add(uint64_t address, uint64_t bytes, size_t most) {
    constexpr uint64_t kLongest = 1 << 16;
    const bool is_new = seen_.insert(address * kLongest + bytes % kLongest).second;
    if (is_new && ranges_->size() < most) ranges_->push_back({address, bytes});
    is_full_ = is_full_ || (is_new && ranges_->size() >= most);
  }
  bool is_full() const { return is_full_; }

 private:
  std::vector<StepRange>* ranges_;
  std::unordered_set<uint64_t> seen_;
  bool is_full_ = false;
};

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
  constexpr std::pair<unsigned, unsigned> kParts[] = {
      {X86_REG_EAX, X86_REG_RAX},  {X86_REG_EDX, X86_REG_RDX},  {X86_REG_ECX, X86_REG_RCX},
      {X86_REG_EBX, X86_REG_RBX},  {X86_REG_ESI, X86_REG_RSI},  {X86_REG_EDI, X86_REG_RDI},
      {X86_REG_EBP, X86_REG_RBP},  {X86_REG_R8D, X86_REG_R8},   {X86_REG_R9D, X86_REG_R9},
      {X86_REG_R10D, X86_REG_R10}, {X86_REG_R11D, X86_REG_R11}, {X86_REG_R12D, X86_REG_R12},
      {X86_REG_R13D, X86_REG_R13}, {X86_REG_R14D, X86_REG_R14}, {X86_REG_R15D, X86_REG_R15}};
  for (const auto& [part, whole] : kParts) {
    if (part == capstone_register) return whole;
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

StepCall CallOf(const StepState& state) {
  const auto& g = state.general;
  return {static_cast<int>(g[0]), {g[5], g[4], g[1], g[10], g[8], g[9]}, 0};
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
  return id == X86_INS_RDTSC || id == X86_INS_RDTSCP || id == X86_INS_RDPMC || id == X86_INS_LSL;
}

#endif

}  // namespace

#if HANGSCOPE_HAS_CAPSTONE

// What one instruction does to memory, as the registers before it tell.
struct StepEffect {
  bool understood = true;
  uint64_t size = 0;  // of the instruction
  std::vector<StepRange> reads;
  std::vector<StepRange> writes;
  CallUse use = CallUse::kAsks;  // of a system call
  bool reads_clock = false;
  bool uses_vectors = false;
  std::optional<size_t> counts;  // adds to this register; kCountsMemory: to what it writes
};
constexpr size_t kCountsMemory = std::tuple_size_v<decltype(StepState::general)>;

class StepExaminer {
 public:
  explicit StepExaminer(const ReadMemory& read) : read_(read) {
    is_open_ = cs_open(CS_ARCH_X86, CS_MODE_64, &capstone_) == CS_ERR_OK;
    if (is_open_) cs_option(capstone_, CS_OPT_DETAIL, CS_OPT_ON);
  }
  ~StepExaminer() {
    for (auto& [pc, instruction] : instructions_) {
      if (instruction != nullptr) cs_free(instruction, 1);
    }
    if (is_open_) cs_close(&capstone_);
  }
  StepExaminer(const StepExaminer&) = delete;
  StepExaminer& operator=(const StepExaminer&) = delete;

  StepEffect EffectOf(const StepState& state) {
    StepEffect effect;
    const cs_insn* const instruction = At(state.pc);
    if (instruction == nullptr) {
      effect.understood = false;
      return effect;
    }
    effect.size = instruction->size;
    effect.reads_clock = ReadsClock(instruction->id);
    effect.uses_vectors = UsesVectors(*instruction);
    if (instruction->id == X86_INS_SYSCALL) CollectCall(CallOf(state), &effect);
    CollectOperands(*instruction, state, &effect);
    CollectStack(*instruction, state, &effect);
    return effect;
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

  void CollectCall(const StepCall& call, StepEffect* effect) {
    constexpr uint64_t kMost = 1 << 16;
    effect->use = UseOf(call, read_);
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
        effect->counts = operand.type == X86_OP_REG ? NumberOf(Whole(operand.reg))
                                                    : std::optional(kCountsMemory);
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
    constexpr uint64_t kWord = 8;
    const uint64_t sp = state.general[7];
    switch (instruction.id) {
      case X86_INS_PUSH:
      case X86_INS_CALL:
        effect->writes.push_back({sp - kWord, kWord});
        break;
      case X86_INS_POP:
      case X86_INS_RET:
        effect->reads.push_back({sp, kWord});
        break;
      case X86_INS_LEAVE:
        effect->reads.push_back({state.general[6], kWord});
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

#else

class StepExaminer {};

#endif

LoopAccess ExamineSteps(std::span<const StepState> states, const ReadMemory& read) {
  LoopAccess access;
#if HANGSCOPE_HAS_CAPSTONE
  StepExaminer examiner(read);
  RangeSet reads(&access.reads);
  RangeSet writes(&access.writes);
  for (const StepState& state : states) {
    const StepEffect effect = examiner.EffectOf(state);
    access.understood = access.understood && effect.understood;
    access.yields = access.yields || effect.use == CallUse::kYields;
    access.calls_kernel = access.calls_kernel || effect.use == CallUse::kNever;
    access.reads_clock = access.reads_clock || effect.reads_clock;
    access.uses_vectors = access.uses_vectors || effect.uses_vectors;
    if (effect.size == 0) continue;
    access.begin = access.begin == 0 ? state.pc : std::min(access.begin, state.pc);
    access.end = std::max(access.end, state.pc + effect.size);
    for (const StepRange& range : effect.reads) reads.Add(range.address, range.bytes, kMostReads);
    for (const StepRange& range : effect.writes)
      writes.Add(range.address, range.bytes, kMostWrites);
  }
  access.understood = access.understood && !writes.is_full();
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

namespace {

constexpr uint64_t kWord = 8;
constexpr size_t kMostWords = 8192;
constexpr size_t kMostProgressions = 4096;
constexpr int kOften = 8;

uint64_t HashOf(uint64_t word, uint64_t value) {
  uint64_t hash = (word ^ (value << 32 | value >> 32)) * 0x9e3779b97f4a7c15u;
  hash = (hash ^ (hash >> 29) ^ value) * 0xbf58476d1ce4e5b9u;
  return hash ^ (hash >> 32);
}

}  // namespace

LoopMemory::LoopMemory(const ReadMemory& read)
    : read_(read),
#if HANGSCOPE_HAS_CAPSTONE
      examiner_(std::make_unique<StepExaminer>(read))
#else
      examiner_(nullptr)
#endif
{
}

LoopMemory::~LoopMemory() = default;

void LoopMemory::Progression::Add(uint64_t value) {
  const uint64_t its_step = value - last;
  length = its_step == step && step != 0 ? length + 1 : 0;
  step = its_step;
  last = value;
}

// What the word holds, whoever has written it.
void LoopMemory::Know(uint64_t word, uint64_t value) {
  const auto [at, is_new] = words_.emplace(word, std::pair(value, value));
  auto& [first, now] = at->second;
  if (is_new || now == value) return;
  contents_ += HashOf(word, value) - HashOf(word, now);
  now = value;
}

void LoopMemory::Touch(const StepRange& range) {
  const uint64_t begin = range.address / kWord * kWord;
  const uint64_t count = (range.address + range.bytes - begin + kWord - 1) / kWord;
  std::vector<uint64_t> values(count);
  if (!read_(begin, values.data(), count * kWord)) return;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t word = begin + i * kWord;
    const auto known = words_.find(word);
    if (known == words_.end() && words_.size() >= kMostWords) {
      is_understood_ = false;
      return;
    }
    Know(word, values[i]);
  }
}

void LoopMemory::Before(const StepState& state) {
  touched_.clear();
#if HANGSCOPE_HAS_CAPSTONE
  if (is_counting_ && counting_.second < kCountsMemory &&
      (progressions_.size() < kMostProgressions || progressions_.count(counting_) != 0))
    progressions_[counting_].Add(state.general[counting_.second]);
  is_counting_ = false;
  if (!is_understood_) return;
  StepEffect effect = examiner_->EffectOf(state);
  is_understood_ = effect.understood;
  uses_vectors_ = uses_vectors_ || effect.uses_vectors;
  is_counting_ = effect.counts.has_value();
  counting_ = {state.pc, effect.counts.value_or(0)};
  touched_ = std::move(effect.writes);
  for (const StepRange& range : touched_) Touch(range);
#else
  (void)state;
  is_understood_ = false;
#endif
}

uint64_t LoopMemory::After() {
  for (const StepRange& range : touched_) {
    const uint64_t begin = range.address / kWord * kWord;
    const uint64_t count = (range.address + range.bytes - begin + kWord - 1) / kWord;
    std::vector<uint64_t> before(count);
    for (uint64_t i = 0; i < count; ++i) {
      const auto known = words_.find(begin + i * kWord);
      if (known != words_.end()) before[i] = known->second.second;
    }
    Touch(range);
    for (uint64_t i = 0; i < count; ++i) {
      const auto known = words_.find(begin + i * kWord);
      if (known != words_.end() && before[i] != known->second.second)
        changed_.insert(begin + i * kWord);
    }
  }
#if HANGSCOPE_HAS_CAPSTONE
  if (is_counting_ && counting_.second == kCountsMemory && !touched_.empty()) {
    const auto known = words_.find(touched_[0].address / kWord * kWord);
    if (known != words_.end() &&
        (progressions_.size() < kMostProgressions || progressions_.count(counting_) != 0))
      progressions_[counting_].Add(known->second.second);
  }
#endif
  return is_understood_ ? contents_ : 0;
}

bool LoopMemory::Counts() const {
  return std::any_of(progressions_.begin(), progressions_.end(),
                     [](const auto& each) { return each.second.length >= kOften; });
}

std::vector<uint64_t> LoopMemory::TakeChanged() {
  std::vector<uint64_t> changed(changed_.begin(), changed_.end());
  changed_.clear();
  return changed;
}

}  // namespace hangscope
