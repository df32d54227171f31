#include "report/report_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/units.h"
#include "model/manifest.h"
#include "snapshot/json_fields.h"
#include "snapshot/snapshots.h"

namespace hangscope {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kLongestManifest = 16u << 20;
constexpr size_t kMostTexts = 1000;
constexpr size_t kMostLoopPlaces = 4096;
constexpr size_t kMostGapsTold = 8;

ReportPlace PlaceOf(const Json& json) {
  return {TextField(json, "function"), TextField(json, "source"), "", TextField(json, "pc"),
          TextField(json, "text")};
}

// "CPU 1 events", "stream 0 stdout".
std::string RingText(const Json& ring) {
  const auto number = NumberField(ring, "number");
  const std::string what = TextField(ring, "what");
  return fmt::format("{} {}{}{}", TextField(ring, "kind"),
                     number ? fmt::format("{:.0f}", *number) : "?", what.empty() ? "" : " ", what);
}

std::optional<ScopeClockFit> ClockOf(const Json& core) {
  const Json& json = ObjectField(core, "clock");
  const auto count = CountField(json, "count");
  const auto at = TimeField(json, "at_ns");
  const auto rate = NumberField(json, "ns_per_count");
  if (!count || !at || !rate || *rate <= 0) return std::nullopt;
  return ScopeClockFit{0, *count, *at, *rate, TimeField(json, "error_ns").value_or(0)};
}

// UTC with milliseconds, "2026-11-21T12:31:54.518Z".
std::optional<TimeNs> ParseWallTime(const std::string& text) {
  tm parts{};
  int milliseconds = 0;
  char end = 0;
  const int read = std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%3d%c", &parts.tm_year,
                               &parts.tm_mon, &parts.tm_mday, &parts.tm_hour, &parts.tm_min,
                               &parts.tm_sec, &milliseconds, &end);
  if (read != 8 || end != 'Z' || parts.tm_year < 1970 || parts.tm_year > 2200) return std::nullopt;
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return static_cast<TimeNs>(timegm(&parts)) * kSecond + milliseconds * kMillisecond;
}

class ManifestReader {
 public:
  ManifestReader(const Json& json, Report* report, ReportFacts* facts)
      : json_(json), report_(*report), facts_(*facts) {}

  void Read() {
    CheckVersion();
    AddVerdict();
    AddRun();
    AddTrigger();
    AddStreams();
    AddScope();
    AddCpus();
    AddWindow();
  }

 private:
  void Trouble(std::string text) { report_.troubles.push_back(std::move(text)); }

  void CheckVersion() {
    if (TextField(json_, "format") != "hangscope-snapshot")
      Trouble("manifest.json does not say that it is of a snapshot of hangscope");
    const auto version = NumberField(json_, "version");
    if (!version) Trouble("manifest.json does not say its version");
    if (version && *version > kManifestVersion) {
      Trouble(
          fmt::format("manifest.json is of version {:.0f}, and this hangscope knows version {}: "
                      "what is new in it is not shown",
                      *version, kManifestVersion));
    }
  }

  void AddVerdict() {
    const Json& verdict = ObjectField(json_, "verdict");
    if (verdict.empty()) return Trouble("manifest.json has no verdict in it");
    report_.headline = TextField(verdict, "summary");
    report_.state = TextField(verdict, "state");
    report_.confidence = TextField(verdict, "confidence");
    report_.hang = TrueField(verdict, "hang");
    report_.evidence = TextsField(verdict, "evidence", kMostTexts);
    report_.doubts = TextsField(verdict, "doubts", kMostTexts);
    for (const Json& finding : ListField(verdict, "findings")) AddFinding(finding);
    for (const Json& core : ListField(verdict, "cores")) AddLoop(core);
    for (const Json& stream : ListField(verdict, "streams")) {
      if (!TextField(stream, "trace").empty())
        facts_.trace_streams.push_back(TextField(stream, "name"));
    }
  }

  void AddFinding(const Json& json) {
    ReportFinding finding{TextField(json, "kind"),
                          TextField(json, "confidence"),
                          TextField(json, "summary"),
                          TextsField(json, "lines", kMostTexts),
                          {},
                          {}};
    if (!finding.summary.empty() && report_.findings.size() < kMostTexts)
      report_.findings.push_back(std::move(finding));
  }

