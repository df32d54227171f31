#include "scope/watch_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/units.h"
#include "hangscope/abi/watch.h"
#include "scope/delay_text.h"
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

// By kind: how many rounds, and how many accesses were delayed.
Json DelaysObject(const CoreDetail& detail) {
  Json json;
  for (size_t i = 0; i < kDelayKinds.size(); ++i) {
    const uint32_t set = detail.delays[i];
    if (set == 0 && detail.delays_done[i] == 0) continue;
    json[kDelayKinds[i]] = {{"rounds", set & ~HANGSCOPE_DELAY_RANDOM},
                            {"random", (set & HANGSCOPE_DELAY_RANDOM) != 0},
                            {"done", detail.delays_done[i]}};
  }
  if (!json.empty()) json["seed"] = detail.delay_seed;
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

std::string DumpJsonLine(const SubjectState& subject, const WatchScene& scene, const DumpOf& dump,
                         const std::optional<CoreDetail>& detail,
                         const std::vector<DebugValue>& debug, TimeNs wall) {
  Json json = TypedObject("dump", scene.target, wall);
  json["dump"] = dump.number;
  json["why"] = dump.why;
  json.update(StateObject(subject, scene));
  json["debug"] = Json::array();
  for (const DebugValue& value : debug) json["debug"].push_back(value.value);
  if (!detail) return JsonLine(json);
  json["debug_written"] = detail->debug_written;
  if (const Json delays = DelaysObject(*detail); !delays.empty()) json["delays"] = delays;
  return JsonLine(json);
}

std::string DumpWordsJson(const std::string& target, const DumpOf& dump,
                          const std::vector<ShownWord>& words, TimeNs wall) {
  Json json = TypedObject("words", target, wall);
  json["dump"] = dump.number;
  json["why"] = dump.why;
  for (const ShownWord& word : words) json["words"].push_back(WordObject(word));
  return JsonLine(json);
}

std::string DelaysNoteJson(const std::string& text,
                           const std::vector<std::pair<SubjectId, CoreDetail>>& cores,
                           const WatchScene& scene, TimeNs wall) {
  Json json = NoteObject(scene.target, "delays", text, wall);
  json["cores"] = Json::array();
  for (const auto& [core, detail] : cores) {
    const SubjectState* const subject = scene.Find(core);
    if (subject == nullptr) continue;
    json["cores"].push_back(StateObject(*subject, scene));
    json["cores"].back()["delays"] = DelaysObject(detail);
  }
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
