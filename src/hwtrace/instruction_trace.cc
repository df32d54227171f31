#include "hwtrace/instruction_trace.h"

#include "hwtrace/auxtrace_info.h"
#include "hwtrace/coresight_trace.h"
#include "hwtrace/intel_pt_trace.h"

namespace hangscope {

Result<std::unique_ptr<InstructionTrace>> OpenInstructionTrace(std::string_view auxtrace_info,
                                                               int cpu, uint64_t config) {
  auto info = ParseAuxTraceInfo(auxtrace_info);
  if (!info.ok()) return info.status();
  return info->kind == TracerKind::kIntelPt ? OpenIntelPtTrace(info->intel_pt, config)
                                            : OpenCoreSightTrace(*info, cpu);
}

}  // namespace hangscope
