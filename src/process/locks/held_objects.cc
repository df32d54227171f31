#include "process/locks/held_objects.h"

#include "base/build_features.h"
#if HANGSCOPE_HAS_CAPSTONE && defined(__x86_64__)
#define HANGSCOPE_FOLLOWS_CODE 1
#include <capstone/capstone.h>
#else
#define HANGSCOPE_FOLLOWS_CODE 0
#endif

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "code/call_depth.h"

namespace hangscope {
namespace {

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "std::mutex::lock" of "void std::mutex::lock(int)": without result and arguments, as far as
// templates let that be told.
std::string_view NameAlone(std::string_view function) {
  size_t depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < function.size(); ++i) {
    if (function[i] == '<') ++depth;
    if (function[i] == '>' && depth > 0) --depth;
    if (depth > 0) continue;
    if (function[i] == ' ') begin = i + 1;
    if (function[i] == '(') return function.substr(begin, i - begin);
  }
  return function.substr(begin);
}

// The last part of it: "lock".
std::string_view LastPart(std::string_view name) {
  size_t depth = 0;
  for (size_t i = name.size(); i-- > 1;) {
    if (name[i] == '>') ++depth;
    if (name[i] == '<' && depth > 0) --depth;
    if (depth == 0 && name[i] == ':' && name[i - 1] == ':') return name.substr(i + 1);
  }
  return name;
}

#if HANGSCOPE_FOLLOWS_CODE

constexpr uint64_t kMostCode = 64 << 10;  // of a function
constexpr size_t kMostVisits = 8'000;     // of instructions, the same ones again
constexpr uint64_t kMostOfCalled = 512;   // of a function that is called, and has returned
constexpr uint64_t kWord = 8;
constexpr size_t kRegisters = 16;
constexpr size_t kStack = 7;    // DWARF's number of rsp
constexpr size_t kFrame = 6;    // of rbp
constexpr size_t kOutput = 0;   // of rax
constexpr size_t kSaved = 3;    // of rbx
constexpr size_t kClosure = 1;  // of rdx: in Go, what a closure has from the function that made it

// Something that is not known, and a distance from it; of id 0, the number itself.
struct Value {
  uint64_t id = 0;
  int64_t offset = 0;
  auto operator<=>(const Value&) const = default;
};

constexpr uint64_t kEntryStack = 1;  // what the stack pointer was at the function's begin
constexpr uint64_t kFirstArgument = 2;
constexpr uint64_t kFirstClosureStack = kFirstArgument + kRegisters;
constexpr int kDeepestClosure = 3;
constexpr uint64_t kFirstLoad = 1u << 8;  // what memory has at a place that is none of the stack
constexpr uint64_t kFirstSlot = 1u << 20;
constexpr int kMostLoads = 4;  // one within another
// What a word had that was exchanged for another number, and whether that was 0, or was not: three
// for each word.
constexpr uint64_t kFirstAttempt = 1ull << 63;
enum class Attempt : uint64_t { kOldWord, kWasFree, kWasTaken };
constexpr uint64_t kAttempts = 3;

bool IsAttempt(const Value& value) { return value.id >= kFirstAttempt; }

struct State {
  std::array<std::optional<Value>, kRegisters> registers;
  std::map<Value, Value> slots;  // of the stack: by address
  std::set<Value> held;
  // Given back on some way, without having been taken here; and whether more were.
  std::set<Value> given;
  bool gave_unknown = false;
  // What the zero flag tells: kWasFree or kWasTaken of a word.
  std::optional<Value> zero_flag;
  bool operator==(const State&) const = default;
};

// What is so on both ways; of what was given, on one of them.
State Both(const State& a, const State& b) {
  State both;
  both.given = a.given;
  both.given.insert(b.given.begin(), b.given.end());
  both.gave_unknown = a.gave_unknown || b.gave_unknown;
  for (size_t i = 0; i < kRegisters; ++i) {
    if (a.registers[i] == b.registers[i]) both.registers[i] = a.registers[i];
  }
  if (a.zero_flag == b.zero_flag) both.zero_flag = a.zero_flag;
  std::set_intersection(a.slots.begin(), a.slots.end(), b.slots.begin(), b.slots.end(),
                        std::inserter(both.slots, both.slots.end()));
  std::set_intersection(a.held.begin(), a.held.end(), b.held.begin(), b.held.end(),
                        std::inserter(both.held, both.held.end()));
  return both;
}

// DWARF's number of a general register, whatever part of it is named.
std::optional<size_t> NumberOf(unsigned reg) {
  constexpr unsigned kNames[kRegisters][4] = {
      {X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL},
      {X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL},
      {X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL},
      {X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL},
      {X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL},
      {X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL},
      {X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL},
      {X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL},
      {X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B},
      {X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B},
      {X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B},
      {X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B},
      {X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B},
      {X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B},
      {X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B},
      {X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B}};
  for (size_t i = 0; i < kRegisters; ++i) {
    if (std::find(std::begin(kNames[i]), std::end(kNames[i]), reg) != std::end(kNames[i])) return i;
  }
  return std::nullopt;
}

// Followed from the function's begin along all ways, until what is known at each instruction does
// not change any more.
class Follower {
 public:
  Follower(const CallPlace& place, const ReadMemory& read, const LockCallOfTarget& lock_call,
           const LockCallOfTarget& by_code)
      : place_(place),
        is_go_(place.convention == CallConvention::kGo),
        first_input_(is_go_ ? kOutput : 5),  // else rdi
        second_input_(is_go_ ? kSaved : 4),  // else rsi
        read_(read),
        lock_call_(lock_call),
        by_code_(by_code) {
    is_open_ = cs_open(CS_ARCH_X86, CS_MODE_64, &capstone_) == CS_ERR_OK;
    if (is_open_) cs_option(capstone_, CS_OPT_DETAIL, CS_OPT_ON);
  }
  ~Follower() {
    for (auto& [pc, instruction] : instructions_) {
      if (instruction != nullptr) cs_free(instruction, 1);
    }
    if (is_open_) cs_close(&capstone_);
  }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  HeldObjectsAt Held() {
    HeldObjectsAt result;
    // Of what is not understood callers of Go may have been relieved.
    result.gave_unknown = is_go_;
    if (!Follow()) return result;
    result.gave_unknown = false;
    for (const Value& value : at_place_->given) {
      const auto object = Evaluate(value, *at_place_);
      if (object) result.given.push_back(*object);
      // A counter that goes down is no lock, as a rule.
      result.gave_unknown =
          result.gave_unknown || (!object && (is_go_ || calls_giving_.count(value) != 0));
    }
    result.gave_unknown = result.gave_unknown || at_place_->gave_unknown;
    std::vector<uint64_t>& objects = result.held;
    for (const Value& value : at_place_->held) {
      if (readers_.count(value) != 0 && !WaitsAsReader(value)) continue;
      if (const auto object = Evaluate(value, *at_place_)) objects.push_back(*object);
    }
    return result;
  }

