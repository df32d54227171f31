#include "verdict/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/units.h"
#include "verdict/text.h"

namespace hangscope {
namespace {

using Json = nlohmann::ordered_json;

std::string Hex(uint64_t value) { return fmt::format("{:#x}", value); }

Json PlaceObject(const Place& place) {
  if (!place.text.empty()) return Json::object({{"text", place.text}});
  Json json{{"pc", Hex(place.pc)}};
  if (!place.function.empty()) json["function"] = place.function;
  if (!place.source.empty()) json["source"] = place.source;
  return json;
}

Json LoopObject(const Loop& loop) {
  Json json{{"rounds", loop.rounds},
            {"at_least", loop.at_least},
            {"basis", LoopBasisName(loop.basis)},
            {"interrupts", loop.traps}};
  json["places"] = Json::array();
  for (const Place& place : loop.places) json["places"].push_back(PlaceObject(place));
  json["polls"] = Json::array();
  for (const uint64_t address : loop.polls) json["polls"].push_back(Hex(address));
  json["polls_known"] = loop.polls_known;
  return json;
}

Json WayObject(const WayStep& step) {
  Json json = PlaceObject(step.place);
  if (!step.callers.empty()) json["callers"] = step.callers;
  return json;
}

Json CoreObject(const CoreVerdict& core, TimeNs now, bool with_loop) {
  Json json{{"name", core.name},
            {"stream", core.stream},
            {"state", StateName(core.state)},
            {"confidence", ConfidenceName(core.confidence)},
            {"for_s", RoundedSeconds(now - core.since)}};
  if (core.since_cycle) json["since_cycle"] = *core.since_cycle;
  json.update(PlaceObject(core.place));
  for (const Place& caller : core.callers) json["callers"].push_back(PlaceText(caller));
  if (core.asleep) json["asleep"] = true;
  if (core.loop && with_loop) json["loop"] = LoopObject(*core.loop);
  if (!with_loop) return json;
  for (const WayStep& step : core.way) json["way"].push_back(WayObject(step));
  return json;
}

Json LastOutputObject(const LastOutput& output, TimeNs now) {
  Json json{{"stream", output.stream}, {"lines", output.lines}};
  if (output.unfinished) json["unfinished"] = true;
  if (output.time != 0) json["age_s"] = RoundedSeconds(std::max<TimeNs>(0, now - output.time));
  return json;
}

Json SubjectList(const std::vector<FindingSubject>& subjects) {
  Json list = Json::array();
  for (const FindingSubject& subject : subjects) list.push_back(SubjectObject(subject));
  return list;
}

}  // namespace

nlohmann::ordered_json TypedObject(const char* type, const std::string& target, TimeNs wall) {
  Json json{{"type", type}, {"version", kJsonVersion}, {"time", FormatWallTime(wall)}};
  if (!target.empty()) json["target"] = target;
  return json;
}

double RoundedSeconds(TimeNs ns) { return static_cast<double>(ns / kMillisecond) / 1000; }

nlohmann::ordered_json SubjectObject(const FindingSubject& subject) {
  Json json{{"name", subject.name}};
  if (subject.core) json["core"] = *subject.core;
  if (subject.task) json["task"] = *subject.task;
  if (!subject.memory.empty()) json["memory"] = subject.memory;
  if (subject.node) json["node"] = {subject.node->first, subject.node->second};
  if (subject.process != 0) json["process"] = IdOnHost(subject.process);
  if (subject.thread != 0) json["thread"] = IdOnHost(subject.thread);
  if (!subject.host.empty()) json["host"] = subject.host;
  if (!subject.does.empty()) json["does"] = subject.does;
  if (subject.lasts) json["for_s"] = RoundedSeconds(*subject.lasts);
  if (!subject.at.empty()) json["at"] = subject.at;
  if (!subject.where.empty()) json["where"] = subject.where;
  if (!subject.inside.empty()) json["inside"] = subject.inside;
  if (!subject.callers.empty()) json["callers"] = subject.callers;
  if (!subject.waits_for.empty()) json["waits_for"] = subject.waits_for;
  return json;
}

nlohmann::ordered_json WordObject(const ShownWord& word) {
  Json json{{"of", word.of}};
  if (!word.memory.empty()) json["memory"] = word.memory;
  json["name"] = word.name;
  if (word.value) json["value"] = *word.value;
  json["text"] = word.text;
  return json;
}

namespace {

Json TraceObject(const FindingTrace& trace) {
  Json json{{"name", trace.name},
            {"thread", IdOnHost(trace.thread)},
            {"cpu", trace.cpu < 0 ? Json() : Json(trace.cpu)},
            {"branches", Json::array()}};
  for (const FindingBranch& branch : trace.branches)
    json["branches"].push_back({{"from", Hex(branch.from)},
                                {"from_place", branch.from_place},
                                {"to", Hex(branch.to)},
                                {"to_place", branch.to_place},
                                {"times", branch.times}});
  if (!trace.why_none.empty()) json["why_none"] = trace.why_none;
  return json;
}

}  // namespace

nlohmann::ordered_json FindingObject(const Finding& finding) {
  Json json{{"kind", FindingKindName(finding.kind)},
            {"source", SourceName(finding.source)},
            {"confidence", ConfidenceName(finding.confidence)},
            {"hang", finding.IsBad()},
            {"summary", finding.summary},
            {"subjects", SubjectList(finding.subjects)},
            {"partners", SubjectList(finding.partners)},
            {"victims", SubjectList(finding.victims)}};
  if (!finding.resource.empty()) json["resource"] = finding.resource;
  if (!finding.first.empty()) json["first"] = finding.first;
  json["lines"] = finding.lines;
  json["evidence"] = finding.evidence;
  json["doubts"] = finding.doubts;
  if (!finding.history.empty()) json["last_events"] = finding.history;
  for (const FindingTrace& trace : finding.traces)
    json["last_branches"].push_back(TraceObject(trace));
  for (const ShownWord& word : finding.words) json["words"].push_back(WordObject(word));
  for (const auto& [name, value] : finding.facts) json["facts"][name] = value;
  return json;
}

std::string FindingJson(const Finding& finding, const std::string& target, TimeNs wall) {
  Json json = TypedObject("finding", target, wall);
  json.update(FindingObject(finding));
  return JsonLine(json);
}

Json VerdictObject(const Verdict& verdict, TimeNs start) {
  Json json{{"state", StateName(verdict.state)},
            {"confidence", ConfidenceName(verdict.confidence)},
            {"hang", verdict.IsHang()},
            {"summary", verdict.summary},
            {"elapsed_s", RoundedSeconds(verdict.time - start)},
            {"for_s", RoundedSeconds(verdict.time - verdict.since)},
            {"evidence", verdict.evidence},
            {"doubts", verdict.doubts}};
  if (!verdict.goes_on.empty()) json["goes_on"] = verdict.goes_on;
  json["cores"] = Json::array();
  for (const CoreVerdict& core : verdict.cores)
    json["cores"].push_back(CoreObject(core, verdict.time, true));
  for (const Finding& finding : verdict.findings)
    json["findings"].push_back(FindingObject(finding));
  json["streams"] = Json::array();
  for (const StreamVerdict& stream : verdict.streams) {
    Json mine{{"name", stream.name},
              {"state", StateName(stream.state)},
              {"total_bytes", stream.total_bytes}};
    if (!stream.format.empty()) mine["trace"] = stream.format;
    json["streams"].push_back(mine);
  }
  for (const LastOutput& output : verdict.last_output) {
    if (!output.lines.empty())
      json["last_output"].push_back(LastOutputObject(output, verdict.time));
  }
  return json;
}

std::string HeartbeatJson(const Heartbeat& beat, TimeNs start) {
  Json json = TypedObject("heartbeat", "", beat.wall);
  json["elapsed_s"] = RoundedSeconds(beat.now - start);
  uint64_t total = 0;
  double rate = 0;
  TimeNs age = -1;
  Json streams = Json::array();
  for (const StreamPulse& stream : beat.streams) {
    total += stream.total_bytes;
    rate += stream.bytes_per_second;
    if (stream.last_byte_age >= 0 && (age < 0 || stream.last_byte_age < age))
      age = stream.last_byte_age;
    Json mine{{"name", stream.name},
              {"total_bytes", stream.total_bytes},
              {"bytes_per_s", stream.bytes_per_second},
              {"last_byte_age_s", nullptr},
              {"ring_fill", stream.fill()},
              {"history_bytes", stream.history_bytes},
              {"disk_bytes", stream.disk_bytes},
              {"bound_bytes", stream.bound_bytes},
              {"lost_bytes", stream.lost_bytes}};
    if (stream.last_byte_age >= 0) mine["last_byte_age_s"] = RoundedSeconds(stream.last_byte_age);
    streams.push_back(mine);
  }
  json["total_bytes"] = total;
  json["bytes_per_s"] = rate;
  json["last_byte_age_s"] = nullptr;
  if (age >= 0) json["last_byte_age_s"] = RoundedSeconds(age);
  json["child_cpu"] = nullptr;
  if (beat.child_cpu >= 0) json["child_cpu"] = beat.child_cpu;
  json["state"] = StateName(beat.verdict.state);
  json["confidence"] = ConfidenceName(beat.verdict.confidence);
  if (!beat.waits_for_output.empty()) json["waits_for_output"] = beat.waits_for_output;
  json["cores"] = Json::array();
  for (const CoreVerdict& core : beat.verdict.cores)
    json["cores"].push_back(CoreObject(core, beat.now, false));
  json["streams"] = streams;
  return JsonText(json);
}

std::string VerdictJson(const Verdict& verdict, const std::string& target, TimeNs start,
                        TimeNs wall) {
  Json json = TypedObject("verdict", target, wall);
  json.update(VerdictObject(verdict, start));
  return JsonText(json);
}

std::string LossJson(const std::string& stream, uint64_t bytes, const std::string& why,
                     TimeNs wall) {
  Json json = TypedObject("loss", "", wall);
  json["stream"] = stream;
  json["bytes"] = bytes;
  json["why"] = why;
  return JsonText(json);
}

std::string NoteJson(const std::string& text, TimeNs wall) {
  Json json = TypedObject("note", "", wall);
  json["text"] = text;
  return JsonText(json);
}

}  // namespace hangscope
