// The last lines of a snapshot's streams.
#ifndef HANGSCOPE_REPORT_REPORT_STREAMS_H
#define HANGSCOPE_REPORT_REPORT_STREAMS_H

#include <string>

#include "base/file_system.h"
#include "model/report.h"

namespace hangscope {

// How much of each stream's end; the rest is for hangscope cat.
struct StreamLimits {
  uint64_t bytes = 256u << 10;
  size_t lines = 2000;
};

// The instant `wall` by the monotonic clock, as the ring's begin says where both meet; nothing: it
// cannot be read.
ReportTime MonotonicOf(FileSystem& files, const std::string& prefix, TimeNs wall);

// Adds stream `name` of the ring `prefix`. `end`: monotonic, from which the lines' times count;
// nothing: they have none. Lines of an instruction trace say whose they are. Fails where the ring
// cannot be read.
Status AddStreamLines(FileSystem& files, const std::string& prefix, const std::string& name,
                      ReportTime end, const StreamLimits& limits, Report* report);

}  // namespace hangscope

#endif