  bool GivesOfOthers() {
    wants_returns_ = true;
    Follow();
    return std::any_of(returns_.begin(), returns_.end(), [&](const auto& each) {
      return each.second.gave_unknown ||
             std::any_of(each.second.given.begin(), each.second.given.end(),
                         [&](const Value& value) { return calls_giving_.count(value) != 0; });
    });
  }

  std::optional<uint64_t> FirstArgument() {
    if (!Follow() || !at_place_->registers[first_input_]) return std::nullopt;
    return Evaluate(*at_place_->registers[first_input_], *at_place_);
  }

  // Of the whole function: what has been done to its first argument by all of its returns.
  LockCall DoesWithFirst() {
    wants_returns_ = true;
    Follow();
    if (was_cut_ || returns_.empty()) return LockCall::kNone;
    const bool takes = std::all_of(returns_.begin(), returns_.end(), [&](const auto& each) {
      return each.second.held.count(ItsFirst()) != 0;
    });
    if (takes) return LockCall::kTakesFirst;
    return changes_first_ ? LockCall::kGivesFirst : LockCall::kNone;
  }

 private:
  Value ItsFirst() const { return {kFirstArgument + first_input_, 0}; }

  // A sync.RWMutex at `object` is taken for reading by counting up a number in it, as others are
  // that are none; and where that does not do, one waits for a semaphore beside it.
  static constexpr int64_t kReadersOfRwMutex = 16;
  static constexpr int64_t kSemaphoreOfReaders = 12;
  bool WaitsAsReader(const Value& object) const {
    return semaphores_.count({object.id, object.offset + kSemaphoreOfReaders}) != 0;
  }
  void CountReader(const Value& number, const std::optional<Value>& by, State* state) {
    const Value object{number.id, number.offset - kReadersOfRwMutex};
    if (by == Value{0, 1}) {
      readers_.insert(object);
      state->held.insert(object);
      return;
    }
    if (by != Value{0, -1} && by != Value{0, 0xffffffff}) return;
    for (const Value& each : {object, number}) {
      if (state->held.erase(each) == 0) state->given.insert(each);
    }
  }

  // Who waits for that semaphore has counted itself, but has not got the object.
  void LeaveOutWaitedFor(const cs_insn& call, uint64_t pc, State* state) const {
    const auto target = TargetOf(call, pc);
    const auto& first = state->registers[first_input_];
    if (!target || !first || lock_call_(*target) != LockCall::kWaitsForSemaphore) return;
    std::erase_if(state->held, [&](const Value& object) {
      return first->id == object.id && first->offset == object.offset + kSemaphoreOfReaders;
    });
  }

  // To the place; false: it is not known what is so there.
  bool Follow() {
    State entry;
    for (size_t i = 0; i < kRegisters; ++i) entry.registers[i] = Value{kFirstArgument + i, 0};
    entry.registers[kStack] = Value{kEntryStack, 0};
    return FollowFrom(entry);
  }

  bool FollowFrom(const State& entry) {
    if (!is_open_ || place_.bytes == 0 || place_.bytes > kMostCode) return false;
    code_.resize(place_.bytes);
    if (!read_(place_.function, code_.data(), code_.size())) return false;
    Reach(place_.function, entry);
    for (size_t visits = 0; !open_.empty(); ++visits) {
      if (visits == kMostVisits) {
        was_cut_ = true;
        return false;
      }
      const uint64_t pc = open_.front();
      open_.pop_front();
      Step(pc);
    }
    return at_place_.has_value();
  }

  const cs_insn* At(uint64_t pc) {
    const auto known = instructions_.find(pc);
    if (known != instructions_.end()) return known->second;
    const uint64_t at = pc - place_.function;
    cs_insn* instruction = nullptr;
    if (at >= code_.size() ||
        cs_disasm(capstone_, code_.data() + at, code_.size() - at, pc, 1, &instruction) != 1)
      instruction = nullptr;
    return instructions_[pc] = instruction;
  }

