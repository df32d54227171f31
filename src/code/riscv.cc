#include "code/riscv.h"

namespace hangscope::riscv {
namespace {

// bits[high:low], right-aligned.
constexpr uint32_t Field(uint32_t bits, int high, int low) {
  return bits >> low & ((uint32_t{1} << (high - low + 1)) - 1);
}

// The same, moved to bit `to`: how immediates are scattered.
constexpr uint32_t Move(uint32_t bits, int high, int low, int to) {
  return Field(bits, high, low) << to;
}

constexpr int64_t SignExtend(uint32_t value, int width) {
  const uint64_t sign = uint64_t{1} << (width - 1);
  return static_cast<int64_t>((value ^ sign) - sign);
}

constexpr uint8_t Reg(uint32_t number) { return static_cast<uint8_t>(number); }
constexpr uint8_t Short(uint32_t number) { return static_cast<uint8_t>(8 + number); }
constexpr uint8_t kFloatBase = 32;

Insn Make(Op op, uint8_t rd, uint8_t rs1, uint8_t rs2, int64_t imm, uint32_t funct = 0,
          uint8_t width = 0) {
  Insn insn;
  insn.op = op;
  insn.rd = rd;
  insn.rs1 = rs1;
  insn.rs2 = rs2;
  insn.imm = imm;
  insn.funct = funct;
  insn.width = width;
  return insn;
}

Insn AluImm(uint8_t rd, uint8_t rs1, int64_t imm, uint32_t funct) {
  return Make(Op::kAluImm, rd, rs1, 0, imm, funct);
}
Insn Load(uint8_t rd, uint8_t base, uint32_t offset, uint8_t width) {
  return Make(Op::kLoad, rd, base, 0, offset, 0, width);
}
Insn Store(uint8_t source, uint8_t base, uint32_t offset, uint8_t width) {
  return Make(Op::kStore, 0, base, source, offset, 0, width);
}

// Immediates of the compressed forms, named as the manual does.
constexpr uint32_t OffsetWord(uint32_t b) {
  return Move(b, 12, 10, 3) | Move(b, 6, 6, 2) | Move(b, 5, 5, 6);
}
constexpr uint32_t OffsetDouble(uint32_t b) { return Move(b, 12, 10, 3) | Move(b, 6, 5, 6); }
constexpr uint32_t StackWord(uint32_t b) {
  return Move(b, 12, 12, 5) | Move(b, 6, 4, 2) | Move(b, 3, 2, 6);
}
constexpr uint32_t StackDouble(uint32_t b) {
  return Move(b, 12, 12, 5) | Move(b, 6, 5, 3) | Move(b, 4, 2, 6);
}
constexpr uint32_t StackStoreWord(uint32_t b) { return Move(b, 12, 9, 2) | Move(b, 8, 7, 6); }
constexpr uint32_t StackStoreDouble(uint32_t b) { return Move(b, 12, 10, 3) | Move(b, 9, 7, 6); }
constexpr int64_t Imm6(uint32_t b) { return SignExtend(Move(b, 12, 12, 5) | Field(b, 6, 2), 6); }
constexpr int64_t JumpOffset(uint32_t b) {
  return SignExtend(Move(b, 12, 12, 11) | Move(b, 11, 11, 4) | Move(b, 10, 9, 8) |
                        Move(b, 8, 8, 10) | Move(b, 7, 7, 6) | Move(b, 6, 6, 7) | Move(b, 5, 3, 1) |
                        Move(b, 2, 2, 5),
                    12);
}
constexpr int64_t BranchOffset(uint32_t b) {
  return SignExtend(Move(b, 12, 12, 8) | Move(b, 11, 10, 3) | Move(b, 6, 5, 6) | Move(b, 4, 3, 1) |
                        Move(b, 2, 2, 5),
                    9);
}

Insn DecodeQuadrant0(uint32_t b, int xlen) {
  const uint8_t low = Short(Field(b, 4, 2));
  const uint8_t base = Short(Field(b, 9, 7));
  switch (Field(b, 15, 13)) {
    case 0: {
      const uint32_t imm =
          Move(b, 12, 11, 4) | Move(b, 10, 7, 6) | Move(b, 6, 6, 2) | Move(b, 5, 5, 3);
      return imm == 0 ? Insn{} : AluImm(low, 2, imm, kAdd);
    }
    case 1:
      return Load(kFloatBase + low, base, OffsetDouble(b), 8);
    case 2:
      return Load(low, base, OffsetWord(b), 4);
    case 3:
      return xlen == 32 ? Load(kFloatBase + low, base, OffsetWord(b), 4)
                        : Load(low, base, OffsetDouble(b), 8);
    case 5:
      return Store(kFloatBase + low, base, OffsetDouble(b), 8);
    case 6:
      return Store(low, base, OffsetWord(b), 4);
    case 7:
      return xlen == 32 ? Store(kFloatBase + low, base, OffsetWord(b), 4)
                        : Store(low, base, OffsetDouble(b), 8);
    default:
      return {};
  }
}

Insn DecodeCompressedAlu(uint32_t b) {
  const uint8_t rd = Short(Field(b, 9, 7));
  const uint8_t rs2 = Short(Field(b, 4, 2));
  switch (Field(b, 11, 10)) {
    case 0:
      return AluImm(rd, rd, Move(b, 12, 12, 5) | Field(b, 6, 2), kSrl);
    case 1:
      return AluImm(rd, rd, Move(b, 12, 12, 5) | Field(b, 6, 2), kSra);
    case 2:
      return AluImm(rd, rd, Imm6(b), kAnd);
    default:
      break;
  }
  constexpr uint32_t kOperations[8] = {kSub, kXor, kOr, kAnd, kSub | kWordBit, kAdd | kWordBit,
                                       0,    0};
  const uint32_t which = Field(b, 12, 12) << 2 | Field(b, 6, 5);
  if (which >= 6) return {};
  return Make(Op::kAlu, rd, rd, rs2, 0, kOperations[which]);
}

Insn DecodeQuadrant1(uint32_t b, int xlen) {
  const uint8_t rd = Reg(Field(b, 11, 7));
  switch (Field(b, 15, 13)) {
    case 0:
      return AluImm(rd, rd, Imm6(b), kAdd);
    case 1:
      if (xlen == 32) return Make(Op::kJal, 1, 0, 0, JumpOffset(b));
      return AluImm(rd, rd, Imm6(b), kAdd | kWordBit);
    case 2:
      return AluImm(rd, 0, Imm6(b), kAdd);
    case 3:
      if (rd == 2) {
        return AluImm(2, 2,
                      SignExtend(Move(b, 12, 12, 9) | Move(b, 6, 6, 4) | Move(b, 5, 5, 6) |
                                     Move(b, 4, 3, 7) | Move(b, 2, 2, 5),
                                 10),
                      kAdd);
      }
      return Make(Op::kLui, rd, 0, 0, Imm6(b) * 4096);
    case 4:
      return DecodeCompressedAlu(b);
    case 5:
      return Make(Op::kJal, 0, 0, 0, JumpOffset(b));
    case 6:
      return Make(Op::kBranch, 0, Short(Field(b, 9, 7)), 0, BranchOffset(b), 0);
    default:
      return Make(Op::kBranch, 0, Short(Field(b, 9, 7)), 0, BranchOffset(b), 1);
  }
}

Insn DecodeQuadrant2(uint32_t b, int xlen) {
  const uint8_t rd = Reg(Field(b, 11, 7));
  const uint8_t rs2 = Reg(Field(b, 6, 2));
  switch (Field(b, 15, 13)) {
    case 0:
      return AluImm(rd, rd, Move(b, 12, 12, 5) | Field(b, 6, 2), kSll);
    case 1:
      return Load(kFloatBase + rd, 2, StackDouble(b), 8);
    case 2:
      return Load(rd, 2, StackWord(b), 4);
    case 3:
      return xlen == 32 ? Load(kFloatBase + rd, 2, StackWord(b), 4)
                        : Load(rd, 2, StackDouble(b), 8);
    case 4:
      if (Field(b, 12, 12) == 0) {
        if (rs2 == 0) return Make(Op::kJalr, 0, rd, 0, 0);
        return Make(Op::kAlu, rd, 0, rs2, 0, kAdd);
      }
      if (rs2 != 0) return Make(Op::kAlu, rd, rd, rs2, 0, kAdd);
      return rd == 0 ? Make(Op::kTrap, 0, 0, 0, 0) : Make(Op::kJalr, 1, rd, 0, 0);
    case 5:
      return Store(kFloatBase + rs2, 2, StackStoreDouble(b), 8);
    case 6:
      return Store(rs2, 2, StackStoreWord(b), 4);
    default:
      return xlen == 32 ? Store(kFloatBase + rs2, 2, StackStoreWord(b), 4)
                        : Store(rs2, 2, StackStoreDouble(b), 8);
  }
}

Insn DecodeCompressed(uint32_t bits, int xlen) {
  const uint32_t b = bits & 0xffff;
  Insn insn;
  if ((b & 3) == 0) insn = DecodeQuadrant0(b, xlen);
  if ((b & 3) == 1) insn = DecodeQuadrant1(b, xlen);
  if ((b & 3) == 2) insn = DecodeQuadrant2(b, xlen);
  insn.length = 2;
  return insn;
}

Insn DecodeSystem(uint32_t b, uint8_t rd, uint8_t rs1) {
  const uint32_t funct3 = Field(b, 14, 12);
  if (funct3 != 0) {
    // The immediate forms (funct3 bit 2) carry a constant where rs1 would be.
    return Make(Op::kCsr, rd, funct3 >= 4 ? uint8_t{0} : rs1, 0, Field(b, 31, 20),
                funct3 | Field(b, 19, 15) << 3);
  }
  switch (Field(b, 31, 20)) {
    case 0x000:
    case 0x001:
      return Make(Op::kTrap, 0, 0, 0, 0);
    case 0x102:
    case 0x302:
      return Make(Op::kReturnFromTrap, 0, 0, 0, 0);
    case 0x105:
      return Make(Op::kWfi, 0, 0, 0, 0);
    default:
      return Make(Op::kFence, 0, 0, 0, 0);  // sfence.vma and its like
  }
}

Insn DecodeAtomic(uint32_t b, uint8_t rd, uint8_t rs1, uint8_t rs2) {
  const uint32_t funct5 = Field(b, 31, 27);
  const auto width = static_cast<uint8_t>(1u << Field(b, 14, 12));
  if (funct5 == 2) return Make(Op::kLoadReserved, rd, rs1, 0, 0, 0, width);
  if (funct5 == 3) return Make(Op::kStoreConditional, rd, rs1, rs2, 0, 0, width);
  return Make(Op::kAmo, rd, rs1, rs2, 0, funct5, width);
}

// funct5 of OP-FP: comparisons, conversions to and moves into x registers.
bool FloatWritesInteger(uint32_t funct5) {
  return funct5 == 0x14 || funct5 == 0x18 || funct5 == 0x1c;
}
bool FloatReadsInteger(uint32_t funct5) { return funct5 == 0x1a || funct5 == 0x1e; }

Insn DecodeFloat(uint32_t b, uint8_t rd, uint8_t rs1, uint8_t rs2) {
  const uint32_t funct5 = Field(b, 31, 27);
  if (!FloatWritesInteger(funct5)) rd += kFloatBase;
  if (!FloatReadsInteger(funct5)) rs1 += kFloatBase;
  return Make(Op::kFloat, rd, rs1, kFloatBase + rs2, 0, b & 0xfe00707f);
}

uint32_t AluFunct(uint32_t b, bool word) {
  const uint32_t funct3 = Field(b, 14, 12);
  const uint32_t funct7 = Field(b, 31, 25);
  uint32_t funct = funct3;
  if (funct7 == 0x01)
    funct = kMulBase + funct3;
  else if (funct7 == 0x20)
    funct = kSub + funct3;
  else if (funct7 != 0)
    funct = 256 + (funct7 << 3 | funct3);  // an extension; still f(rs1, rs2)
  return funct | (word ? uint32_t{kWordBit} : 0);
}

uint32_t AluImmFunct(uint32_t b, bool word) {
  const uint32_t funct3 = Field(b, 14, 12);
  const bool arithmetic = funct3 == kSrl && Field(b, 30, 30) != 0;
  return (arithmetic ? uint32_t{kSra} : funct3) | (word ? uint32_t{kWordBit} : 0);
}

int64_t AluImmediate(uint32_t b) {
  const uint32_t funct3 = Field(b, 14, 12);
  if (funct3 == kSll || funct3 == kSrl) return Field(b, 25, 20);
  return SignExtend(Field(b, 31, 20), 12);
}

Insn DecodeFull(uint32_t b) {
  const uint8_t rd = Reg(Field(b, 11, 7));
  const uint8_t rs1 = Reg(Field(b, 19, 15));
  const uint8_t rs2 = Reg(Field(b, 24, 20));
  const uint32_t funct3 = Field(b, 14, 12);
  const auto width = static_cast<uint8_t>(1u << (funct3 & 3));
  const int64_t i_imm = SignExtend(Field(b, 31, 20), 12);
  const int64_t s_imm = SignExtend(Move(b, 31, 25, 5) | Field(b, 11, 7), 12);
  const int64_t b_imm = SignExtend(
      Move(b, 31, 31, 12) | Move(b, 7, 7, 11) | Move(b, 30, 25, 5) | Move(b, 11, 8, 1), 13);
  const int64_t j_imm = SignExtend(
      Move(b, 31, 31, 20) | Move(b, 19, 12, 12) | Move(b, 20, 20, 11) | Move(b, 30, 21, 1), 21);
  const int64_t u_imm = SignExtend(b & 0xfffff000, 32);
  switch (b & 0x7f) {
    case 0x37:
      return Make(Op::kLui, rd, 0, 0, u_imm);
    case 0x17:
      return Make(Op::kAuipc, rd, 0, 0, u_imm);
    case 0x6f:
      return Make(Op::kJal, rd, 0, 0, j_imm);
    case 0x67:
      return Make(Op::kJalr, rd, rs1, 0, i_imm);
    case 0x63:
      return Make(Op::kBranch, 0, rs1, rs2, b_imm, funct3);
    case 0x03:
      return Make(Op::kLoad, rd, rs1, 0, i_imm, funct3 & 4, width);
    case 0x07:
      return Make(Op::kLoad, kFloatBase + rd, rs1, 0, i_imm, 0, width);
    case 0x23:
      return Make(Op::kStore, 0, rs1, rs2, s_imm, 0, width);
    case 0x27:
      return Make(Op::kStore, 0, rs1, kFloatBase + rs2, s_imm, 0, width);
    case 0x13:
      return AluImm(rd, rs1, AluImmediate(b), AluImmFunct(b, false));
    case 0x1b:
      return AluImm(rd, rs1, AluImmediate(b), AluImmFunct(b, true));
    case 0x33:
      return Make(Op::kAlu, rd, rs1, rs2, 0, AluFunct(b, false));
    case 0x3b:
      return Make(Op::kAlu, rd, rs1, rs2, 0, AluFunct(b, true));
    case 0x2f:
      return DecodeAtomic(b, rd, rs1, rs2);
    case 0x0f:
      return Make(funct3 == 1 ? Op::kFenceI : Op::kFence, 0, 0, 0, 0);
    case 0x73:
      return DecodeSystem(b, rd, rs1);
    case 0x43:
    case 0x47:
    case 0x4b:
    case 0x4f: {
      Insn fused =
          Make(Op::kFloat, kFloatBase + rd, kFloatBase + rs1, kFloatBase + rs2, 0, b & 0x600707f);
      fused.rs3 = Reg(kFloatBase + Field(b, 31, 27));
      return fused;
    }
    case 0x53:
      return DecodeFloat(b, rd, rs1, rs2);
    default:
      return {};
  }
}

}  // namespace

Insn Decode(uint32_t bits, int xlen) {
  return (bits & 3) == 3 ? DecodeFull(bits) : DecodeCompressed(bits, xlen);
}

}  // namespace hangscope::riscv
