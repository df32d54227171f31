#include "report/report_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_fields.h"
#include "base/units.h"

namespace hangscope {
namespace {

constexpr size_t kMostTexts = 1000;
constexpr size_t kMostGapsTold = 8;

class ManifestParts {
 public:
  ManifestParts(SavedManifest* manifest, Report* report) : manifest_(*manifest), report_(*report) {}

  void Add() {
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
  void Warn(std::string text) { report_.warnings.push_back(std::move(text)); }

  void CheckVersion() {
    const auto version = manifest_.version;
    if (manifest_.format != kManifestFormat)
      Warn("manifest.json does not say that it is of a snapshot of hangscope");
    if (!version) Warn("manifest.json does not say its version");
    if (version && *version > kManifestVersion) {
      Warn(
          fmt::format("manifest.json is of version {:.0f}, and this hangscope knows version {}: "
                      "what is new in it is not shown",
                      *version, kManifestVersion));
    }
  }

  void AddVerdict() {
    if (!manifest_.verdict) return Warn("manifest.json has no verdict in it");
    const SavedVerdict& verdict = *manifest_.verdict;
    report_.headline = verdict.summary;
    report_.state = verdict.state;
    report_.confidence = verdict.confidence;
    report_.hang = verdict.hang;
    report_.evidence = verdict.evidence;
    report_.doubts = verdict.doubts;
    report_.findings = verdict.findings;
    report_.last_output = verdict.last_output;
    report_.loops = verdict.loops;
  }

  void Run(const char* name, const std::string& value) {
    if (!value.empty()) report_.run.emplace_back(name, value);
  }

  void AddRun() {
    const std::vector<std::string>& command = manifest_.command;
    std::string words;
    for (size_t i = 0; i < std::min(command.size(), kMostTexts); ++i)
      words += (words.empty() ? "" : " ") + CutText(command[i]);
    if (!manifest_.elf.empty())
      report_.title = NameOf(manifest_.elf);
    else if (!command.empty())
      report_.title = NameOf(CutText(command[0]));
    Run("command", words);
    Run("program", manifest_.elf);
    Run("host", manifest_.host);
    Run("started", manifest_.start);
    Run("taken", manifest_.taken);
    if (manifest_.elapsed) Run("taken after", FormatElapsed(*manifest_.elapsed));
    if (manifest_.pid != 0) Run("process", std::to_string(manifest_.pid));
    if (manifest_.trigger_kind == "exit") Run("ended by", manifest_.trigger_detail);
    Run("run id", manifest_.run_id);
  }

  void AddTrigger() {
    if (manifest_.trigger.empty() && manifest_.trigger_detail.empty()) return;
    ReportTrigger trigger;
    trigger.text = manifest_.trigger;
    const std::string& stream = manifest_.trigger_stream;
    if (!manifest_.trigger_detail.empty())
      trigger.text +=
          fmt::format(" ({}{}{})", stream, stream.empty() ? "" : ": ", manifest_.trigger_detail);
    if (manifest_.trigger_after && manifest_.elapsed)
      trigger.time = *manifest_.trigger_after - *manifest_.elapsed;
    report_.trigger = std::move(trigger);
  }

  void AddStreams() {
    std::erase_if(manifest_.streams, [this](const SavedStream& stream) {
      const std::string& name = stream.name;
      // It becomes part of a path.
      if (!name.empty() && name.find('/') == std::string::npos && !name.starts_with('.'))
        return false;
      Warn(fmt::format("manifest.json names a stream '{}', which is no name of one", name));
      return true;
    });
    manifest_.streams.resize(std::min(manifest_.streams.size(), kMostTexts));
    for (const SavedStream& stream : manifest_.streams) {
      if (stream.begin_offset > 0)
        report_.lost.push_back(fmt::format("{}: the first {} are overwritten", stream.name,
                                           FormatSize(stream.begin_offset)));
      AddLosses(stream);
    }
  }

  void AddLosses(const SavedStream& stream) {
    const std::vector<SavedLoss>& losses = stream.losses;
    for (size_t i = 0; i < std::min(losses.size(), kMostGapsTold); ++i) {
      report_.lost.push_back(fmt::format("{}: bytes {} to {} are missing: {}", stream.name,
                                         losses[i].begin, losses[i].end, losses[i].reason));
    }
    if (losses.size() > kMostGapsTold)
      report_.lost.push_back(fmt::format("{}: {} more places where bytes are missing", stream.name,
                                         losses.size() - kMostGapsTold));
  }

  // Which records of which core are missing.
  void AddScope() {
    for (const ScopeCore& core : manifest_.scope.cores) {
      const std::pair<uint64_t, const char*> losses[] = {{core.counts.overwritten, "overwritten"},
                                                         {core.counts.torn, "torn"},
                                                         {core.counts.refused, "refused"}};
      std::string text;
      for (const auto& [count, reason] : losses) {
        if (count > 0)
          text += fmt::format("{}{} {}", text.empty() ? "" : ", ", FormatCount(count), reason);
      }
      if (text.empty() || report_.lost.size() >= kMostTexts) continue;
      report_.lost.push_back(fmt::format("core {}{}{}: of {} events {}", core.index,
                                         core.name.empty() ? "" : " ", core.name,
                                         FormatCount(core.counts.emitted), text));
    }
    const std::string& why = manifest_.scope.not_in_window;
    if (!why.empty()) report_.lost.push_back("the scope's cores are not in the window: " + why);
  }

  void AddCpus() {
    const CpuManifest& cpu = manifest_.cpu;
    if (cpu.discarded_bytes > 0)
      report_.lost.push_back(fmt::format("CPUs: {} were overwritten while they were read",
                                         FormatSize(cpu.discarded_bytes)));
    if (cpu.threads_not_recorded > 0)
      report_.lost.push_back(fmt::format("CPUs: {} of {} threads are not recorded",
                                         FormatCount(cpu.threads_not_recorded),
                                         FormatCount(cpu.threads_at_start)));
    if (cpu.side_band_lost > 0)
      report_.lost.push_back(fmt::format("CPUs: {} names and mappings found no room",
                                         FormatCount(cpu.side_band_lost)));
  }

  void AddWindow() {
    if (!manifest_.window) return;
    const SavedWindow& window = *manifest_.window;
    if (!window.has_times()) return Warn("manifest.json has a window whose times cannot be right");
    report_.window = ReportWindow{{*window.from - *window.to, 0}, window.policy, window.limited_by};
    // How often what is missing where; the tracks show each.
    size_t told = 0;
    for (const auto& [text, count] : window.gaps) {
      if (++told > kMostGapsTold) break;
      report_.lost.push_back(fmt::format(
          "{}{}", text, count > 1 ? fmt::format(", {} times", FormatCount(count)) : ""));
    }
    if (window.gaps.size() > kMostGapsTold)
      report_.lost.push_back(
          fmt::format("gaps of {} more kinds and rings", window.gaps.size() - kMostGapsTold));
  }

  SavedManifest& manifest_;
  Report& report_;
};

}  // namespace

Status AddManifest(FileSystem& files, const std::string& folder, Report* report,
                   SavedManifest* manifest) {
  auto read = ReadManifest(files, folder);
  if (!read.ok()) return read.status();
  if (!read->is_object)
    return Status::Corrupt(fmt::format(
        "'{}' is no JSON object: it is damaged, or was not written by hangscope", read->path));
  *manifest = std::move(*read);
  ManifestParts(manifest, report).Add();
  return {};
}

}  // namespace hangscope
