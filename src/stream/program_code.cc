#include "stream/program_code.h"

#include <algorithm>

#include "code/riscv.h"

namespace hangscope {
namespace {

constexpr size_t kLongestBlock = 600;

// Whether a RISC-V mnemonic (gvsoc prints c.beqz, jalr, ...) may change the flow.
bool MayJump(std::string_view mnemonic) {
  if (mnemonic.starts_with("c.")) mnemonic.remove_prefix(2);
  constexpr std::string_view kJumps[] = {"beq", "bne",  "blt",  "bge",   "bgt",    "ble", "j",
                                         "ret", "call", "tail", "ecall", "ebreak", "lp."};
  return std::any_of(std::begin(kJumps), std::end(kJumps),
                     [&](std::string_view jump) { return mnemonic.starts_with(jump); });
}

bool IsTrapReturn(std::string_view mnemonic) {
  return mnemonic == "mret" || mnemonic == "sret" || mnemonic == "uret";
}

}  // namespace

void ProgramCode::Learn(const std::unordered_map<uint64_t, TracedCode>& code) {
  for (const auto& [pc, traced] : code) {
    if (pc >> 32 != 0) wide_ = true;
    TracedCode& known = traced_.At(pc);
    if (traced.has_bits && (!known.has_bits || known.bits != traced.bits)) {
      known.bits = traced.bits;
      known.has_bits = true;
      ends_ = {};  // blocks may run over it
    }
    if (known.mnemonic.empty() && !traced.mnemonic.empty()) {
      known.mnemonic = traced.mnemonic;
      ends_ = {};
    }
    if (known.function.empty()) known.function = traced.function;
    if (traced.source_line != 0) known.source_line = traced.source_line;
    for (const uint64_t address : traced.addresses) {
      auto& all = known.addresses;
      if (all.size() < kMostAddresses && std::find(all.begin(), all.end(), address) == all.end()) {
        all.push_back(address);
      }
    }
  }
}

std::optional<uint32_t> ProgramCode::InsnAt(uint64_t pc) {
  if (elf_ != nullptr) {
    if (auto bits = elf_->InsnAt(pc)) return bits;
  }
  const TracedCode* const traced = traced_.Find(pc);
  if (traced == nullptr || !traced->has_bits) return std::nullopt;
  return traced->bits;
}

int ProgramCode::xlen() const {
  if (elf_ != nullptr) return elf_->xlen();
  return wide_ ? 64 : 32;
}

Location ProgramCode::Locate(uint64_t pc) {
  if (elf_ != nullptr) {
    Location found = elf_->Locate(pc);
    if (!found.function.empty()) return found;
  }
  Location found;
  const TracedCode* const traced = traced_.Find(pc);
  if (traced == nullptr) return found;
  found.function = traced->function;
  found.line = traced->source_line;
  return found;
}

Place ProgramCode::PlaceOf(uint64_t pc) {
  const Location where = Locate(pc);
  Place place{pc, where.function, where.source()};
  if (where.file.empty() && where.line != 0) place.source = "line " + std::to_string(where.line);
  return place;
}

const std::vector<uint64_t>& ProgramCode::AddressesAt(uint64_t pc) const {
  static const std::vector<uint64_t> kNone;
  const TracedCode* const traced = traced_.Find(pc);
  return traced == nullptr ? kNone : traced->addresses;
}

StepEnd ProgramCode::EndOf(const Step& step) {
  if (step.is_text) return {};
  const uint64_t key = step.pc << 1 | (step.starts_block ? 1 : 0);
  if (const StepEnd* known = ends_.Find(key)) return *known;
  const StepEnd end = ExamineEnd(step);
  ends_.Put(key, end);
  return end;
}

StepEnd ProgramCode::ExamineEnd(const Step& step) {
  using riscv::Op;
  StepEnd end;
  uint64_t pc = step.pc;
  for (size_t count = 0; count < kLongestBlock; ++count) {
    const auto bits = InsnAt(pc);
    if (!bits) return count == 0 && !step.starts_block ? EndByMnemonic(pc) : end;
    const riscv::Insn insn = riscv::Decode(*bits, xlen());
    if (insn.op == Op::kUnknown) return end;
    if (insn.op == Op::kWfi) end.sleeps = true;
    const uint64_t here = pc;
    pc += insn.length;
    if (step.starts_block && !insn.ends_block()) {
      // QEMU cuts blocks at page ends, too.
      if ((pc ^ step.pc) >> 12 == 0) continue;
    }
    end.next = pc;
    end.target = here + static_cast<uint64_t>(insn.imm);
    if (xlen() == 32) end.target &= 0xffffffff;
    switch (insn.op) {
      case Op::kBranch:
        end.kind = StepEnd::Kind::kBranch;
        break;
      case Op::kJal:
        end.kind = StepEnd::Kind::kJump;
        break;
      case Op::kJalr:
      case Op::kTrap:
        end.kind = StepEnd::Kind::kIndirect;
        break;
      case Op::kReturnFromTrap:
        end.kind = StepEnd::Kind::kReturnFromTrap;
        break;
      default:
        end.kind = StepEnd::Kind::kStraight;
        break;
    }
    return end;
  }
  return end;
}

StepEnd ProgramCode::EndByMnemonic(uint64_t pc) const {
  StepEnd end;
  const TracedCode* const traced = traced_.Find(pc);
  if (traced == nullptr || traced->mnemonic.empty()) return end;
  const std::string& mnemonic = traced->mnemonic;
  end.sleeps = mnemonic == "wfi";
  if (IsTrapReturn(mnemonic)) {
    end.kind = StepEnd::Kind::kReturnFromTrap;
  } else if (MayJump(mnemonic)) {
    end.kind = StepEnd::Kind::kIndirect;
  } else {
    end.kind = StepEnd::Kind::kStraight;
    end.next = pc + 4;
    end.next_short = mnemonic.starts_with("c.") ? pc + 2 : 0;
  }
  return end;
}

}  // namespace hangscope