  bool IsInside(uint64_t pc) const {
    return pc >= place_.function && pc - place_.function < place_.bytes;
  }

  void Reach(uint64_t pc, const State& state) {
    if (!IsInside(pc)) return;
    // Where Go's stack was too small, the function begins once more, with what it was given.
    if (is_go_ && pc == place_.function && states_.count(pc) != 0) return;
    const auto [at, is_new] = states_.emplace(pc, state);
    if (!is_new) {
      State both = Both(at->second, state);
      if (both == at->second) return;
      at->second = std::move(both);
    }
    open_.push_back(pc);
  }

  static bool IsOfStack(const State& state, const Value& value) {
    return value.id == kEntryStack ||
           (state.registers[kStack] && value.id != 0 && value.id == state.registers[kStack]->id);
  }

  std::optional<Value> AddressOf(const x86_op_mem& memory, const State& state,
                                 uint64_t next_pc) const {
    if (memory.segment == X86_REG_FS || memory.segment == X86_REG_GS ||
        memory.index != X86_REG_INVALID)
      return std::nullopt;
    if (memory.base == X86_REG_RIP) return Value{0, static_cast<int64_t>(next_pc) + memory.disp};
    if (memory.base == X86_REG_INVALID) return Value{0, memory.disp};
    const auto number = NumberOf(memory.base);
    if (!number || !state.registers[*number]) return std::nullopt;
    return Value{state.registers[*number]->id, state.registers[*number]->offset + memory.disp};
  }

  // What is not known by another name is known by where it came from.
  static Value Unknown(uint64_t pc, size_t number) {
    return {(pc << 5 | number) + (1ull << 62), 0};
  }

  std::optional<Value> Load(const x86_op_mem& memory, State* state, uint64_t pc, uint64_t next_pc,
                            size_t number) {
    const auto address = AddressOf(memory, *state, next_pc);
    if (address && IsOfStack(*state, *address)) {
      const auto slot = state->slots.find(*address);
      if (slot != state->slots.end()) return slot->second;
      const Value fresh{
          kFirstSlot + static_cast<uint64_t>(address->offset + (1 << 30)) + (address->id << 34), 0};
      state->slots[*address] = fresh;
      return fresh;
    }
    if (address && address->id == 0) {
      uint64_t word = 0;
      if (read_(static_cast<uint64_t>(address->offset), &word, sizeof word))
        return Value{0, static_cast<int64_t>(word)};
    }
    if (address)
      return Value{loads_.emplace(*address, kFirstLoad + loads_.size()).first->second, 0};
    return Unknown(pc, number);
  }

  // The instruction that made it makes another one.
  static void Forget(uint64_t id, State* state) {
    for (auto& value : state->registers) {
      if (value && value->id == id) value.reset();
    }
    std::erase_if(state->slots, [id](const auto& slot) { return slot.second.id == id; });
    std::erase_if(state->held, [id](const Value& value) { return value.id == id; });
  }

  static void SetUnknown(uint64_t pc, size_t number, State* state) {
    const Value value = Unknown(pc, number);
    Forget(value.id, state);
    state->registers[number] = value;
  }

  std::optional<Value> ValueOf(const cs_x86_op& operand, State* state, uint64_t pc,
                               uint64_t next_pc, size_t number) {
    if (operand.type == X86_OP_IMM) return Value{0, operand.imm};
    if (operand.type == X86_OP_REG) {
      const auto from = NumberOf(operand.reg);
      if (!from) return std::nullopt;
      const auto value = state->registers[*from];
      // A part of it is something else, but of a number that fits.
      if (operand.size == kWord || (value && (value->id == 0 || IsAttempt(*value)))) return value;
      return std::nullopt;
    }
    if (operand.type == X86_OP_MEM && operand.size == kWord)
      return Load(operand.mem, state, pc, next_pc, number);
    return operand.type == X86_OP_MEM ? PartOfSlot(operand, *state, next_pc) : std::nullopt;
  }

  // Of what the function keeps on its stack: numbers that fit.
  std::optional<Value> PartOfSlot(const cs_x86_op& operand, const State& state,
                                  uint64_t next_pc) const {
    const auto address = AddressOf(operand.mem, state, next_pc);
    const auto slot = address ? state.slots.find(*address) : state.slots.end();
    if (slot == state.slots.end()) return std::nullopt;
    if (IsAttempt(slot->second)) return slot->second;
    const bool fits = slot->second.id == 0 && slot->second.offset >> (operand.size * 8 - 1) == 0;
    return fits ? std::optional(slot->second) : std::nullopt;
  }

  void Store(const Value& address, std::optional<Value> value, State* state) const {
    if (!IsOfStack(*state, address)) return;
    if (value)
      state->slots[address] = *value;
    else
      state->slots.erase(address);
  }

  std::optional<uint64_t> TargetOf(const cs_insn& instruction, uint64_t pc) const {
    const cs_x86_op& operand = instruction.detail->x86.operands[0];
    if (operand.type == X86_OP_IMM) return BehindStub(static_cast<uint64_t>(operand.imm), read_);
    if (operand.type != X86_OP_MEM || operand.mem.base != X86_REG_RIP) return std::nullopt;
    const CallTarget called = TargetOfCall(pc + instruction.size, read_);
    return called.address != 0 ? std::optional(called.address) : std::nullopt;
  }

