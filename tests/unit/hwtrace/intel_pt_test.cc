// Intel PT: traces made with libipt's packet encoder over code whose run is known.
#include <gtest/gtest.h>

#include <cstring>

#include "fakes/pt_bytes.h"
#include "hwtrace/auxtrace_info.h"
#include "hwtrace/instruction_trace.h"
#include "hwtrace/trace_times.h"
#include "unit/hwtrace/reasons.h"

namespace hangscope {
namespace {

#if !HANGSCOPE_HAS_LIBIPT

TEST(IntelPt, SaysThatTheLibraryIsMissing) {
  const auto trace = OpenInstructionTrace(PtInfo(), 0);
  ASSERT_FALSE(trace.ok());
  EXPECT_NE(trace.status().message().find("built without libipt"), std::string::npos);
}

#else

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
  trace.Sync(2000).Ip(ppt_tip_pge, kX86Base).Tnt("TT");
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
  trace.Sync().Ip(ppt_tip_pge, kX86Base).Tnt("TTNT").Ip(ppt_tip, 0x900000).Tnt("T").Sync().Run();
  const TraceSummary summary = Decode(trace.bytes());
  EXPECT_EQ(Reasons(summary), "no code");
  EXPECT_EQ(summary.instructions, 13u + 14u);
}

TEST(IntelPt, EndsWhereNothingSaysHowOftenASpinWentRound) {
  PtBytes trace;
  trace.Sync().Ip(ppt_tip_pge, 0x1011).Ip(ppt_fup, 0x1016).Ip(ppt_tip, kX86Base).Sync().Run();
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
      .Ip(ppt_tip_pge, kX86Base)
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

// The parts of a stream that is cut behind each of `cuts` bytes.
std::vector<TraceSummary> DecodeParts(std::string_view bytes, const std::vector<uint64_t>& cuts,
                                      const TraceDecodeOptions& options = {}) {
  auto trace = OpenInstructionTrace(PtInfo(), 0);
  EXPECT_TRUE(trace.ok()) << trace.status().message();
  std::vector<AuxPart> parts{{0, ReadX86}};
  for (const uint64_t cut : cuts) parts.push_back({cut, ReadX86});
  EXPECT_TRUE((*trace)->goes_on());
  return (*trace)->DecodeParts(bytes, parts, options);
}

// What all parts hold, as if they were one.
TraceSummary Joined(const std::vector<TraceSummary>& parts) {
  TraceSummary joined;
  uint64_t begin = 0;
  for (const TraceSummary& part : parts) {
    joined.bytes += part.bytes;
    joined.packets += part.packets;
    for (const auto& [kind, count] : part.packet_kinds) joined.packet_kinds[kind] += count;
    joined.atoms += part.atoms;
    joined.instructions += part.instructions;
    joined.branches += part.branches;
    joined.synchronisations += part.synchronisations;
    joined.exceptions += part.exceptions;
    for (const TraceTime& time : part.times)
      joined.times.push_back({begin + time.offset, time.time});
    for (TraceBranch branch : part.last_branches) {
      EXPECT_LT(branch.offset, part.bytes);
      branch.offset += begin;
      joined.last_branches.push_back(branch);
    }
    for (const Discontinuity& one : part.discontinuities)
      joined.discontinuities.push_back({begin + one.offset, one.time, one.reason, one.cpu});
    begin += part.bytes;
  }
  return joined;
}

// The tracer synchronises where it likes, and an AUX record may end within a packet.
TEST(IntelPt, GivesEachPartOfAStreamWhatItsBytesHold) {
  PtBytes trace;
  trace.Sync(1000).Run().Tsc(3000).Run().Sync(5000).Run().Tsc(7000).Run();
  const std::string bytes = trace.bytes();
  const TraceSummary whole = Decode(bytes);
  ASSERT_EQ(whole.instructions, 4 * 14u);
  ASSERT_EQ(Reasons(whole), "trace off, trace off, trace off");
  for (uint64_t cut = 1; cut < bytes.size(); ++cut) {
    const auto parts = DecodeParts(bytes, {cut, std::min<uint64_t>(cut + 9, bytes.size())});
    const TraceSummary joined = Joined(parts);
    EXPECT_EQ(joined.bytes, bytes.size());
    EXPECT_EQ(joined.packet_kinds, whole.packet_kinds) << cut;
    EXPECT_EQ(joined.atoms, whole.atoms) << cut;
    EXPECT_EQ(joined.exceptions, whole.exceptions) << cut;
    EXPECT_EQ(joined.synchronisations, whole.synchronisations) << cut;
    EXPECT_EQ(joined.instructions, whole.instructions) << cut;
    EXPECT_EQ(joined.branches, whole.branches) << cut;
    EXPECT_EQ(joined.times, whole.times) << cut;
    EXPECT_EQ(Branches(joined), Branches(whole)) << cut;
    for (size_t i = 0; i < whole.last_branches.size(); ++i)
      EXPECT_EQ(joined.last_branches[i].offset, whole.last_branches[i].offset) << cut;
    ASSERT_EQ(Reasons(joined), Reasons(whole)) << cut;
    for (size_t i = 0; i < whole.discontinuities.size(); ++i)
      EXPECT_EQ(joined.discontinuities[i].offset, whole.discontinuities[i].offset) << cut;
  }
}

TEST(IntelPt, GivesInstructionsToThePartWhosePacketsToldOfThem) {
  PtBytes trace;
  trace.Sync();
  const uint64_t run = trace.size();
  trace.Ip(ppt_tip_pge, kX86Base);
  const uint64_t tnt = trace.size();
  trace.Tnt("TTNT");
  const uint64_t tip = trace.size();
  trace.Ip(ppt_tip, 0x1010).Ip(ppt_fup, 0x1011).Ip(ppt_tip_pgd, 0);
  const auto parts = DecodeParts(trace.bytes(), {run, tnt, tip});
  EXPECT_EQ(Branches(parts[0]), "");
  EXPECT_EQ(Branches(parts[1]), "in>1000 ");
  EXPECT_EQ(Branches(parts[2]), "1007>1002 1007>1002 1009>1016 1016>100e ");
  EXPECT_EQ(Branches(parts[3]), "100e>1010 1011>out ");
  EXPECT_EQ(parts[0].instructions, 0u);
  EXPECT_GT(parts[1].instructions, 0u);
  EXPECT_GT(parts[2].instructions, parts[3].instructions);
}

TEST(IntelPt, TakesEachPartsOwnCode) {
  PtBytes trace;
  trace.Sync().Run();
  const uint64_t cut = trace.size();
  trace.Run();
  auto decoder = OpenInstructionTrace(PtInfo(), 0);
  size_t other = 0;
  const ReadCode count = [&](uint64_t address, std::span<char> bytes) {
    ++other;
    return ReadX86(address, bytes);
  };
  const auto parts =
      (*decoder)->DecodeParts(trace.bytes(), {{0, ReadX86}, {cut, count}}, TraceDecodeOptions{});
  EXPECT_EQ(parts[0].instructions, 14u);
  EXPECT_EQ(parts[1].instructions, 14u);
  EXPECT_EQ(other, 14u);
}

TEST(IntelPt, KeepsTheLastBranchesOfAllParts) {
  PtBytes trace;
  trace.Sync().Run();
  const uint64_t cut = trace.size();
  trace.Run();
  TraceDecodeOptions options;
  options.last_branches = 9;
  const auto parts = DecodeParts(trace.bytes(), {cut}, options);
  EXPECT_EQ(Branches(parts[0]), "100e>1010 1011>out ");
  EXPECT_EQ(parts[1].last_branches.size(), 7u);
}

TEST(IntelPt, SaysInEachPartThatItHasNoSynchronisation) {
  PtBytes before;
  before.Run().Run().Run();
  PtBytes synchronised;
  synchronised.Sync().Run();
  const std::string bytes = before.bytes() + synchronised.bytes();
  const auto parts = DecodeParts(bytes, {5, before.size() - 4, before.size() + 20});
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(Reasons(parts[i]), "before the first synchronisation") << i;
    EXPECT_EQ(parts[i].discontinuities.at(0).offset, 0u) << i;
  }
  EXPECT_EQ(Reasons(parts[3]), "");
  const std::string garbage("\x02\xff\x02\xff\x02\xff", 6);
  const auto damaged = DecodeParts(synchronised.bytes() + garbage + bytes,
                                   {synchronised.size() + 3, synchronised.size() + 10});
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(Reasons(damaged[i]), "no sync") << i;
  const auto lost = DecodeParts(synchronised.bytes() + garbage + before.bytes(),
                                {synchronised.size() + 3, synchronised.size() + 10});
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(Reasons(lost[i]), "bad data") << i;
}

TEST(IntelPt, SaysInEachPartThatTheFlowIsLost) {
  PtBytes trace;
  trace.Sync().Ip(ppt_tip_pge, kX86Base).Tnt("TTNT").Ip(ppt_tip, 0x900000);
  const uint64_t first = trace.size();
  trace.Tnt("T").Tnt("TT");
  const uint64_t second = trace.size();
  trace.Tnt("T").Sync().Run();
  const auto parts = DecodeParts(trace.bytes(), {first, second});
  EXPECT_EQ(Reasons(parts[0]), "no code");
  EXPECT_EQ(Reasons(parts[1]), "no code");
  EXPECT_EQ(Reasons(parts[2]), "no code");
  EXPECT_EQ(parts[1].atoms, 3u);
  EXPECT_EQ(parts[2].instructions, 14u);
}

TEST(IntelPt, SaysWhereAStreamMayBeCut) {
  auto decoder = OpenInstructionTrace(PtInfo(), 0);
  PtBytes trace;
  trace.Sync().Run();
  EXPECT_EQ((*decoder)->LastSynchronisation(trace.bytes()), 0u);
  trace.Sync().Run();
  const uint64_t last = trace.size();
  trace.Sync().Run();
  EXPECT_EQ((*decoder)->LastSynchronisation(trace.bytes()), last);
  EXPECT_EQ((*decoder)->LastSynchronisation("no"), 0u);
}

// Branches of a TNT packet may have been kept back while time stamps came.
TEST(IntelPt, SaysWhatSurelyCameBeforeABranch) {
  PtBytes trace;
  trace.Sync(1000)
      .Ip(ppt_tip_pge, kX86Base)
      .Tsc(3000)
      .Tnt("TT")
      .Tsc(5000)
      .Tnt("NT")
      .Tsc(7000)
      .Ip(ppt_tip, 0x1010)
      .Tsc(9000)
      .Ip(ppt_fup, 0x1011)
      .Ip(ppt_tip_pgd, 0);
  const TraceSummary summary = Decode(trace.bytes());
  std::vector<TimeSpan> bounds;
  for (const TraceBranch& branch : summary.last_branches)
    bounds.push_back(TimeOfBranch({0, 100'000}, summary.times, branch));
  // in>1000, twice 1007>1002, 1009>1016, 1016>100e, 100e>1010, 1011>out
  ASSERT_EQ(bounds.size(), 7u);
  EXPECT_EQ(bounds[0], (TimeSpan{1000, 2000}));
  EXPECT_EQ(bounds[1], (TimeSpan{1000, 3000}));
  EXPECT_EQ(bounds[2], (TimeSpan{1000, 3000}));
  EXPECT_EQ(bounds[4], (TimeSpan{1000, 4000}));
  // libipt takes the interrupt's packets together with the TIP.
  EXPECT_EQ(bounds[5], (TimeSpan{2000, 100'000}));
  EXPECT_EQ(bounds[6], (TimeSpan{2000, 100'000}));
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
  EXPECT_EQ(PerfTimeOfCount({31, 1u << 30, uint64_t{0} - 1000}, uint64_t{1} << 40),
            (int64_t{1} << 39) - 1000);
  EXPECT_EQ(PerfTimeOfCount({31, 1u << 31, 7}, uint64_t{1} << 61), (int64_t{1} << 61) + 7);
  EXPECT_FALSE(PerfTimeOfCount({0, 4, 0}, uint64_t{1} << 62));
  EXPECT_FALSE(PerfTimeOfCount({31, 1u << 30, uint64_t{0} - 1000}, 100));
}

}  // namespace
}  // namespace hangscope
