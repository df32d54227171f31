// `hangscope why SNAPSHOT`: all that a snapshot can say about a hang: the verdict it was taken with, its scope,
// its CPU rings.
#ifndef HANGSCOPE_SESSION_WHY_SNAPSHOT_H
#define HANGSCOPE_SESSION_WHY_SNAPSHOT_H

#include "session/why.h"
#include "session/why_perf.h"

namespace hangscope {

// Whether it is a folder with a manifest.
bool IsSnapshot(FileSystem& files, const std::string& folder);

// `options.source.target` is the folder; the path of `perf` is of no account. A part that cannot be read is said; fails
// where none can.
Result<WhyReport> AskWhySnapshot(FileSystem& files, Clock& clock, const WhyOptions& options, WhyPerfOptions perf);

}  // namespace hangscope

#endif
