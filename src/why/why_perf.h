// `hangscope why perf.data`: what a recording of perf tells about a hang, and what it covers.
#ifndef HANGSCOPE_WHY_WHY_PERF_H
#define HANGSCOPE_WHY_WHY_PERF_H

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/file_system.h"
#include "model/window.h"
#include "perf/code/code_places.h"
#include "why/why.h"

namespace hangscope {

struct WhyPerfOptions {
  std::string path;
  TimeNs stall = kSecond;  // what lasts so long is a hang
  bool json = false;
  CodePlaces code = {};
  size_t branches = 0;  // the last ones of each trace to be told
  // of the snapshot that the file is part of, by the clock of its records
  std::optional<Window> window = {};
};

// Reads the file through, once and a little; fails where nothing of it can be read. What is damaged
// is told.
Result<WhyPart> LookAtPerf(FileSystem& files, Clock& clock, const WhyPerfOptions& options);
Result<WhyReport> AskWhyPerf(FileSystem& files, Clock& clock, const WhyPerfOptions& options);

}  // namespace hangscope

#endif
