#include "stream/loop_body.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "base/hash.h"
#include "code/riscv.h"

namespace hangscope {
namespace {

using riscv::Insn;
using riscv::Op;

constexpr int kMostRounds = 4;          // a state may need a round or two to settle
constexpr size_t kMostInsns = 200'000;  // a round longer than this is not examined
constexpr size_t kLongestBodyBlock = 600;

// A value: unknown `base` plus a known `offset`; base 0 is the number `offset`.
// Equal symbols are equal values; unequal ones may be.
struct Symbol {
  uint64_t base = 0;
  int64_t offset = 0;

  bool is_number() const { return base == 0; }
  auto operator<=>(const Symbol&) const = default;
};

uint64_t Mix(uint64_t hash, const Symbol& symbol) {
  return HashWord(static_cast<uint64_t>(symbol.offset), HashWord(symbol.base, hash));
}

class Machine {
 public:
  Machine(CodeSource& code, LoopBody* findings)
      : code_(code), xlen_(code.xlen()), findings_(findings) {
    for (size_t i = 1; i < registers_.size(); ++i) registers_[i] = {Fresh(i), 0};
  }

  // Executes what came before the loop, as far as its end is understood.
  void LeadIn(std::span<const Step> steps, uint64_t entry) {
    for (size_t i = 0; i < steps.size(); ++i) {
      executed_ = 0;
      if (Block(steps[i], i + 1 < steps.size() ? steps[i + 1].pc : entry)) continue;
      Forget();  // a hole: nothing before it counts
    }
    findings_->reads_time = false;
    executed_ = 0;
  }

  void ForgetPolls() {
    unknown_poll_ = false;
    findings_->polls.clear();
  }

  // Executes one round; false if some of its code is not known.
  bool Round(std::span<const Step> round) {
    for (size_t i = 0; i < round.size(); ++i) {
      if (!Block(round[i], round[(i + 1) % round.size()].pc)) return false;
    }
    return true;
  }

  bool SameStateAs(const Machine& other) const {
    return registers_ == other.registers_ && memory_ == other.memory_ && csrs_ == other.csrs_;
  }

 private:
  struct Address {
    Symbol at;
    uint8_t width = 0;
    auto operator<=>(const Address&) const = default;
  };
  // Operations for which doing them again changes nothing: x|y|y = x|y.
  struct Idempotent {
    uint32_t funct = 0;
    Symbol with;
    bool operator==(const Idempotent&) const = default;
  };

  void Forget() {
    memory_.clear();
    csrs_.clear();
    for (size_t i = 1; i < registers_.size(); ++i) registers_[i] = {Fresh(100 * ++moments_ + i), 0};
  }

  static uint64_t Fresh(uint64_t number) { return HashWord(number, 0x5eed) | 1; }

  // From one step to the next: one instruction, or a block of them.
  bool Block(const Step& step, uint64_t next) {
    uint64_t pc = step.pc;
    for (size_t count = 0; count < kLongestBodyBlock; ++count) {
      const auto bits = code_.InsnAt(pc);
      if (!bits || ++executed_ > kMostInsns) return false;
      const Insn insn = riscv::Decode(*bits, xlen_);
      if (!Execute(insn, pc)) return false;
      pc += insn.length;
      if (insn.ends_run()) return true;
      if (step.starts_block ? insn.ends_block() : pc == next) return true;
      // A block also ends where its page does.
      if (pc == next && (pc ^ step.pc) >> 12 != 0) return true;
      if (!step.starts_block) return false;  // a lone instruction that led elsewhere: a trap
    }
    return false;
  }

  Symbol Get(uint8_t reg) const { return registers_[reg]; }
  void Set(uint8_t reg, Symbol value) {
    if (reg == 0) return;
    if (value.is_number() && xlen_ == 32) value.offset = static_cast<int32_t>(value.offset);
    registers_[reg] = value;
  }
  static Symbol Plus(Symbol value, int64_t number) {
    value.offset =
        static_cast<int64_t>(static_cast<uint64_t>(value.offset) + static_cast<uint64_t>(number));
    return value;
  }
  static Symbol Minus(Symbol value, int64_t number) {
    value.offset =
        static_cast<int64_t>(static_cast<uint64_t>(value.offset) - static_cast<uint64_t>(number));
    return value;
  }

