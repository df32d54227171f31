#include "export/trace_jsonl.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "export/trace_facts.h"
#include "verdict/json.h"
#include "window/window_json.h"

namespace hangscope {
namespace {

using Json = nlohmann::ordered_json;

Json Typed(const char* type) { return {{"type", type}, {"version", kJsonVersion}}; }

// Events are many, and most texts in them plain.
void AddText(std::string_view text, std::string* line) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (!std::all_of(text.begin(), text.end(), is_plain)) {
    *line += JsonText(Json(text));
    return;
  }
  *line += '"';
  *line += text;
  *line += '"';
}

template <typename... Values>
void Add(std::string* line, fmt::format_string<Values...> format, Values&&... values) {
  fmt::format_to(std::back_inserter(*line), format, std::forward<Values>(values)...);
}

void AddValue(const TraceField& field, const TraceValue& value, std::string* line) {
  if (!value.known) {
    *line += "null";
    return;
  }
  switch (field.type) {
    case TraceFieldType::kText:
      AddText(value.text, line);
      return;
    case TraceFieldType::kPointer:
      Add(line, "\"{:#x}\"", value.bits);
      return;
    case TraceFieldType::kBool:
      *line += value.bits != 0 ? "true" : "false";
      return;
    case TraceFieldType::kSigned:
      Add(line, "{}", static_cast<int64_t>(value.bits));
      return;
    case TraceFieldType::kUnsigned:
      Add(line, "{}", value.bits);
      return;
  }
}

void AddFields(const TraceEventKind& kind, const TraceEvent& event, std::string* line) {
  *line += ",\"fields\":{";
  for (size_t i = 0; i < std::min(kind.fields.size(), event.values.size()); ++i) {
    if (i > 0) *line += ',';
    AddText(kind.fields[i].name, line);
    *line += ':';
    AddValue(kind.fields[i], event.values[i], line);
  }
  *line += '}';
}

void AddNumber(const char* name, const std::optional<int64_t>& number, std::string* line) {
  if (number) Add(line, ",\"{}\":{}", name, *number);
}

void AddNamed(const char* name, const std::string& text, std::string* line) {
  if (text.empty()) return;
  Add(line, ",\"{}\":", name);
  AddText(text, line);
}

const char* MeaningName(TraceMeaning meaning) {
  switch (meaning) {
    case TraceMeaning::kPlain:
      return "";
    case TraceMeaning::kSwitch:
      return "switch";
    case TraceMeaning::kWake:
      return "wake";
    case TraceMeaning::kEnter:
      return "enter";
    case TraceMeaning::kLeave:
      return "leave";
    case TraceMeaning::kFunctionEnter:
      return "function enter";
    case TraceMeaning::kFunctionLeave:
      return "function leave";
    case TraceMeaning::kCounter:
      return "counter";
    case TraceMeaning::kState:
      return "state";
  }
  return "";
}

Json TaskList(const std::map<int64_t, std::string>& tasks) {
  Json list = Json::array();
  for (const auto& [task, name] : tasks) list.push_back({{"task", task}, {"name", name}});
  return list;
}

Json WhoObject(const TraceWho& who) {
  Json json = Json::object();
  json[who.is_task ? "task" : "core"] = who.number;
  return json;
}

Json StandingObject(const TraceStanding& standing) {
  Json json = WhoObject(standing.who);
  json["activity"] = ActivityName(standing.activity);
  json["since_ns"] = standing.since ? Json(*standing.since) : Json();
  json["waits_for"] = standing.waits_for;
  json["by"] = Json::array();
  for (const TraceWho& who : standing.by) json["by"].push_back(WhoObject(who));
  json["place"] = standing.place;
  json["fault"] = standing.fault;
  return json;
}

}  // namespace

Status TraceJsonWriter::Begin(const TraceHead& head) {
  head_ = &head;
  Json json = Typed("trace");
  json.update(Json{{"name", head.name},
                   {"host", head.host},
                   {"release", head.release},
                   {"architecture", head.architecture},
                   {"program", head.program},
                   {"build_id", head.build_id},
                   {"command", head.command},
                   {"recorded_by", head.recorded_by},
                   {"wall_minus_monotonic_ns", head.wall_minus_monotonic},
                   {"counts_clock", head.counts_clock},
                   {"times", TimesText(head)},
                   {"from_ns", head.time.from},
                   {"to_ns", head.time.to}});
  json["trigger_ns"] = head.trigger ? Json(*head.trigger) : Json();
  json["verdict"] = head.verdict;
  for (const TraceSinceCycle& since : head.since_cycles)
    json["since_cycles"].push_back(
        {{"core", since.core}, {"state", since.state}, {"cycle", since.cycle}});
  json["tracks"] = Json::array();
  for (const TraceTrack& track : head.tracks) {
    Json mine = RingNameObject(track.ring);
    mine["name"] = track.name;
    json["tracks"].push_back(std::move(mine));
  }
  json["tasks"] = TaskList(head.tasks);
  json["window"] = head.window ? WindowObject(*head.window) : Json();
  json["troubles"] = head.warnings;
  return output_.Add(JsonText(json) + "\n");
}

Status TraceJsonWriter::Write(const TraceEvent& event) {
  const TraceEventKind& kind = head_->kinds[event.kind];
  line_.clear();
  Add(&line_, "{{\"type\":\"trace_event\",\"version\":{},\"track\":{},\"ns\":{},\"sequence\":{}",
      kJsonVersion, event.track, event.time, event.sequence);
  if (event.ambiguous) line_ += ",\"ambiguous\":true";
  AddNumber("task", event.task, &line_);
  line_ += ",\"name\":";
  AddText(kind.name, &line_);
  AddNamed("category", kind.category, &line_);
  AddNamed("meaning", MeaningName(kind.meaning), &line_);
  AddNumber("from", event.from, &line_);
  AddNumber("to", event.to, &line_);
  if (event.from_waits) line_ += ",\"from_waits\":true";
  AddNamed("what", event.what, &line_);
  AddNamed("where", event.where, &line_);
  if (kind.meaning == TraceMeaning::kCounter) Add(&line_, ",\"count\":{}", event.count);
  AddFields(kind, event, &line_);
  line_ += "}\n";
  return output_.Add(line_);
}

Status TraceJsonWriter::Write(const TraceLoss& loss) {
  Json json = Typed("trace_loss");
  json.update(Json{{"track", loss.track},
                   {"from_ns", loss.time.from},
                   {"to_ns", loss.time.to},
                   {"why", GapReasonName(loss.reason)}});
  const bool known = loss.amount > 0;
  json["lost_records"] = known && loss.unit == AmountUnit::kRecords ? Json(loss.amount) : Json();
  json["lost_bytes"] = known && loss.unit == AmountUnit::kBytes ? Json(loss.amount) : Json();
  return output_.Add(JsonText(json) + "\n");
}

Status TraceJsonWriter::End(const TraceEnd& end) {
  Json json = Typed("trace_end");
  json.update(Json{{"ns", end.time}, {"events", end.events}, {"losses", end.losses}});
  json["standings"] = Json::array();
  for (const TraceStanding& standing : end.standings)
    json["standings"].push_back(StandingObject(standing));
  json["tasks"] = TaskList(end.tasks);
  json["troubles"] = end.warnings;
  if (Status status = output_.Add(JsonText(json) + "\n"); !status.ok()) return status;
  return output_.Flush();
}

}  // namespace hangscope
