#include "verdict/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "window/window_json.h"

namespace hangscope {
namespace {

using Json = nlohmann::ordered_json;

std::string Hex(uint64_t value) { return fmt::format("{:#x}", value); }

// Names come from traces and ELFs: replace what is no UTF-8 instead of failing.
std::string Line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Seconds with a millisecond's precision.
double Rounded(TimeNs ns) {
  const TimeNs milliseconds = ns / kMillisecond;
  return static_cast<double>(milliseconds) / 1000;
}

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
            {"for_s", Rounded(now - core.since)}};
  json.update(PlaceObject(core.place));
  if (core.asleep) json["asleep"] = true;
  if (core.loop && with_loop) json["loop"] = LoopObject(*core.loop);
  return json;
}

Json VerdictObject(const Verdict& verdict, TimeNs start) {
  Json json{{"state", StateName(verdict.state)},
            {"confidence", ConfidenceName(verdict.confidence)},
            {"hang", verdict.IsHang()},
            {"summary", verdict.summary},
            {"elapsed_s", Rounded(verdict.time - start)},
            {"since_s", Rounded(verdict.since - start)},
            {"evidence", verdict.evidence},
            {"doubts", verdict.doubts}};
  json["cores"] = Json::array();
  for (const CoreVerdict& core : verdict.cores)
    json["cores"].push_back(CoreObject(core, verdict.time, true));
  const auto add = [&json](std::string_view kind, Confidence confidence, const std::string& summary,
                           const std::vector<std::string>& lines) {
    json["findings"].push_back({{"kind", kind},
                                {"confidence", ConfidenceName(confidence)},
                                {"summary", summary},
                                {"lines", lines}});
  };
  for (const ScopeFinding& found : verdict.findings)
    add(FindingKindName(found.finding.kind), found.finding.confidence, found.summary, found.lines);
  for (const ProcessFinding& found : verdict.threads)
    add(ProcessFindingKindName(found.kind), found.confidence, found.summary, found.lines);
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

Json Typed(const char* type, TimeNs wall) {
  return {{"type", type}, {"version", kJsonVersion}, {"time", FormatWallTime(wall)}};
}

Json ScopeObject(const ScopeManifest& scope) {
  Json json{{"image", scope.image}};
  if (!scope.catalog.empty()) json["catalog"] = scope.catalog;
  json["cores"] = Json::array();
  for (const ScopeCore& core : scope.cores) {
    if (!core.in_use) continue;
    const EventCounts& counts = core.counts;
    json["cores"].push_back({{"core", core.index},
                             {"name", core.name},
                             {"owner", core.owner},
                             {"emitted", counts.emitted},
                             {"returned", counts.returned},
                             {"overwritten", counts.overwritten},
                             {"torn", counts.torn},
                             {"refused", counts.refused},
                             {"pending", counts.pending}});
  }
  for (Json& core : json["cores"]) {
    for (const ScopeClockFit& fit : scope.clocks) {
      if (core["core"] != fit.core) continue;
      core["clock"] = {{"count", fit.count},
                       {"at_ns", fit.at},
                       {"ns_per_count", fit.ns_per_count},
                       {"error_ns", fit.error}};
    }
  }
  if (!scope.not_in_window.empty()) json["not_in_window"] = scope.not_in_window;
  return json;
}

Json CpuObject(const CpuManifest& cpu) {
  Json json{{"file", cpu.file},
            {"file_bytes", cpu.file_bytes},
            {"rings", cpu.rings},
            {"ring_bytes", cpu.ring_bytes},
            {"bytes", cpu.bytes},
            {"read_s", Rounded(cpu.took)},
            {"discarded_bytes", cpu.discarded_bytes},
            {"side_band_lost", cpu.side_band_lost}};
  json["events"] = cpu.events;
  return json;
}

constexpr size_t kMostOfALine = 4096;

void AddTrigger(const Manifest& manifest, Json* json) {
  const Trigger& trigger = manifest.trigger;
  (*json)["trigger"] = trigger.name;
  (*json)["trigger_kind"] = TriggerKindName(trigger.kind);
  if (!trigger.detail.empty()) (*json)["trigger_detail"] = trigger.detail.substr(0, kMostOfALine);
  if (trigger.kind == TriggerKind::kRegex) {
    (*json)["trigger_stream"] = trigger.stream;
    (*json)["trigger_offset"] = trigger.begin_offset;
  }
  (*json)["trigger_time"] = FormatWallTime(manifest.wall - (manifest.time - trigger.time));
  (*json)["trigger_s"] = Rounded(trigger.time - manifest.start);
  if (trigger.suppressed > 0) (*json)["suppressed"] = trigger.suppressed;
  if (manifest.post.time != 0) (*json)["post_s"] = Rounded(manifest.post.time);
  if (manifest.post.bytes != 0) (*json)["post_bytes"] = manifest.post.bytes;
  if (manifest.since_last) (*json)["since_last"] = true;
}

}  // namespace

