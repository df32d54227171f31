#include "snapshot/snapshot_facts.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "snapshot/snapshots.h"

namespace hangscope {
namespace {

using Json = nlohmann::ordered_json;

// More of anything than a recording has: such a list is damaged.
constexpr size_t kMostEntries = 1'000'000;

// Null where there is no such member.
const Json* Find(const Json& json, const char* name) {
  const auto at = json.is_object() ? json.find(name) : json.end();
  return !json.is_object() || at == json.end() ? nullptr : &*at;
}

std::string Text(const Json& json, const char* name) {
  const Json* const found = Find(json, name);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<int64_t> Number(const Json& json, const char* name) {
  const Json* const found = Find(json, name);
  if (found == nullptr || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

uint64_t Count(const Json& json, const char* name) {
  return static_cast<uint64_t>(std::max<int64_t>(Number(json, name).value_or(0), 0));
}

bool Flag(const Json& json, const char* name) {
  const Json* const found = Find(json, name);
  return found != nullptr && found->is_boolean() && found->get<bool>();
}

// The objects of a list.
std::vector<const Json*> Objects(const Json& json, const char* name) {
  std::vector<const Json*> objects;
  const Json* const list = Find(json, name);
  if (list == nullptr || !list->is_array()) return objects;
  for (const Json& item : *list) {
    if (item.is_object() && objects.size() < kMostEntries) objects.push_back(&item);
  }
  return objects;
}

TimeSpan SpanOf(const Json& json) {
  const TimeNs from = Number(json, "from_ns").value_or(0);
  return {from, std::max(from, Number(json, "to_ns").value_or(from))};
}

std::vector<TimeSpan> Spans(const Json& json, const char* name) {
  std::vector<TimeSpan> spans;
  for (const Json* span : Objects(json, name)) spans.push_back(SpanOf(*span));
  return spans;
}

RingName RingOf(const Json& json) {
  RingName ring{RingKind::kCpu, Number(json, "number").value_or(0), Text(json, "what")};
  for (const RingKind kind :
       {RingKind::kCpu, RingKind::kThread, RingKind::kCore, RingKind::kSink, RingKind::kStream}) {
    if (Text(json, "kind") == RingKindName(kind)) ring.kind = kind;
  }
  return ring;
}

RingCoverage CoverageOf(const Json& json) {
  RingCoverage ring;
  ring.ring = RingOf(json);
  if (const Json* held = Find(json, "held"); held != nullptr && held->is_object())
    ring.held = SpanOf(*held);
  ring.bytes_held = Count(json, "held_bytes");
  ring.bytes_inside = Count(json, "inside_bytes");
  ring.lost_any = Flag(json, "lost_any");
  ring.covered = Spans(json, "covered");
  ring.idle = Spans(json, "idle");
  for (const Json* stale : Objects(json, "stale"))
    ring.stale.push_back(
        {SpanOf(*stale), Number(*stale, "age_ns").value_or(0), Count(*stale, "bytes")});
  return ring;
}

std::optional<size_t> IndexOf(const Window& window, const Json* ring) {
  if (ring == nullptr || !ring->is_object()) return std::nullopt;
  const RingName name = RingOf(*ring);
  for (size_t i = 0; i < window.rings.size(); ++i) {
    if (window.rings[i].ring == name) return i;
  }
  return std::nullopt;
}

void AddGap(const Json& json, Window* window) {
  const auto ring = IndexOf(*window, Find(json, "ring"));
  if (!ring) return;
  Gap gap;
  gap.ring = *ring;
  gap.task = Number(json, "thread");
  gap.time = SpanOf(json);
  for (int reason = 0; reason <= static_cast<int>(GapReason::kNotRecorded); ++reason) {
    if (Text(json, "why") == GapReasonName(static_cast<GapReason>(reason)))
      gap.reason = static_cast<GapReason>(reason);
  }
  gap.amount = std::max(Count(json, "lost_bytes"), Count(json, "lost_records"));
  if (gap.amount > 0)
    gap.unit = Number(json, "lost_bytes") ? AmountUnit::kBytes : AmountUnit::kRecords;
  window->gaps.push_back(gap);
}

std::optional<Window> WindowOf(const Json& manifest) {
  const Json* const json = Find(manifest, "window");
  if (json == nullptr || !json->is_object()) return std::nullopt;
  Window window;
  window.time = SpanOf(*json);
  window.from_the_start = Flag(*json, "from_the_start");
  window.clock_error = Number(*json, "clock_error_ns").value_or(0);
  for (int policy = 0; policy <= static_cast<int>(WindowPolicy::kSinceLast); ++policy) {
    if (Text(*json, "policy") == WindowPolicyName(static_cast<WindowPolicy>(policy)))
      window.policy = static_cast<WindowPolicy>(policy);
  }
  for (const Json* ring : Objects(*json, "rings")) window.rings.push_back(CoverageOf(*ring));
  window.limited_by = IndexOf(window, Find(*json, "limited_by"));
  for (const Json* gap : Objects(*json, "gaps")) AddGap(*gap, &window);
  for (const Json* thread : Objects(*json, "threads")) {
    window.tasks.push_back({Number(*thread, "thread").value_or(0), Text(*thread, "name"),
                            Flag(*thread, "continuous"), Spans(*thread, "ran"),
                            Spans(*thread, "breaks")});
  }
  return window;
}

// Of the scope's cores; one that cannot be is left out.
std::vector<ScopeClockFit> ClocksOf(const Json& scope) {
  std::vector<ScopeClockFit> clocks;
  for (const Json* core : Objects(scope, "cores")) {
    const Json* const clock = Find(*core, "clock");
    const auto number = Number(*core, "core");
    const Json* const rate = clock == nullptr ? nullptr : Find(*clock, "ns_per_count");
    if (!number || rate == nullptr || !rate->is_number()) continue;
    const auto count = Find(*clock, "count");
    const double ns_per_count = rate->get<double>();
    if (count == nullptr || !count->is_number_integer() || !std::isfinite(ns_per_count) ||
        ns_per_count <= 0)
      continue;
    clocks.push_back({static_cast<uint32_t>(*number), count->get<uint64_t>(),
                      Number(*clock, "at_ns").value_or(0), ns_per_count,
                      Number(*clock, "error_ns").value_or(0)});
  }
  return clocks;
}

// "2026-11-22T04:11:41.123Z"; nothing where it is none.
std::optional<TimeNs> ParseWallTime(const std::string& text) {
  tm utc{};
  int milliseconds = 0;
  const int fields =
      std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ", &utc.tm_year, &utc.tm_mon,
                  &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &utc.tm_sec, &milliseconds);
  if (fields != 7 || utc.tm_year < 1970 || utc.tm_year > 2200) return std::nullopt;
  utc.tm_year -= 1900;
  utc.tm_mon -= 1;
  return static_cast<TimeNs>(timegm(&utc)) * kSecond + milliseconds * kMillisecond;
}

}  // namespace

Result<SnapshotFacts> ReadSnapshotFacts(FileSystem& files, const std::string& folder) {
  const std::string path = folder + "/" + kManifestName;
  auto text = ReadWholeFile(files, path);
  if (!text.ok()) return text.status();
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object() || Text(json, "format") != "hangscope-snapshot") {
    return Status::Corrupt(
        fmt::format("'{}' is damaged, or was not written by hangscope: what it says of the "
                    "recording is left out",
                    Printable(path)));
  }
  SnapshotFacts facts;
  facts.version = static_cast<int>(Number(json, "version").value_or(0));
  if (facts.version > kManifestVersion) {
    facts.troubles.push_back(
        fmt::format("'{}' is of version {}, and this hangscope knows version {}: what is new in it "
                    "is left out; use the hangscope that wrote it",
                    Printable(path), facts.version, kManifestVersion));
  }
  facts.host = Text(json, "host");
  facts.elf = Text(json, "elf");
  facts.pid = static_cast<int>(Number(json, "pid").value_or(0));
  if (const Json* words = Find(json, "command"); words != nullptr && words->is_array()) {
    for (const Json& word : *words)
      facts.command.push_back(word.is_string() ? word.get<std::string>() : word.dump());
  }
  if (const Json* verdict = Find(json, "verdict")) {
    const std::string summary = Text(*verdict, "summary");
    facts.verdict = summary.empty() ? Text(*verdict, "state") : summary;
  }
  if (const Json* scope = Find(json, "scope")) {
    facts.clocks = ClocksOf(*scope);
    facts.scope_not_in_window = Text(*scope, "not_in_window");
  }
  facts.window = WindowOf(json);
  const auto wall = ParseWallTime(Text(json, "trigger_time"));
  if (facts.window) facts.trigger = facts.window->time.to;
  TimeNs ahead = 0;
  if (facts.window && wall && !__builtin_sub_overflow(*wall, facts.window->time.to, &ahead))
    facts.wall_minus_monotonic = ahead;
  for (const Json* stream : Objects(json, "streams"))
    facts.streams.push_back(Text(*stream, "name"));
  return facts;
}

}  // namespace hangscope