  // Of Go: the code of a closure that the function has made on its stack, as each `defer` does, and
  // calls itself.
  std::optional<uint64_t> OwnClosure(const cs_insn& instruction, const State& state) const {
    const cs_x86_op& operand = instruction.detail->x86.operands[0];
    const auto number = operand.type == X86_OP_REG ? NumberOf(operand.reg) : std::nullopt;
    const auto& closure = state.registers[kClosure];
    if (!is_go_ || !number || !state.registers[*number] || !closure || !IsOfStack(state, *closure))
      return std::nullopt;
    const Value& code = *state.registers[*number];
    return code.id == 0 && code.offset > 0 ? std::optional(static_cast<uint64_t>(code.offset))
                                           : std::nullopt;
  }

  // What that does with what it has from the function is done here.
  void FollowClosure(uint64_t code, State* state) {
    const CallPlace place{code, kMostOfCalled, 0, 0, {}, CallConvention::kGo};
    Follower closure(place, read_, lock_call_, by_code_);
    closure.wants_returns_ = true;
    closure.depth_ = depth_ + 1;
    closure.loads_ = loads_;
    State entry = *state;
    for (size_t i = 0; i < kRegisters; ++i) {
      if (i != kClosure) entry.registers[i] = Unknown(code, i);
    }
    entry.registers[kStack] = Value{kFirstClosureStack + static_cast<uint64_t>(depth_), 0};
    entry.zero_flag.reset();
    if (depth_ < kDeepestClosure) closure.FollowFrom(entry);
    if (closure.was_cut_ || closure.returns_.empty()) {
      state->held.clear();
      state->gave_unknown = true;
      return;
    }
    State end = closure.returns_.begin()->second;
    for (const auto& [pc, each] : closure.returns_) end = Both(end, each);
    std::erase_if(state->slots, [&](const auto& slot) {
      const auto left = end.slots.find(slot.first);
      return left == end.slots.end() || left->second != slot.second;
    });
    state->held = std::move(end.held);
    state->given = std::move(end.given);
    state->gave_unknown = end.gave_unknown;
    loads_ = std::move(closure.loads_);
    readers_.merge(closure.readers_);
    semaphores_.merge(closure.semaphores_);
    calls_giving_.merge(closure.calls_giving_);
  }

  void Call(const cs_insn& instruction, uint64_t pc, State* state) {
    if (const auto closure = OwnClosure(instruction, *state)) {
      FollowClosure(*closure, state);
      return AfterCall(pc, state);
    }
    const auto target = TargetOf(instruction, pc);
    const auto first = state->registers[first_input_];
    const auto second = state->registers[second_input_];
    const LockCall call = target ? lock_call_(*target) : LockCall::kNone;
    // A method of an interface, or a function that was handed in: it may give back anything.
    if (is_go_ && !target) state->gave_unknown = true;
    if (is_go_ && call == LockCall::kNone) {
      GiveToCalled(first, state);
      GiveToCalled(second, state);
    }
    if (call == LockCall::kNone && target && is_go_ && by_code_ &&
        by_code_(*target) == LockCall::kGivesAny) {
      state->held.clear();
      state->gave_unknown = true;
    } else if (call == LockCall::kNone && target && first && !IsOfStack(*state, *first)) {
      CallUnnamed(*target, *first, state);
    }
    switch (call) {
      case LockCall::kTakesFirst:
        if (first) state->held.insert(*first);
        break;
      case LockCall::kTakesSecond:
        if (second) state->held.insert(*second);
        break;
      case LockCall::kGivesFirst:
        GiveFirst(first, state);
        break;
      case LockCall::kGivesAny:
        state->held.clear();
        state->gave_unknown = true;
        break;
      case LockCall::kGaveFirst:
        if (first) calls_giving_.insert(*first);
        break;
      case LockCall::kWaitsForSemaphore:
        if (first) semaphores_.insert(*first);
        break;
      case LockCall::kNone:
        break;
    }
    AfterCall(pc, state);
  }

  void AfterCall(uint64_t pc, State* state) const {
    for (size_t number = 0; number < kRegisters; ++number) {
      if (!IsKept(number)) SetUnknown(pc, number, state);
    }
  }

  // Likewise, of a function that may give back what it has not taken.
  void GiveToWhoHas(const std::optional<Value>& function, State* state) const {
    if (!function || function->id != 0 || !by_code_ ||
        by_code_(static_cast<uint64_t>(function->offset)) != LockCall::kGivesAny)
      return;
    state->held.clear();
    state->gave_unknown = true;
  }
  // As an argument, a closure that needs nothing of the function is a constant.
  void GiveToCalled(const std::optional<Value>& argument, State* state) const {
    uint64_t function = 0;
    if (argument && argument->id == 0 && argument->offset > 0 &&
        read_(static_cast<uint64_t>(argument->offset), &function, sizeof function))
      GiveToWhoHas(Value{0, static_cast<int64_t>(function)}, state);
  }

  // The address of a function that gives something back, without being called here: somebody else
  // may call it. That of a closure, which a `defer` makes, too, is none of these.
  void GiveToWhoCalls(uint64_t function, State* state) const {
    if (lock_call_(function) != LockCall::kGivesAny) return;
    state->held.clear();
    state->gave_unknown = true;
  }

