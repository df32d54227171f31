// The hardware traces of a perf.data as a trace: a track a ring, a slice for each span that its
// tracer wrote, in it the last branches and the functions that they lead through where the code is
// known.
#ifndef HANGSCOPE_TRACE_TRACE_OF_HARDWARE_H
#define HANGSCOPE_TRACE_TRACE_OF_HARDWARE_H

#include <memory>
#include <string>

#include "trace/trace_source.h"

namespace hangscope {

// Reads the file through and decodes before it returns. Null: it has no hardware traces. `files`
// outlives it.
Result<std::unique_ptr<TraceSource>> OpenHardwareTrace(FileSystem& files, const std::string& path,
                                                       const TraceRequest& request);

}  // namespace hangscope

#endif
