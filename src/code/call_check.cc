#include "code/call_check.h"

#include <algorithm>
#include <optional>

#include "code/riscv.h"

namespace hangscope {
namespace {

using riscv::Insn;
using riscv::Op;

constexpr uint8_t kReturnRegister = 1;     // ra
constexpr uint64_t kMostJumpBytes = 4096;  // of a function, searched for a jump

uint64_t Address(const CodeSource& code, uint64_t at) {
  return code.xlen() == 32 ? static_cast<uint32_t>(at) : at;
}

std::optional<Insn> InsnOf(CodeSource& code, uint64_t pc) {
  const auto bits = code.InsnAt(Address(code, pc));
  return bits ? std::optional(riscv::Decode(*bits, code.xlen())) : std::nullopt;
}

// Where the jump or call at `pc` goes; nothing: that stands in a register which no auipc in front
// of it has set.
std::optional<uint64_t> TargetOf(CodeSource& code, uint64_t pc, const Insn& insn) {
  if (insn.op != Op::kJalr) return Address(code, pc + static_cast<uint64_t>(insn.imm));
  const auto before = InsnOf(code, pc - 4);
  if (!before || before->op != Op::kAuipc || before->rd != insn.rs1) return std::nullopt;
  return Address(code, pc - 4 + static_cast<uint64_t>(before->imm + insn.imm));
}

bool JumpsTo(CodeSource& code, uint64_t function, uint64_t into) {
  for (uint64_t pc = function; pc - function < kMostJumpBytes;) {
    const auto insn = InsnOf(code, pc);
    if (!insn || code.Locate(pc).function_begin != function) return false;
    const bool links = insn->op != Op::kBranch && insn->rd != 0;
    if ((insn->op == Op::kJal || insn->op == Op::kJalr || insn->op == Op::kBranch) && !links) {
      const auto target = TargetOf(code, pc, *insn);
      if (target && code.Locate(*target).function_begin == into) return true;
    }
    pc += insn->length;
  }
  return false;
}

bool Calls(CodeSource& code, uint64_t return_address, uint64_t callee) {
  for (const uint64_t length : {4u, 2u}) {
    const uint64_t pc = return_address - length;
    const auto insn = InsnOf(code, pc);
    if (!insn || insn->length != length || insn->rd != kReturnRegister) continue;
    if (insn->op != Op::kJal && insn->op != Op::kJalr) continue;
    const auto target = TargetOf(code, pc, *insn);
    return !target || *target == callee || JumpsTo(code, *target, callee);
  }
  return false;
}

}  // namespace

size_t CountCalled(CodeSource& code, const std::vector<uint64_t>& places) {
  size_t count = std::min<size_t>(places.size(), 1);
  while (count != 0 && count < places.size()) {
    const uint64_t callee = code.Locate(places[count - 1]).function_begin;
    // Unwind gives the last byte of the call.
    if (callee == 0 || !Calls(code, places[count] + 1, callee)) break;
    ++count;
  }
  return count;
}

}  // namespace hangscope
