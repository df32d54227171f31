#include "why/why_snapshot.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/utf8.h"
#include "scope/scope_view.h"
#include "scope/watch_json.h"
#include "snapshot/cpu_recording.h"
#include "snapshot/manifest_reader.h"
#include "snapshot/snapshots.h"
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
    Add(WhyOfRecording());
    if (files_.Exists(Part(folder(), kScopeImageName))) Add(AskWhy(files_, clock_, options_));
    perf.path = Part(folder(), kCpuFileName);
    perf.trigger = TriggerOf(files_, perf.path);
    if (files_.Exists(perf.path)) Add(AskWhyPerf(files_, clock_, perf));
    if (parts_ == 0) return warning_;
    return std::move(report_);
  }

 private:
  const std::string& folder() const { return options_.source.target; }

  Result<WhyReport> WhyOfRecording() {
    auto manifest = ReadManifest(files_, folder());
    if (!manifest.ok()) return manifest.status();
    if (!manifest->verdict) {
      return Status::Corrupt(
          fmt::format("'{}' has no verdict in it: it is damaged, or was not written by hangscope",
                      manifest->path));
    }
    if (options_.json) return WhyReport{VerdictLine(), manifest->verdict->hang};
    auto report = ReadWholeFile(files_, Part(folder(), kReportName), kLongestReport);
    if (!report.ok()) return report.status();
    return WhyReport{PrintableLines(VerdictInReport(*report)), manifest->verdict->hang};
  }

  std::string VerdictLine() {
    Json line{{"type", "verdict"}, {"version", 1}};
    line.update(ReadVerdictMembers(files_, folder()));
    return JsonLine(line);
  }

  void Add(const Result<WhyReport>& part) {
    if (part.ok()) {
      ++parts_;
      report_.text += (report_.text.empty() || options_.json ? "" : "\n") + part->text;
      report_.is_bad = report_.is_bad || part->is_bad;
      return;
    }
    warning_ = part.status();
    report_.text += options_.json
                        ? WatchNoteJson(folder(), "trouble", part.status().message(), clock_.Wall())
                        : part.status().message() + "\n";
  }

  FileSystem& files_;
  Clock& clock_;
  const WhyOptions& options_;
  WhyReport report_;
  int parts_ = 0;
  Status warning_;
};

}  // namespace

std::optional<TimeNs> TriggerOf(FileSystem& files, const std::string& recording) {
  if (NameOf(recording) != kCpuFileName) return std::nullopt;
  const auto manifest = ReadManifest(files, FolderOf(recording));
  if (!manifest.ok() || !manifest->window) return std::nullopt;
  const std::optional<TimeNs> trigger = manifest->window->to;
  return trigger > 0 ? trigger : std::nullopt;
}

Result<WhyReport> AskWhySnapshot(FileSystem& files, Clock& clock, const WhyOptions& options,
                                 WhyPerfOptions perf) {
  return WhySnapshot(files, clock, options).Ask(std::move(perf));
}

}  // namespace hangscope
