// The rings of hardware traces in a capture, as a window takes them: what several CPUs wrote into
// one sink is taken apart as that of a file is (perf/traces/shared_sinks.h).
#ifndef HANGSCOPE_SNAPSHOT_TRACE_HISTORIES_H
#define HANGSCOPE_SNAPSHOT_TRACE_HISTORIES_H

#include "cpu/cpu_recorder.h"
#include "window/find_window.h"

namespace hangscope {

void AddTraceRings(const CpuCapture& capture, WindowInput* input);

}  // namespace hangscope

#endif
