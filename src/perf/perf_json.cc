// The JSON of perf.data files; docs/json.md has the schema.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/units.h"
#include "perf/perf_text.h"
#include "verdict/json.h"
#include "window/window_json.h"

namespace hangscope {
namespace {

using Json = nlohmann::ordered_json;

Json Typed(const char* type, const PerfScene& scene, TimeNs wall) {
  return TypedObject(type, scene.path, wall);
}

// Of the recorded clock; null: not known.
Json Instant(TimeNs time) { return time < 0 ? Json() : Json(time); }
Json Text(const std::string& text) { return text.empty() ? Json() : Json(text); }
std::string Hex(uint64_t address) { return fmt::format("{:#x}", address); }

std::string FileLine(const PerfScene& scene, TimeNs wall) {
  const PerfFileFacts& facts = scene.file->facts();
  Json json = Typed("perf_file", scene, wall);
  json["form"] = facts.pipe ? "pipe" : "file";
  json["compressed"] = facts.compressed;
  json["host"] = facts.host;
  json["release"] = facts.release;
  json["architecture"] = facts.architecture;
  json["perf_version"] = facts.version;
  json["command"] = facts.command;
  json["records"] = scene.activity->records();
  json["samples"] = scene.activity->samples();
  json["lost_records"] = scene.activity->lost_records();
  json["lost_side_band_records"] = scene.activity->side_band_lost();
  json["left_out_records"] = scene.activity->left_out();
  json["events"] = Json::array();
  for (size_t i = 0; i < scene.file->events().size(); ++i)
    json["events"].push_back(
        {{"name", scene.file->events()[i].name}, {"samples", scene.activity->samples_of()[i]}});
  json["troubles"] = facts.warnings;
  json["cannot_tell"] = Text(scene.analysis->cannot_tell);
  json["first_ns"] = Instant(scene.activity->first());
  json["last_ns"] = Instant(scene.activity->last());
  return JsonLine(json);
}

std::string WindowLine(const PerfScene& scene, TimeNs wall) {
  Json json = Typed("window", scene, wall);
  json.update(WindowObject(*scene.window));
  if (!scene.to_trigger && scene.activity->last() < 0) json["from_ns"] = json["to_ns"] = nullptr;
  json["ends_with"] = scene.to_trigger ? "trigger" : "newest record";
  return JsonLine(json);
}

// Two times; null: none of them is known.
Json BetweenNs(const TimeBounds& when) {
  if (!when.from && !when.to) return {};
  const auto json = [](const std::optional<TimeNs>& time) { return time ? Json(*time) : Json(); };
  return Json::array({json(when.from), json(when.to)});
}

void AddTrace(const TraceSummary& summary, const PerfAuxSpan& span, Json* json) {
  (*json)["packets"] = summary.packets;
  (*json)["atoms"] = summary.atoms;
  (*json)["instructions"] = summary.instructions_known ? Json(summary.instructions) : Json();
  (*json)["branches"] = summary.instructions_known ? Json(summary.branches) : Json();
  (*json)["synchronisations"] = summary.synchronisations;
  (*json)["exceptions"] = summary.exceptions;
  (*json)["discontinuities"] = Json::array();
  for (const Discontinuity& gap : summary.discontinuities) {
    (*json)["discontinuities"].push_back(
        {{"offset", gap.offset},
         {"why", DiscontinuityReasonName(gap.reason)},
         {"at_ns", gap.time ? Json(*gap.time) : Json()},
         {"between_ns", BetweenNs(BoundsOfPlace(span, summary, gap.offset, gap.cpu))}});
  }
  (*json)["more_discontinuities"] = summary.more_discontinuities;
}

// Where a sink was shared: whose its bytes are.
Json BytesOfCpu(const PerfAuxSpan& span) {
  Json shares = Json::array();
  for (const PerfTraceShare& share : span.shares) {
    const bool ran = !share.threads.empty();
    shares.push_back({{"cpu", share.cpu < 0 ? Json() : Json(share.cpu)},
                      {"trace_id", share.trace_id == 0 ? Json() : Json(share.trace_id)},
                      {"bytes", share.bytes},
                      {"threads", share.threads},
                      {"from_ns", ran ? Json(share.ran.from) : Json()},
                      {"to_ns", ran ? Json(share.ran.to) : Json()}});
  }
  return shares;
}

std::string SpanLines(const PerfScene& scene, TimeNs wall) {
  std::map<std::pair<size_t, size_t>, const PerfSpanTrace*> traces;  // by ring and span
  for (const PerfSpanTrace& trace : *scene.traces) traces[{trace.ring, trace.span}] = &trace;
  std::string text;
  for (size_t r = 0; r < scene.aux->size(); ++r) {
    const PerfAuxRing& ring = (*scene.aux)[r];
    Json json = Typed("trace_ring", scene, wall);
    json["ring"] = RingNameObject(ring.name);
    json["spans"] = ring.spans.size();
    json["told_bytes"] = ring.bytes_told;
    json["held_bytes"] = ring.bytes_held;
    json["twice_bytes"] = ring.bytes_twice;
    json["restarts"] = ring.restarts;
    text += JsonLine(json);
    for (size_t s = 0; s < ring.spans.size(); ++s) {
      const PerfAuxSpan& span = ring.spans[s];
      Json line = Typed("trace_span", scene, wall);
      line["ring"] = RingNameObject(ring.name);
      line["begin_offset"] = span.begin_offset;
      line["end_offset"] = span.end_offset;
      line["held_bytes"] = span.held_bytes;
      line["from_ns"] = span.begin_known ? Json(span.time.from) : Json();
      line["to_ns"] = span.time.to;
      line["thread"] = span.tid < 0 ? Json() : Json(span.tid);
      line["flags"] = PerfAuxFlagsText(span.flags);
      line["sink_overwritten"] = span.sink_overwritten;
      line["sampled"] = span.sampled;
      line["bytes_of_cpu"] = BytesOfCpu(span);
      if (const auto trace = traces.find({r, s}); trace != traces.end())
        AddTrace(trace->second->summary, span, &line);
      text += JsonLine(line);
    }
  }
  return text;
}

std::string CpuLine(const PerfCpuActivity& cpu, const PerfScene& scene, TimeNs wall) {
  Json json = Typed("cpu", scene, wall);
  json["cpu"] = cpu.cpu;
  json["records"] = cpu.records;
  json["first_ns"] = Instant(cpu.first);
  json["last_ns"] = Instant(cpu.last);
  json["last_thread"] = cpu.last_tid < 0 ? Json() : Json(cpu.last_tid);
  json["lost_records"] = cpu.lost_records;
  return JsonLine(json);
}

std::string ThreadLine(const PerfThreadView& view, const PerfScene& scene, TimeNs wall) {
  const PerfThreadActivity& thread = *view.thread;
  Json json = Typed("thread", scene, wall);
  json["process"] = thread.pid < 0 ? Json() : Json(thread.pid);
  json["thread"] = thread.tid;
  json["name"] = thread.name;
  json["state"] = PerfThreadStateName(view.state);
  json["letter"] =
      view.letter == ' ' || view.letter == '?' ? Json() : Json(std::string(1, view.letter));
  json["since_ns"] = Instant(view.since);
  json["cpu"] = thread.ran.cpu < 0 ? Json() : Json(thread.ran.cpu);
  json["records"] = thread.records;
  const std::string call = PerfCallText(thread, scene);
  json["system_call"] = call.empty() ? Json() : Json(call);
  json["system_call_since_ns"] = call.empty() ? Json() : Instant(thread.entered.time);
  json["last_event"] =
      thread.last_sample < 0 ? Json() : Json(scene.file->events()[thread.last_event].name);
  json["last_event_ns"] = Instant(thread.last_sample);
  json["last_event_fields"] =
      thread.last_sample < 0 ? Json() : Json(scene.activity->Describe(thread));
  return JsonLine(json);
}

}  // namespace

std::string PerfJson(const PerfScene& scene, TimeNs wall) {
  std::string text = FileLine(scene, wall);
  text += WindowLine(scene, wall);
  text += SpanLines(scene, wall);
  for (const auto& [number, cpu] : scene.activity->cpus()) {
    if (number >= 0) text += CpuLine(cpu, scene, wall);
  }
  for (const PerfThreadView& view : scene.analysis->threads) text += ThreadLine(view, scene, wall);
  for (const PerfBranch& branch : *scene.branches) {
    Json json = Typed("branch", scene, wall);
    json["cpu"] = branch.branch.cpu;
    json["from"] = Hex(branch.branch.from);
    json["from_place"] = branch.from;
    json["to"] = Hex(branch.branch.to);
    json["to_place"] = branch.to;
    json["at_ns"] = branch.branch.time ? Json(*branch.branch.time) : Json();
    json["between_ns"] = BetweenNs(branch.time);
    json["order_known"] = branch.order_known;
    text += JsonLine(json);
  }
  if (!scene.trace_trouble.empty()) {
    Json json = Typed("note", scene, wall);
    json["text"] = scene.trace_trouble;
    text += JsonLine(json);
  }
  return text;
}

}  // namespace hangscope
