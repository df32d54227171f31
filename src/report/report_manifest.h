// What a snapshot's manifest tells a report. Nothing in it is trusted: it may be newer, damaged, or
// no JSON.
#ifndef HANGSCOPE_REPORT_REPORT_MANIFEST_H
#define HANGSCOPE_REPORT_REPORT_MANIFEST_H

#include <string>
#include <vector>

#include "base/file_system.h"
#include "model/manifest.h"
#include "model/report.h"

namespace hangscope {

// What else of it others need.
struct ReportFacts {
  ReportTime end;                    // monotonic: of the window; nothing: the manifest does not say
  std::optional<TimeNs> taken_wall;  // when it was taken: the same instant
  std::string elf;
  std::optional<ScopeClockFit> scope_clock;  // of the first core that has one
  std::vector<std::string> streams;          // their names
  std::vector<std::string> trace_streams;    // those that carry an instruction trace
};

// Fails where there is none that can be read; then nothing was added. What is missing or
// contradicts itself in it is a trouble of the report.
Status AddManifest(FileSystem& files, const std::string& folder, Report* report,
                   ReportFacts* facts);

}  // namespace hangscope

#endif
