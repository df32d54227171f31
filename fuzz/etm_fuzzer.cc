// Hardware instruction traces: what perf says of the tracer, its bytes, and code that may be
// anything.
//
//   kind (below; + 16: raw bytes, + 32: with code), 6 bits of how many branches are wanted; a byte:
//   how many of the next bytes are code; code; trace
//
// The trace is taken for frames, too. Of kind 5 it begins with AUXTRACE_INFO, its size in two
// bytes.
#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "fakes/etm_bytes.h"
#include "fuzz.h"
#include "hwtrace/coresight_frames.h"
#include "hwtrace/instruction_trace.h"

namespace hangscope::fuzz {
namespace {

constexpr size_t kMostBytes = 1u << 11;
constexpr size_t kMostDiscontinuities = 20;

template <size_t kWords>
std::string Body(const std::array<uint64_t, kWords>& words) {
  return {reinterpret_cast<const char*>(words.data()), kWords * 8};
}

std::string Info(uint32_t kind, Choices* choices) {
  constexpr uint64_t kEtmV3 = 0x3030303030303030;
  switch (kind) {
    case 0:
      return EtmV4InfoWithTimes(3);
    case 1:
      return Body<15>({3, 1, 1, 0, 0x5050505050505050, 0, 8, 0, 0x10, 0x28000ea1, 0x4100fff0,
                       0x20001088, 0, 0xcc, 0x47705a13});
    case 2:
      return Body<11>({3, 1, 1, 0, kEtmV3, 0, 4, 0x1000, 0x10, 0, 0x411cf311});
    case 3:
      return Body<11>({3, 1, 1, 0, kEtmV3, 0, 4, 0x1000, 0x10, 0, 0x4114f250});
    case 4:
      return Body<19>(
          {1, 9, 1, 1, 500, 1, 1 << 10, 1 << 11, 1, 1, 1, 1 << 9, 0xf << 14, 4, 1, 2, 0, 0, 0});
    default:
      return std::string(choices->ReadBytes(choices->Take<uint16_t>()));
  }
}

// The same code again and again, in all of memory, but for where it is not.
size_t ReadAgain(std::string_view code, uint64_t address, std::span<char> bytes) {
  if (code.empty() || (address >> 20 & 7) == 7) return 0;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = code[(address + i) % code.size()];
  return bytes.size();
}

void Check(const TraceSummary& summary, std::string_view bytes, const TraceDecodeOptions& options) {
  FUZZ_REQUIRE(summary.bytes == bytes.size());
  FUZZ_REQUIRE(summary.last_branches.size() <= options.last_branches);
  FUZZ_REQUIRE(summary.discontinuities.size() <= 2 * options.most_discontinuities);
  FUZZ_REQUIRE(summary.branches <= summary.instructions);
  FUZZ_REQUIRE(summary.instructions_known == (options.read_code != nullptr) ||
               summary.packets == 0);
  for (const Discontinuity& one : summary.discontinuities) FUZZ_REQUIRE(one.offset <= bytes.size());
  std::map<int, TimeNs> times;
  for (size_t i = 0; i < summary.times.size(); ++i) {
    const TraceTime& one = summary.times[i];
    FUZZ_REQUIRE(i == 0 || one.offset >= summary.times[i - 1].offset);
    FUZZ_REQUIRE(!times.contains(one.cpu) || one.time >= times[one.cpu]);
    times[one.cpu] = one.time;
  }
  for (const TraceBranch& branch : summary.last_branches)
    FUZZ_REQUIRE(branch.offset <= bytes.size() && branch.after <= bytes.size());
  uint64_t packets = 0;
  for (const auto& [kind, count] : summary.packet_kinds) packets += count;
  FUZZ_REQUIRE(packets == summary.packets);
}

// How a stream is cut into parts changes nothing of what they hold together.
void CheckParts(InstructionTrace& trace, const TraceSummary& whole, std::string_view bytes,
                uint64_t cut, const TraceDecodeOptions& options) {
  if (!trace.goes_on()) return;
  cut = std::min<uint64_t>(cut, bytes.size());
  const uint64_t again = cut + (bytes.size() - cut) / 3;
  const auto parts = trace.DecodeParts(
      bytes, {{0, options.read_code}, {cut, options.read_code}, {again, options.read_code}},
      options);
  TraceSummary sum;
  size_t branches = 0;
  for (const TraceSummary& part : parts) {
    sum.bytes += part.bytes;
    sum.packets += part.packets;
    sum.atoms += part.atoms;
    sum.instructions += part.instructions;
    sum.branches += part.branches;
    branches += part.last_branches.size();
    for (const Discontinuity& one : part.discontinuities) FUZZ_REQUIRE(one.offset <= part.bytes);
  }
  FUZZ_REQUIRE(sum.bytes == whole.bytes && sum.packets == whole.packets);
  FUZZ_REQUIRE(sum.atoms == whole.atoms && sum.instructions == whole.instructions);
  FUZZ_REQUIRE(sum.branches == whole.branches && branches == whole.last_branches.size());
  FUZZ_REQUIRE(trace.LastSynchronisation(bytes) <= bytes.size());
}

CoreSightFrames FramesOf(std::string_view bytes, size_t part) {
  CoreSightFrameReader reader;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(part, bytes.size())))
    reader.Add(bytes.substr(0, part));
  return reader.frames();
}

// Whose the bytes in frames are does not depend on how they are cut.
void CheckFrames(std::string_view bytes, size_t part) {
  const CoreSightFrames whole = FramesOf(bytes, bytes.size());
  const CoreSightFrames parts = FramesOf(bytes, part);
  FUZZ_REQUIRE(whole.bytes == bytes.size() && parts.bytes == bytes.size());
  FUZZ_REQUIRE(whole.barriers == parts.barriers && whole.ids.size() == parts.ids.size());
  uint64_t bytes_of_ids = 0;
  for (const auto& [id, of] : whole.ids) {
    FUZZ_REQUIRE(parts.ids.contains(id) && parts.ids.at(id).bytes == of.bytes);
    FUZZ_REQUIRE(of.first_frame <= of.last_frame && of.last_frame < bytes.size());
    bytes_of_ids += of.bytes;
  }
  FUZZ_REQUIRE(bytes_of_ids <= bytes.size());
}

}  // namespace

void FuzzEtm(std::string_view input) {
  Choices choices(input.substr(0, kMostBytes));
  const auto flags = choices.Take<uint8_t>();
  const std::string_view code = choices.ReadBytes(choices.Take<uint8_t>());
  TraceDecodeOptions options;
  options.raw = (flags & 16) != 0;
  options.most_discontinuities = kMostDiscontinuities;
  options.last_branches = flags >> 6;
  if ((flags & 32) != 0)
    options.read_code = [&](uint64_t address, std::span<char> bytes) {
      return ReadAgain(code, address, bytes);
    };
  const std::string info = Info(flags & 15, &choices);
  auto trace = OpenInstructionTrace(info, 0, flags << 14, CounterConversion{1, 3, 7});
  FUZZ_REQUIRE(trace.ok() || !trace.status().message().empty());
  if (!trace.ok()) return;
  const TraceSummary whole = (*trace)->Decode(choices.rest(), options);
  Check(whole, choices.rest(), options);
  CheckParts(**trace, whole, choices.rest(), code.size(), options);
  CheckFrames(choices.rest(), 1 + code.size() % 40);
}

}  // namespace hangscope::fuzz
