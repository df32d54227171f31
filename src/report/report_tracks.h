// What happened when, as the tracks of a report.
#ifndef HANGSCOPE_REPORT_REPORT_TRACKS_H
#define HANGSCOPE_REPORT_REPORT_TRACKS_H

#include <functional>

#include "base/clock.h"
#include "base/file_system.h"
#include "model/report.h"
#include "perf/code/code_places.h"
#include "scope/scope_view.h"

namespace hangscope {

struct TrackLimits {
  size_t events = 200'000;  // and as many spans, of all tracks together, the newest
  TimeNs time = 0;          // of reading; 0: as long as it takes
  std::function<void(double)> progress = {};  // told how far it is, 0 to 1, now and then
};

// `end`: from which the report's times count, by the recording's clock; nothing: becomes the end of
// what it holds. What cannot be read is a trouble of the report; fails where nothing can.
Status AddTracks(FileSystem& files, Clock& clock, const ScopeSource& source, const CodePlaces& code,
                 const TrackLimits& limits, ReportTime* end, Report* report);

}  // namespace hangscope

#endif
