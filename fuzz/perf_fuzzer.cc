// A perf.data in any form, as hangscope why and export read it: through and through, and what they
// say of it.
#include <string>

#include "base/utf8.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "fuzz.h"
#include "perf/perf_file.h"
#include "perf/tracepoint_format.h"
#include "trace/trace_of_cpus.h"
#include "trace_check.h"
#include "why/why_perf.h"

namespace hangscope::fuzz {
namespace {

// Each record's parts are its own; how many there are.
uint64_t ReadThrough(PerfFile& file, size_t file_bytes) {
  uint64_t records = 0;
  const Status status = file.ForEach([&](const PerfRecord& record) {
    ++records;
    FUZZ_REQUIRE(record.event < file.events().size());
    FUZZ_REQUIRE(PointsInto(record.body, record.raw));
    FUZZ_REQUIRE(PointsInto(record.body, record.call_chain));
    FUZZ_REQUIRE(record.call_chain.size() % 8 == 0);
    return true;
  });
  FUZZ_REQUIRE(status.ok());
  for (const AuxTrace& trace : file.aux()) {
    FUZZ_REQUIRE(trace.bytes <= file_bytes && trace.file_offset <= file_bytes - trace.bytes);
    FUZZ_REQUIRE(file.ReadAux(trace, 0, 64).value_or("?").size() ==
                 std::min<uint64_t>(trace.bytes, 64));
  }
  return records;
}

void CheckText(const std::string& text) {
  FUZZ_REQUIRE(!text.empty() && text.back() == '\n');
  for (const char byte : text) FUZZ_REQUIRE(byte == '\n' || static_cast<uint8_t>(byte) >= 0x20);
}

}  // namespace

void FuzzPerf(std::string_view input) {
  if (const auto format = TracepointFormat::Parse(input)) (void)format->Describe(input);
  FakeFileSystem files;
  FUZZ_REQUIRE(WriteWholeFile(files, "perf.data", input).ok());
  auto file = PerfFile::Open(files, "perf.data");
  if (!file.ok()) {
    CheckText(file.status().message() + "\n");
    return;
  }
  const uint64_t records = ReadThrough(**file, input.size());
  FUZZ_REQUIRE(records == ReadThrough(**file, input.size()));
  FakeClock clock;
  for (const bool json : {false, true}) {
    WhyPerfOptions options;
    options.path = "perf.data";
    options.json = json;
    options.branches = 4;
    auto report = AskWhyPerf(files, clock, options);
    FUZZ_REQUIRE(report.ok());
    CheckText(report->text);
  }
  CheckTrace([&files] {
    auto trace = OpenCpuTrace(files, "perf.data");
    FUZZ_REQUIRE(trace.ok());
    return std::move(*trace);
  });
}

}  // namespace hangscope::fuzz
