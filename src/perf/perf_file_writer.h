// What a CPU recorder captured as a perf.data file, in perf's file form, so that `perf script`,
// `perf report` and whatever else reads perf.data do. Format:
// tools/perf/Documentation/perf.data-file-format.txt of Linux.
//
//   | header | ids | attributes | data: side band, rings one after the other | table of features |
//   features |
//
// Records keep the order of their ring; who reads sorts them by time, as perf does.
#ifndef HANGSCOPE_PERF_PERF_FILE_WRITER_H
#define HANGSCOPE_PERF_PERF_FILE_WRITER_H

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "cpu/cpu_recorder.h"
#include "perf/recorded_rings.h"

namespace hangscope {

// Where it was captured; what is empty or 0 stays out of the file.
struct PerfFileOrigin {
  std::string host;
  std::string release;  // of the kernel
  std::string architecture;
  uint32_t cpus_available = 0;
  uint32_t cpus_online = 0;
  std::vector<std::string> command;  // of the program
};

// Of the machine that this runs on; without a command.
PerfFileOrigin ThisMachine();

// Writes `path` anew; the folder must exist. What the rings say is lost becomes PERF_RECORD_LOST
// records at their ends. Hardware traces come last; perf reads them where the side band has their
// PERF_RECORD_AUXTRACE_INFO, which whoever records them knows. Needs no memory that grows with the
// capture. `rings`: what it is to say of them; null: nothing. Returns the file's size in bytes.
Result<uint64_t> WritePerfFile(FileSystem& files, const std::string& path,
                               const CpuCapture& capture, const PerfFileOrigin& origin,
                               const RecordedRings* rings = nullptr);

}  // namespace hangscope

#endif
