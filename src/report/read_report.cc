#include "report/read_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/units.h"
#include "hangscope/version.h"
#include "report/report_data.h"
#include "report/report_divergence.h"
#include "report/report_manifest.h"
#include "report/report_page.h"
#include "report/report_scope.h"
#include "report/report_streams.h"
#include "report/report_threads.h"
#include "report/report_tracks.h"
#include "snapshot/cpu_recording.h"
#include "snapshot/device_capture.h"
#include "snapshot/recorded_elf.h"
#include "snapshot/recording_kind.h"
#include "snapshot/snapshots.h"

namespace hangscope {
namespace {

class ReportReader {
 public:
  ReportReader(FileSystem& files, Clock& clock, const ReportOptions& options)
      : files_(files), clock_(clock), options_(options) {}

  Result<Report> Read() {
    if (!options_.threads.empty()) return ReadProcess();
    const RecordingKind kind = KindOf(files_, folder());
    is_folder_ = IsFolder(kind);
    if (is_folder_) {
      ReadManifest();
      ReadStreams();
      if (files_.Exists(Part(kScopeImageName))) ReadScope();
      if (HasDevice(files_, folder())) ReadDevice();
      if (files_.Exists(Part(kThreadsName))) Take(AddThreads(files_, Part(kThreadsName), &report_));
    } else if (kind != RecordingKind::kPerfData && kind != RecordingKind::kDebugger) {
      ReadScope();
    }
    if (!is_folder_ || files_.Exists(Part(kScopeImageName)) || HasDevice(files_, folder()) ||
        files_.Exists(Part(kCpuFileName)) || HasTraces())
      ReadTracks();
    if (parts_ == 0)
      return warning_.ok() ? Status::NotFound(fmt::format(
                                 "'{}' is neither a snapshot nor a recording", folder()))
                           : warning_;
    Finish();
    if (!options_.against.empty()) {
      const Status status = AddDivergence(
          files_, clock_, Source(), {options_.against, Source().elf}, options_.code, &report_);
      if (!status.ok()) return status;  // it was asked for, and a page without it would mislead
    }
    return std::move(report_);
  }

 private:
  // A live one, which may record into a scope besides.
  Result<Report> ReadProcess() {
    if (ScopeView::Open(files_, Source()).ok()) {
      ReadScope();
      ReadTracks();
    }
    AddThreadLines(options_.threads, &report_);
    if (report_.threads.empty()) return Status::NotFound("no thread of it could be looked at");
    report_.title = report_.threads.front().process;
    report_.run.emplace_back("process", report_.title);
    if (report_.findings.empty()) report_.headline = "no hang and no fault is found";
    Finish();
    return std::move(report_);
  }

  const std::string& folder() const { return options_.source.target; }
  std::string Part(const std::string& name) const { return folder() + "/" + name; }

  // A part was read, or why not.
  void Take(const Status& status) {
    if (status.ok()) {
      ++parts_;
      return;
    }
    warning_ = status;
    const auto known =
        std::find(report_.warnings.begin(), report_.warnings.end(), status.message());
    if (known == report_.warnings.end()) report_.warnings.push_back(status.message());
  }

  void ReadManifest() {
    const Status status = AddManifest(files_, folder(), &report_, &manifest_);
    Take(status);
    if (!status.ok()) FindStreams();
    if (options_.source.elf.empty()) recorded_elf_ = ElfOfSnapshot(files_, manifest_);
    if (!recorded_elf_.warning.empty()) report_.warnings.push_back(recorded_elf_.warning);
    for (const SavedStream& stream : manifest_.streams) streams_.push_back(stream.name);
    if (manifest_.window && manifest_.window->has_times()) end_ = manifest_.window->to;
    const auto taken = ParseWallTime(manifest_.taken);
    for (const std::string& name : streams_) {
      if (!end_ && taken) end_ = MonotonicOf(files_, Part(name), *taken);
    }
  }

  bool HasTraces() const { return manifest_.verdict && !manifest_.verdict->trace_streams.empty(); }

  // Without a manifest: by their indexes.
  void FindStreams() {
    constexpr std::string_view kIndex = ".index";
    for (const std::string& name : files_.List(folder())) {
      if (name.ends_with(kIndex)) streams_.push_back(name.substr(0, name.size() - kIndex.size()));
    }
    std::sort(streams_.begin(), streams_.end());
  }

