// CoreSight trace (ETMv3, PTM, ETMv4, ETE) decoded by libopencsd.
//
// perf's AUX data is either in frames of 16 bytes, in which the traces of several CPUs are mixed
// and each byte's trace id is said, or raw: one CPU's trace as its trace unit wrote it. In frames,
// everything is decoded whose id AUXTRACE_INFO gives to a CPU, and summed up together; what else is
// there is counted in TraceSummary::bytes_of_cpu.
#ifndef HANGSCOPE_HWTRACE_CORESIGHT_TRACE_H
#define HANGSCOPE_HWTRACE_CORESIGHT_TRACE_H

#include <memory>

#include "hwtrace/auxtrace_info.h"
#include "hwtrace/instruction_trace.h"

namespace hangscope {

// `cpu`: whose trace raw bytes are. Fails where that CPU has no trace unit in `info`. `counter`:
// how perf's time follows the CPU's counter; time stamps of trace units that count as it does have
// times by it.
// What it returns may be used by any thread, by one at a time; libopencsd keeps state of the whole
// process, so decoding takes its turn, and ReadCode must not decode.
Result<std::unique_ptr<InstructionTrace>> OpenCoreSightTrace(
    const AuxTraceInfo& info, int cpu, const std::optional<CounterConversion>& counter = {});

}  // namespace hangscope

#endif