  bool Execute(const Insn& insn, uint64_t pc) {
    const auto signed_pc = static_cast<int64_t>(pc);
    switch (insn.op) {
      case Op::kLui:
        Set(insn.rd, {0, insn.imm});
        return true;
      case Op::kAuipc:
        Set(insn.rd, Plus({0, signed_pc}, insn.imm));
        return true;
      case Op::kJal:
      case Op::kJalr:
        Set(insn.rd, Plus({0, signed_pc}, insn.length));
        return true;
      case Op::kBranch:
      case Op::kFence:
      case Op::kFenceI:
      case Op::kWfi:
        return true;
      case Op::kLoad:
        Set(insn.rd, Load(Plus(Get(insn.rs1), insn.imm), insn));
        return true;
      case Op::kStore:
        Store(Plus(Get(insn.rs1), insn.imm), insn.width, Get(insn.rs2));
        return true;
      case Op::kAluImm:
        Set(insn.rd, Alu(insn.funct, Get(insn.rs1), {0, insn.imm}));
        return true;
      case Op::kAlu:
        Set(insn.rd, Alu(insn.funct, Get(insn.rs1), Get(insn.rs2)));
        return true;
      case Op::kAmo:
        Amo(insn);
        return true;
      case Op::kLoadReserved:
        Set(insn.rd, Load(Get(insn.rs1), insn));
        return true;
      case Op::kStoreConditional: {
        const Symbol at = Get(insn.rs1);
        const Symbol value = Get(insn.rs2);
        Store(at, insn.width, value);
        Set(insn.rd, {Mix(Mix(HashWord(3), at), value) | 1, 0});
        return true;
      }
      case Op::kCsr:
        Csr(insn);
        return true;
      case Op::kFloat:
        Set(insn.rd,
            {Mix(Mix(Mix(HashWord(insn.funct, 4), Get(insn.rs1)), Get(insn.rs2)), Get(insn.rs3)) |
                 1,
             0});
        return true;
      case Op::kTrap:
      case Op::kReturnFromTrap:
      case Op::kUnknown:
        return false;
    }
    return false;
  }

  // The CLINT's mtime on the machines our users run (QEMU virt, Spike, SiFive).
  static bool IsClock(const Symbol& at) {
    return at.is_number() && (at.offset & ~int64_t{7}) == 0x0200bff8;
  }

  Symbol Load(Symbol at, const Insn& insn) {
    if (IsClock(at)) return Time();
    const auto known = memory_.find({at, insn.width});
    if (known != memory_.end()) return known->second;
    Poll(at);
    return {Mix(HashWord(insn.width, 5 + insn.funct), at) | 1, 0};
  }
  void Store(Symbol at, uint8_t width, Symbol value) {
    // Other widths at the same address are not what they were.
    for (const uint8_t other : {uint8_t{1}, uint8_t{2}, uint8_t{4}, uint8_t{8}}) {
      if (other != width) memory_.erase({at, other});
    }
    memory_[{at, width}] = value;
  }

  Symbol Time() {
    findings_->reads_time = true;
    return {Fresh(1'000'000 + ++moments_), 0};
  }

  uint64_t Number(const Symbol& symbol) const {
    return xlen_ == 32 ? static_cast<uint32_t>(symbol.offset)
                       : static_cast<uint64_t>(symbol.offset);
  }

  void Poll(const Symbol& at) {
    constexpr uint8_t kStackPointer = 2;
    if (!at.is_number() && at.base == Get(kStackPointer).base) return;  // its own stack
    if (!at.is_number()) {
      unknown_poll_ = true;
      return;
    }
    auto& polls = findings_->polls;
    const uint64_t address = Number(at);
    if (std::find(polls.begin(), polls.end(), address) == polls.end()) polls.push_back(address);
  }

  void Amo(const Insn& insn) {
    constexpr uint32_t kAmoAdd = 0;
    constexpr uint32_t kAmoSwap = 1;
    const Symbol at = Get(insn.rs1);
    const Symbol operand = Get(insn.rs2);
    const Symbol old = Load(at, insn);
    Symbol fresh = operand;
    if (insn.funct == kAmoAdd)
      fresh = Alu(riscv::kAdd, old, operand);
    else if (insn.funct != kAmoSwap)
      fresh = Repeatable(1024 + insn.funct, old, operand);
    Store(at, insn.width, fresh);
    Set(insn.rd, old);
  }

  void Csr(const Insn& insn) {
    const auto number = static_cast<uint32_t>(insn.imm);
    // cycle, time, instret, their upper halves and the machine's own counters.
    const bool clock = (number >= 0xc00 && number <= 0xc9f) || (number >= 0xb00 && number <= 0xb9f);
    const auto known = csrs_.find(number);
    const Symbol old = clock                  ? Time()
                       : known != csrs_.end() ? known->second
                                              : Symbol{HashWord(number, 6) | 1, 0};
    const uint32_t funct3 = insn.funct & 7;
    const uint32_t source = insn.funct >> 3;  // a register number or a constant
    const bool writes = (funct3 & 3) == 1 || source != 0;
    if (writes && !clock) {
      const Symbol operand = funct3 >= 4 ? Symbol{0, source} : Get(insn.rs1);
      csrs_[number] = (funct3 & 3) == 1 ? operand : Repeatable(2048 + (funct3 & 3), old, operand);
    }
    Set(insn.rd, old);
  }

