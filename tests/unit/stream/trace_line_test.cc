#include "stream/trace_line.h"

#include <gtest/gtest.h>

#include "base/hash.h"

namespace hangscope {
namespace {

using Kind = TraceLine::Kind;

TEST(TraceLine, QemuExec) {
  const TraceLine line =
      ParseTraceLine("Trace 2: 0x7efc37e00ac0 [00000000/80000032/00109003/ff000200] noc_wait");
  EXPECT_EQ(line.kind, Kind::kStep);
  EXPECT_EQ(line.format, TraceFormat::kQemuExec);
  EXPECT_EQ(line.core, 2u);
  EXPECT_EQ(line.pc, 0x80000032u);
  EXPECT_EQ(line.function, "noc_wait");
  EXPECT_TRUE(line.starts_block);
  EXPECT_FALSE(line.has_values);
}

TEST(TraceLine, QemuExecOfA64BitHart) {
  const TraceLine line =
      ParseTraceLine("Trace 0: 0x7f [0000000000000000/ffffffff80000032/00109003/ff000200] ");
  EXPECT_EQ(line.pc, 0xffffffff80000032u);
  EXPECT_TRUE(line.function.empty());
}

TEST(TraceLine, QemuRegisters) {
  EXPECT_EQ(
      ParseTraceLine(" x4/tp    00000000 x5/t0    80000000 x6/t1    00000000 x7/t2    00000000")
          .kind,
      Kind::kState);
  const TraceLine hart = ParseTraceLine(" mhartid  00000003");
  EXPECT_EQ(hart.kind, Kind::kHart);
  EXPECT_EQ(hart.core, 3u);
  EXPECT_EQ(ParseTraceLine(" pc       80000000").kind, Kind::kDetail);
  EXPECT_EQ(ParseTraceLine(" V      =   0").kind, Kind::kDetail);
  EXPECT_NE(ParseTraceLine(" x1/ra 00000001 x2/sp 00000000").values,
            ParseTraceLine(" x1/ra 00000000 x2/sp 00000000").values);
}

TEST(TraceLine, QemuTranslationsLinksAndStops) {
  const TraceLine code =
      ParseTraceLine("0x80000008:  4501              mv                      a0,zero");
  EXPECT_EQ(code.kind, Kind::kCode);
  EXPECT_EQ(code.pc, 0x80000008u);
  EXPECT_EQ(code.bits, 0x4501u);
  EXPECT_EQ(code.mnemonic, "mv");
  EXPECT_TRUE(ParseTraceLine("Linking TBs 0x7fa23c000500 index 0 -> 0x7fa23c000640").chained);
  const TraceLine stopped =
      ParseTraceLine("Stopped execution of TB chain before 0x7f0048000640 [80000024] f");
  EXPECT_EQ(stopped.kind, Kind::kCancel);
  EXPECT_EQ(stopped.pc, 0x80000024u);
}

TEST(TraceLine, SpikeInstruction) {
  const TraceLine line = ParseTraceLine("core   1: 0x800000e0 (0xfea7ece3) bltu    a5, a0, pc - 8");
  EXPECT_EQ(line.kind, Kind::kStep);
  EXPECT_EQ(line.format, TraceFormat::kSpike);
  EXPECT_EQ(line.core, 1u);
  EXPECT_EQ(line.pc, 0x800000e0u);
  EXPECT_EQ(line.bits, 0xfea7ece3u);
  EXPECT_EQ(line.mnemonic, "bltu");
  EXPECT_FALSE(line.has_values);
}

TEST(TraceLine, SpikeCommit) {
  const TraceLine line = ParseTraceLine("core   0: 3 0x80000036 (0x00028023) mem 0x8000019c 0x00");
  EXPECT_EQ(line.kind, Kind::kCommit);
  EXPECT_TRUE(line.has_values);
  EXPECT_EQ(line.address, 0x8000019cu);
  EXPECT_NE(line.values,
            ParseTraceLine("core   0: 3 0x80000036 (0x00028023) mem 0x8000019c 0x01").values);
  EXPECT_EQ(ParseTraceLine("core   0: >>>>  main").kind, Kind::kDetail);
}

TEST(TraceLine, GvsocLongWithColours) {
  const TraceLine line = ParseTraceLine(
      "28456400000: 284564: [\033[34m/soc/host/insn                \033[0m] cb_wait_front:12       "
      "           M "
      "0000000080000108 c.ld                a5, 0(a4)                 a5=0000000000000000  "
      "a4:000000008000b210  "
      "PA:000000008000b210 ");
  EXPECT_EQ(line.kind, Kind::kStep);
  EXPECT_EQ(line.format, TraceFormat::kGvsoc);
  EXPECT_EQ(line.core_path, "/soc/host");
  EXPECT_EQ(line.pc, 0x80000108u);
  EXPECT_EQ(line.function, "cb_wait_front");
  EXPECT_EQ(line.source_line, 12u);
  EXPECT_EQ(line.mnemonic, "c.ld");
  EXPECT_EQ(line.cycle, 284564u);
  EXPECT_EQ(line.address, 0x8000b210u);
}

TEST(TraceLine, GvsocColumnsAndTimesAreNoState) {
  const TraceLine narrow = ParseTraceLine(
      "10: 1: [/s/insn] f:1 M 80000108 c.ld a5, 0(a4) a5=00 a4:8000b210 PA:8000b210");
  const TraceLine wide = ParseTraceLine(
      "99990: 9999: [/s/insn     ] f:1     M 80000108 c.ld   a5, 0(a4)    a5=00  a4:8000b210   "
      "PA:8000b210 ");
  const TraceLine other = ParseTraceLine(
      "99990: 9999: [/s/insn     ] f:1     M 80000108 c.ld   a5, 0(a4)    a5=01  a4:8000b210   "
      "PA:8000b210 ");
  ASSERT_EQ(narrow.kind, Kind::kStep);
  ASSERT_EQ(wide.kind, Kind::kStep);
  EXPECT_EQ(narrow.values, wide.values);
  EXPECT_NE(narrow.values, other.values);
}

TEST(TraceLine, GvsocSeveralCores) {
  const TraceLine line = ParseTraceLine(
      "720264540: 103619: [/chip/cluster/pe1/insn] itc_status_set_set:65 M 1c0114da c.sw a4, "
      "16(a5) a4:00000001 "
      "a5:1a109000 PA:1a109010");
  EXPECT_EQ(line.core_path, "/chip/cluster/pe1");
  EXPECT_EQ(line.pc, 0x1c0114dau);
  EXPECT_EQ(line.function, "itc_status_set_set");
}

TEST(TraceLine, GvsocShort) {
  const TraceLine line = ParseTraceLine(
      "20300000ps 203 M 0000000080000036 0000000000028023 sb x0,0(x5)   x5:0000000080000135  "
      "PA:0000000080000135");
  EXPECT_EQ(line.kind, Kind::kStep);
  EXPECT_EQ(line.pc, 0x80000036u);
  EXPECT_EQ(line.bits, 0x28023u);
  EXPECT_EQ(line.cycle, 203u);
  EXPECT_TRUE(line.has_bits);
  EXPECT_EQ(line.mnemonic, "sb");
  EXPECT_EQ(line.address, 0x80000135u);
}

TEST(TraceLine, EverythingElseIsOther) {
  for (const char* text : {"",
                           " ",
                           "hello",
                           "Trace",
                           "Trace x",
                           "Trace 0: 0x7f [",
                           "Trace 0: 0x7f [0/0",
                           "core dumped",
                           "core   0: hello",
                           "core   0: 0x",
                           "core   0: 3 0x80000036",
                           "12:30:01 boot: ready",
                           "[    0.000000] Linux version 6.1",
                           "123: 45: [/soc/uart/trace] hello",
                           "0x1234",
                           "0x80000008: zz",
                           "100%",
                           "core",
                           "1: 2: [/a/insn",
                           "5ps 3 M",
                           "IN",
                           "2026-01-01 10:00:00 INFO started"}) {
    EXPECT_EQ(ParseTraceLine(text).kind, Kind::kOther) << text;
  }
}

TEST(TraceLine, EveryPrefixAndEveryDamagedByteIsTakenCalmly) {
  const std::string lines[] = {
      "Trace 2: 0x7efc37e00ac0 [00000000/80000032/00109003/ff000200] noc_wait",
      "core   0: 3 0x80000036 (0x00028023) mem 0x8000019c 0x00",
      "28456400000: 284564: [\033[34m/soc/host/insn   \033[0m] f:12  M 0000000080000108 c.ld a5, "
      "0(a4) a5=00 PA:8000b210 ",
      "20300000ps 203 M 0000000080000036 0000000000028023 sb x0,0(x5)   x5:0000000080000135  "
      "PA:0000000080000135",
      "0x80000008:  4501              mv                      a0,zero"};
  int steps = 0;
  for (const std::string& line : lines) {
    for (size_t cut = 0; cut <= line.size(); ++cut) {
      for (int damage = 0; damage < 256; damage += 15) {
        std::string text = line.substr(0, cut);
        if (!text.empty()) text[text.size() / 2] = static_cast<char>(damage);
        steps += ParseTraceLine(text).kind == Kind::kStep ? 1 : 0;
      }
    }
  }
  EXPECT_GT(steps, 0);
}

}  // namespace
}  // namespace hangscope
