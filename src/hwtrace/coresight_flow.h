// The flow of the program behind a CoreSight trace: which instructions ran, which branches were
// taken. Needs the code.
#ifndef HANGSCOPE_HWTRACE_CORESIGHT_FLOW_H
#define HANGSCOPE_HWTRACE_CORESIGHT_FLOW_H

#include <string_view>
#include <vector>

#include "hwtrace/auxtrace_info.h"
#include "hwtrace/instruction_trace.h"

namespace hangscope {

// Adds instructions, branches, and the discontinuities that packets alone do not show to `summary`,
// whose packets are counted already. Only with CoreSightTree::Lock held, and options.read_code.
void FollowCoreSightFlow(std::string_view bytes, const std::vector<EtmSetting>& cpus,
                         const TraceDecodeOptions& options, TraceSummary* summary);

}  // namespace hangscope

#endif
