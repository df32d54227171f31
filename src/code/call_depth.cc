#include "code/call_depth.h"

#include "base/build_features.h"
#if HANGSCOPE_HAS_CAPSTONE
#include <capstone/capstone.h>
#endif

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace hangscope {
namespace {

#if HANGSCOPE_HAS_CAPSTONE && defined(__x86_64__)

constexpr uint64_t kMostDistance = 256 << 10;  // bytes, from where a function begins
constexpr size_t kMostInstructions = 1 << 15;  // that are followed
constexpr int64_t kDeepest = 64 << 20;

// That a call leaves as they were, but for the stack and frame pointers; and DWARF's numbers.
struct KeptRegister {
  unsigned whole, half;
  size_t number;
};
constexpr KeptRegister kKept[] = {{X86_REG_RBX, X86_REG_EBX, 3},
                                  {X86_REG_R12, X86_REG_R12D, 12},
                                  {X86_REG_R13, X86_REG_R13D, 13},
                                  {X86_REG_R14, X86_REG_R14D, 14},
                                  {X86_REG_R15, X86_REG_R15D, 15}};

struct State {
  std::optional<int64_t> depth = 0;  // of the stack pointer below the return address
  enum class Frame { kCallers, kOwn, kOther } frame = Frame::kCallers;
  int64_t frame_depth = 0;  // of kOwn
  std::optional<int64_t> saved;
  std::array<std::optional<int64_t>, std::size(kKept)> saved_kept;
  std::array<bool, std::size(kKept)> changed_kept = {};
};

class Follower {
 public:
  Follower(uint64_t begin, uint64_t pc, const ReadCode& read)
      : begin_(begin), pc_(pc), read_(read) {
    is_open_ = cs_open(CS_ARCH_X86, CS_MODE_64, &capstone_) == CS_ERR_OK;
    if (!is_open_) return;
    cs_option(capstone_, CS_OPT_DETAIL, CS_OPT_ON);
    instruction_ = cs_malloc(capstone_);
  }
  ~Follower() {
    if (instruction_ != nullptr) cs_free(instruction_, 1);
    if (is_open_) cs_close(&capstone_);
  }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  std::optional<State> Find() {
    if (instruction_ == nullptr || !IsNear(pc_)) return std::nullopt;
    open_.emplace_back(begin_, State());
    while (!found_ && followed_ < kMostInstructions) {
      if (open_.empty() && !ResumeBehindSwitch()) break;
      const auto [at, state] = open_.back();
      open_.pop_back();
      Follow(at, state);
    }
    return found_;
  }

 private:
  // A jump through a table leads to places of the same function, of which the nearest that nothing
  // else leads to comes right behind.
  bool ResumeBehindSwitch() {
    while (!switches_.empty()) {
      auto [at, state] = switches_.back();
      switches_.pop_back();
      if (seen_.count(at) != 0) continue;
      open_.emplace_back(at, state);
      return true;
    }
    return false;
  }

  // A function may end by jumping to another, on either side of it.
  bool IsNear(uint64_t address) const {
    return (address >= begin_ ? address - begin_ : begin_ - address) <= kMostDistance;
  }

  bool Decode(uint64_t at) {
    uint8_t bytes[16];
    size_t count = sizeof bytes;
    while (count > 0 && !read_(at, bytes, count)) --count;
    const uint8_t* code = bytes;
    uint64_t address = at;
    return count > 0 && cs_disasm_iter(capstone_, &code, &count, &address, instruction_);
  }

  void Follow(uint64_t at, State state) {
    while (followed_++ < kMostInstructions && IsNear(at)) {
      if (const auto [known, is_new] = seen_.emplace(at, true); !is_new) return;
      if (!Decode(at)) return;
      const uint64_t next = at + instruction_->size;
      const bool behind_call =
          pc_ == next && (instruction_->id == X86_INS_SYSCALL || instruction_->id == X86_INS_INT);
      if ((pc_ >= at && pc_ < next) || behind_call) {
        found_ = state;
        return;
      }
      if (!CarryOut(next, &state)) return;
      at = next;
    }
  }

  const cs_x86_op& Operand(size_t i) const { return instruction_->detail->x86.operands[i]; }
  size_t Operands() const { return instruction_->detail->x86.op_count; }
  bool IsRegister(size_t i, unsigned which) const {
    return i < Operands() && Operand(i).type == X86_OP_REG && Operand(i).reg == which;
  }
  std::optional<int64_t> Immediate(size_t i) const {
    return i < Operands() && Operand(i).type == X86_OP_IMM ? std::optional(Operand(i).imm)
                                                           : std::nullopt;
  }
  bool Writes(unsigned which) const {
    cs_regs read = {};
    cs_regs written = {};
    uint8_t reads = 0;
    uint8_t writes = 0;
    if (cs_regs_access(capstone_, instruction_, read, &reads, written, &writes) != CS_ERR_OK)
      return true;
    return std::find(written, written + writes, which) != written + writes;
  }

  // Whether what comes next is carried out after it.
  bool CarryOut(uint64_t next, State* state) {
    const unsigned id = instruction_->id;
    if (cs_insn_group(capstone_, instruction_, X86_GRP_JUMP)) return Jump(next, *state);
    switch (id) {
      case X86_INS_CALL:
      case X86_INS_NOP:
      case X86_INS_SYSCALL:
        return true;
      case X86_INS_RET:
      case X86_INS_RETF:
      case X86_INS_HLT:
      case X86_INS_UD2:
      case X86_INS_INT3:
        return false;
      case X86_INS_PUSH:
        return Push(state);
      case X86_INS_POP:
        return Pop(state);
      case X86_INS_LEAVE:
        SetToFrame(state, 0);
        if (state->depth) PopFramePointer(state);
        return true;
      case X86_INS_SUB:
      case X86_INS_ADD:
        if (!IsRegister(0, X86_REG_RSP)) break;
        if (const auto bytes = Immediate(1); bytes && state->depth)
          *state->depth += id == X86_INS_SUB ? *bytes : -*bytes;
        else
          state->depth.reset();
        return true;
      case X86_INS_LEA:
        if (IsRegister(0, X86_REG_RSP) || IsRegister(0, X86_REG_RBP)) return LoadAddress(state);
        break;
      case X86_INS_MOV:
        if (IsRegister(0, X86_REG_RSP) && IsRegister(1, X86_REG_RBP)) {
          SetToFrame(state, 0);
          return true;
        }
        if (IsRegister(0, X86_REG_RBP) && IsRegister(1, X86_REG_RSP)) {
          SetFrame(state, state->depth);
          return true;
        }
        break;
      default:
        break;
    }
    for (size_t i = 0; i < std::size(kKept); ++i) {
      if (Writes(kKept[i].whole) || Writes(kKept[i].half)) state->changed_kept[i] = true;
    }
    if (Writes(X86_REG_RSP)) state->depth.reset();
    if (Writes(X86_REG_RBP) || Writes(X86_REG_EBP)) state->frame = State::Frame::kOther;
    return true;
  }

  bool Jump(uint64_t next, const State& state) {
    const auto target = Immediate(0);
    const bool always = instruction_->id == X86_INS_JMP || instruction_->id == X86_INS_LJMP;
    if (target && IsNear(static_cast<uint64_t>(*target)))
      open_.emplace_back(static_cast<uint64_t>(*target), state);
    // With nothing left on the stack it leads to another function.
    if (!target && state.depth != 0) switches_.emplace_back(next, state);
    return !always;
  }

  bool Push(State* state) {
    if (state->depth) *state->depth += 8;
    if (IsRegister(0, X86_REG_RBP) && state->frame == State::Frame::kCallers && !state->saved)
      state->saved = state->depth;
    for (size_t i = 0; i < std::size(kKept); ++i) {
      if (IsRegister(0, kKept[i].whole) && !state->changed_kept[i] && !state->saved_kept[i])
        state->saved_kept[i] = state->depth;
    }
    return true;
  }

  bool Pop(State* state) {
    for (size_t i = 0; i < std::size(kKept); ++i) {
      if (!IsRegister(0, kKept[i].whole)) continue;
      const bool is_callers = state->saved_kept[i] && state->saved_kept[i] == state->depth;
      state->changed_kept[i] = !is_callers;
      if (is_callers) state->saved_kept[i].reset();
    }
    if (IsRegister(0, X86_REG_RBP) && state->depth) {
      PopFramePointer(state);
      return true;
    }
    if (state->depth) *state->depth -= 8;
    if (IsRegister(0, X86_REG_RSP)) state->depth.reset();
    if (IsRegister(0, X86_REG_RBP)) state->frame = State::Frame::kOther;
    return true;
  }

  void PopFramePointer(State* state) {
    const bool is_callers = state->saved && state->saved == state->depth;
    state->frame = is_callers ? State::Frame::kCallers : State::Frame::kOther;
    *state->depth -= 8;
  }

  void SetFrame(State* state, std::optional<int64_t> depth) {
    state->frame = depth ? State::Frame::kOwn : State::Frame::kOther;
    state->frame_depth = depth.value_or(0);
  }

  void SetToFrame(State* state, int64_t above) {
    if (state->frame == State::Frame::kOwn)
      state->depth = state->frame_depth - above;
    else
      state->depth.reset();
  }

  bool LoadAddress(State* state) {
    const x86_op_mem& memory = Operand(1).mem;
    const bool plain = memory.index == X86_REG_INVALID;
    if (IsRegister(0, X86_REG_RSP)) {
      if (plain && memory.base == X86_REG_RSP && state->depth)
        *state->depth -= memory.disp;
      else if (plain && memory.base == X86_REG_RBP)
        SetToFrame(state, memory.disp);
      else
        state->depth.reset();
    } else if (plain && memory.base == X86_REG_RSP && state->depth) {
      SetFrame(state, *state->depth - memory.disp);
    } else {
      state->frame = State::Frame::kOther;
    }
    return true;
  }

  const uint64_t begin_;
  const uint64_t pc_;
  const ReadCode& read_;
  csh capstone_ = 0;
  bool is_open_ = false;
  cs_insn* instruction_ = nullptr;
  std::vector<std::pair<uint64_t, State>> open_;
  std::vector<std::pair<uint64_t, State>> switches_;
  std::map<uint64_t, bool> seen_;
  size_t followed_ = 0;
  std::optional<State> found_;
};

#endif

}  // namespace

uint64_t BehindStub(uint64_t at, const ReadCode& read) {
  uint8_t code[11] = {};
  if (!read(at, code, sizeof code)) return at;
  size_t begin = 0;
  constexpr uint8_t kBranchTarget[] = {0xf3, 0x0f, 0x1e, 0xfa};  // endbr64
  if (std::memcmp(code, kBranchTarget, sizeof kBranchTarget) == 0) begin = sizeof kBranchTarget;
  if (code[begin] == 0xf2) ++begin;  // bnd
  if (begin + 6 > sizeof code || code[begin] != 0xff || code[begin + 1] != 0x25) return at;
  int32_t distance = 0;
  std::memcpy(&distance, code + begin + 2, sizeof distance);
  uint64_t target = 0;
  const uint64_t slot = at + begin + 6 + static_cast<uint64_t>(int64_t{distance});
  return read(slot, &target, sizeof target) && target != 0 ? target : at;
}

std::optional<CallDepth> DepthAt([[maybe_unused]] uint64_t begin, [[maybe_unused]] uint64_t pc,
                                 [[maybe_unused]] const ReadCode& read) {
#if HANGSCOPE_HAS_CAPSTONE && defined(__x86_64__)
  const auto state = Follower(begin, pc, read).Find();
  if (!state || !state->depth || *state->depth < 0 || *state->depth > kDeepest) return std::nullopt;
  CallDepth depth;
  depth.to_return = static_cast<uint64_t>(*state->depth);
  if (state->frame == State::Frame::kOwn && state->frame_depth >= 0)
    depth.frame_pointer = static_cast<uint64_t>(state->frame_depth);
  if (state->saved) depth.saved_frame_pointer = static_cast<uint64_t>(*state->saved);
  depth.keeps_frame_pointer = state->frame == State::Frame::kCallers;
  for (size_t i = 0; i < std::size(kKept); ++i) {
    if (state->saved_kept[i])
      depth.saved[kKept[i].number] = static_cast<uint64_t>(*state->saved_kept[i]);
    depth.changed[kKept[i].number] = state->changed_kept[i];
  }
  return depth;
#else
  return std::nullopt;
#endif
}

CallTarget TargetOfCall(uint64_t back, const ReadCode& read) {
  CallTarget target;
#if defined(__x86_64__)
  uint8_t code[7] = {};
  if (back < sizeof code || !read(back - sizeof code, code, sizeof code)) return target;
  if (code[2] == 0xe8) {  // to a fixed address
    int32_t distance = 0;
    std::memcpy(&distance, code + 3, sizeof distance);
    target.is_call = true;
    target.address = BehindStub(back + static_cast<uint64_t>(int64_t{distance}), read);
    return target;
  }
  if (code[1] == 0xff && code[2] == 0x15) {  // through a word that the loader has filled in
    int32_t distance = 0;
    std::memcpy(&distance, code + 3, sizeof distance);
    target.is_call = true;
    if (!read(back + static_cast<uint64_t>(int64_t{distance}), &target.address,
              sizeof target.address))
      target.address = 0;
    return target;
  }
  for (size_t i = 0; i < 6; ++i) {  // through a register or memory, of 2 to 7 bytes
    if (code[i] == 0xff && (code[i + 1] >> 3 & 7) == 2) target.is_call = true;
  }
#else
  (void)back;
  (void)read;
#endif
  return target;
}

}  // namespace hangscope
