#include "why/why_snapshot.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "scope/scope_view.h"
#include "scope/watch_json.h"
#include "snapshot/cpu_recording.h"
#include "snapshot/snapshots.h"

namespace hangscope {
namespace {

using Json = nlohmann::ordered_json;

std::string Part(const std::string& folder, const char* name) { return folder + "/" + name; }

class WhySnapshot {
 public:
  WhySnapshot(FileSystem& files, Clock& clock, const WhyOptions& options)
      : files_(files), clock_(clock), options_(options) {}

  Result<WhyReport> Ask(WhyPerfOptions perf) {
    Add(TakenWith());
    if (files_.Exists(Part(folder(), kScopeImageName))) Add(AskWhy(files_, clock_, options_));
    perf.path = Part(folder(), kCpuFileName);
    perf.trigger = TriggerOf(files_, perf.path);
    if (files_.Exists(perf.path)) Add(AskWhyPerf(files_, clock_, perf));
    if (parts_ == 0) return trouble_;
    return std::move(report_);
  }

 private:
  const std::string& folder() const { return options_.source.target; }

  // The verdict in the manifest, which is a file like any other: what is in it may be anything.
  Result<WhyReport> TakenWith() {
    auto text = ReadWholeFile(files_, Part(folder(), kManifestName));
    if (!text.ok()) return text.status();
    const Json manifest = Json::parse(*text, nullptr, false);
    if (!manifest.is_object() || !manifest.contains("verdict") ||
        !manifest["verdict"].is_object()) {
      return Status::Corrupt(
          fmt::format("'{}' has no verdict in it: it is damaged, or was not written by hangscope",
                      Part(folder(), kManifestName)));
    }
    const Json& verdict = manifest["verdict"];
    WhyReport report;
    report.is_bad = verdict.contains("hang") && verdict["hang"] == true;
    if (options_.json) {
      Json line{{"type", "verdict"}, {"version", 1}};
      line.update(verdict);
      report.text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
      return report;
    }
    auto told = ReadWholeFile(files_, Part(folder(), kReportName));
    if (!told.ok()) return told.status();
    report.text = told->substr(0, told->find("\n\n") + 1);  // without what the snapshot is of
    return report;
  }

  void Add(const Result<WhyReport>& part) {
    if (part.ok()) {
      ++parts_;
      report_.text += (report_.text.empty() || options_.json ? "" : "\n") + part->text;
      report_.is_bad = report_.is_bad || part->is_bad;
      return;
    }
    trouble_ = part.status();
    report_.text += options_.json
                        ? WatchNoteJson(folder(), "trouble", part.status().message(), clock_.Wall())
                        : part.status().message() + "\n";
  }

  FileSystem& files_;
  Clock& clock_;
  const WhyOptions& options_;
  WhyReport report_;
  int parts_ = 0;
  Status trouble_;
};

}  // namespace

std::optional<TimeNs> TriggerOf(FileSystem& files, const std::string& recording) {
  const size_t slash = recording.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : recording.substr(0, slash);
  if (recording.substr(slash == std::string::npos ? 0 : slash + 1) != kCpuFileName)
    return std::nullopt;
  auto text = ReadWholeFile(files, Part(folder, kManifestName));
  const Json manifest = text.ok() ? Json::parse(*text, nullptr, false) : Json();
  if (!manifest.is_object() || !manifest.contains("window") || !manifest["window"].is_object())
    return std::nullopt;
  const Json& window = manifest["window"];
  if (!window.contains("to_ns") || !window["to_ns"].is_number_integer()) return std::nullopt;
  const auto trigger = window["to_ns"].get<TimeNs>();
  return trigger > 0 ? std::optional(trigger) : std::nullopt;
}

bool IsSnapshot(FileSystem& files, const std::string& folder) {
  return files.IsFolder(folder) && files.Exists(Part(folder, kManifestName));
}

Result<WhyReport> AskWhySnapshot(FileSystem& files, Clock& clock, const WhyOptions& options,
                                 WhyPerfOptions perf) {
  return WhySnapshot(files, clock, options).Ask(std::move(perf));
}

}  // namespace hangscope