  void AddLoop(const Json& core) {
    const Json& json = ObjectField(core, "loop");
    if (json.empty() || report_.loops.size() == kMostTexts) return;
    ReportLoop loop;
    loop.name = TextField(core, "name");
    loop.rounds = CountField(json, "rounds").value_or(0);
    loop.at_least = TrueField(json, "at_least");
    loop.basis = TextField(json, "basis");
    loop.interrupts = CountField(json, "interrupts").value_or(0);
    loop.for_s = NumberField(core, "for_s");
    for (const Json& place : ListField(json, "places")) {
      if (loop.places.size() == kMostLoopPlaces) break;
      loop.places.push_back(PlaceOf(place));
    }
    report_.loops.push_back(std::move(loop));
  }

  void Run(const char* name, const std::string& value) {
    if (!value.empty()) report_.run.emplace_back(name, value);
  }

  void AddRun() {
    const std::vector<std::string> command = TextsField(json_, "command", kMostTexts);
    std::string words;
    for (const std::string& word : command) words += (words.empty() ? "" : " ") + word;
    facts_.elf = TextField(json_, "elf");
    if (!facts_.elf.empty())
      report_.title = NameOf(facts_.elf);
    else if (!command.empty())
      report_.title = NameOf(command[0]);
    Run("command", words);
    Run("program", facts_.elf);
    Run("host", TextField(json_, "host"));
    Run("started", TextField(json_, "start"));
    Run("taken", TextField(json_, "time"));
    if (const auto elapsed = SecondsField(json_, "elapsed_s"))
      Run("taken after", FormatElapsed(*elapsed));
    if (const auto pid = CountField(json_, "pid"); pid && *pid != 0)
      Run("process", std::to_string(*pid));
    if (TextField(json_, "trigger_kind") == "exit")
      Run("ended by", TextField(json_, "trigger_detail"));
    Run("run id", TextField(json_, "run_id"));
    facts_.taken_wall = ParseWallTime(TextField(json_, "time"));
  }

  void AddTrigger() {
    ReportTrigger trigger;
    trigger.text = TextField(json_, "trigger");
    const std::string detail = TextField(json_, "trigger_detail");
    const std::string stream = TextField(json_, "trigger_stream");
    if (!detail.empty())
      trigger.text += fmt::format(" ({}{}{})", stream, stream.empty() ? "" : ": ", detail);
    const auto after = SecondsField(json_, "trigger_s");
    const auto end = SecondsField(json_, "elapsed_s");
    if (after && end) trigger.time = *after - *end;
    if (!trigger.text.empty()) report_.trigger = std::move(trigger);
  }

  void AddStreams() {
    for (const Json& stream : ListField(json_, "streams")) {
      const std::string name = TextField(stream, "name");
      // It becomes part of a path.
      if (name.empty() || name.find('/') != std::string::npos || name.starts_with('.')) {
        Trouble(fmt::format("manifest.json names a stream '{}', which is no name of one", name));
        continue;
      }
      if (facts_.streams.size() == kMostTexts) break;
      facts_.streams.push_back(name);
      const uint64_t begin = CountField(stream, "begin_offset").value_or(0);
      if (begin > 0)
        report_.lost.push_back(
            fmt::format("{}: the first {} are overwritten", name, FormatSize(begin)));
      AddLosses(name, ListField(stream, "losses"));
    }
  }

  void AddLosses(const std::string& stream, const Json& losses) {
    for (size_t i = 0; i < std::min(losses.size(), kMostGapsTold); ++i) {
      const uint64_t begin = CountField(losses[i], "begin").value_or(0);
      const uint64_t end = CountField(losses[i], "end").value_or(0);
      report_.lost.push_back(fmt::format("{}: bytes {} to {} are missing: {}", stream, begin, end,
                                         TextField(losses[i], "reason")));
    }
    if (losses.size() > kMostGapsTold)
      report_.lost.push_back(fmt::format("{}: {} more places where bytes are missing", stream,
                                         losses.size() - kMostGapsTold));
  }

