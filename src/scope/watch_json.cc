#include "scope/watch_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/units.h"
#include "hangscope/abi/watch.h"
#include "scope/scope_text.h"
#include "verdict/json.h"

namespace hangscope {
namespace {

using Json = nlohmann::ordered_json;

Json Typed(const char* type, const std::string& target, TimeNs wall) {
  Json json{{"type", type}, {"version", kJsonVersion}, {"time", FormatWallTime(wall)}};
  if (!target.empty()) json["target"] = target;
  return json;
}

double Rounded(TimeNs ns) { return static_cast<double>(ns / kMillisecond) / 1000; }

Json ResourceObject(uint32_t resource, const WatchScene& scene) {
  return {{"number", resource}, {"name", scene.names->Resource(resource)}};
}

Json SubjectObject(const SubjectId& subject, const WatchScene& scene) {
  const SubjectState* const found = scene.Find(subject);
  Json json;
  if (subject.kind == SubjectId::Kind::kCore) {
    json["core"] = subject.index;
  } else {
    json["task"] = found == nullptr ? 0 : found->task;
    json["record"] = subject.index;
  }
  json["name"] = SubjectName(subject, scene);
  if (found == nullptr) return json;
  json["activity"] = ActivityName(found->activity);
  if (subject.kind == SubjectId::Kind::kCore && found->sample.waypoint != 0) {
    json["waypoint"] = WatchNames::Waypoint(found->sample.waypoint);
    if (const std::string place = SubjectPlace(subject, scene); !place.empty())
      json["where"] = place;
  }
  if (found->wait) {
    json["waits_for"] = ResourceObject(found->wait->resource, scene);
    json["waits_s"] = Rounded(std::max<TimeNs>(0, scene.now - found->since));
  }
  return json;
}

Json SubjectList(const std::vector<SubjectId>& subjects, const WatchScene& scene) {
  Json list = Json::array();
  for (const SubjectId& subject : subjects) list.push_back(SubjectObject(subject, scene));
  return list;
}

const char* BusReasonName(uint32_t reason) {
  constexpr const char* kNames[HANGSCOPE_BUS_REASONS] = {"fine",
                                                         "zero length",
                                                         "underflow",
                                                         "overflow",
                                                         "no region",
                                                         "bad coordinates",
                                                         "multicast range",
                                                         "multicast target",
                                                         "misaligned",
                                                         "alignment mismatch",
                                                         "mixed coordinates",
                                                         "inline write unsupported",
                                                         "protected",
                                                         "linked",
                                                         "local overflow",
                                                         "buffer bounds",
                                                         "rights",
                                                         "owner"};
  return reason < HANGSCOPE_BUS_REASONS ? kNames[reason] : "unknown";
}

Json FaultObject(const CoreFault& fault, const WatchScene& scene) {
  Json json{{"type", FaultTypeName(fault.type)}};
  if (fault.type == FaultType::kBus) json["reason"] = BusReasonName(fault.reason);
  if (fault.type == FaultType::kHardware) json["reason"] = fmt::format("cause {:#x}", fault.reason);
  json["text"] = scene.names->Fault(fault);
  if (fault.pc != 0) json["where"] = scene.names->Place(fault.pc);
  json["faults"] = fault.faults;
  return json;
}

}  // namespace

std::string FindingJson(const ScopeFinding& finding, const WatchScene& scene,
                        const FindingHistory& history, TimeNs wall) {
  Json json = Typed("finding", scene.target, wall);
  json["kind"] = FindingKindName(finding.kind);
  json["confidence"] = ConfidenceName(finding.confidence);
  json["hang"] = finding.IsBad();
  json["subjects"] = SubjectList(finding.subjects, scene);
  json["partners"] = SubjectList(finding.partners, scene);
  json["victims"] = SubjectList(finding.victims, scene);
  if (finding.first) json["first"] = SubjectObject(*finding.first, scene);
  if (finding.resource != 0) json["resource"] = ResourceObject(finding.resource, scene);
  if (finding.kind == FindingKind::kFault) json["fault"] = FaultObject(finding.fault, scene);
  if (finding.kind == FindingKind::kCorrupt)
    json["corruption"] = {{"where", CorruptPart(finding.corruption)},
                          {"what", CorruptField(finding.corruption)}};
  json["for_s"] = Rounded(std::max<TimeNs>(0, scene.now - finding.since));
  json["summary"] = FindingSummary(finding, scene);
  json["evidence"] = finding.repeated_evidence;
  for (const std::string& evidence : finding.evidence) json["evidence"].push_back(evidence);
  json["doubts"] = finding.doubts;
  json["last_events"] = history.events;
  json["debug_ring"] = Json::array();
  for (const DebugValue& value : history.debug)
    json["debug_ring"].push_back({{"core", value.core}, {"value", value.value}});
  return JsonLine(json);
}

std::string SubjectJson(const SubjectState& subject, const WatchScene& scene, TimeNs wall) {
  Json json = Typed("change", scene.target, wall);
  json.update(SubjectObject(subject.subject, scene));
  if (subject.subject.kind == SubjectId::Kind::kCore) {
    json["heartbeat"] = subject.sample.heartbeat;
    if (subject.sample.kernel != 0) json["kernel"] = scene.names->Kernel(subject.sample.kernel);
    if (subject.sample.stack_free) json["stack_free_bytes"] = *subject.sample.stack_free;
  }
  return JsonLine(json);
}

std::string WatchNoteJson(const std::string& target, const std::string& event,
                          const std::string& text, TimeNs wall) {
  Json json = Typed("note", target, wall);
  json["event"] = event;
  json["text"] = text;
  return JsonLine(json);
}

std::string WatchEndJson(const WatchCost& cost, size_t findings, size_t bad, TimeNs wall) {
  Json json = Typed("end", "", wall);
  json["findings"] = findings;
  json["bad_findings"] = bad;
  json["polls"] = cost.polls;
  json["read_bytes"] = cost.bytes;
  json["elapsed_s"] = Rounded(cost.elapsed);
  json["cpu"] = cost.elapsed > 0 ? Seconds(cost.cpu) / Seconds(cost.elapsed) : 0.0;
  json["longest_poll_s"] = Seconds(cost.longest_poll);
  json["interval_s"] = Seconds(cost.shortest_interval);
  json["longest_interval_s"] = Seconds(cost.longest_interval);
  return JsonLine(json);
}

std::string WatchCostText(const WatchCost& cost) {
  const double cpu = cost.elapsed > 0 ? 100 * Seconds(cost.cpu) / Seconds(cost.elapsed) : 0;
  std::string text = fmt::format(
      "{} polls in {}, {} read, {:.2g} % of a CPU, longest poll {:.1f} ms", cost.polls,
      FormatElapsed(cost.elapsed), FormatSize(cost.bytes), cpu, Seconds(cost.longest_poll) * 1e3);
  if (cost.longest_interval > cost.shortest_interval) {
    text += fmt::format("; slowed down to every {:.0f} ms to keep its budget",
                        Seconds(cost.longest_interval) * 1e3);
  }
  return text;
}

}  // namespace hangscope
