// The threads of a snapshot as a trace: no events, but how each thread stood at the end, for whom
// it waited and where.
#ifndef HANGSCOPE_TRACE_TRACE_OF_THREADS_H
#define HANGSCOPE_TRACE_TRACE_OF_THREADS_H

#include <memory>
#include <optional>
#include <string>

#include "trace/trace_source.h"

namespace hangscope {

// `taken`: the wall time of the snapshot. Nothing, or a file that does not say when the threads
// were looked at by CLOCK_MONOTONIC, or `other_clock`: it has no times.
Result<std::unique_ptr<TraceSource>> OpenThreadsTrace(FileSystem& files, const std::string& path,
                                                      std::optional<TimeNs> taken,
                                                      bool other_clock);

}  // namespace hangscope

#endif
