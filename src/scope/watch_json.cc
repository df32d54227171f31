#include "scope/watch_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/units.h"
#include "verdict/json.h"

namespace hangscope {
namespace {

using Json = nlohmann::ordered_json;

Json NoteObject(const std::string& target, const std::string& event, const std::string& text,
                TimeNs wall) {
  Json json = TypedObject("note", target, wall);
  json["event"] = event;
  json["text"] = text;
  return json;
}

Json StateObject(const SubjectState& subject, const WatchScene& scene) {
  Json json = SubjectObject(ToldSubject(subject.subject, scene));
  json["activity"] = ActivityName(subject.activity);
  if (subject.subject.kind == SubjectId::Kind::kCore) {
    json["heartbeat"] = subject.sample.heartbeat;
    if (subject.sample.kernel != 0)
      json["kernel"] = scene.NamesOf(subject.subject).Kernel(subject.sample.kernel);
    if (subject.sample.stack_free) json["stack_free_bytes"] = *subject.sample.stack_free;
  }
  return json;
}

}  // namespace

std::string SubjectJson(const SubjectState& subject, const WatchScene& scene, TimeNs wall) {
  Json json = TypedObject("change", scene.target, wall);
  json.update(StateObject(subject, scene));
  return JsonLine(json);
}

std::string WatchNoteJson(const std::string& target, const std::string& event,
                          const std::string& text, TimeNs wall) {
  return JsonLine(NoteObject(target, event, text, wall));
}

std::string CoresNoteJson(const std::string& event, const std::string& text,
                          const std::vector<SubjectId>& cores, const std::string& resume,
                          const WatchScene& scene, TimeNs wall) {
  Json json = NoteObject(scene.target, event, text, wall);
  json["cores"] = Json::array();
  for (const SubjectId& core : cores) {
    const SubjectState* const subject = scene.Find(core);
    if (subject == nullptr) continue;
    Json told = StateObject(*subject, scene);
    if (subject->sample.paused != PausedState::kNot)
      told["paused_by"] = subject->sample.paused == PausedState::kByHost ? "host" : "code";
    json["cores"].push_back(std::move(told));
  }
  if (!resume.empty()) json["resume"] = resume;
  return JsonLine(json);
}

std::string WatchEndJson(const WatchCost& cost, size_t findings, size_t bad, TimeNs wall) {
  Json json = TypedObject("end", "", wall);
  json["findings"] = findings;
  json["bad_findings"] = bad;
  json["polls"] = cost.polls;
  json["read_bytes"] = cost.bytes;
  json["elapsed_s"] = RoundedSeconds(cost.elapsed);
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