  void GiveFirst(const std::optional<Value>& first, State* state) {
    if (first && state->held.erase(*first) != 0) return;
    if (!is_go_) state->held.clear();
    if (!first) {
      state->held.clear();
      state->gave_unknown = true;
      return;
    }
    state->given.insert(*first);
    calls_giving_.insert(*first);
  }

  // What its name does not tell, its code may.
  void CallUnnamed(uint64_t target, const Value& first, State* state) {
    switch (by_code_ ? by_code_(target) : LockCall::kNone) {
      case LockCall::kTakesFirst:
        state->held.insert(first);
        break;
      case LockCall::kGivesFirst:
        state->held.erase(first);
        changes_first_ = changes_first_ || first == ItsFirst();
        break;
      default:
        break;
    }
  }

  // A lock that the code takes and gives back itself, as Rust's does: it compares with 0 and
  // exchanges to take it, or exchanges and looks whether that was 0; it exchanges or subtracts to
  // give it back. The register that has the old word then; nothing: it gives, or does neither.
  std::optional<size_t> Exchange(const cs_insn& instruction, uint64_t next_pc, State* state) {
    constexpr size_t kCompared = 0;  // rax
    const cs_x86& x86 = instruction.detail->x86;
    const bool compares = instruction.id == X86_INS_CMPXCHG;
    std::optional<Value> address;
    std::optional<size_t> other;
    for (int i = 0; i < x86.op_count; ++i) {
      if (x86.operands[i].type == X86_OP_MEM)
        address = AddressOf(x86.operands[i].mem, *state, next_pc);
      else if (x86.operands[i].type == X86_OP_REG)
        other = NumberOf(x86.operands[i].reg);
    }
    if (!address) return std::nullopt;
    if (is_go_ && instruction.id == X86_INS_XADD)
      CountReader(*address, other ? state->registers[*other] : std::nullopt, state);
    changes_first_ = changes_first_ || *address == ItsFirst();
    state->held.erase(*address);
    if (compares) {
      if (state->registers[kCompared] != Value{}) return std::nullopt;
      state->zero_flag = AttemptAt(*address, Attempt::kWasFree);
      attempted_ = *address;
      return kCompared;
    }
    const auto stored = other ? state->registers[*other] : std::nullopt;
    const bool takes =
        instruction.id == X86_INS_XCHG && stored && stored->id == 0 && stored->offset != 0;
    if (!takes) return std::nullopt;
    attempted_ = *address;
    return other;
  }

  Value AttemptAt(const Value& address, Attempt what) {
    const uint64_t word = attempts_.emplace(address, attempts_.size()).first->second;
    return {kFirstAttempt + word * kAttempts + static_cast<uint64_t>(what), 0};
  }

  // "kWasFree" of "kWasTaken", and the other way round.
  static Value Opposite(Value value) {
    const bool was_free =
        (value.id - kFirstAttempt) % kAttempts == static_cast<uint64_t>(Attempt::kWasFree);
    value.id += was_free ? 1 : -1;
    return value;
  }

  // Where what is compared with 0 is of an attempt, the zero flag tells how that went.
  void CompareWithZero(std::optional<Value> value, State* state) const {
    state->zero_flag.reset();
    if (!value || !IsAttempt(*value)) return;
    const bool is_word =
        (value->id - kFirstAttempt) % kAttempts == static_cast<uint64_t>(Attempt::kOldWord);
    state->zero_flag = is_word ? Value{value->id + 1, 0} : Opposite(*value);
  }

  // What is so where it jumps, and where it does not.
  void Branch(const cs_insn& instruction, State* jumps, State* goes_on) const {
    if (!jumps->zero_flag) return;
    const uint64_t attempt = jumps->zero_flag->id - kFirstAttempt;
    const auto word = std::find_if(attempts_.begin(), attempts_.end(), [&](const auto& each) {
      return each.second == attempt / kAttempts;
    });
    if (word == attempts_.end()) return;
    const bool zero_is_free = attempt % kAttempts == static_cast<uint64_t>(Attempt::kWasFree);
    if (instruction.id == X86_INS_JE) (zero_is_free ? jumps : goes_on)->held.insert(word->first);
    if (instruction.id == X86_INS_JNE) (zero_is_free ? goes_on : jumps)->held.insert(word->first);
  }

  void Return(uint64_t pc, const State& state) { returns_[pc] = state; }

  void Step(uint64_t pc) {
    const cs_insn* const instruction = At(pc);
    if (instruction == nullptr) return;
    State state = states_.at(pc);
    const uint64_t next_pc = pc + instruction->size;
    const bool is_call = instruction->id == X86_INS_CALL;
    if (is_call && next_pc == place_.back) {
      at_place_ = state;
      if (is_go_) LeaveOutWaitedFor(*instruction, pc, &*at_place_);
    }
    const cs_x86& x86 = instruction->detail->x86;
    if (instruction->id == X86_INS_RET) return Return(pc, state);
    if (instruction->id == X86_INS_UD2 || instruction->id == X86_INS_HLT) return;
    if (instruction->id == X86_INS_JMP) {
      if (x86.operands[0].type != X86_OP_IMM) return Return(pc, state);
      const auto target = static_cast<uint64_t>(x86.operands[0].imm);
      if (IsInside(target)) return Reach(target, state);
      if (wants_returns_) Call(*instruction, pc, &state);  // and returns from there
      return Return(pc, state);
    }
    const bool jumps = cs_insn_group(capstone_, instruction, X86_GRP_JUMP);
    if (is_call)
      Call(*instruction, pc, &state);
    else if (!jumps)
      Apply(*instruction, pc, next_pc, &state);
    State there = state;
    if (jumps) Branch(*instruction, &there, &state);
    if (jumps && x86.operands[0].type == X86_OP_IMM)
      Reach(static_cast<uint64_t>(x86.operands[0].imm), there);
    Reach(next_pc, state);
  }

