// The flow of the program behind an Intel PT trace: which instructions ran, which branches were
// taken. Needs the code.
#ifndef HANGSCOPE_HWTRACE_INTEL_PT_FLOW_H
#define HANGSCOPE_HWTRACE_INTEL_PT_FLOW_H

#include <intel-pt.h>

#include <string_view>

#include "hwtrace/instruction_trace.h"
#include "hwtrace/intel_pt_clock.h"

namespace hangscope {

// Adds instructions, branches, and the discontinuities that packets alone do not show to `summary`,
// whose packets are counted already. Any thread. `config` says where the bytes are.
void FollowIntelPtFlow(const pt_config& config, const IntelPtClock& clock,
                       const TraceDecodeOptions& options, TraceSummary* summary);

}  // namespace hangscope

#endif
