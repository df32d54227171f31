// Intel PT: traces made with libipt's packet encoder over code whose run is known.
#include <gtest/gtest.h>

#include <cstring>

#include "hwtrace/auxtrace_info.h"
#include "hwtrace/instruction_trace.h"
#include "unit/hwtrace/reasons.h"

#ifdef HANGSCOPE_HAS_LIBIPT
#include <intel-pt.h>
#endif

namespace hangscope {
namespace {

// PERF_RECORD_AUXTRACE_INFO of intel_pt. Time: 500 ns + counter / 2. MTC every 8 ticks of a crystal
// of 4 counts, where the event's config says so.
constexpr uint64_t kMtcEvery8 = 3 << 14;
std::string PtInfo(bool time_known = true) {
  const uint64_t words[] = {1, 9, 1,      1,         500, time_known, 1 << 10, 1 << 11, 1,
                            1, 1, 1 << 9, 0xf << 14, 4,   1,          2,       0,       0};
  return {reinterpret_cast<const char*>(words), sizeof words};
}

#ifndef HANGSCOPE_HAS_LIBIPT

TEST(IntelPt, SaysThatTheLibraryIsMissing) {
  const auto trace = OpenInstructionTrace(PtInfo(), 0);
  ASSERT_FALSE(trace.ok());
  EXPECT_NE(trace.status().message().find("built without libipt"), std::string::npos);
}

#else

// Counts to 3, calls a function that returns at once, jumps to a register, spins.
constexpr uint64_t kBase = 0x1000;
constexpr unsigned char kCode[] = {0x31, 0xc0,                    // 1000 xor eax, eax
                                   0xff, 0xc0,                    // 1002 inc eax
                                   0x83, 0xf8, 0x03,              // 1004 cmp eax, 3
                                   0x75, 0xf9,                    // 1007 jne 1002
                                   0xe8, 0x08, 0x00, 0x00, 0x00,  // 1009 call 1016
                                   0xff, 0xe2,                    // 100e jmp rdx
                                   0x90,                          // 1010 nop
                                   0xeb, 0xfe,                    // 1011 jmp 1011
                                   0xcc, 0xcc, 0xcc, 0xc3};       // 1016 ret

size_t ReadX86(uint64_t address, std::span<char> bytes) {
  if (address < kBase || address >= kBase + sizeof kCode) return 0;
  const size_t count = std::min<size_t>(bytes.size(), kBase + sizeof kCode - address);
  std::memcpy(bytes.data(), kCode + (address - kBase), count);
  return count;
}

class PtBytes {
 public:
  PtBytes() : space_(1 << 12) {
    pt_config config;
    pt_config_init(&config);
    config.begin = space_.data();
    config.end = space_.data() + space_.size();
    encoder_.reset(pt_alloc_encoder(&config));
  }

  PtBytes& Put(pt_packet packet) {
    EXPECT_GT(pt_enc_next(encoder_.get(), &packet), 0);
    return *this;
  }
  PtBytes& Plain(pt_packet_type type) { return Put(Packet(type)); }
  PtBytes& Ip(pt_packet_type type, uint64_t address) {
    pt_packet packet = Packet(type);
    packet.payload.ip.ipc = address == 0 ? pt_ipc_suppressed : pt_ipc_sext_48;
    packet.payload.ip.ip = address;
    return Put(packet);
  }
  // 'T' taken, 'N' not.
  PtBytes& Tnt(std::string_view bits) {
    pt_packet packet = Packet(ppt_tnt_8);
    packet.payload.tnt.bit_size = static_cast<uint8_t>(bits.size());
    for (const char bit : bits)
      packet.payload.tnt.payload = packet.payload.tnt.payload << 1 | (bit == 'T');
    return Put(packet);
  }
  PtBytes& Tsc(uint64_t tsc) {
    pt_packet packet = Packet(ppt_tsc);
    packet.payload.tsc.tsc = tsc;
    return Put(packet);
  }
  PtBytes& Tma(uint16_t crystal, uint16_t beyond) {
    pt_packet packet = Packet(ppt_tma);
    packet.payload.tma.ctc = crystal;
    packet.payload.tma.fc = beyond;
    return Put(packet);
  }
  PtBytes& Mtc(uint8_t bits) {
    pt_packet packet = Packet(ppt_mtc);
    packet.payload.mtc.ctc = bits;
    return Put(packet);
  }
  PtBytes& Mode() {
    pt_packet packet = Packet(ppt_mode);
    packet.payload.mode.leaf = pt_mol_exec;
    packet.payload.mode.bits.exec = pt_set_exec_mode(ptem_64bit);
    return Put(packet);
  }
  // A synchronisation point while tracing is off.
  PtBytes& Sync(uint64_t tsc = 0) {
    Plain(ppt_psb);
    if (tsc != 0) Tsc(tsc);
    return Mode().Plain(ppt_psbend);
  }
  // The whole program, until an interrupt takes it away from its spin: 14 instructions, 5 branches
  // taken.
  PtBytes& Run() {
    return Ip(ppt_tip_pge, kBase)
        .Tnt("TTNT")
        .Ip(ppt_tip, 0x1010)
        .Ip(ppt_fup, 0x1011)
        .Ip(ppt_tip_pgd, 0);
  }

