// The traces of a debugger's snapshot, decoded trace unit by trace unit, with the memory that it
// has of the cores as their code.
#ifndef HANGSCOPE_HWTRACE_DEBUGGER_TRACES_H
#define HANGSCOPE_HWTRACE_DEBUGGER_TRACES_H

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "hwtrace/debugger_snapshot.h"
#include "hwtrace/instruction_trace.h"

namespace hangscope {

// Memory as a snapshot has it. One thread.
class DumpedCode {
 public:
  // Both outlive it.
  DumpedCode(FileSystem& files, const DebuggerSnapshot& snapshot)
      : files_(files), snapshot_(snapshot) {}

  // The memory of this core, and where it has none, of the others: most targets' cores share one.
  // The first dump of an address counts. Nothing: there are no dumps. The function holds this.
  ReadCode CodeOf(std::optional<size_t> core);
  // What cannot be read, a sentence each; bounded.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Piece {
    uint64_t end = 0;  // of the addresses
    std::string_view bytes;
  };
  using Memory = std::map<uint64_t, Piece>;  // by first address; apart from each other

  const Memory& MemoryOf(std::optional<size_t> core);
  void Add(const SnapshotDump& dump, Memory* memory);
  // Empty: it cannot be read.
  std::string_view BytesOf(const SnapshotDump& dump);
  void Warn(std::string sentence);

  FileSystem& files_;
  const DebuggerSnapshot& snapshot_;
  std::map<std::optional<size_t>, Memory> memories_;
  // by file, offset and size: several cores have the same
  std::map<std::tuple<std::string, uint64_t, uint64_t>, std::string> pieces_;
  uint64_t bytes_held_ = 0;
  std::vector<std::string> warnings_;
};

// What a trace unit wrote into a buffer.
struct SourceTrace {
  size_t buffer = 0;   // of DebuggerSnapshot::buffers
  size_t source = 0;   // of DebuggerSnapshot::sources
  uint64_t bytes = 0;  // its own; those of frames and of other units are not. 0: not known
  TraceSummary summary;
};

struct DebuggerTraces {
  std::vector<SourceTrace> traces;    // those that have bytes, in the order of the buffers
  std::vector<std::string> warnings;  // a sentence each
};

// `options`: raw and read_code of them do not count. `with_code`: follow the cores' memory.
DebuggerTraces DecodeDebuggerSnapshot(FileSystem& files, const DebuggerSnapshot& snapshot,
                                      const TraceDecodeOptions& options, bool with_code);

// Frames as a DSTREAM's trace port has them, without what is no part of them: the 8 bytes at the
// end of each block of 512, and the synchronisations of 4 between frames. What comes before the
// first of those is left out.
std::string DstreamFrames(std::string_view bytes);

}  // namespace hangscope

#endif
