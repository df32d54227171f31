#include "hwtrace/instruction_trace.h"

#include <fmt/format.h>

#include "hwtrace/auxtrace_info.h"
#include "hwtrace/coresight_trace.h"
#include "hwtrace/intel_pt_trace.h"

namespace hangscope {

std::string DiscontinuitiesText(const TraceSummary& summary,
                                std::optional<DiscontinuityReason> always) {
  std::map<DiscontinuityReason, uint64_t> counts;
  if (always) counts[*always] = 0;
  for (const Discontinuity& gap : summary.discontinuities) ++counts[gap.reason];
  std::string text;
  for (const auto& [reason, count] : counts)
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", count, DiscontinuityReasonName(reason));
  return text;
}

std::vector<TraceSummary> InstructionTrace::DecodeParts(std::string_view,
                                                        const std::vector<AuxPart>& parts,
                                                        const TraceDecodeOptions&) {
  return std::vector<TraceSummary>(parts.size());
}

uint64_t InstructionTrace::LastSynchronisation(std::string_view) const { return 0; }

Result<std::unique_ptr<InstructionTrace>> OpenInstructionTrace(
    std::string_view auxtrace_info, int cpu, uint64_t config,
    const std::optional<CounterConversion>& counter) {
  auto info = ParseAuxTraceInfo(auxtrace_info);
  if (!info.ok()) return info.status();
  return info->kind == TracerKind::kIntelPt ? OpenIntelPtTrace(info->intel_pt, config)
                                            : OpenCoreSightTrace(*info, cpu, counter);
}

}  // namespace hangscope
