// `hangscope why SNAPSHOT`: all that a snapshot can say about a hang: the verdict it was taken
// with, its scope, its CPU rings.
#ifndef HANGSCOPE_WHY_WHY_SNAPSHOT_H
#define HANGSCOPE_WHY_WHY_SNAPSHOT_H

#include <optional>
#include <string>

#include "why/why.h"
#include "why/why_perf.h"

namespace hangscope {

// The window of the snapshot that `recording`, the CPUs' file in it, is part of, as the manifest
// beside it says. Nothing where there is none, or for another file.
std::optional<Window> WindowOf(FileSystem& files, const std::string& recording);

// `options.source.target` is the folder; the path of `perf` is of no account. A part that cannot be
// read is said; fails where none can.
Result<WhyReport> AskWhySnapshot(FileSystem& files, Clock& clock, const WhyOptions& options,
                                 WhyPerfOptions perf);

}  // namespace hangscope

#endif