  void Apply(const cs_insn& instruction, uint64_t pc, uint64_t next_pc, State* state) {
    const cs_x86& x86 = instruction.detail->x86;
    const cs_x86_op* const to = x86.op_count > 0 ? &x86.operands[0] : nullptr;
    const cs_x86_op* const from = x86.op_count > 1 ? &x86.operands[1] : nullptr;
    if (Compare(instruction, pc, next_pc, state)) return;
    if (x86.prefix[0] == X86_PREFIX_LOCK || instruction.id == X86_INS_XCHG) {
      const auto old_word = Exchange(instruction, next_pc, state);
      SetWritten(instruction, pc, next_pc, state);
      if (old_word) state->registers[*old_word] = AttemptAt(attempted_, Attempt::kOldWord);
      return;
    }
    auto& stack = state->registers[kStack];
    switch (instruction.id) {
      case X86_INS_PUSH: {
        const auto value = ValueOf(*to, state, pc, next_pc, kRegisters);
        if (!stack) return;
        stack->offset -= kWord;
        return Store(*stack, value, state);
      }
      case X86_INS_POP: {
        if (!stack || to->type != X86_OP_REG || !NumberOf(to->reg)) break;
        const auto slot = state->slots.find(*stack);
        const auto value = slot == state->slots.end() ? std::nullopt : std::optional(slot->second);
        stack->offset += kWord;
        state->registers[*NumberOf(to->reg)] = value;
        return;
      }
      case X86_INS_LEAVE: {
        const auto frame = state->registers[kFrame];
        if (!frame) break;
        const auto slot = state->slots.find(*frame);
        state->registers[kFrame] =
            slot == state->slots.end() ? std::nullopt : std::optional(slot->second);
        stack = Value{frame->id, frame->offset + static_cast<int64_t>(kWord)};
        return;
      }
      case X86_INS_MOV:
      case X86_INS_MOVABS: {
        if (to->type == X86_OP_MEM) {
          const auto address = AddressOf(to->mem, *state, next_pc);
          if (!address) return;
          if (from->type == X86_OP_IMM && from->imm == 0) state->held.erase(*address);
          // Of a closure that outlives the function, or that somebody else is given.
          if (is_go_ && from->type == X86_OP_REG && !IsOfStack(*state, *address) &&
              NumberOf(from->reg))
            GiveToWhoHas(state->registers[*NumberOf(from->reg)], state);
          changes_first_ = changes_first_ || *address == ItsFirst();
          return Store(*address, ValueOf(*from, state, pc, next_pc, kRegisters), state);
        }
        const auto number = to->type == X86_OP_REG ? NumberOf(to->reg) : std::nullopt;
        if (!number) return;
        const auto value = ValueOf(*from, state, pc, next_pc, *number);
        if (!value || value->id == Unknown(pc, *number).id) break;
        state->registers[*number] = value;
        return;
      }
      case X86_INS_LEA: {
        const auto number = NumberOf(to->reg);
        const auto address = AddressOf(from->mem, *state, next_pc);
        if (!number || !address || to->size != kWord) break;
        state->registers[*number] = address;
        if (is_go_ && address->id == 0)
          GiveToWhoCalls(static_cast<uint64_t>(address->offset), state);
        return;
      }
      case X86_INS_ADD:
      case X86_INS_SUB: {
        const auto number = to->type == X86_OP_REG ? NumberOf(to->reg) : std::nullopt;
        if (!number || from->type != X86_OP_IMM || to->size != kWord || !state->registers[*number])
          break;
        const int64_t by = instruction.id == X86_INS_ADD ? from->imm : -from->imm;
        state->registers[*number]->offset += by;
        return;
      }
      case X86_INS_XOR: {
        const auto number = to->type == X86_OP_REG ? NumberOf(to->reg) : std::nullopt;
        if (!number || from->type != X86_OP_REG || from->reg != to->reg) break;
        state->registers[*number] = Value{};
        return;
      }
      default:
        break;
    }
    SetWritten(instruction, pc, next_pc, state);
  }

  // What tests a number, or keeps what the test said.
  bool Compare(const cs_insn& instruction, uint64_t pc, uint64_t next_pc, State* state) {
    const cs_x86& x86 = instruction.detail->x86;
    const cs_x86_op* const operands = x86.operands;
    switch (instruction.id) {
      case X86_INS_TEST:
        if (operands[0].type != X86_OP_REG || operands[1].type != X86_OP_REG ||
            operands[1].reg != operands[0].reg)
          break;
        CompareWithZero(ValueOf(operands[0], state, pc, next_pc, kRegisters), state);
        return true;
      case X86_INS_CMP:
        if (operands[1].type != X86_OP_IMM || operands[1].imm != 0) break;
        CompareWithZero(ValueOf(operands[0], state, pc, next_pc, kRegisters), state);
        return true;
      case X86_INS_SETE:
      case X86_INS_SETNE: {
        if (!state->zero_flag || operands[0].type != X86_OP_REG) return false;
        const bool is_same = instruction.id == X86_INS_SETE;
        if (const auto number = NumberOf(operands[0].reg))
          state->registers[*number] = is_same ? *state->zero_flag : Opposite(*state->zero_flag);
        return true;
      }
      case X86_INS_MOVZX: {
        const auto number = NumberOf(operands[0].reg);
        const auto value = ValueOf(operands[1], state, pc, next_pc, kRegisters);
        if (!number || !value || !IsAttempt(*value)) return false;
        state->registers[*number] = value;
        return true;
      }
      case X86_INS_MOV:
      case X86_INS_LEA:
      case X86_INS_PUSH:
      case X86_INS_POP:
      case X86_INS_NOP:
        return false;
      default:
        break;
    }
    state->zero_flag.reset();
    return false;
  }

