#include "window/window_json.h"

#include <nlohmann/json.hpp>

namespace hangscope {
namespace {

using Json = nlohmann::ordered_json;

Json Span(const TimeSpan& span) { return {{"from_ns", span.from}, {"to_ns", span.to}}; }

Json SpanList(const std::vector<TimeSpan>& spans) {
  Json list = Json::array();
  for (const TimeSpan& span : spans) list.push_back(Span(span));
  return list;
}

Json GapObject(const Gap& gap, const Window& window) {
  Json json = Span(gap.time);
  json["ring"] = RingNameObject(window.rings[gap.ring].ring);
  json["thread"] = gap.task ? Json(*gap.task) : Json();
  json["why"] = GapReasonName(gap.reason);
  json["lost_bytes"] = gap.unit == AmountUnit::kBytes ? Json(gap.amount) : Json();
  json["lost_records"] = gap.unit == AmountUnit::kRecords ? Json(gap.amount) : Json();
  return json;
}

Json CoverageObject(const RingCoverage& ring) {
  Json json = RingNameObject(ring.ring);
  json["held"] = ring.held ? Span(*ring.held) : Json();
  json["held_bytes"] = ring.bytes_held;
  json["inside_bytes"] = ring.bytes_inside;
  json["discarded_bytes"] = ring.bytes_discarded;
  json["lost_any"] = ring.lost_any;
  json["covered"] = SpanList(ring.covered);
  json["idle"] = SpanList(ring.idle);
  json["stale"] = Json::array();
  for (const StaleSpan& stale : ring.stale) {
    Json span = Span(stale.time);
    span["age_ns"] = stale.age;
    span["bytes"] = stale.bytes;
    json["stale"].push_back(std::move(span));
  }
  return json;
}

Json TaskObject(const TaskCoverage& task) {
  return {{"thread", task.task}, {"name", task.name},         {"continuous", task.continuous},
          {"ended", task.ended}, {"ran", SpanList(task.ran)}, {"breaks", SpanList(task.breaks)}};
}

}  // namespace

Json RingNameObject(const RingName& ring) {
  return {{"kind", RingKindName(ring.kind)}, {"number", ring.number}, {"what", ring.what}};
}

Json WindowObject(const Window& window) {
  Json json = Span(window.time);
  json["policy"] = WindowPolicyName(window.policy);
  json["from_the_start"] = window.from_the_start;
  json["limited_by"] =
      window.limited_by ? RingNameObject(window.rings[*window.limited_by].ring) : Json();
  json["clock_error_ns"] = window.clock_error;
  for (const char* list : {"gaps", "lost_before", "rings", "threads"}) json[list] = Json::array();
  for (const Gap& gap : window.gaps) json["gaps"].push_back(GapObject(gap, window));
  for (const Gap& gap : window.lost_before) json["lost_before"].push_back(GapObject(gap, window));
  for (const RingCoverage& ring : window.rings) json["rings"].push_back(CoverageObject(ring));
  for (const TaskCoverage& task : window.tasks) json["threads"].push_back(TaskObject(task));
  return json;
}

}  // namespace hangscope
