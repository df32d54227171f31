// Intel Processor Trace decoded by libipt.
#ifndef HANGSCOPE_HWTRACE_INTEL_PT_TRACE_H
#define HANGSCOPE_HWTRACE_INTEL_PT_TRACE_H

#include <memory>

#include "hwtrace/auxtrace_info.h"
#include "hwtrace/instruction_trace.h"

namespace hangscope {

// `config`: the event's, 0: not known. Fails where this build has no libipt. What it returns may be
// used by any thread, by one at a time; several of them by several threads.
Result<std::unique_ptr<InstructionTrace>> OpenIntelPtTrace(const IntelPtSetting& setting,
                                                           uint64_t config);

}  // namespace hangscope

#endif
