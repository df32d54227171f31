#include "perf/traces/trace_ids.h"

#include <algorithm>
#include <set>

#include "base/bytes.h"
#include "model/perf_format.h"

namespace hangscope {

void TraceIds::Add(const PerfRecord& record) {
  if (record.type != kPerfAuxOutputHardwareId || record.body.size() < 8 || record.cpu < 0) return;
  if (const auto id = ParseHardwareTraceId(Load64(record.body.data(), ByteOrder::kLittle)))
    told_[record.cpu] = *id;
}

void TraceIds::Finish(const std::string& auxtrace_info) {
  info_ = auxtrace_info;
  const auto info = ParseAuxTraceInfo(info_);
  if (!info.ok() || info->kind != TracerKind::kCoreSight) return;
  pmu_type_ = info->pmu_type;
  std::set<uint8_t> given;
  for (const auto& [cpu, id] : told_) given.insert(id.trace_id);
  for (const EtmSetting& etm : info->cpus) {
    cpus_.push_back(etm.cpu);
    const auto told = told_.find(etm.cpu);
    // What perf wrote down before the kernel gave ids is only what it might have been.
    ids_[etm.cpu] = told != told_.end()            ? told->second.trace_id
                    : given.contains(etm.trace_id) ? 0
                                                   : etm.trace_id;
  }
}

std::optional<uint32_t> TraceIds::SinkOf(int cpu) const {
  const auto told = told_.find(cpu);
  return told == told_.end() ? std::nullopt : told->second.sink;
}

bool TraceIds::NamesOneSink(const std::vector<PerfEvent>& events) const {
  return any() && std::any_of(events.begin(), events.end(), [&](const PerfEvent& event) {
           return event.attr.type == pmu_type_ && static_cast<uint32_t>(event.attr.config2) != 0;
         });
}

// Those of other sinks have none in this one's frames.
std::map<int, uint8_t> TraceIds::IdsIn(int carrier) const {
  const std::optional<uint32_t> sink = SinkOf(carrier);
  std::map<int, uint8_t> ids = ids_;
  for (auto& [cpu, id] : ids) {
    const std::optional<uint32_t> other = SinkOf(cpu);
    if (sink && other && *other != *sink) id = 0;
  }
  return ids;
}

std::optional<int> TraceIds::CpuOf(uint8_t id, int carrier) const {
  if (id == 0) return std::nullopt;
  for (const auto& [cpu, its] : IdsIn(carrier)) {
    if (its == id) return cpu;
  }
  return std::nullopt;
}

std::string TraceIds::InfoFor(int carrier) const {
  return told_.empty() ? info_ : WithTraceIds(info_, IdsIn(carrier));
}

}  // namespace hangscope