  size_t size() const {
    uint64_t offset = 0;
    EXPECT_EQ(pt_enc_get_offset(encoder_.get(), &offset), 0);
    return offset;
  }
  std::string bytes() const { return {reinterpret_cast<const char*>(space_.data()), size()}; }

 private:
  static pt_packet Packet(pt_packet_type type) {
    pt_packet packet{};
    packet.type = type;
    return packet;
  }

  struct Free {
    void operator()(pt_encoder* encoder) const { pt_free_encoder(encoder); }
  };
  std::vector<uint8_t> space_;
  std::unique_ptr<pt_encoder, Free> encoder_;
};

TraceSummary Decode(std::string_view bytes, bool with_code = true, uint64_t config = 0,
                    const std::string& info = PtInfo()) {
  auto trace = OpenInstructionTrace(info, 0, config);
  EXPECT_TRUE(trace.ok()) << trace.status().message();
  TraceDecodeOptions options;
  if (with_code) options.read_code = ReadX86;
  return trace.ok() ? (*trace)->Decode(bytes, options) : TraceSummary{};
}

std::string Branches(const TraceSummary& summary) {
  std::string branches;
  const auto name = [](uint64_t address, const char* none) {
    char text[20];
    std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(address));
    return address == 0 ? std::string(none) : std::string(text);
  };
  for (const TraceBranch& branch : summary.last_branches)
    branches += name(branch.from, "in") + ">" + name(branch.to, "out") + " ";
  return branches;
}

TEST(IntelPt, CountsPacketsWithoutTheCode) {
  const TraceSummary summary = Decode(PtBytes().Sync(1000).Run().bytes(), false);
  EXPECT_EQ(summary.packets, 9u);
  EXPECT_EQ(summary.packet_kinds.at("TNT"), 1u);
  EXPECT_EQ(summary.packet_kinds.at("TIP.PGE"), 1u);
  EXPECT_EQ(summary.packet_kinds.at("MODE.Exec"), 1u);
  EXPECT_EQ(summary.atoms, 4u);
  EXPECT_EQ(summary.synchronisations, 1u);
  EXPECT_EQ(summary.exceptions, 1u);
  EXPECT_FALSE(summary.instructions_known);
  EXPECT_EQ(Reasons(summary), "");
}

TEST(IntelPt, FollowsAProgramThroughItsCode) {
  const TraceSummary summary = Decode(PtBytes().Sync().Run().bytes());
  ASSERT_TRUE(summary.instructions_known);
  EXPECT_EQ(summary.instructions, 14u);
  EXPECT_EQ(summary.branches, 5u);
  EXPECT_EQ(Branches(summary),
            "in>1000 1007>1002 1007>1002 1009>1016 1016>100e 100e>1010 1011>out ");
  EXPECT_EQ(Reasons(summary), "");
}

TEST(IntelPt, SaysWhereAndWhenTheTracerLostSomething) {
  PtBytes trace;
  trace.Sync(2000).Ip(ppt_tip_pge, kBase).Tnt("TT");
  const size_t overflow = trace.size();
  trace.Plain(ppt_ovf)
      .Ip(ppt_fup, 0x100e)
      .Ip(ppt_tip, 0x1010)
      .Ip(ppt_fup, 0x1011)
      .Ip(ppt_tip_pgd, 0);
  const TraceSummary summary = Decode(trace.bytes());
  ASSERT_EQ(Reasons(summary), "overflow");
  EXPECT_EQ(summary.discontinuities[0].offset, overflow);
  EXPECT_EQ(summary.discontinuities[0].time, 500 + 1000);
  EXPECT_EQ(summary.exceptions, 1u);  // the FUP behind OVF is none
}

TEST(IntelPt, CountsTracingThatWasOffInBetween) {
  const TraceSummary summary = Decode(PtBytes().Sync().Run().Tsc(3000).Run().bytes());
  ASSERT_EQ(Reasons(summary), "trace off");
  EXPECT_EQ(summary.discontinuities[0].time, 500 + 1500);
  EXPECT_EQ(summary.instructions, 28u);
  EXPECT_EQ(summary.branches, 10u);
}

TEST(IntelPt, GoesOnAfterGarbageAtTheNextSynchronisation) {
  PtBytes before;
  before.Sync().Run();
  const std::string garbage("\x02\xff\x02\xff\x02\xff", 6);
  const TraceSummary summary = Decode(before.bytes() + garbage + PtBytes().Sync().Run().bytes());
  ASSERT_EQ(Reasons(summary), "no sync");
  EXPECT_EQ(summary.discontinuities[0].offset, before.size());
  // libipt reads a packet ahead of the first run's last instruction
  EXPECT_EQ(summary.instructions, 13u + 14u);
  EXPECT_EQ(Reasons(Decode(before.bytes() + garbage)), "bad data");
}

TEST(IntelPt, SaysWhatComesBeforeTheFirstSynchronisation) {
  const TraceSummary summary = Decode(PtBytes().Run().bytes() + PtBytes().Sync().Run().bytes());
  EXPECT_EQ(Reasons(summary), "before the first synchronisation");
  EXPECT_EQ(summary.instructions, 14u);
  EXPECT_EQ(Reasons(Decode(PtBytes().Run().bytes())), "before the first synchronisation");
  EXPECT_EQ(Reasons(Decode("")), "");
}

TEST(IntelPt, SaysWhereThereIsNoCode) {
  PtBytes trace;
  trace.Sync().Ip(ppt_tip_pge, kBase).Tnt("TTNT").Ip(ppt_tip, 0x900000).Tnt("T").Sync().Run();
  const TraceSummary summary = Decode(trace.bytes());
  EXPECT_EQ(Reasons(summary), "no code");
  EXPECT_EQ(summary.instructions, 13u + 14u);
}

TEST(IntelPt, EndsWhereNothingSaysHowOftenASpinWentRound) {
  PtBytes trace;
  trace.Sync().Ip(ppt_tip_pge, 0x1011).Ip(ppt_fup, 0x1016).Ip(ppt_tip, kBase).Sync().Run();
  const TraceSummary summary = Decode(trace.bytes());
  EXPECT_GE(summary.instructions, 14u);
  EXPECT_LT(summary.instructions, 1u << 19);
  EXPECT_EQ(summary.last_branches.size(), 64u);
  EXPECT_NE(Reasons(summary).find("no sync"), std::string::npos);
}

TEST(IntelPt, TakesATraceThatEndsAnywhere) {
  const std::string whole = PtBytes().Sync(4000).Run().bytes();
  uint64_t before = 0;
  for (size_t size = 0; size <= whole.size(); ++size) {
    const TraceSummary summary = Decode(std::string_view(whole).substr(0, size));
    EXPECT_GE(summary.instructions, before) << size;
    EXPECT_EQ(Reasons(summary), size > 0 && size < 16 ? "before the first synchronisation" : "")
        << size;
    before = summary.instructions;
  }
  EXPECT_EQ(before, 14u);
}

TEST(IntelPt, TellsTheTimeBetweenTimeStampsByTheCrystal) {
  // At count 8000 the crystal, 4 counts a tick, is 20 ticks in, and 2 counts; MTC comes at 24, 32
  // and, after 256 of them, 2080.
  PtBytes trace;
  trace.Plain(ppt_psb).Tsc(8000).Tma(20, 2).Mode().Plain(ppt_psbend).Mtc(3).Mtc(4).Plain(ppt_ovf);
  const TraceSummary fine = Decode(trace.bytes(), false, kMtcEvery8);
  ASSERT_EQ(Reasons(fine), "overflow");
  EXPECT_EQ(fine.discontinuities[0].time, 500 + (8000 - 2 + 12 * 4) / 2);
  EXPECT_EQ(Decode(trace.bytes(), false).discontinuities[0].time, 500 + 8000 / 2);
  EXPECT_FALSE(Decode(trace.bytes(), false, kMtcEvery8, PtInfo(false)).discontinuities[0].time);
}

TEST(IntelPt, GivesItsTimeStamps) {
  PtBytes trace;
  trace.Sync(1000).Run();
  const size_t second = trace.size();
  trace.Tsc(5000);
  const TraceSummary summary = Decode(trace.bytes(), false);
  ASSERT_EQ(summary.times.size(), 2u);
  EXPECT_EQ(summary.times[0], (TraceTime{16, 500 + 500}));
  EXPECT_EQ(summary.times[1], (TraceTime{second, 500 + 2500}));
  EXPECT_TRUE(Decode(trace.bytes(), false, 0, PtInfo(false)).times.empty());
}

TEST(IntelPt, TellsWhenBranchesWere) {
  PtBytes trace;
  trace.Sync(1000)
      .Ip(ppt_tip_pge, kBase)
      .Tnt("TT")
      .Tsc(5000)
      .Tnt("NT")
      .Ip(ppt_tip, 0x1010)
      .Ip(ppt_fup, 0x1011)
      .Ip(ppt_tip_pgd, 0);
  const TraceSummary summary = Decode(trace.bytes());
  ASSERT_EQ(summary.last_branches.size(), 7u);
  EXPECT_EQ(summary.last_branches.front().time, 500 + 500);
  EXPECT_EQ(summary.last_branches.back().time, 500 + 2500);
}

TEST(IntelPt, RefusesDamagedMetadataWithAReason) {
  for (size_t size = 0; size < 8 * 10; ++size)
    EXPECT_FALSE(OpenInstructionTrace(PtInfo().substr(0, size), 0).ok()) << size;
  std::string bad = PtInfo();
  bad[2 * 8] = 64;
  const auto refused = OpenInstructionTrace(bad, 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find(">> 64"), std::string::npos)
      << refused.status().message();
}

#endif

// perf's numbers: 1 Intel PT, 2 BTS, 3 CoreSight, 4 SPE.
TEST(IntelPt, TellsItFromTheBranchTraceStore) {
  const auto info = ParseAuxTraceInfo(PtInfo());
  ASSERT_TRUE(info.ok()) << info.status().message();
  EXPECT_EQ(info->kind, TracerKind::kIntelPt);
  for (const int other : {2, 4}) {
    std::string body = PtInfo();
    body[0] = static_cast<char>(other);
    const auto refused = ParseAuxTraceInfo(body);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.status().message().find("of perf's type " + std::to_string(other)),
              std::string::npos)
        << refused.status().message();
  }
}

TEST(IntelPt, ConvertsTheCounterAsPerfDoes) {
  // A zero before zero wraps. The product needs more than 64 bits.
  EXPECT_EQ(PerfTimeOfTsc({31, 1u << 30, uint64_t{0} - 1000}, uint64_t{1} << 40),
            (int64_t{1} << 39) - 1000);
  EXPECT_EQ(PerfTimeOfTsc({31, 1u << 31, 7}, uint64_t{1} << 61), (int64_t{1} << 61) + 7);
  EXPECT_FALSE(PerfTimeOfTsc({0, 4, 0}, uint64_t{1} << 62));
  EXPECT_FALSE(PerfTimeOfTsc({31, 1u << 30, uint64_t{0} - 1000}, 100));
}

}  // namespace
}  // namespace hangscope
