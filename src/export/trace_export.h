// Writes a trace in one of the formats that there are: hangscope export.
#ifndef HANGSCOPE_EXPORT_TRACE_EXPORT_H
#define HANGSCOPE_EXPORT_TRACE_EXPORT_H

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "trace/trace_source.h"

namespace hangscope {

struct TraceFormatInfo {
  std::string name;        // "text"
  std::string what;        // a few words
  bool is_folder = false;  // many files
  bool is_binary = false;
  std::vector<std::string> endings = {};  // of its files' names, ".json"
};

// All that can be written.
const std::vector<TraceFormatInfo>& TraceFormats();

// The name of the format that files called so have; empty: their name says nothing.
std::string TraceFormatOfPath(std::string_view path);

struct TraceExportOptions {
  std::string format;
  // of a file or, where the format is one, a folder; empty: `standard_output`
  std::string path;
  File* standard_output = nullptr;  // written from its begin to its end
  bool force = false;               // what is at `path` may be replaced
  // asked now and then, with how far it is (0 to 1); false: stop; empty: always
  std::function<bool(double)> go_on = {};
};

struct TraceExportSummary {
  uint64_t events = 0;
  uint64_t losses = 0;
  uint64_t standings = 0;  // of how many it says how they stood at the end
  uint64_t waiting = 0;    // of these
  std::string standers;    // what these are, as "threads"; of one without the s
  uint64_t bytes = 0;      // 0: of standard output
  TimeSpan time;
  std::string counts;    // what times count, "ticks"; empty: nanoseconds
  bool stopped = false;  // as go_on said; nothing is at `path` then
};

// One sentence where the format is none, or its place is taken: before anything is read.
Status CheckTraceExport(FileSystem& files, const TraceExportOptions& options);

// What is at `path` is whole: it has another name (PATH.PID.partial) until then, and is removed
// where this fails.
Result<TraceExportSummary> ExportTrace(FileSystem& files, TraceSource& source,
                                       const TraceExportOptions& options);

}  // namespace hangscope

#endif
