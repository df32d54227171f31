#include "why/why_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/utf8.h"
#include "scope/scope_view.h"
#include "scope/watch_json.h"
#include "snapshot/cpu_recording.h"
#include "snapshot/device_capture.h"
#include "snapshot/manifest_reader.h"
#include "snapshot/snapshots.h"
#include "verdict/json.h"
#include "verdict/text.h"

namespace hangscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kLongestReport = 16u << 20;

std::string Part(const std::string& folder, const char* name) { return folder + "/" + name; }

class WhySnapshot {
 public:
  WhySnapshot(FileSystem& files, Clock& clock, const WhyOptions& options)
      : files_(files), clock_(clock), options_(options) {}

  Result<WhyReport> Ask(WhyPerfOptions perf) {
    AddRecording();
    if (!about_manifest_.empty()) Note(about_manifest_);
    if (files_.Exists(Part(folder(), kScopeImageName))) {
      WhyOptions of_image = options_;
      of_image.recorded = recorded_;
      Add(LookAtScope(files_, clock_, of_image));
    }
    if (HasDevice(files_, folder())) AddDevice();
    perf.path = Part(folder(), kCpuFileName);
    perf.window = WindowOf(files_, perf.path);
    if (files_.Exists(perf.path)) Add(LookAtPerf(files_, clock_, perf));
    if (parts_ == 0) return warning_;
    return std::move(report_);
  }

 private:
  const std::string& folder() const { return options_.source.target; }

  // What was judged while it was alive comes first.
  void AddRecording() {
    auto manifest = ReadManifest(files_, folder());
    if (!manifest.ok()) return Warn(manifest.status());
    about_manifest_ = manifest->warning;
    if (!manifest->verdict) {
      return Warn(Status::Corrupt(
          fmt::format("'{}' has no verdict in it: it is damaged, or was not written by hangscope",
                      manifest->path)));
    }
    recorded_ = manifest->verdict->findings;
    const bool is_bad = manifest->verdict->hang || manifest->verdict->state == "dead" ||
                        std::any_of(recorded_.begin(), recorded_.end(),
                                    [](const ReportFinding& finding) { return finding.IsBad(); });
    if (options_.json) return AddText(VerdictLine(*manifest), is_bad);
    auto report = ReadWholeFile(files_, Part(folder(), kReportName), kLongestReport);
    if (!report.ok()) return Warn(report.status());
    AddText(PrintableLines(VerdictInReport(*report)), is_bad);
  }

  void AddDevice() {
    WhyOptions options = options_;
    options.recorded = recorded_;
    auto device = ReadCapturedDevice(files_, folder());
    if (!device.ok()) return Warn(device.status());
    Add(LookAtDevice(files_, clock_, *device, options));
  }

  std::string VerdictLine(const SavedManifest& manifest) {
    Json line = TypedObject("verdict", folder(), clock_.Wall());
    if (!manifest.taken.empty()) line["time"] = manifest.taken;
    line.update(ReadVerdictMembers(files_, folder()));
    if (manifest.version.value_or(0) < kManifestVersion) Renew(&line);
    return JsonLine(line);
  }

  // Of version 1.
  void Renew(Json* verdict) {
    if (verdict->contains("since_s") && (*verdict)["since_s"].is_number() &&
        verdict->contains("elapsed_s") && (*verdict)["elapsed_s"].is_number()) {
      (*verdict)["for_s"] =
          (*verdict)["elapsed_s"].get<double>() - (*verdict)["since_s"].get<double>();
    }
    verdict->erase("since_s");
    verdict->erase("findings");
    for (const ReportFinding& finding : recorded_)
      (*verdict)["findings"].push_back(FindingObject(finding));
  }

  // What is left of it says more, or again.
  void Add(const Result<WhyPart>& part) {
    if (!part.ok()) return Warn(part.status());
    std::string text;
    bool is_bad = false;
    for (const Finding& finding : part->sightings.findings) {
      is_bad = is_bad || finding.IsBad();
      if (options_.json) text += FindingJson(finding, part->target, clock_.Wall());
    }
    if (!options_.json) text = part->found;
    AddText(text + part->evidence, is_bad);
  }

  void AddText(const std::string& text, bool is_bad) {
    ++parts_;
    report_.text += (report_.text.empty() || options_.json ? "" : "\n") + text;
    report_.is_bad = report_.is_bad || is_bad;
  }

  void Warn(Status status) {
    warning_ = std::move(status);
    Note(warning_.message());
  }

  void Note(const std::string& sentence) {
    report_.text += options_.json ? WatchNoteJson(folder(), "trouble", sentence, clock_.Wall())
                                  : sentence + "\n";
  }

  FileSystem& files_;
  Clock& clock_;
  const WhyOptions& options_;
  std::vector<ReportFinding> recorded_;
  WhyReport report_;
  int parts_ = 0;
  Status warning_;
  std::string about_manifest_;  // that it is newer than this hangscope; or empty
};

}  // namespace

std::optional<Window> WindowOf(FileSystem& files, const std::string& recording) {
  const auto manifest = ManifestBeside(files, recording);
  if (!manifest || !manifest->window || !manifest->window->has_times()) return std::nullopt;
  return manifest->window->window;
}

Result<WhyReport> AskWhySnapshot(FileSystem& files, Clock& clock, const WhyOptions& options,
                                 WhyPerfOptions perf) {
  return WhySnapshot(files, clock, options).Ask(std::move(perf));
}

}  // namespace hangscope
