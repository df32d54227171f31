// A scope as a trace: a track a core, the kinds of events of its catalog, and how its cores and
// tasks stood at the end.
#ifndef HANGSCOPE_TRACE_TRACE_OF_SCOPE_H
#define HANGSCOPE_TRACE_TRACE_OF_SCOPE_H

#include <memory>
#include <vector>

#include "device/device_file.h"
#include "model/manifest.h"
#include "trace/trace_source.h"

namespace hangscope {

struct ScopeTraceOptions {
  // which make CLOCK_MONOTONIC of its times; empty: they stay the target's own
  std::vector<ScopeClockFit> clocks;
  // A Linux program's cores are threads: whether their events are those of tasks, by the numbers
  // that the kernel knows them by.
  bool threads_are_tasks = false;
};

struct ScopeTracePart {
  std::unique_ptr<TraceSource> source;
  int64_t task_shift = 0;  // numbers of tasks are its own, and count from here beside others'
  // its cores are threads of a Linux program: numbers of tasks are the kernel's
  bool of_threads = false;
};

// Reads the target at once. Fails where it has no scope that can be read.
Result<ScopeTracePart> OpenScopeTrace(FileSystem& files, Clock& clock, const ScopeSource& source,
                                      const ScopeTraceOptions& options);
// A part for each memory of a device that can be read; how all of their cores and tasks stood is in
// the first. `device`: of what does not change any more. A memory that cannot be read is a warning;
// fails where none can.
Result<std::vector<ScopeTracePart>> OpenDeviceTrace(FileSystem& files, Clock& clock,
                                                    const DeviceSpec& device);

}  // namespace hangscope

#endif
