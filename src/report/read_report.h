// `hangscope report`: all that a snapshot, or another recording, can say about a hang, as the data
// of one page.
#ifndef HANGSCOPE_REPORT_READ_REPORT_H
#define HANGSCOPE_REPORT_READ_REPORT_H

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/file_system.h"
#include "model/report.h"
#include "perf/code/code_places.h"
#include "scope/scope_view.h"

namespace hangscope {

struct ReportOptions {
  // the folder of a snapshot; or as for hangscope why: a scope's file, a perf.data
  ScopeSource source;
  std::string threads = {};      // what hangscope why --json said of the process that `source` is
  std::string against;           // the same of a healthy run; empty: none
  size_t most_events = 200'000;  // of all tracks together, the newest
  CodePlaces code = {};          // that hardware traces are followed through
  // of reading what happened when; what is older is left out then. 0: as long as it takes
  TimeNs most_time = 0;
  // told how far reading what happened when is, 0 to 1, now and then; empty: nobody
  std::function<void(double)> progress = {};
};

// A part that cannot be read is named in the report's troubles; fails where none can. Memory is
// bounded by `most_events` and the sizes that a manifest, a scope and the last lines may have.
Result<Report> ReadReport(FileSystem& files, Clock& clock, const ReportOptions& options);

// Writes the page of `report` to `path`, by way of `fresh`, a name on the same file system that
// nobody else uses: whoever opens `path` finds a whole page. `mode`: kNew where a user asked for
// it, kRecordedNew for a part of a recording. A page that is larger than `most_bytes` is not
// written (kUsage); 0: any.
Status WriteReportPage(FileSystem& files, const Report& report, const std::string& path,
                       const std::string& fresh, FileSystem::Mode mode, uint64_t most_bytes = 0);

}  // namespace hangscope

#endif
