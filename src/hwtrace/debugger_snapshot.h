// A snapshot that a debugger took of a target: a folder with traces of its sinks, the settings of
// its trace units, and memory. Arm's debuggers and OpenCSD's tools write it. Nothing in it is
// trusted: a file that it names lies in the folder, or is not read.
//
//   snapshot.ini  [snapshot] version=1.0; [device_list] anything=FILE;
//                 [trace] metadata=FILE
//   a device's    [device] name=, class=core or trace_source, type=Cortex-A53, ETM4, ...;
//                 [regs] NAME=, NAME(0x010)=, NAME(id:0x10)=; of a core [dump...] file=, address=,
//                 perhaps length=, offset= in the file, space= of the memory (S, EL2)
//   trace's       [trace_buffers] buffers=SECTION,SECTION;
//                 [SECTION] name=, file=, format=; [source_buffers] SOURCE=BUFFER;
//                 [core_trace_sources] CORE=SOURCE
#ifndef HANGSCOPE_HWTRACE_DEBUGGER_SNAPSHOT_H
#define HANGSCOPE_HWTRACE_DEBUGGER_SNAPSHOT_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "hwtrace/auxtrace_info.h"

namespace hangscope {

constexpr char kDebuggerSnapshotName[] = "snapshot.ini";

// Memory of a core that lies in a file.
struct SnapshotDump {
  std::string file;  // in the folder
  uint64_t address = 0;
  uint64_t offset = 0;            // in the file
  std::optional<uint64_t> bytes;  // nothing: to the file's end
  std::string space;              // "S": of which of the core's address spaces; empty: of all
};

struct SnapshotCore {
  std::string name;
  std::string type;  // "Cortex-A53"
  std::vector<SnapshotDump> dumps;
};

// A trace unit.
struct SnapshotSource {
  std::string name;
  std::string type;               // "ETM4", "STM"
  std::optional<EtmSetting> etm;  // its `cpu` is its place in DebuggerSnapshot::sources
  std::string refusal;            // why there is none: a clause
  std::optional<size_t> core;     // whose instructions it traces
};

// What a sink held.
struct SnapshotBuffer {
  enum class Format {
    kFrames,          // "coresight": of several sources, in frames of 16 bytes
    kOneSource,       // "source_data": as one trace unit wrote it
    kFramesAndSyncs,  // "dstream_coresight": frames with synchronisations of a port between them
    kUnknown
  };
  std::string name;
  std::string file;  // in the folder
  std::string format_name;
  Format format = Format::kUnknown;
  std::vector<size_t> sources;  // whose traces it may hold
};

struct DebuggerSnapshot {
  std::string folder;
  std::vector<SnapshotCore> cores;
  std::vector<SnapshotSource> sources;
  std::vector<SnapshotBuffer> buffers;
  std::vector<std::string> warnings;  // what of it is not read and why, a sentence each; bounded
};

bool IsDebuggerSnapshot(FileSystem& files, const std::string& folder);

// Fails where nothing of its traces can be read.
Result<DebuggerSnapshot> ReadDebuggerSnapshot(FileSystem& files, const std::string& folder);

}  // namespace hangscope

#endif
