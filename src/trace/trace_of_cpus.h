// A perf.data as a trace: a track a CPU, the kernel's events with their fields, who ran, who woke
// whom, system calls.
#ifndef HANGSCOPE_TRACE_TRACE_OF_CPUS_H
#define HANGSCOPE_TRACE_TRACE_OF_CPUS_H

#include <memory>
#include <string>

#include "trace/trace_source.h"

namespace hangscope {

// Reads the file through once before it returns. Memory does not grow with the file, but for what
// puts its records in the order of time. `go_on`: TraceRequest's. `has_hardware_traces`: becomes
// whether the file has some; may be null. Fails where nothing of it can be read; `files` outlives
// it.
Result<std::unique_ptr<TraceSource>> OpenCpuTrace(FileSystem& files, const std::string& path,
                                                  const std::function<bool(double)>& go_on = {},
                                                  bool* has_hardware_traces = nullptr);

}  // namespace hangscope

#endif
