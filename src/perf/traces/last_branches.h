// Where the threads that a finding blames went last, by the hardware trace of the CPU that each ran
// on last: for a verdict that is told when the snapshot is taken.
#ifndef HANGSCOPE_PERF_LAST_BRANCHES_H
#define HANGSCOPE_PERF_LAST_BRANCHES_H

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/status.h"
#include "model/finding.h"
#include "perf/code/code_places.h"

namespace hangscope {

struct LastBranchLimits {
  size_t branches = 4;          // of a thread; one that repeats at once counts once
  size_t threads = 6;           // of all findings: subjects first, then partners
  uint64_t bytes = 256u << 10;  // decoded of a thread: the newest
  TimeNs time = 2 * kSecond;    // of all; a thread that is begun is finished
  CodePlaces code = {};
};

// Reads the perf.data at `path` through, and adds to each finding its threads' last branches, or a
// sentence why there are none. In a process of its own (base/side_process.h): libraries that decode
// traces and read ELF and DWARF must not bring down who records. Does nothing where no finding
// names a thread of this machine, or the file is no recording with a hardware tracer. Fails where
// the file cannot be read; the findings stay as they are then.
Status AddLastBranches(FileSystem& files, Clock& clock, const std::string& path,
                       const LastBranchLimits& limits, std::vector<Finding>* findings);

}  // namespace hangscope

#endif
