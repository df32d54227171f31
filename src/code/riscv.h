// RISC-V instructions, as far as telling a spin from a computation needs them:
// what is read, what is written, where control goes.
// Source: The RISC-V Instruction Set Manual, Volume I (RV32/64 IMAFDC, Zicsr)
// and II (mret, sret, wfi). Everything else decodes to kUnknown.
#ifndef HANGSCOPE_CODE_RISCV_H
#define HANGSCOPE_CODE_RISCV_H

#include <cstdint>

namespace hangscope::riscv {

enum class Op : uint8_t {
  kUnknown,
  kLui,     // rd = imm
  kAuipc,   // rd = pc + imm
  kJal,     // rd = pc + length; goto pc + imm
  kJalr,    // rd = pc + length; goto rs1 + imm
  kBranch,  // if (rs1 ? rs2) goto pc + imm
  kLoad,    // rd = memory[rs1 + imm]
  kStore,   // memory[rs1 + imm] = rs2
  kAluImm,  // rd = rs1 ? imm
  kAlu,     // rd = rs1 ? rs2
  kAmo,     // rd = memory[rs1]; memory[rs1] ?= rs2
  kLoadReserved,
  kStoreConditional,  // memory[rs1] = rs2; rd = failed
  kCsr,               // rd = csr[imm]; csr ?= rs1
  kFloat,             // rd = f(rs1, rs2, rs3)
  kFence,
  kFenceI,
  kTrap,  // ecall, ebreak
  kReturnFromTrap,
  kWfi,
};

// Registers 0..31 are x0..x31, 32..63 are f0..f31.
struct Insn {
  Op op = Op::kUnknown;
  uint8_t rd = 0;
  uint8_t rs1 = 0;
  uint8_t rs2 = 0;
  uint8_t rs3 = 0;     // of fused multiply-add; else x0
  uint8_t length = 4;  // bytes
  uint8_t width = 0;   // bytes of a memory access; sign in funct
  uint32_t funct = 0;  // tells operations of one kind apart
  int64_t imm = 0;

  // Whether a straight run of instructions ends here.
  bool ends_run() const {
    return op == Op::kJal || op == Op::kJalr || op == Op::kBranch || op == Op::kTrap ||
           op == Op::kReturnFromTrap || op == Op::kUnknown;
  }
  // Whether QEMU ends a translation block after it, too.
  bool ends_block() const {
    return ends_run() || op == Op::kCsr || op == Op::kWfi || op == Op::kFenceI;
  }
};

// funct of kAlu and kAluImm.
enum Alu : uint32_t {
  kAdd = 0,
  kSll = 1,
  kSlt = 2,
  kSltu = 3,
  kXor = 4,
  kSrl = 5,
  kOr = 6,
  kAnd = 7,
  kSub = 8,
  kSra = 13,
  kMulBase = 16,  // + funct3 of the M extension
  kWordBit = 32,  // the 32-bit forms of RV64
};

// `xlen` is 32 or 64. The lower 16 bits suffice for a compressed instruction.
Insn Decode(uint32_t bits, int xlen);

}  // namespace hangscope::riscv

#endif