  // Which records of which core are missing.
  void AddScope() {
    const Json& scope = ObjectField(json_, "scope");
    for (const Json& core : ListField(scope, "cores")) {
      if (!facts_.scope_clock) facts_.scope_clock = ClockOf(core);
      std::string text;
      for (const char* reason : {"overwritten", "torn", "refused"}) {
        const uint64_t count = CountField(core, reason).value_or(0);
        if (count > 0)
          text += fmt::format("{}{} {}", text.empty() ? "" : ", ", FormatCount(count), reason);
      }
      if (text.empty() || report_.lost.size() >= kMostTexts) continue;
      const std::string name = TextField(core, "name");
      report_.lost.push_back(
          fmt::format("core {}{}{}: of {} events {}", CountField(core, "core").value_or(0),
                      name.empty() ? "" : " ", name,
                      FormatCount(CountField(core, "emitted").value_or(0)), text));
    }
    const std::string why = TextField(scope, "not_in_window");
    if (!why.empty()) report_.lost.push_back("the scope's cores are not in the window: " + why);
  }

  void AddCpus() {
    const Json& cpu = ObjectField(json_, "cpu");
    const uint64_t discarded = CountField(cpu, "discarded_bytes").value_or(0);
    const uint64_t names = CountField(cpu, "side_band_lost").value_or(0);
    if (discarded > 0)
      report_.lost.push_back(
          fmt::format("CPUs: {} were overwritten while they were read", FormatSize(discarded)));
    if (names > 0)
      report_.lost.push_back(
          fmt::format("CPUs: {} names and mappings found no room", FormatCount(names)));
  }

  void AddWindow() {
    const Json& json = ObjectField(json_, "window");
    const auto from = TimeField(json, "from_ns");
    const auto to = TimeField(json, "to_ns");
    if (!from || !to || *from > *to) {
      if (!json.empty()) Trouble("manifest.json has a window whose times cannot be right");
      return;
    }
    facts_.end = *to;
    report_.window = ReportWindow{{*from - *to, 0}, TextField(json, "policy"), ""};
    const Json& limit = ObjectField(json, "limited_by");
    if (!limit.empty()) report_.window->limited_by = RingText(limit);
    AddGaps(ListField(json, "gaps"));
  }

  // How often what is missing where; the tracks show each.
  void AddGaps(const Json& gaps) {
    std::map<std::string, size_t> counts;
    for (const Json& gap : gaps)
      ++counts[fmt::format("{}: {}", RingText(ObjectField(gap, "ring")), TextField(gap, "why"))];
    size_t told = 0;
    for (const auto& [text, count] : counts) {
      if (++told > kMostGapsTold) break;
      report_.lost.push_back(fmt::format(
          "{}{}", text, count > 1 ? fmt::format(", {} times", FormatCount(count)) : ""));
    }
    if (counts.size() > kMostGapsTold)
      report_.lost.push_back(
          fmt::format("gaps of {} more kinds and rings", counts.size() - kMostGapsTold));
  }

  const Json& json_;
  Report& report_;
  ReportFacts& facts_;
};

Result<std::string> ReadBounded(FileSystem& files, const std::string& path, uint64_t most) {
  auto file = files.Open(path, FileSystem::Mode::kRead);
  if (!file.ok()) return file.status();
  auto size = (*file)->Size();
  if (!size.ok()) return size.status();
  if (*size > most)
    return Status::Corrupt(fmt::format("'{}' has {}, more than a manifest can have: it is damaged",
                                       path, FormatSize(*size)));
  return ReadWholeFile(files, path);
}

}  // namespace

Status AddManifest(FileSystem& files, const std::string& folder, Report* report,
                   ReportFacts* facts) {
  const std::string path = folder + "/" + kManifestName;
  auto text = ReadBounded(files, path, kLongestManifest);
  if (!text.ok()) return text.status();
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object())
    return Status::Corrupt(fmt::format(
        "'{}' is no JSON object: it is damaged, or was not written by hangscope", path));
  ManifestReader(json, report, facts).Read();
  return {};
}

}  // namespace hangscope
