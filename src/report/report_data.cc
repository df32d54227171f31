#include "report/report_data.h"

#include <bit>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/json_text.h"
#include "verdict/json.h"

namespace hangscope {
namespace {

using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "columns are written in memory order");

constexpr int kReportVersion = 1;

void Put(Json* json, const char* name, const std::string& text) {
  if (!text.empty()) (*json)[name] = text;
}

template <typename T>
void Put(Json* json, const char* name, const std::optional<T>& value) {
  if (value) (*json)[name] = *value;
}

void Put(Json* json, const char* name, const std::vector<std::string>& texts) {
  if (!texts.empty()) (*json)[name] = texts;
}

// A list of what `object` makes of each item; absent where there is none.
template <typename T, typename F>
void PutList(Json* json, const char* name, const std::vector<T>& items, F object) {
  if (items.empty()) return;
  Json list = Json::array();
  for (const T& item : items) list.push_back(object(item));
  (*json)[name] = std::move(list);
}

Json Span(const TimeSpan& span) { return Json::array({span.from, span.to}); }

template <typename T>
std::string Column(const std::vector<T>& values) {
  return Base64({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}

Json PlaceObject(const ReportPlace& place) {
  Json json = Json::object();
  Put(&json, "function", place.function);
  Put(&json, "source", place.source);
  Put(&json, "module", place.module);
  Put(&json, "pc", place.pc);
  Put(&json, "text", place.text);
  return json;
}

Json GapObject(const ReportGap& gap) {
  Json json{{"from", gap.time.from}, {"to", gap.time.to}, {"why", gap.why}};
  Put(&json, "amount", gap.amount);
  return json;
}

Json SpansObject(const ReportSpans& spans) {
  return {{"n", spans.from.size()},       {"from", Column(spans.from)},
          {"to", Column(spans.to)},       {"state", Column(spans.state)},
          {"depth", Column(spans.depth)}, {"text", Column(spans.text)}};
}

Json EventsObject(const ReportEvents& events) {
  Json json{{"n", events.time.size()},
            {"time", Column(events.time)},
            {"kind", Column(events.kind)},
            {"text", Column(events.text)}};
  if (events.omitted > 0) json["omitted"] = events.omitted;
  return json;
}

Json CounterObject(const ReportCounter& counter) {
  Json json{{"name", counter.name},
            {"n", counter.time.size()},
            {"time", Column(counter.time)},
            {"value", Column(counter.value)}};
  if (counter.omitted > 0) json["omitted"] = counter.omitted;
  return json;
}

void PutFlows(const ReportFlows& flows, Json* json) {
  if (flows.to_time.empty()) return;
  Json mine{{"n", flows.to_time.size()},
            {"to_time", Column(flows.to_time)},
            {"to_track", Column(flows.to_track)},
            {"from_time", Column(flows.from_time)},
            {"from_track", Column(flows.from_track)},
            {"text", Column(flows.text)}};
  if (flows.omitted > 0) mine["omitted"] = flows.omitted;
  (*json)["flows"] = std::move(mine);
}

Json TrackObject(const ReportTrack& track, size_t id) {
  Json json{{"id", id}, {"kind", track.kind}, {"name", track.name}};
  Put(&json, "parent", track.parent);
  Put(&json, "state", track.state);
  Put(&json, "what", track.what);
  Put(&json, "since", track.since);
  Put(&json, "place", track.place);
  if (track.first) json["first"] = true;
  PutList(&json, "covered", track.covered, Span);
  PutList(&json, "idle", track.idle, Span);
  PutList(&json, "gaps", track.gaps, GapObject);
  PutList(&json, "stale", track.stale, Span);
  if (!track.spans.from.empty()) json["spans"] = SpansObject(track.spans);
  if (!track.events.time.empty() || track.events.omitted > 0)
    json["events"] = EventsObject(track.events);
  PutList(&json, "counters", track.counters, CounterObject);
  return json;
}

Json LoopObject(const ReportLoop& loop) {
  Json json = Json::object();
  Put(&json, "track", loop.track);
  json.update({{"name", loop.name},
               {"rounds", loop.rounds},
               {"at_least", loop.at_least},
               {"basis", loop.basis},
               {"interrupts", loop.interrupts}});
  Put(&json, "for_s", loop.for_s);
  Put(&json, "since_cycle", loop.since_cycle);
  PutList(&json, "places", loop.places, PlaceObject);
  PutList(&json, "way", loop.way, [](const ReportWayStep& step) {
    Json object = PlaceObject(step);
    Put(&object, "callers", step.callers);
    return object;
  });
  return json;
}

Json NodeObject(const ReportNode& node) {
  Json json{{"id", node.id}, {"name", node.name}};
  Put(&json, "state", node.state);
  Put(&json, "place", node.place);
  Put(&json, "since", node.since);
  Put(&json, "waits_for", node.waits_for);
  Put(&json, "also", node.also);
  if (node.first) json["first"] = true;
  return json;
}

Json EdgeObject(const ReportEdge& edge) {
  Json json{{"from", edge.from}, {"to", edge.to}, {"kind", edge.wakes ? "wakes" : "waits"}};
  Put(&json, "label", edge.label);
  return json;
}

Json ReportFindingObject(const ReportFinding& finding) {
  Json json = FindingObject(finding);
  json["kind"] = finding.kind;
  return json;
}

Json FaultObject(const ReportFault& fault) {
  Json json{{"who", fault.who}, {"text", fault.text}};
  Put(&json, "place", fault.place);
  Put(&json, "time", fault.time);
  if (!fault.source) return json;
  json["source"] = {{"file", fault.source->file},
                    {"line", fault.source->line},
                    {"first", fault.source->first},
                    {"lines", fault.source->lines}};
  return json;
}

Json ThreadObject(const ReportThread& thread) {
  Json json{{"id", thread.id}, {"name", thread.name}};
  Put(&json, "state", thread.state);
  Put(&json, "wait", thread.wait);
  Put(&json, "since", thread.since);
  Put(&json, "process", thread.process);
  if (thread.in_finding) json["in_finding"] = true;
  PutList(&json, "frames", thread.frames, PlaceObject);
  return json;
}

Json StackObject(const ReportStack& stack) {
  Json json{{"who", stack.who}};
  if (stack.bytes > 0) json["bytes"] = stack.bytes;
  Put(&json, "lowest", stack.lowest);
  Put(&json, "free", stack.free);
  return json;
}

Json BusObject(const ReportBus& bus) {
  Json json{{"who", bus.who}, {"text", bus.text}};
  Put(&json, "time", bus.time);
  return json;
}

Json KernelObject(const ReportKernel& kernel) {
  Json json{{"who", kernel.who}, {"name", kernel.name}};
  Put(&json, "launch", kernel.launch);
  return json;
}

Json DebugObject(const ReportDebugRing& ring) {
  Json json{{"who", ring.who}};
  PutList(&json, "values", ring.values, [](const ReportDebugValue& v) {
    return Json{{"order", v.order}, {"core", v.core}, {"value", v.value}};
  });
  return json;
}

Json NumbersObject(const ReportNumbers& numbers) {
  Json json{{"title", numbers.title}};
  Put(&json, "memory", numbers.memory);
  Put(&json, "note", numbers.note);
  json["columns"] = numbers.columns;
  json["rows"] = numbers.rows;
  return json;
}

Json StreamObject(const ReportStream& stream, const std::map<std::string, size_t>& tracks) {
  Json json{{"name", stream.name}, {"bytes", stream.bytes}};
  PutList(&json, "lines", stream.lines, [&](const ReportLine& line) {
    Json object{{"offset", line.offset}};
    Put(&object, "time", line.time);
    const auto track = line.core.empty() ? tracks.end() : tracks.find(line.core);
    if (track != tracks.end()) object["core"] = track->second;
    object["text"] = line.text;
    return object;
  });
  PutList(&json, "lost", stream.lost, [](const auto& lost) {
    return Json{{"before", lost.first}, {"text", lost.second}};
  });
  return json;
}

Json LastOutputObject(const ReportLastOutput& output) {
  Json json{{"stream", output.stream}};
  Put(&json, "lines", output.lines);
  if (output.unfinished) json["unfinished"] = true;
  Put(&json, "age_s", output.age_s);
  return json;
}

Json StepObject(const ReportStep& step) {
  Json json = Json::object();
  Put(&json, "time", step.time);
  json["text"] = step.text;
  Put(&json, "place", step.place);
  return json;
}

Json DivergenceObject(const ReportDivergence& divergence) {
  Json json{{"healthy", divergence.healthy}, {"cores", Json::array()}};
  for (const ReportDivergentCore& core : divergence.cores) {
    Json mine{{"name", core.name}, {"verdict", core.verdict}, {"matched", core.matched}};
    PutList(&mine, "common", core.common, StepObject);
    PutList(&mine, "healthy", core.healthy, StepObject);
    PutList(&mine, "hung", core.hung, StepObject);
    Put(&mine, "note", core.note);
    json["cores"].push_back(std::move(mine));
  }
  return json;
}

void PutGraph(const ReportGraph& graph, Json* json) {
  if (graph.nodes.empty()) return;
  Json mine = Json::object();
  PutList(&mine, "nodes", graph.nodes, NodeObject);
  PutList(&mine, "edges", graph.edges, EdgeObject);
  if (!graph.cycle.empty()) mine["cycle"] = graph.cycle;
  (*json)["graph"] = std::move(mine);
}

void PutWindow(const Report& report, Json* json) {
  if (!report.window) return;
  Json mine{{"from", report.window->time.from},
            {"to", report.window->time.to},
            {"policy", report.window->policy}};
  Put(&mine, "limited_by", report.window->limited_by);
  (*json)["window"] = std::move(mine);
}

void PutTrigger(const Report& report, Json* json) {
  if (!report.trigger) return;
  Json mine = Json::object();
  Put(&mine, "time", report.trigger->time);
  mine["text"] = report.trigger->text;
  (*json)["trigger"] = std::move(mine);
}

void PutTracks(const Report& report, Json* json) {
  if (report.tracks.empty()) return;
  Json list = Json::array();
  for (size_t id = 0; id < report.tracks.size(); ++id)
    list.push_back(TrackObject(report.tracks[id], id));
  (*json)["tracks"] = std::move(list);
}

std::string WithoutTags(const std::string& json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json) c == '<' ? text += "\\u003c" : text += c;
  return text;
}

}  // namespace

std::string Base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const auto byte = [&](size_t i) {
      return at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u;
    };
    const unsigned word = byte(0) << 16 | byte(1) << 8 | byte(2);
    const size_t held = std::min<size_t>(3, bytes.size() - at);
    for (size_t i = 0; i < 4; ++i) text += i <= held ? kDigits[word >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::string ReportDataJson(const Report& report) {
  std::map<std::string, size_t> tracks;  // by name, for lines
  for (size_t id = 0; id < report.tracks.size(); ++id) tracks.emplace(report.tracks[id].name, id);
  Json json{{"version", kReportVersion}, {"title", report.title}, {"headline", report.headline}};
  Put(&json, "state", report.state);
  Put(&json, "confidence", report.confidence);
  json["hang"] = report.hang;
  Put(&json, "evidence", report.evidence);
  Put(&json, "doubts", report.doubts);
  PutList(&json, "last_output", report.last_output, LastOutputObject);
  Put(&json, "lost", report.lost);
  Put(&json, "troubles", report.warnings);
  Put(&json, "notes", report.notes);
  json["clock"] = report.counts_clock ? "counts" : "ns";
  PutWindow(report, &json);
  PutTrigger(report, &json);
  PutList(&json, "run", report.run, [](const auto& pair) {
    return Json::array({pair.first, pair.second});
  });
  Put(&json, "strings", report.strings);
  PutTracks(report, &json);
  PutFlows(report.flows, &json);
  PutList(&json, "kinds", report.kinds, [](const ReportEventKind& kind) {
    return Json{{"name", kind.name}, {"category", kind.category}};
  });
  PutList(&json, "loops", report.loops, LoopObject);
  PutGraph(report.graph, &json);
  PutList(&json, "findings", report.findings, ReportFindingObject);
  PutList(&json, "faults", report.faults, FaultObject);
  PutList(&json, "threads", report.threads, ThreadObject);
  PutList(&json, "stacks", report.stacks, StackObject);
  PutList(&json, "bus", report.bus, BusObject);
  PutList(&json, "kernels", report.kernels, KernelObject);
  PutList(&json, "debug", report.debug, DebugObject);
  PutList(&json, "words", report.words, WordObject);
  if (report.words_are_of_findings && !report.words.empty()) json["words_of"] = "findings";
  PutList(&json, "numbers", report.numbers, NumbersObject);
  PutList(&json, "streams", report.streams,
          [&](const ReportStream& stream) { return StreamObject(stream, tracks); });
  if (report.divergence) json["divergence"] = DivergenceObject(*report.divergence);
  return WithoutTags(JsonText(json));
}

}  // namespace hangscope
