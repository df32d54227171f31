#include "snapshot/manifest_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_fields.h"
#include "base/json_text.h"
#include "base/units.h"
#include "base/utf8.h"
#include "snapshot/cpu_recording.h"
#include "snapshot/finding_reader.h"
#include "snapshot/snapshots.h"

namespace hangscope {
namespace {

using Json = nlohmann::json;

// A list of more is damaged.
constexpr size_t kMostEntries = 1'000'000;
constexpr size_t kMostTexts = 1000;
constexpr uint64_t kLongestManifest = 16u << 20;
constexpr size_t kMostLoopPlaces = 4096;

uint64_t Count(const Json& json, const char* name) { return CountField(json, name).value_or(0); }

// The objects of a list.
std::vector<const Json*> Objects(const Json& json, const char* name) {
  std::vector<const Json*> objects;
  for (const Json& item : ListField(json, name)) {
    if (item.is_object() && objects.size() < kMostEntries) objects.push_back(&item);
  }
  return objects;
}

ReportPlace PlaceOf(const Json& json) {
  return {TextField(json, "function"), TextField(json, "source"), "", TextField(json, "pc"),
          TextField(json, "text")};
}

void ReadLoop(const Json& core, std::vector<ReportLoop>* loops) {
  const Json& json = ObjectField(core, "loop");
  if (json.empty() || loops->size() == kMostTexts) return;
  ReportLoop loop;
  loop.name = TextField(core, "name");
  loop.rounds = Count(json, "rounds");
  loop.at_least = TrueField(json, "at_least");
  loop.basis = TextField(json, "basis");
  loop.interrupts = Count(json, "interrupts");
  loop.for_s = NumberField(core, "for_s");
  loop.since_cycle = CountField(core, "since_cycle");
  for (const Json& place : ListField(json, "places")) {
    if (loop.places.size() == kMostLoopPlaces) break;
    loop.places.push_back(PlaceOf(place));
  }
  for (const Json* step : Objects(core, "way")) {
    if (loop.way.size() == kMostTexts) break;
    loop.way.push_back({PlaceOf(*step), TextsField(*step, "callers", kMostTexts)});
  }
  loops->push_back(std::move(loop));
}

std::vector<ReportLastOutput> LastOutputOf(const Json& verdict) {
  std::vector<ReportLastOutput> outputs;
  for (const Json* json : Objects(verdict, "last_output")) {
    if (outputs.size() == kMostTexts) break;
    outputs.push_back({TextField(*json, "stream"), TextsField(*json, "lines", kMostTexts),
                       TrueField(*json, "unfinished"), NumberField(*json, "age_s")});
  }
  return outputs;
}

std::optional<SavedVerdict> VerdictOf(const Json& manifest) {
  const Json& json = ObjectField(manifest, "verdict");
  if (json.empty()) return std::nullopt;
  SavedVerdict verdict;
  verdict.state = TextField(json, "state");
  verdict.confidence = TextField(json, "confidence");
  verdict.summary = TextField(json, "summary");
  verdict.hang = TrueField(json, "hang");
  verdict.evidence = TextsField(json, "evidence", kMostTexts);
  verdict.doubts = TextsField(json, "doubts", kMostTexts);
  for (const Json& each : ListField(json, "findings")) {
    ReportFinding finding = ReadFinding(each);
    if (!finding.summary.empty() && verdict.findings.size() < kMostTexts)
      verdict.findings.push_back(std::move(finding));
  }
  verdict.last_output = LastOutputOf(json);
  for (const Json& core : ListField(json, "cores")) {
    ReadLoop(core, &verdict.loops);
    const auto cycle = CountField(core, "since_cycle");
    if (cycle && verdict.since_cycles.size() < kMostTexts)
      verdict.since_cycles.push_back({TextField(core, "name"), TextField(core, "state"), *cycle});
  }
  for (const Json& stream : ListField(json, "streams")) {
    if (!TextField(stream, "trace").empty())
      verdict.trace_streams.push_back(TextField(stream, "name"));
  }
  return verdict;
}

SavedStream StreamOf(const Json& json) {
  SavedStream stream{TextField(json, "name"), Count(json, "begin_offset"), {}};
  for (const Json& loss : ListField(json, "losses"))
    stream.losses.push_back({Count(loss, "begin"), Count(loss, "end"), TextField(loss, "reason")});
  return stream;
}

ScopeCore CoreOf(const Json& json) {
  ScopeCore core;
  core.index = static_cast<uint32_t>(Count(json, "core"));
  core.name = TextField(json, "name");
  core.in_use = true;  // of others nothing is written
  core.counts.emitted = Count(json, "emitted");
  core.counts.overwritten = Count(json, "overwritten");
  core.counts.torn = Count(json, "torn");
  core.counts.refused = Count(json, "refused");
  return core;
}

std::optional<ScopeClockFit> ClockOf(const Json& core) {
  const Json& json = ObjectField(core, "clock");
  const auto index = CountField(core, "core");
  const auto count = CountField(json, "count");
  const auto at = TimeField(json, "at_ns");
  const auto rate = NumberField(json, "ns_per_count");
  if (!index || !count || !at || !rate || *rate <= 0) return std::nullopt;
  return ScopeClockFit{static_cast<uint32_t>(*index), *count, *at, *rate,
                       TimeField(json, "error_ns").value_or(0)};
}

ScopeManifest ScopeOf(const Json& manifest) {
  const Json& json = ObjectField(manifest, "scope");
  ScopeManifest scope;
  for (const Json* core : Objects(json, "cores")) {
    scope.cores.push_back(CoreOf(*core));
    if (const auto clock = ClockOf(*core)) scope.clocks.push_back(*clock);
  }
  scope.not_in_window = TextField(json, "not_in_window");
  return scope;
}

CpuManifest CpuOf(const Json& manifest) {
  const Json& json = ObjectField(manifest, "cpu");
  CpuManifest cpu;
  cpu.discarded_bytes = Count(json, "discarded_bytes");
  cpu.side_band_lost = Count(json, "side_band_lost");
  cpu.threads_at_start = Count(json, "threads_at_start");
  cpu.threads_not_recorded = Count(json, "threads_not_recorded");
  return cpu;
}

TimeSpan SpanOf(const Json& json) {
  const TimeNs from = TimeField(json, "from_ns").value_or(0);
  return {from, std::max(from, TimeField(json, "to_ns").value_or(from))};
}

std::vector<TimeSpan> ReadSpans(const Json& json, const char* name) {
  std::vector<TimeSpan> spans;
  for (const Json* span : Objects(json, name)) spans.push_back(SpanOf(*span));
  return spans;
}

RingName RingOf(const Json& json) {
  RingName ring{RingKind::kCpu, IntegerField(json, "number").value_or(0), TextField(json, "what")};
  for (const RingKind kind :
       {RingKind::kCpu, RingKind::kThread, RingKind::kCore, RingKind::kSink, RingKind::kStream}) {
    if (TextField(json, "kind") == RingKindName(kind)) ring.kind = kind;
  }
  return ring;
}

// "CPU 1 events", "stream 0 stdout".
std::string RingText(const Json& ring) {
  const auto number = NumberField(ring, "number");
  const std::string what = TextField(ring, "what");
  return fmt::format("{} {}{}{}", TextField(ring, "kind"),
                     number ? fmt::format("{:.0f}", *number) : "?", what.empty() ? "" : " ", what);
}

RingCoverage CoverageOf(const Json& json) {
  RingCoverage ring;
  ring.ring = RingOf(json);
  if (const Json* held = FindField(json, "held"); held != nullptr && held->is_object())
    ring.held = SpanOf(*held);
  ring.bytes_held = Count(json, "held_bytes");
  ring.bytes_inside = Count(json, "inside_bytes");
  ring.bytes_discarded = Count(json, "discarded_bytes");
  ring.lost_any = TrueField(json, "lost_any");
  ring.covered = ReadSpans(json, "covered");
  ring.idle = ReadSpans(json, "idle");
  for (const Json* stale : Objects(json, "stale"))
    ring.stale.push_back(
        {SpanOf(*stale), TimeField(*stale, "age_ns").value_or(0), Count(*stale, "bytes")});
  return ring;
}

class WindowReader {
 public:
  explicit WindowReader(const Json& json) : json_(json), window_(saved_.window) {}

