#include "verdict/json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/units.h"

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

Json CoreObject(const CoreVerdict& core, TimeNs now, bool with_loop) {
  Json json{{"name", core.name},
            {"stream", core.stream},
            {"state", StateName(core.state)},
            {"confidence", ConfidenceName(core.confidence)},
            {"for_s", RoundedSeconds(now - core.since)}};
  json.update(PlaceObject(core.place));
  if (core.asleep) json["asleep"] = true;
  if (core.loop && with_loop) json["loop"] = LoopObject(*core.loop);
  return json;
}

Json Typed(const char* type, TimeNs wall) {
  return {{"type", type}, {"version", kJsonVersion}, {"time", FormatWallTime(wall)}};
}

}  // namespace

double RoundedSeconds(TimeNs ns) { return static_cast<double>(ns / kMillisecond) / 1000; }

Json VerdictObject(const Verdict& verdict, TimeNs start) {
  Json json{{"state", StateName(verdict.state)},
            {"confidence", ConfidenceName(verdict.confidence)},
            {"hang", verdict.IsHang()},
            {"summary", verdict.summary},
            {"elapsed_s", RoundedSeconds(verdict.time - start)},
            {"since_s", RoundedSeconds(verdict.since - start)},
            {"evidence", verdict.evidence},
            {"doubts", verdict.doubts}};
  json["cores"] = Json::array();
  for (const CoreVerdict& core : verdict.cores)
    json["cores"].push_back(CoreObject(core, verdict.time, true));
  const auto add = [&json](FindingKind kind, const Finding& found) {
    json["findings"].push_back({{"kind", FindingKindName(kind)},
                                {"confidence", ConfidenceName(found.confidence)},
                                {"summary", found.summary},
                                {"lines", found.lines}});
  };
  for (const ScopeFinding& found : verdict.findings) add(found.kind, found);
  for (const ProcessFinding& found : verdict.threads) add(found.kind, found);
  json["streams"] = Json::array();
  for (const StreamVerdict& stream : verdict.streams) {
    Json mine{{"name", stream.name},
              {"state", StateName(stream.state)},
              {"total_bytes", stream.total_bytes}};
    if (!stream.format.empty()) mine["trace"] = stream.format;
    json["streams"].push_back(mine);
  }
  return json;
}

std::string HeartbeatJson(const Heartbeat& beat, TimeNs start) {
  Json json = Typed("heartbeat", beat.wall);
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

std::string VerdictJson(const Verdict& verdict, TimeNs start, TimeNs wall) {
  Json json = Typed("verdict", wall);
  json.update(VerdictObject(verdict, start));
  return JsonText(json);
}

std::string LossJson(const std::string& stream, uint64_t bytes, const std::string& why,
                     TimeNs wall) {
  Json json = Typed("loss", wall);
  json["stream"] = stream;
  json["bytes"] = bytes;
  json["why"] = why;
  return JsonText(json);
}

std::string NoteJson(const std::string& text, TimeNs wall) {
  Json json = Typed("note", wall);
  json["text"] = text;
  return JsonText(json);
}

}  // namespace hangscope
