// CoreSight traces: recorded ones against what perf printed of them, and made ones over code whose
// run is known.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "fakes/etm_bytes.h"
#include "hwtrace/auxtrace_info.h"
#include "hwtrace/coresight_trace.h"
#include "hwtrace/instruction_trace.h"
#include "hwtrace/trace_times.h"
#include "unit/hwtrace/reasons.h"

namespace hangscope {
namespace {

using Kinds = std::map<std::string, uint64_t>;

std::string Data(const std::string& name) {
  std::ifstream file(TEST_DATA "/coresight/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t ReadA64(uint64_t address, std::span<char> bytes) {
  if (address < kA64Base || address >= kA64Base + sizeof kA64Code) return 0;
  const size_t count = std::min<size_t>(bytes.size(), kA64Base + sizeof kA64Code - address);
  std::memcpy(bytes.data(), reinterpret_cast<const char*>(kA64Code) + (address - kA64Base), count);
  return count;
}

TraceSummary Decode(const std::string& info, std::string_view bytes,
                    TraceDecodeOptions options = {}) {
  auto trace = OpenInstructionTrace(info, 0);
  EXPECT_TRUE(trace.ok()) << trace.status().message();
  return trace.ok() ? (*trace)->Decode(bytes, options) : TraceSummary{};
}

TraceSummary DecodeRaw(std::string_view bytes) {
  TraceDecodeOptions options;
  options.raw = true;
  options.read_code = ReadA64;
  return Decode(EtmV4Info(1), bytes, options);
}

void ExpectKinds(const TraceSummary& summary, const Kinds& expected) {
  for (const auto& [kind, count] : expected) {
    const auto found = summary.packet_kinds.find(kind);
    EXPECT_EQ(found == summary.packet_kinds.end() ? 0 : found->second, count) << kind;
  }
  EXPECT_EQ(summary.packet_kinds.size(), expected.size());
  uint64_t packets = 0;
  for (const auto& [kind, count] : expected) packets += count;
  EXPECT_EQ(summary.packets, packets);
}

TEST(CoreSight, CountsAThreadsPacketsAsPerfDoes) {
  const TraceSummary summary = Decode(Data("thread.info"), Data("thread.aux"));
  ExpectKinds(summary, {{"I_ADDR_CTXT_L_64IS0", 2},
                        {"I_ADDR_L_64IS0", 3},
                        {"I_ASYNC", 4},
                        {"I_ATOM_F1", 1},
                        {"I_ATOM_F2", 1},
                        {"I_ATOM_F3", 1},
                        {"I_ATOM_F6", 9},
                        {"I_TRACE_INFO", 4},
                        {"I_TRACE_ON", 2}});
  EXPECT_EQ(summary.atoms, 208u);
  EXPECT_EQ(summary.synchronisations, 4u);
  EXPECT_FALSE(summary.instructions_known);
  // Tracing began at 257 and, after an address, again at 283, as perf's Idx says.
  ASSERT_EQ(Reasons(summary), "trace off");
  EXPECT_EQ(summary.discontinuities[0].offset, 283u);
  EXPECT_EQ(summary.discontinuities[0].cpu, 7);
  EXPECT_EQ(summary.bytes_of_cpu.begin()->first, 7);
}

TEST(CoreSight, CountsAKernelsPacketsAsPerfDoes) {
  const TraceSummary summary = Decode(Data("thread.info"), Data("cpu6.aux"));
  ExpectKinds(summary, {{"I_ADDR_CTXT_L_64IS0", 31},
                        {"I_ADDR_L_32IS0", 287},
                        {"I_ADDR_L_64IS0", 36},
                        {"I_ADDR_MATCH", 117},
                        {"I_ADDR_S_IS0", 363},
                        {"I_ASYNC", 3},
                        {"I_ATOM_F1", 223},
                        {"I_ATOM_F2", 284},
                        {"I_ATOM_F3", 1532},
                        {"I_ATOM_F4", 151},
                        {"I_ATOM_F5", 281},
                        {"I_ATOM_F6", 231},
                        {"I_EXCEPT_RTN", 15},
                        {"I_TRACE_INFO", 3},
                        {"I_TRACE_ON", 15}});
  EXPECT_EQ(summary.atoms, 8773u);
  EXPECT_EQ(summary.discontinuities.size(), 14u);  // each time tracing went on, but for the first
}

TEST(CoreSight, FindsTheFirstSynchronisationAsPerfDoes) {
  const TraceSummary summary = Decode(Data("thread.info"), Data("cpu0.aux"));
  ExpectKinds(summary, {{"I_ADDR_CTXT_L_64IS0", 1},
                        {"I_ADDR_L_32IS0", 86},
                        {"I_ADDR_L_64IS0", 17},
                        {"I_ADDR_MATCH", 205},
                        {"I_ADDR_S_IS0", 72},
                        {"I_ASYNC", 1},
                        {"I_ATOM_F1", 109},
                        {"I_ATOM_F2", 73},
                        {"I_ATOM_F3", 1599},
                        {"I_ATOM_F4", 160},
                        {"I_ATOM_F5", 345},
                        {"I_ATOM_F6", 41},
                        {"I_EXCEPT", 1},
                        {"I_NOT_SYNC", 1},
                        {"I_TRACE_INFO", 1}});
  EXPECT_EQ(summary.atoms, 7608u);
  EXPECT_EQ(summary.exceptions, 1u);
  ASSERT_EQ(Reasons(summary), "before the first synchronisation");
  EXPECT_EQ(summary.discontinuities[0].offset, 2u);
}

TEST(CoreSight, FollowsAProgramThroughItsCode) {
  const TraceSummary summary = DecodeRaw(A64Run());
  ASSERT_TRUE(summary.instructions_known);
  EXPECT_EQ(summary.instructions, 12u);
  EXPECT_EQ(summary.branches, 6u);
  EXPECT_EQ(Reasons(summary), "");
  std::string branches;
  for (const TraceBranch& branch : summary.last_branches) {
    branches += (branch.from == 0 ? "in" : std::to_string(branch.from - kA64Base)) + ">" +
                (branch.to == 0 ? "out" : std::to_string(branch.to - kA64Base)) + " ";
  }
  EXPECT_EQ(branches, "in>0 8>4 8>4 12>24 24>16 20>20 20>out ");
}

TEST(CoreSight, KeepsTheLastBranchesOnly) {
  TraceDecodeOptions options;
  options.raw = true;
  options.read_code = ReadA64;
  options.last_branches = 2;
  const TraceSummary summary = Decode(EtmV4Info(1), A64Run(), options);
  ASSERT_EQ(summary.last_branches.size(), 2u);
  EXPECT_EQ(summary.last_branches[0].from, kA64Base + 0x14);
  EXPECT_EQ(summary.branches, 6u);
}

TEST(CoreSight, TakesFramesApart) {
  TraceDecodeOptions options;
  options.read_code = ReadA64;
  const TraceSummary summary = Decode(EtmV4Info(2), Framed(0x10, A64Run()), options);
  EXPECT_EQ(summary.instructions, 12u);
  EXPECT_EQ(summary.branches, 6u);
  ASSERT_EQ(summary.bytes_of_cpu.size(), 1u);
  EXPECT_EQ(summary.bytes_of_cpu.begin()->first, 0);
}

TEST(CoreSight, SaysWhoseTraceIsInASharedSink) {
  const std::string mixed = Framed(0x10, A64Run()) + Framed(0x12, A64Run() + A64Run()) +
                            Framed(0x55, std::string(28, 'x'));
  TraceDecodeOptions options;
  options.read_code = ReadA64;
  TraceSummary summary = Decode(EtmV4Info(2), mixed, options);
  EXPECT_EQ(summary.instructions, 36u);
  EXPECT_EQ(summary.bytes_of_cpu[1], 2 * summary.bytes_of_cpu[0]);
  EXPECT_EQ(summary.bytes_of_cpu[-1], 28u);
  EXPECT_EQ(summary.last_branches.front().cpu, 0);
  EXPECT_EQ(summary.last_branches.back().cpu, 1);
}

TEST(CoreSight, SaysWhereTheTraceUnitLostSomething) {
  EtmBytes trace;
  trace.Sync().On().Enter(kA64Base).Atoms("EEN");
  const size_t overflow = trace.bytes.size();
  trace.Overflow().Sync().On().Enter(kA64Base).Atoms("E");
  const TraceSummary summary = DecodeRaw(trace.bytes);
  ASSERT_EQ(Reasons(summary), "overflow");
  EXPECT_EQ(summary.discontinuities[0].offset, overflow);
  EXPECT_EQ(summary.instructions, 7u + 3u);
}

TEST(CoreSight, GoesOnAfterGarbageAtTheNextSynchronisation) {
  EtmBytes trace;
  trace.Sync().On().Enter(kA64Base).Atoms("EEN");
  const size_t garbage = trace.bytes.size();
  // an extension that does not exist, reserved headers
  trace.Put(std::string("\x00\x7e\x47\x4b", 4)).Put(A64Run());
  const TraceSummary summary = DecodeRaw(trace.bytes);
  ASSERT_FALSE(summary.discontinuities.empty());
  EXPECT_EQ(summary.discontinuities[0].reason, DiscontinuityReason::kBadData);
  EXPECT_EQ(summary.discontinuities[0].offset, garbage);
  EXPECT_EQ(summary.instructions, 7u + 12u);
}

TEST(CoreSight, SaysWhereThereIsNoCode) {
  EtmBytes trace;
  trace.Sync().On().Enter(kA64Base).Atoms("EEN").Enter(0x900000).Atoms("E").Enter(kA64Base).Atoms(
      "E");
  const TraceSummary summary = DecodeRaw(trace.bytes);
  EXPECT_EQ(Reasons(summary), "no code");
  EXPECT_EQ(summary.instructions, 7u + 3u);
  const TraceSummary none = [&] {
    TraceDecodeOptions options;
    options.read_code = [](uint64_t, std::span<char>) { return size_t{0}; };
    return Decode(Data("thread.info"), Data("thread.aux"), options);
  }();
  EXPECT_TRUE(none.instructions_known);
  // perf, too, prints no branch of this file without the binaries
  EXPECT_EQ(none.instructions, 0u);
  EXPECT_EQ(Reasons(none), "no code, trace off, no code, no code");
}

TEST(CoreSight, IsBoundedWhateverTheCodeIs) {
  TraceDecodeOptions options;
  options.raw = true;
  options.most_discontinuities = 3;
  // No branch, for ever.
  options.read_code = [](uint64_t, std::span<char> bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = "\x1f\x20\x03\xd5"[i % 4];
    return bytes.size();
  };
  EtmBytes trace;
  trace.Sync().On();
  for (int i = 0; i < 10; ++i) trace.Enter(kA64Base).Atoms("E");
  const TraceSummary summary = Decode(EtmV4Info(1), trace.bytes, options);
  EXPECT_LT(summary.instructions, 1u << 18);
  EXPECT_EQ(summary.discontinuities.size(), 3u);
  EXPECT_EQ(summary.more_discontinuities, 7u);
}

TEST(CoreSight, TakesATraceThatEndsAnywhere) {
  const std::string whole = A64Run();
  uint64_t before = 0;
  for (size_t size = 0; size <= whole.size(); ++size) {
    const TraceSummary summary = DecodeRaw(std::string_view(whole).substr(0, size));
    EXPECT_GE(summary.instructions, before) << size;
    EXPECT_EQ(Reasons(summary), size > 0 && size < 12 ? Reasons(summary) : "") << size;
    before = summary.instructions;
  }
  EXPECT_EQ(before, 12u);
  // and a part of the fourth
  EXPECT_EQ(DecodeRaw(std::string_view(whole).substr(0, 20)).packets, 3u);
  // What is no whole frame is said.
  const std::string frames = Framed(0x10, whole);
  const TraceSummary cut =
      Decode(EtmV4Info(1), std::string_view(frames).substr(0, frames.size() - 3));
  ASSERT_EQ(Reasons(cut), "bad data");
  EXPECT_EQ(cut.discontinuities[0].offset, frames.size() - 16);
}

TEST(CoreSight, ReadsOldAndNewMetadata) {
  for (const uint64_t version : {0, 1, 2}) {
    TraceDecodeOptions options;
    options.read_code = ReadA64;
    EXPECT_EQ(Decode(EtmV4Info(3, version), Framed(0x14, A64Run()), options).instructions, 12u)
        << version;
  }
}

TEST(CoreSight, RefusesDamagedMetadataWithAReason) {
  const std::string good = EtmV4Info(2);
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(OpenInstructionTrace(good.substr(0, size), 0).ok()) << size;
  }
  const auto with = [&](size_t word, uint64_t value) {
    std::string bad = good;
    std::memcpy(bad.data() + word * 8, &value, 8);
    return OpenInstructionTrace(bad, 0).status().message();
  };
  EXPECT_NE(with(0, 99).find("type 99"), std::string::npos) << with(0, 99);
  EXPECT_NE(with(1, 77).find("version 77"), std::string::npos) << with(1, 77);
  EXPECT_NE(with(2, 0).find("0 CPUs"), std::string::npos) << with(2, 0);
  EXPECT_NE(with(4, 0x1234).find("unknown mark 0x1234"), std::string::npos) << with(4, 0x1234);
  EXPECT_NE(with(5, 1).find("CPU 1 occurs twice"), std::string::npos) << with(5, 1);
  EXPECT_NE(with(6, ~0ull).find("CPU 0 has 18446744073709551615 registers"), std::string::npos)
      << with(6, ~0ull);
  EXPECT_NE(OpenInstructionTrace(good, 5).status().message().find("CPU 5"), std::string::npos);
}

// Packets that only an ETE has are among them: raw as TRBE writes it, and from a sink.
TEST(CoreSight, CountsAnEtesPacketsWithoutItsCode) {
  EtmBytes trace;
  trace.Sync().On().Enter(kA64Base).Atoms("EEN").TimeMarker().Source(kA64Base + 0xc).Atoms("E");
  const Kinds kinds{
      {"I_ASYNC", 1},   {"I_TRACE_INFO", 1}, {"I_TRACE_ON", 1},        {"I_ADDR_CTXT_L_64IS0", 1},
      {"I_ATOM_F1", 4}, {"I_TS_MARKER", 1},  {"I_SRC_ADDR_L_64IS0", 1}};
  TraceDecodeOptions options;
  options.raw = true;
  const TraceSummary raw = Decode(EteInfo(1), trace.bytes, options);
  ExpectKinds(raw, kinds);
  EXPECT_EQ(raw.atoms, 4u);
  EXPECT_EQ(raw.synchronisations, 1u);
  EXPECT_EQ(Reasons(raw), "");
  const TraceSummary framed = Decode(EteInfo(2), Framed(0x12, trace.bytes));
  EXPECT_EQ(framed.atoms, 4u);
  EXPECT_EQ(framed.bytes_of_cpu.begin()->first, 1);
  // An ETMv4 has no such packets.
  EXPECT_NE(Reasons(Decode(EtmV4Info(1), trace.bytes, options)), "");
}

// Metadata of one tracer, CPU 0, trace id 0x10.
std::string OneTracer(uint64_t magic, const std::vector<uint64_t>& registers) {
  std::vector<uint64_t> words{3, 1, 1, 0, magic, 0, registers.size()};
  words.insert(words.end(), registers.begin(), registers.end());
  std::string body(words.size() * 8, '\0');
  std::memcpy(body.data(), words.data(), body.size());
  return body;
}

TEST(CoreSight, DecodesEteAndTheOlderTracers) {
  TraceDecodeOptions options;
  options.raw = true;
  options.read_code = ReadA64;
  EXPECT_EQ(Decode(EteInfo(1), A64Run(), options).instructions, 12u);

  // Arm code: four moves, and a branch to the second. A-sync, I-sync (tracing on) at 0x8000, atoms
  // E E N.
  options.read_code = [](uint64_t address, std::span<char> bytes) -> size_t {
    const uint32_t code[] = {0xe3a00001, 0xe3a00001, 0xe3a00001, 0xe3a00001, 0xeafffffb};
    if (address < 0x8000 || address >= 0x8000 + sizeof code) return 0;
    const size_t count = std::min<size_t>(bytes.size(), 0x8000 + sizeof code - address);
    std::memcpy(bytes.data(), reinterpret_cast<const char*>(code) + (address - 0x8000), count);
    return count;
  };
  const std::string sync = std::string(5, '\0') + '\x80';
  const std::string ptm = OneTracer(0x3030303030303030, {0, 0x10, 0, 0x411cf311});
  const std::string ptm_trace = sync + std::string("\x08\x00\x80\x00\x00\x21", 6) + "\x84";
  const TraceSummary summary = Decode(ptm, ptm_trace, options);
  EXPECT_EQ(summary.synchronisations, 1u);
  EXPECT_EQ(summary.atoms, 1u);
  EXPECT_EQ(summary.instructions, 5u);
  EXPECT_EQ(summary.branches, 1u);

  const std::string etmv3 = OneTracer(0x3030303030303030, {0, 0x10, 0, 0x4114f250});
  // five executed
  const std::string etmv3_trace = sync + std::string("\x08\x21\x00\x80\x00\x00", 6) + "\x94";
  const TraceSummary old = Decode(etmv3, etmv3_trace, options);
  EXPECT_EQ(old.synchronisations, 1u);
  EXPECT_EQ(old.atoms, 5u);
  EXPECT_EQ(old.instructions, 5u);
}

// 25 MHz: 40 ns a count, from a zero.
const CounterConversion kArmCounter{0, 40, 1'000'000};

TraceSummary DecodeWithTimes(const std::string& info, std::string_view bytes, bool raw = true,
                             const std::optional<CounterConversion>& counter = kArmCounter) {
  auto trace = OpenInstructionTrace(info, 0, 0, counter);
  EXPECT_TRUE(trace.ok()) << trace.status().message();
  TraceDecodeOptions options;
  options.raw = raw;
  options.read_code = ReadA64;
  return trace.ok() ? (*trace)->Decode(bytes, options) : TraceSummary{};
}

TEST(CoreSight, ConvertsTimeStampsThatCountAsTheVirtualCounterDoes) {
  EtmBytes trace;
  trace.Sync();
  const size_t first = trace.bytes.size();
  trace.Time(1000).On().Enter(kA64Base).Atoms("EE");
  const size_t second = trace.bytes.size();
  trace.Time(uint64_t{1} << 40).Atoms("N").Time(0);
  const TraceSummary summary = DecodeWithTimes(EtmV4InfoWithTimes(1), trace.bytes);
  EXPECT_EQ(summary.times,
            (std::vector<TraceTime>{{first, 1'040'000, 0}, {second, (40ll << 40) + 1'000'000, 0}}));
  EXPECT_EQ(summary.unconverted_times, 0u);
  ASSERT_EQ(summary.last_branches.size(), 3u);
  EXPECT_EQ(TimeOfBranch({0, INT64_MAX}, summary.times, summary.last_branches.front()),
            (TimeSpan{1'040'000, (40ll << 40) + 1'000'000}));
  for (const std::string& info : {EtmV4InfoWithTimes(1, 2), EtmV4Info(1)}) {
    const TraceSummary without = DecodeWithTimes(info, trace.bytes);
    EXPECT_TRUE(without.times.empty());
    EXPECT_EQ(without.unconverted_times, 2u) << "0 is no time";
  }
  EXPECT_EQ(DecodeWithTimes(EtmV4InfoWithTimes(1), trace.bytes, true, {}).unconverted_times, 2u);
}

TEST(CoreSight, KeepsTheTimesOfCpusThatShareASinkApart) {
  EtmBytes early, late;
  early.Sync().Time(100).On().Enter(kA64Base).Atoms("EE").Time(300);
  late.Sync().Time(5000).On().Enter(kA64Base).Atoms("EE").Time(7000);
  const std::string frames = Framed(0x12, late.bytes) + Framed(0x10, early.bytes);
  const TraceSummary summary = DecodeWithTimes(EtmV4InfoWithTimes(2), frames, false);
  ASSERT_EQ(summary.times.size(), 4u);
  std::map<int, TimeSpan> times;
  for (const TraceBranch& branch : summary.last_branches)
    times[branch.cpu] = TimeOfBranch({0, INT64_MAX}, summary.times, branch);
  EXPECT_EQ(times[0], (TimeSpan{1'004'000, 1'012'000}));
  EXPECT_EQ(times[1], (TimeSpan{1'200'000, 1'280'000}));
}

TEST(CoreSight, ReadsWhereATraceUnitsTimesComeFrom) {
  const auto source = [](const std::string& info) {
    const auto parsed = ParseAuxTraceInfo(info);
    EXPECT_TRUE(parsed.ok()) << parsed.status().message();
    return parsed.ok() && parsed->cpus.at(0).virtual_time;
  };
  EXPECT_TRUE(source(EtmV4InfoWithTimes(1)));
  EXPECT_FALSE(source(EtmV4InfoWithTimes(1, ~uint64_t{0})));
  EXPECT_FALSE(source(EtmV4Info(2)));
  EXPECT_FALSE(source(EtmV4Info(2, 0)));
  EXPECT_FALSE(source(EteInfo(2)));
  const uint64_t ete[] = {3,
                          1,
                          uint64_t{8} << 32 | 1,
                          0,
                          0x5050505050505050,
                          0,
                          9,
                          0,
                          0x10,
                          0x28000ea1,
                          0x4100fff0,
                          0x20001088,
                          0,
                          0xcc,
                          0x47705a13,
                          1};
  EXPECT_TRUE(source({reinterpret_cast<const char*>(ete), sizeof ete}));
}

TEST(CoreSight, ConvertsACounterWithFewBits) {
  // 56 bits; it has gone round since.
  const uint64_t mask = (uint64_t{1} << 56) - 1;
  EXPECT_EQ(PerfTimeOfCount({1, 2, 5, mask - 10, mask}, 20), static_cast<int64_t>(mask + 21 + 5));
  EXPECT_EQ(PerfTimeOfCount({1, 2, 5}, 20), 25);
}

}  // namespace
}  // namespace hangscope