  SavedWindow Read() {
    saved_.from = TimeField(json_, "from_ns");
    saved_.to = TimeField(json_, "to_ns");
    saved_.policy = TextField(json_, "policy");
    window_.time = SpanOf(json_);
    window_.from_the_start = TrueField(json_, "from_the_start");
    window_.clock_error = TimeField(json_, "clock_error_ns").value_or(0);
    for (int policy = 0; policy <= static_cast<int>(WindowPolicy::kSinceLast); ++policy) {
      if (saved_.policy == WindowPolicyName(static_cast<WindowPolicy>(policy)))
        window_.policy = static_cast<WindowPolicy>(policy);
    }
    for (const Json* ring : Objects(json_, "rings")) {
      window_.rings.push_back(CoverageOf(*ring));
      indexes_.emplace(window_.rings.back().ring, window_.rings.size() - 1);
    }
    if (const Json& limit = ObjectField(json_, "limited_by"); !limit.empty()) {
      saved_.limited_by = RingText(limit);
      window_.limited_by = IndexOf(limit);
    }
    for (const Json* gap : Objects(json_, "gaps")) {
      const Json& ring = ObjectField(*gap, "ring");
      ++saved_.gaps[fmt::format("{}: {}", RingText(ring), TextField(*gap, "why"))];
      ReadGap(*gap, &window_.gaps);
    }
    for (const Json* gap : Objects(json_, "lost_before")) ReadGap(*gap, &window_.lost_before);
    for (const Json* task : Objects(json_, "threads")) {
      window_.tasks.push_back({IntegerField(*task, "thread").value_or(0), TextField(*task, "name"),
                               TrueField(*task, "continuous"), ReadSpans(*task, "ran"),
                               ReadSpans(*task, "breaks"), TrueField(*task, "ended")});
    }
    return std::move(saved_);
  }

