// A debugger's snapshot as a trace: a track a trace unit, its last branches, and the functions that
// they lead through where an ELF says their names. Times are offsets in the sinks' bytes.
#ifndef HANGSCOPE_TRACE_TRACE_OF_DEBUGGER_H
#define HANGSCOPE_TRACE_TRACE_OF_DEBUGGER_H

#include <memory>
#include <string>

#include "trace/trace_source.h"

namespace hangscope {

// Decodes all of it before it returns. Fails where nothing of its traces can be read.
Result<std::unique_ptr<TraceSource>> OpenDebuggerTrace(FileSystem& files, const std::string& folder,
                                                       const TraceRequest& request);

}  // namespace hangscope

#endif