  // f(f(x, y), y) = f(x, y): or, and, min, max, set bits, clear bits.
  Symbol Repeatable(uint32_t funct, Symbol x, Symbol y) {
    const auto before = repeatable_.find(x.base);
    if (x.offset == 0 && before != repeatable_.end() && before->second == Idempotent{funct, y})
      return x;
    const Symbol result{Mix(Mix(HashWord(funct, 7), x), y) | 1, 0};
    repeatable_[result.base] = {funct, y};
    return result;
  }

  Symbol Alu(uint32_t funct, Symbol x, Symbol y) {
    const bool word = (funct & riscv::kWordBit) != 0;
    const uint32_t plain = funct & ~uint32_t{riscv::kWordBit};
    if (x.is_number() && y.is_number()) {
      Symbol number;
      if (Fold(plain, x.offset, y.offset, word, &number.offset)) return number;
    }
    if (!word) {
      if (plain == riscv::kAdd && y.is_number()) return Plus(x, y.offset);
      if (plain == riscv::kAdd && x.is_number()) return Plus(y, x.offset);
      if (plain == riscv::kSub && y.is_number()) return Minus(x, y.offset);
      if (plain == riscv::kOr || plain == riscv::kAnd) return Repeatable(plain, x, y);
    } else if (plain == riscv::kAdd && y.is_number() && y.offset == 0) {
      return Repeatable(funct, x, y);  // sext.w
    }
    return {Mix(Mix(HashWord(funct, 8), x), y) | 1, 0};
  }

  bool Fold(uint32_t funct, int64_t x, int64_t y, bool word, int64_t* result) const {
    const bool narrow = word || xlen_ == 32;
    const auto ux = narrow ? uint64_t{static_cast<uint32_t>(x)} : static_cast<uint64_t>(x);
    const auto uy = narrow ? uint64_t{static_cast<uint32_t>(y)} : static_cast<uint64_t>(y);
    const uint64_t shift = uy & (narrow ? 31 : 63);
    uint64_t value = 0;
    switch (funct) {
      case riscv::kAdd:
        value = ux + uy;
        break;
      case riscv::kSub:
        value = ux - uy;
        break;
      case riscv::kAnd:
        value = ux & uy;
        break;
      case riscv::kOr:
        value = ux | uy;
        break;
      case riscv::kXor:
        value = ux ^ uy;
        break;
      case riscv::kSll:
        value = ux << shift;
        break;
      case riscv::kSrl:
        value = ux >> shift;
        break;
      case riscv::kSlt:
        value = x < y ? 1 : 0;
        break;
      case riscv::kSltu:
        value = ux < uy ? 1 : 0;
        break;
      default:
        return false;
    }
    *result = narrow ? static_cast<int32_t>(value) : static_cast<int64_t>(value);
    return true;
  }

 public:
  bool unknown_poll() const { return unknown_poll_; }
  void AddStores(std::vector<uint64_t>* addresses) const {
    for (const auto& [address, value] : memory_) {
      if (address.at.is_number()) addresses->push_back(Number(address.at));
    }
  }

 private:
  CodeSource& code_;
  int xlen_;
  LoopBody* findings_;
  std::array<Symbol, 64> registers_{};  // x0 stays the number 0
  std::map<Address, Symbol> memory_;    // what the rounds stored
  std::map<uint32_t, Symbol> csrs_;     // what the rounds wrote
  std::unordered_map<uint64_t, Idempotent> repeatable_;
  uint64_t moments_ = 0;
  size_t executed_ = 0;
  bool unknown_poll_ = false;
};

}  // namespace

std::vector<uint64_t> StoredAddresses(std::span<const Step> places, CodeSource& code) {
  std::vector<uint64_t> addresses;
  for (const Step& place : places) {
    LoopBody ignored;
    Machine machine(code, &ignored);
    const Step block{place.pc, 0, 0, false, true};
    (void)machine.Round({&block, 1});  // as far as it is understood
    machine.AddStores(&addresses);
  }
  return addresses;
}

LoopBody ExamineLoopBody(std::span<const Step> round, CodeSource& code,
                         std::span<const Step> lead_in) {
  LoopBody body;
  if (round.empty()) return body;
  Machine machine(code, &body);
  machine.LeadIn(lead_in, round[0].pc);
  for (int i = 0; i < kMostRounds; ++i) {
    machine.ForgetPolls();
    const Machine before = machine;
    if (!machine.Round(round)) return body;
    if (machine.SameStateAs(before)) {
      body.kind = LoopBody::Kind::kSpins;
      body.polls_known = !machine.unknown_poll();
      return body;
    }
  }
  body.kind = LoopBody::Kind::kComputes;
  return body;
}

}  // namespace hangscope
