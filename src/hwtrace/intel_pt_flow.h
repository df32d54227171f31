// The flow of the program behind an Intel PT trace: which instructions ran, which branches were
// taken. Needs the code.
#ifndef HANGSCOPE_HWTRACE_INTEL_PT_FLOW_H
#define HANGSCOPE_HWTRACE_INTEL_PT_FLOW_H

#include <intel-pt.h>

#include <vector>

#include "hwtrace/instruction_trace.h"
#include "hwtrace/intel_pt_clock.h"

namespace hangscope {

// Adds instructions, branches, and the discontinuities that packets alone do not show to
// `summaries`, one for each of `parts`, whose packets are counted already. Any thread. `config`
// says where the bytes are.
void FollowIntelPtFlow(const pt_config& config, const IntelPtClock& clock,
                       const TraceDecodeOptions& options, const std::vector<AuxPart>& parts,
                       std::vector<TraceSummary>* summaries);

}  // namespace hangscope

#endif