std::string HeartbeatJson(const Heartbeat& beat, TimeNs start) {
  Json json = Typed("heartbeat", beat.wall);
  json["elapsed_s"] = Rounded(beat.now - start);
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
    if (stream.last_byte_age >= 0) mine["last_byte_age_s"] = Rounded(stream.last_byte_age);
    streams.push_back(mine);
  }
  json["total_bytes"] = total;
  json["bytes_per_s"] = rate;
  json["last_byte_age_s"] = nullptr;
  if (age >= 0) json["last_byte_age_s"] = Rounded(age);
  json["child_cpu"] = nullptr;
  if (beat.child_cpu >= 0) json["child_cpu"] = beat.child_cpu;
  json["state"] = StateName(beat.verdict.state);
  json["confidence"] = ConfidenceName(beat.verdict.confidence);
  json["cores"] = Json::array();
  for (const CoreVerdict& core : beat.verdict.cores)
    json["cores"].push_back(CoreObject(core, beat.now, false));
  json["streams"] = streams;
  return Line(json);
}

std::string VerdictJson(const Verdict& verdict, TimeNs start, TimeNs wall) {
  Json json = Typed("verdict", wall);
  json.update(VerdictObject(verdict, start));
  return Line(json);
}

std::string SnapshotJson(const Manifest& manifest, const std::string& path) {
  Json json = Typed("snapshot", manifest.wall);
  json["path"] = path;
  AddTrigger(manifest, &json);
  uint64_t bytes = 0;
  for (const StreamWindow& stream : manifest.streams) bytes += stream.bytes();
  json["bytes"] = bytes;
  return Line(json);
}

std::string LossJson(const std::string& stream, uint64_t bytes, const std::string& why,
                     TimeNs wall) {
  Json json = Typed("loss", wall);
  json["stream"] = stream;
  json["bytes"] = bytes;
  json["why"] = why;
  return Line(json);
}

std::string NoteJson(const std::string& text, TimeNs wall) {
  Json json = Typed("note", wall);
  json["text"] = text;
  return Line(json);
}

std::string ManifestJson(const Manifest& manifest) {
  Json json{{"format", "hangscope-snapshot"},
            {"version", kManifestVersion},
            {"run_id", Hex(manifest.run_id)}};
  AddTrigger(manifest, &json);
  json.update(Json{{"time", FormatWallTime(manifest.wall)},
                   {"start", FormatWallTime(manifest.start_wall)},
                   {"elapsed_s", Rounded(manifest.time - manifest.start)},
                   {"host", manifest.host},
                   {"command", manifest.command},
                   {"pid", manifest.pid},
                   {"elf", manifest.elf}});
  json["streams"] = Json::array();
  for (const StreamWindow& stream : manifest.streams) {
    Json mine{{"name", stream.name},
              {"begin_offset", stream.begin_offset},
              {"end_offset", stream.end_offset},
              {"bytes", stream.bytes()},
              {"begin_s", Rounded(std::max<TimeNs>(0, stream.begin_time - manifest.start))},
              {"end_s", Rounded(manifest.time - manifest.start)}};
    mine["losses"] = Json::array();
    for (const Loss& loss : stream.losses) {
      mine["losses"].push_back(
          {{"begin", loss.begin}, {"end", loss.end}, {"reason", LossReasonName(loss.reason)}});
    }
    json["streams"].push_back(mine);
  }
  if (!manifest.scope.image.empty()) json["scope"] = ScopeObject(manifest.scope);
  if (!manifest.cpu.file.empty()) json["cpu"] = CpuObject(manifest.cpu);
  if (manifest.window) json["window"] = WindowObject(*manifest.window);
  json["verdict"] = VerdictObject(manifest.verdict, manifest.start);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hangscope