  // Registers and words of the stack that it makes something unknown.
  void SetWritten(const cs_insn& instruction, uint64_t pc, uint64_t next_pc, State* state) {
    const cs_x86& x86 = instruction.detail->x86;
    const cs_x86_op* const to = x86.op_count > 0 ? &x86.operands[0] : nullptr;
    cs_regs read = {};
    cs_regs written = {};
    uint8_t reads = 0;
    uint8_t writes = 0;
    if (cs_regs_access(capstone_, &instruction, read, &reads, written, &writes) != CS_ERR_OK) {
      for (auto& value : state->registers) value.reset();
      return;
    }
    for (uint8_t i = 0; i < writes; ++i) {
      if (const auto number = NumberOf(written[i])) SetUnknown(pc, *number, state);
    }
    if (to != nullptr && to->type == X86_OP_MEM && (to->access & CS_AC_WRITE) != 0) {
      if (const auto address = AddressOf(to->mem, *state, next_pc))
        Store(*address, std::nullopt, state);
    }
  }

  // What it is now, of what stands in registers and on the stack at the place.
  std::optional<uint64_t> Evaluate(const Value& value, const State& state, int depth = 0) const {
    if (value.id == 0) return static_cast<uint64_t>(value.offset);
    for (size_t i = 0; i < kRegisters; ++i) {
      const auto actual = i == kStack ? std::optional(place_.stack_pointer) : place_.registers[i];
      if (state.registers[i] && state.registers[i]->id == value.id && actual && IsKept(i))
        return *actual + static_cast<uint64_t>(value.offset - state.registers[i]->offset);
    }
    const auto& stack = state.registers[kStack];
    if (!stack) return std::nullopt;
    for (const auto& [address, held] : state.slots) {
      if (held.id != value.id || address.id != stack->id) continue;
      uint64_t word = 0;
      if (read_(place_.stack_pointer + static_cast<uint64_t>(address.offset - stack->offset), &word,
                sizeof word))
        return word + static_cast<uint64_t>(value.offset - held.offset);
    }
    const auto load = std::find_if(loads_.begin(), loads_.end(),
                                   [&](const auto& each) { return each.second == value.id; });
    const auto address = load != loads_.end() && depth < kMostLoads
                             ? Evaluate(load->first, state, depth + 1)
                             : std::nullopt;
    uint64_t word = 0;
    if (!address || !read_(*address, &word, sizeof word)) return std::nullopt;
    return word + static_cast<uint64_t>(value.offset);
  }

  // Those that a call leaves as they were.
  bool IsKept(size_t number) const {
    return number == kFrame || number == kStack || (!is_go_ && (number == kSaved || number >= 12));
  }

  const CallPlace& place_;
  const bool is_go_;
  const size_t first_input_;  // the registers of a call's first two arguments
  const size_t second_input_;
  const ReadMemory& read_;
  const LockCallOfTarget& lock_call_;
  const LockCallOfTarget& by_code_;
  int depth_ = 0;               // of closures, one called by the other
  bool wants_returns_ = false;  // not a place, but all ways to its ends
  bool was_cut_ = false;        // not all ways have been followed
  bool changes_first_ = false;  // it stores to the word that its first argument points to
  csh capstone_ = 0;
  bool is_open_ = false;
  std::vector<uint8_t> code_;
  std::map<uint64_t, cs_insn*> instructions_;
  std::map<uint64_t, State> states_;    // before each instruction
  std::map<Value, uint64_t> loads_;     // what was read from memory: by address
  std::map<Value, uint64_t> attempts_;  // words that were exchanged, numbered
  Value attempted_;                     // the last of them
  std::set<Value> readers_;             // of Go: what may have been taken for reading
  std::set<Value> semaphores_;          // that are waited for somewhere in the function
  std::set<Value> calls_giving_;        // what calls have given back that was not taken here
  std::map<uint64_t, State> returns_;
  std::deque<uint64_t> open_;
  std::optional<State> at_place_;
};

#endif

}  // namespace

