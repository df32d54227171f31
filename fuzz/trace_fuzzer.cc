// Instruction traces of every format: line by line, and as a stream that is cut
// anywhere.
#include <string>
#include <tuple>
#include <vector>

#include "fuzz.h"
#include "stream/program_code.h"
#include "stream/step_reader.h"
#include "stream/trace_line.h"

namespace hangscope::fuzz {
namespace {

void CheckTraceLine(std::string_view text) {
  const TraceLine line = ParseTraceLine(text);
  for (const std::string_view view : {line.core_path, line.mnemonic, line.function})
    FUZZ_REQUIRE(PointsInto(text, view));
  const bool other = line.kind == TraceLine::Kind::kOther;
  FUZZ_REQUIRE(other == (line.format == TraceFormat::kNone));
  if (line.kind == TraceLine::Kind::kCode) FUZZ_REQUIRE(line.has_bits);
  FUZZ_REQUIRE(!TraceFormatName(line.format).empty());
}

struct Reading {
  using SeenStep = std::tuple<uint32_t, uint64_t, uint64_t, uint64_t, bool, bool>;
  std::vector<SeenStep> steps;
  CoreNames cores;
  StepReader reader;

  explicit Reading(StepReader::Learn learn)
      : reader(&cores, learn, [this](uint32_t core, const Step& step) {
          steps.emplace_back(core, step.pc, step.offset, step.has_values ? step.values : 0,
                             step.has_values, step.starts_block);
        }) {}
};

void CheckReading(const Reading& reading, std::string_view text) {
  FUZZ_REQUIRE(reading.steps.size() <= reading.reader.trace_lines());
  FUZZ_REQUIRE(reading.reader.trace_lines() <= reading.reader.lines());
  for (const auto& [core, pc, offset, values, has_values, starts_block] : reading.steps) {
    FUZZ_REQUIRE(core < reading.cores.size());
    FUZZ_REQUIRE(offset < text.size());
  }
}

// What the trace said about the code leads nowhere unexpected.
void FollowCode(const Reading& reading) {
  ProgramCode code(nullptr);
  if (reading.reader.wide()) code.SetWide();
  code.Learn(reading.reader.code());
  for (const auto& [core, pc, offset, values, has_values, starts_block] : reading.steps) {
    const StepEnd end = code.EndOf({pc, offset, values, has_values, starts_block});
    (void)end.MayLeadTo(pc);
    (void)code.PlaceOf(pc);
    FUZZ_REQUIRE(code.AddressesAt(pc).size() <= kMostAddresses);
  }
}

}  // namespace

// One byte chooses, the rest is the trace.
void FuzzTrace(std::string_view input) {
  Choices choices(input);
  const auto choice = choices.Take<uint8_t>();
  const std::string_view text = choices.rest();
  for (Choices lines(text); !lines.empty();) CheckTraceLine(lines.ScanUntil('\n'));

  const auto learn = (choice & 1) != 0 ? StepReader::Learn::kAll : StepReader::Learn::kListings;
  Reading whole(learn);
  whole.reader.Feed(text, 0);
  whole.reader.Flush();
  CheckReading(whole, text);
  Reading pieces(learn);
  const size_t piece = 1 + (choice >> 1);
  for (size_t at = 0; at < text.size(); at += piece) pieces.reader.Feed(text.substr(at, piece), at);
  pieces.reader.Flush();
  FUZZ_REQUIRE(whole.steps == pieces.steps);
  FollowCode(whole);
}

}  // namespace hangscope::fuzz