 private:
  std::optional<size_t> IndexOf(const Json& ring) const {
    const auto known = indexes_.find(RingOf(ring));
    return known == indexes_.end() ? std::nullopt : std::optional(known->second);
  }

  void ReadGap(const Json& json, std::vector<Gap>* gaps) const {
    const Json& ring = ObjectField(json, "ring");
    const std::string why = TextField(json, "why");
    const auto index = ring.empty() ? std::nullopt : IndexOf(ring);
    if (!index) return;
    Gap gap;
    gap.ring = *index;
    gap.task = IntegerField(json, "thread");
    gap.time = SpanOf(json);
    for (int reason = 0; reason <= static_cast<int>(GapReason::kNotRecorded); ++reason) {
      if (why == GapReasonName(static_cast<GapReason>(reason)))
        gap.reason = static_cast<GapReason>(reason);
    }
    gap.amount = std::max(Count(json, "lost_bytes"), Count(json, "lost_records"));
    if (gap.amount > 0)
      gap.unit = CountField(json, "lost_bytes") ? AmountUnit::kBytes : AmountUnit::kRecords;
    gaps->push_back(gap);
  }

  const Json& json_;
  SavedWindow saved_;
  Window& window_;  // of it
  std::map<RingName, size_t> indexes_;
};

void ReadMembers(const Json& json, SavedManifest* manifest) {
  manifest->is_object = true;
  manifest->format = TextField(json, "format");
  manifest->version = NumberField(json, "version");
  manifest->run_id = TextField(json, "run_id");
  manifest->host = TextField(json, "host");
  manifest->elf = TextField(json, "elf");
  manifest->elf_id = TextField(json, "elf_id");
  for (const Json& word : ListField(json, "command")) {
    if (word.is_string()) manifest->command.push_back(word.get<std::string>());
  }
  manifest->pid = Count(json, "pid");
  manifest->start = TextField(json, "start");
  manifest->taken = TextField(json, "time");
  manifest->elapsed = SecondsField(json, "elapsed_s");
  manifest->trigger = TextField(json, "trigger");
  manifest->trigger_kind = TextField(json, "trigger_kind");
  manifest->trigger_detail = TextField(json, "trigger_detail");
  manifest->trigger_stream = TextField(json, "trigger_stream");
  manifest->trigger_time = TextField(json, "trigger_time");
  manifest->trigger_after = SecondsField(json, "trigger_s");
  for (const Json& stream : ListField(json, "streams"))
    manifest->streams.push_back(StreamOf(stream));
  manifest->scope = ScopeOf(json);
  const Json& device = ObjectField(json, "device");
  manifest->is_device = !device.empty();
  for (const Json* memory : Objects(device, "memories"))
    manifest->memories.push_back({TextField(*memory, "name"), TextField(*memory, "unread")});
  manifest->cpu = CpuOf(json);
  if (const Json& window = ObjectField(json, "window"); !window.empty())
    manifest->window = WindowReader(window).Read();
  manifest->verdict = VerdictOf(json);
}

std::string TroubleOf(const SavedManifest& manifest) {
  if (manifest.format != kManifestFormat) {
    return fmt::format(
        "'{}' is damaged, or was not written by hangscope: what it says of the "
        "recording is left out",
        Printable(manifest.path));
  }
  if (manifest.version.value_or(0) <= kManifestVersion) return {};
  return fmt::format(
      "'{}' is of version {:.0f}, and this hangscope knows version {}: what is new "
      "in it is left out; use the hangscope that wrote it",
      Printable(manifest.path), *manifest.version, kManifestVersion);
}

// An ordered_json takes quadratic time for an object of many.
bool HasFewMembers(const Json& json) {
  constexpr size_t kMostMembers = 1000;
  if (!json.is_structured()) return true;
  return (json.is_array() || json.size() <= kMostMembers) &&
         std::all_of(json.begin(), json.end(), HasFewMembers);
}

std::string PathOf(const std::string& folder) { return folder + "/" + kManifestName; }

}  // namespace

Result<SavedManifest> ReadManifest(FileSystem& files, const std::string& folder) {
  SavedManifest manifest;
  manifest.path = PathOf(folder);
  auto text = ReadWholeFile(files, manifest.path, kLongestManifest);
  if (!text.ok()) return text.status();
  const Json json = ParseForeignJson(*text);
  if (json.is_object()) ReadMembers(json, &manifest);
  manifest.warning = TroubleOf(manifest);
  return manifest;
}

std::optional<SavedManifest> ManifestBeside(FileSystem& files, const std::string& cpu_file) {
  if (NameOf(cpu_file) != kCpuFileName) return std::nullopt;
  auto manifest = ReadManifest(files, FolderOf(cpu_file));
  if (!manifest.ok() || manifest->format != kManifestFormat) return std::nullopt;
  return std::move(*manifest);
}

nlohmann::ordered_json ReadVerdictMembers(FileSystem& files, const std::string& folder) {
  using OrderedJson = nlohmann::ordered_json;
  auto text = ReadWholeFile(files, PathOf(folder), kLongestManifest);
  OrderedJson manifest;
  if (text.ok() && HasFewMembers(ParseForeignJson(*text)))
    manifest = ParseForeignJson<OrderedJson>(*text);
  const bool has_verdict = manifest.is_object() && manifest.contains("verdict");
  return has_verdict && manifest["verdict"].is_object() ? manifest["verdict"]
                                                        : OrderedJson::object();
}

}  // namespace hangscope