LockCall LockCallOf(std::string_view function) {
  // Of Go, whose way in is a part of the caller's code, as is the whole of the way out.
  if (function == "sync.runtime_SemacquireMutex" || function == "sync.runtime_SemacquireRWMutexR")
    return LockCall::kWaitsForSemaphore;
  if (function.starts_with("sync.(*Mutex).") || function.starts_with("sync.(*RWMutex).")) {
    const std::string_view method = function.substr(function.find(").") + 2);
    if (IsOneOf(method, {"Lock", "lockSlow", "RLock"})) return LockCall::kTakesFirst;
    if (IsOneOf(method, {"unlockSlow", "rUnlockSlow"})) return LockCall::kGaveFirst;
    // A function made of it, which whoever has it may call.
    if (IsOneOf(method, {"Unlock-fm", "RUnlock-fm"})) return LockCall::kGivesAny;
    return IsOneOf(method, {"Unlock", "RUnlock"}) ? LockCall::kGivesFirst : LockCall::kNone;
  }
  std::string_view name = NameAlone(function);
  while (name.starts_with('_') && !name.starts_with("_Z")) name.remove_prefix(1);
  if (IsOneOf(name,
              {"pthread_mutex_lock", "pthread_rwlock_rdlock", "pthread_rwlock_wrlock",
               "pthread_spin_lock", "sem_wait", "mtx_lock", "g_mutex_lock", "g_rec_mutex_lock",
               "g_rw_lock_reader_lock", "g_rw_lock_writer_lock", "omp_set_lock",
               "omp_set_nest_lock", "gthread_mutex_lock", "cxa_guard_acquire"}))
    return LockCall::kTakesFirst;
  if (IsOneOf(name,
              {"pthread_mutex_unlock", "pthread_rwlock_unlock", "pthread_spin_unlock", "sem_post",
               "mtx_unlock", "g_mutex_unlock", "g_rec_mutex_unlock", "g_rw_lock_reader_unlock",
               "g_rw_lock_writer_unlock", "omp_unset_lock", "omp_unset_nest_lock",
               "gthread_mutex_unlock", "cxa_guard_release", "cxa_guard_abort"}))
    return LockCall::kGivesFirst;
  const std::string_view last = LastPart(name);
  if (last.size() == name.size())
    return name.find("unlock") != std::string_view::npos ? LockCall::kGivesAny : LockCall::kNone;
  std::string_view of = LastPart(name.substr(0, name.size() - last.size() - 2));
  of = of.substr(0, of.find('<'));
  const bool is_lock = of.find("utex") != std::string_view::npos ||
                       of.find("Lock") != std::string_view::npos || of.ends_with("_lock");
  for (const std::string_view guard : {"lock_guard", "unique_lock", "shared_lock"}) {
    if (of.starts_with(guard) && last.starts_with(guard)) return LockCall::kTakesSecond;
  }
  const bool is_guard = function.find("uard") != std::string_view::npos ||
                        function.find("ock") != std::string_view::npos;
  if (is_guard &&
      (last.starts_with('~') || name.find("drop") != std::string_view::npos || last == "release"))
    return LockCall::kGivesAny;
  if (last.find("nlock") != std::string_view::npos)
    return is_lock && !of.ends_with("_lock") ? LockCall::kGivesFirst : LockCall::kGivesAny;
  if (is_lock && !of.ends_with("_lock") &&
      IsOneOf(last, {"lock", "lock_shared", "Lock", "ReaderLock", "lockForRead", "lockForWrite",
                     "lock_contended", "read_contended", "write_contended", "lock_slow",
                     "lock_shared_slow", "lock_exclusive_slow"}))
    return LockCall::kTakesFirst;
  return LockCall::kNone;
}

LockCall LockCallByCode(uint64_t function, uint64_t bytes, const ReadMemory& read,
                        const LockCallOfTarget& lock_call, const LockCallOfTarget& by_code) {
#if HANGSCOPE_FOLLOWS_CODE
  if (bytes > kMostOfCalled) return LockCall::kNone;
  const CallPlace place{function, bytes, 0, 0, {}};
  return Follower(place, read, lock_call, by_code).DoesWithFirst();
#else
  (void)function, (void)bytes, (void)read, (void)lock_call, (void)by_code;
  return LockCall::kNone;
#endif
}

HeldObjectsAt HeldObjects(const CallPlace& place, const ReadMemory& read,
                          const LockCallOfTarget& lock_call, const LockCallOfTarget& by_code) {
#if HANGSCOPE_FOLLOWS_CODE
  return Follower(place, read, lock_call, by_code).Held();
#else
  (void)place, (void)read, (void)lock_call, (void)by_code;
  return {};
#endif
}

LockCall GivesOfOthersInGo(uint64_t function, uint64_t bytes, const ReadMemory& read,
                           const LockCallOfTarget& lock_call, const LockCallOfTarget& by_code) {
#if HANGSCOPE_FOLLOWS_CODE
  CallPlace place{function, bytes, 0, 0, {}};
  place.convention = CallConvention::kGo;
  return Follower(place, read, lock_call, by_code).GivesOfOthers() ? LockCall::kGivesAny
                                                                   : LockCall::kNone;
#else
  (void)function, (void)bytes, (void)read, (void)lock_call, (void)by_code;
  return LockCall::kNone;
#endif
}

void HeldByCalls::Add(const HeldObjectsAt& call) {
  for (const uint64_t object : call.held) {
    const bool is_given =
        gave_unknown_ || std::find(given_.begin(), given_.end(), object) != given_.end();
    if (!is_given) objects_.push_back(object);
  }
  given_.insert(given_.end(), call.given.begin(), call.given.end());
  gave_unknown_ = gave_unknown_ || call.gave_unknown;
}

std::optional<uint64_t> FirstArgument(const CallPlace& place, const ReadMemory& read) {
#if HANGSCOPE_FOLLOWS_CODE
  const LockCallOfTarget none = [](uint64_t) { return LockCall::kNone; };
  return Follower(place, read, none, none).FirstArgument();
#else
  (void)place, (void)read;
  return std::nullopt;
#endif
}

}  // namespace hangscope