  void ReadStreams() {
    for (const std::string& name : streams_)
      Take(AddStreamLines(files_, Part(name), name, end_, {}, &report_));
  }

  void ReadScope() {
    ReportScopeTimes times{end_, {}};
    if (!manifest_.scope.clocks.empty()) times.clock = manifest_.scope.clocks.front();
    const Status status = AddScopeWatch(files_, clock_, Source(), times, &report_);
    // A scope without mailboxes has events all the same.
    const bool has_events = status.code() == Status::Code::kNotFound && is_folder_ &&
                            ScopeView::Open(files_, Source()).ok();
    if (!has_events) Take(status);
    if (status.ok() || has_events) Take(AddEventNumbers(files_, clock_, Source(), &report_));
  }

  void ReadDevice() {
    auto device = ReadCapturedDevice(files_, folder());
    Take(device.ok() ? AddDeviceWatch(files_, clock_, *device, &report_) : device.status());
  }

  void ReadTracks() {
    const TrackLimits limits{options_.most_events, options_.most_time, options_.progress};
    const Status status =
        AddTracks(files_, clock_, Source(), options_.code, limits, &end_, &report_);
    Take(status);
    if (status.ok() || !is_folder_ || !files_.Exists(Part(kCpuFileName))) return;
    // Why the one part that nobody else has looked at gives nothing.
    Take(AddTracks(files_, clock_, {Part(kCpuFileName), ""}, options_.code, limits, &end_,
                   &report_));
  }

  ScopeSource Source() const {
    ScopeSource source = options_.source;
    if (source.elf.empty()) source.elf = recorded_elf_.path;
    return source;
  }

  void Finish() {
    for (ReportLoop& loop : report_.loops) {
      const auto at =
          std::find_if(report_.tracks.begin(), report_.tracks.end(),
                       [&](const ReportTrack& track) { return track.name == loop.name; });
      if (at != report_.tracks.end()) loop.track = static_cast<size_t>(at - report_.tracks.begin());
    }
    if (report_.title.empty()) report_.title = NameOf(folder());
    report_.run.emplace_back("report by", "hangscope " HANGSCOPE_VERSION);
    if (!report_.headline.empty()) return;
    // No verdict was taken along: the surest finding is one.
    const auto rank = [](const ReportFinding& finding) {
      return finding.IsBad() ? finding.confidence : Confidence::kPossible;
    };
    const auto worst =
        std::max_element(report_.findings.begin(), report_.findings.end(),
                         [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    if (worst == report_.findings.end()) {
      report_.headline = "no verdict was taken along, and no hang and no fault is found";
      return;
    }
    report_.headline = worst->summary;
    report_.state = worst->kind;
    report_.confidence = ConfidenceName(worst->confidence);
    report_.hang = worst->IsBad();
    report_.evidence = worst->evidence;
    report_.doubts = worst->doubts;
  }

  FileSystem& files_;
  Clock& clock_;
  const ReportOptions& options_;
  Report report_;
  bool is_folder_ = false;
  SavedManifest manifest_;            // empty where there is none
  RecordedElf recorded_elf_;          // of that
  std::vector<std::string> streams_;  // their names
  ReportTime end_;                    // monotonic; nothing: not known
  int parts_ = 0;
  Status warning_;
};

}  // namespace

Status WriteReportPage(FileSystem& files, const Report& report, const std::string& path,
                       const std::string& fresh, FileSystem::Mode mode, uint64_t most_bytes) {
  const std::string page = ReportPage(ReportDataJson(report));
  if (most_bytes != 0 && page.size() > most_bytes) {
    return Status::Usage(fmt::format("the page '{}' would have {}, and {} are the most", path,
                                     FormatSize(page.size()), FormatSize(most_bytes)));
  }
  if (files.IsDevice(path)) {
    auto device = files.Open(path, FileSystem::Mode::kCreate);
    size_t written = 0;
    return device.ok() ? (*device)->WriteAt(0, page, &written) : device.status();
  }
  Status status = WriteWholeFile(files, fresh, page, mode);
  if (status.error() == EEXIST) return status;  // somebody's
  if (status.ok()) status = files.Rename(fresh, path);
  if (!status.ok()) (void)files.Remove(fresh).ok();
  return status;
}

Result<Report> ReadReport(FileSystem& files, Clock& clock, const ReportOptions& options) {
  return ReportReader(files, clock, options).Read();
}

}  // namespace hangscope
