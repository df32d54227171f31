// A debugger's snapshot: its settings, each up to a NUL, then a byte that chooses, then what all
// files that it names are.
//
//   snapshot.ini NUL trace.ini NUL a.ini NUL b.ini NUL; choice (1: with code); bytes
#include "fakes/fake_file_system.h"
#include "fuzz.h"
#include "hwtrace/debugger_traces.h"

namespace hangscope::fuzz {
namespace {

constexpr size_t kMostSettings = 1u << 12;
constexpr size_t kMostTraceBytes = 1u << 10;

void CheckSnapshot(const DebuggerSnapshot& snapshot) {
  for (const SnapshotSource& source : snapshot.sources) {
    FUZZ_REQUIRE(!source.core || *source.core < snapshot.cores.size());
    FUZZ_REQUIRE(source.etm.has_value() == source.refusal.empty());
    FUZZ_REQUIRE(!source.etm || source.etm->trace_id < 0x80);
  }
  for (const SnapshotBuffer& buffer : snapshot.buffers) {
    for (const size_t source : buffer.sources) FUZZ_REQUIRE(source < snapshot.sources.size());
    FUZZ_REQUIRE(buffer.file.find("..") == std::string::npos || buffer.file.size() > 2);
  }
  FUZZ_REQUIRE(!snapshot.buffers.empty() && snapshot.warnings.size() <= 100);
}

}  // namespace

void FuzzDebugger(std::string_view input) {
  Choices choices(input.substr(0, kMostSettings));
  FakeFileSystem files;
  for (const char* name : {"snapshot.ini", "trace.ini", "a.ini", "b.ini"})
    (void)WriteWholeFile(files, std::string("board/") + name, choices.ScanUntil('\0')).ok();
  const bool with_code = choices.UpTo(1) == 1;
  (void)WriteWholeFile(files, "board/bytes", choices.ReadBytes(kMostTraceBytes)).ok();
  auto snapshot = ReadDebuggerSnapshot(files, "board");
  FUZZ_REQUIRE(snapshot.ok() || !snapshot.status().message().empty());
  if (!snapshot.ok()) return;
  CheckSnapshot(*snapshot);
  // Each source that a buffer names decodes all of it.
  size_t decodings = 0;
  for (const SnapshotBuffer& buffer : snapshot->buffers) decodings += buffer.sources.size();
  if (decodings > 8) return;
  const DebuggerTraces all = DecodeDebuggerSnapshot(files, *snapshot, {}, with_code);
  FUZZ_REQUIRE(all.traces.size() <= decodings);
  for (const SourceTrace& trace : all.traces)
    FUZZ_REQUIRE(trace.summary.branches <= trace.summary.instructions);
}

}  // namespace hangscope::fuzz
