#include "trace/trace_source.h"

#include <fmt/format.h>

#include "base/units.h"
#include "base/utf8.h"
#include "hangscope/version.h"
#include "ring/history.h"
#include "snapshot/cpu_recording.h"
#include "snapshot/device_capture.h"
#include "snapshot/manifest_reader.h"
#include "snapshot/recorded_elf.h"
#include "snapshot/recording_kind.h"
#include "snapshot/snapshots.h"
#include "trace/trace_filter.h"
#include "trace/trace_merge.h"
#include "trace/trace_of_cpus.h"
#include "trace/trace_of_debugger.h"
#include "trace/trace_of_hardware.h"
#include "trace/trace_of_scope.h"
#include "trace/trace_of_stream.h"
#include "trace/trace_of_threads.h"

namespace hangscope {
namespace {

// Numbers of a firmware's tasks lie above those of threads, where a trace has both.
constexpr int64_t kTaskShift = int64_t{1} << 32;

class Opener {
 public:
  Opener(FileSystem& files, Clock& clock, const TraceRequest& request)
      : files_(files), clock_(clock), request_(request) {}

  Result<std::unique_ptr<TraceSource>> Open() {
    const std::string& target = request_.source.target;
    head_.name = target;
    switch (request_.source.open ? RecordingKind::kOther : KindOf(files_, target)) {
      case RecordingKind::kSnapshot:
      case RecordingKind::kFolder:
        OpenSnapshot(target.substr(0, target.find_last_not_of('/') + 1));
        break;
      case RecordingKind::kDebugger:
        Take(OpenDebuggerTrace(files_, target, request_));
        break;
      case RecordingKind::kPerfData:
        // That of a snapshot covers what the snapshot does.
        if (NameOf(target) == kCpuFileName && files_.Exists(FolderOf(target) + "/" + kManifestName))
          DescribeRun(ManifestOf(FolderOf(target)));
        OpenCpus(target);
        break;
      case RecordingKind::kRing:
        OpenStreams(target);
        break;
      case RecordingKind::kText:
        OpenText(target);
        break;
      case RecordingKind::kCore:
      case RecordingKind::kOther:
        OpenTarget(target);
        break;
    }
    return Finish();
  }

 private:
  // All of a file is searched for a scope: of text that is the last resort.
  void OpenText(const std::string& target) {
    auto trace = OpenLines(target);
    if (!trace.ok() || *trace != nullptr) return Take(std::move(trace));
    OpenTarget(target);
  }

  // Null: a file whose lines are no trace.
  Result<std::unique_ptr<TraceSource>> OpenLines(const std::string& target) {
    return MakeStreamTracer()->Open(files_, {NameOf(target), {}, target}, request_);
  }

  // A scope; or a file of lines that are a trace.
  void OpenTarget(const std::string& target) {
    auto scope = OpenScopeTrace(files_, clock_, request_.source, {});
    if (scope.ok()) return AcceptPart(std::move(scope->source), 0);
    if (request_.source.open || !files_.Exists(target)) return NoteFailure(scope.status());
    auto trace = OpenLines(target);
    if (trace.ok() && *trace == nullptr)
      NoteFailure(scope.status());
    else
      Take(std::move(trace));
  }

  void OpenSnapshot(const std::string& folder) {
    const SavedManifest manifest = ManifestOf(folder);
    DescribeRun(manifest);
    if (request_.source.elf.empty()) recorded_elf_ = ElfOfSnapshot(files_, manifest);
    if (!recorded_elf_.warning.empty()) head_.warnings.push_back(recorded_elf_.warning);
    const std::string cpu = folder + "/" + kCpuFileName;
    const size_t before = parts_.size();
    if (files_.Exists(cpu)) OpenCpus(cpu);
    const bool has_threads = parts_.size() > before;
    if (files_.Exists(folder + "/" + kScopeImageName)) OpenScope(folder, manifest, has_threads);
    if (HasDevice(files_, folder)) OpenDevice(folder);
    OpenStreams(folder);
    if (request_.threads && files_.Exists(folder + "/" + kThreadsName))
      OpenThreads(folder, manifest, has_threads);
  }

  // The kernel's events, and beside them hardware traces.
  void OpenCpus(const std::string& path) {
    bool has_traces = false;
    Take(OpenCpuTrace(files_, path, request_.go_on, &has_traces));
    if (!has_traces) return;
    auto traces = OpenHardwareTrace(files_, path, request_);
    if (!traces.ok()) return NoteFailure(traces.status());
    if (*traces != nullptr) AcceptPart(std::move(*traces), 0);
  }

  // Beside a firmware's tasks, which have its numbers, only where CPUs tell of threads, too.
  void OpenThreads(const std::string& folder, const SavedManifest& manifest, bool has_cpus) {
    if (tells_of_tasks_ && !has_cpus) return;
    const bool other_clock = !manifest.scope.image.empty() && manifest.scope.clocks.empty();
    Take(OpenThreadsTrace(files_, folder + "/" + kThreadsName, ParseWallTime(manifest.taken),
                          other_clock));
  }

  void OpenDevice(const std::string& folder) {
    auto device = ReadCapturedDevice(files_, folder);
    if (!device.ok()) return NoteFailure(device.status());
    for (const DeviceMemory& memory : device->memories) {
      if (memory.unread.empty()) continue;
      head_.warnings.push_back(
          fmt::format("memory '{}' cannot be read: {}", Printable(memory.name), memory.unread));
    }
    if (!device->one_clock && device->memories.size() > 1) {
      head_.warnings.push_back(
          "each memory has a clock of its own, and how they went together is not known: times of "
          "different memories cannot be compared");
    }
    auto parts = OpenDeviceTrace(files_, clock_, *device);
    if (!parts.ok()) return NoteFailure(parts.status());
    for (ScopeTracePart& part : *parts)
      parts_.push_back({std::move(part.source), part.task_shift, true});
  }

  void OpenScope(const std::string& folder, const SavedManifest& manifest, bool has_threads) {
    const ScopeManifest& scope = manifest.scope;
    ScopeSource source = request_.source;
    source.target = folder;
    if (source.elf.empty()) source.elf = recorded_elf_.path;
    if (has_threads && scope.clocks.empty()) {
      head_.warnings.push_back(fmt::format(
          "the scope's times cannot be told beside the CPUs': {}",
          scope.not_in_window.empty() ? "the manifest does not say how their clocks went together"
                                      : scope.not_in_window));
    }
    auto opened = OpenScopeTrace(files_, clock_, source, {scope.clocks, has_threads});
    if (!opened.ok() && source.elf != request_.source.elf) {
      source.elf = request_.source.elf;
      opened = OpenScopeTrace(files_, clock_, source, {scope.clocks, has_threads});
    }
    if (!opened.ok()) return NoteFailure(opened.status());
    tells_of_tasks_ = !opened->of_threads;
    AcceptPart(std::move(opened->source), has_threads && tells_of_tasks_ ? kTaskShift : 0);
  }

  void OpenStreams(const std::string& target) {
    const std::vector<HistorySource> streams = FindHistory(files_, target);
    if (!request_.streams) return;
    const std::unique_ptr<StreamTracer> tracer = MakeStreamTracer();
    TraceRequest request = request_;
    if (request.source.elf.empty()) request.source.elf = recorded_elf_.path;
    for (const HistorySource& stream : streams) {
      auto opened = tracer->Open(files_, {stream.stream, stream.prefix, {}}, request);
      if (!opened.ok() || *opened != nullptr)
        Take(std::move(opened));
      else
        failure_ = Status::NotFound(fmt::format(
            "'{}' has no trace: what a program printed is not exported, hangscope cat prints it",
            Printable(target)));
    }
  }

  // Nothing of what cannot be trusted to be one.
  SavedManifest ManifestOf(const std::string& folder) {
    auto manifest = ReadManifest(files_, folder);
    if (!manifest.ok()) head_.warnings.push_back(manifest.status().message());
    if (!manifest.ok()) return {};
    if (!manifest->warning.empty()) head_.warnings.push_back(manifest->warning);
    return manifest->format == kManifestFormat ? std::move(*manifest) : SavedManifest();
  }

  void DescribeRun(const SavedManifest& manifest) {
    const bool by_command = manifest.elf.empty() && !manifest.command.empty();
    head_.host = manifest.host;
    head_.command = manifest.command;
    head_.program = by_command ? manifest.command.front() : manifest.elf;
    if (const auto& verdict = manifest.verdict) {
      head_.verdict = verdict->summary.empty() ? verdict->state : verdict->summary;
      head_.since_cycles = verdict->since_cycles;
    }
    if (!manifest.window) return;
    head_.window = manifest.window->window;
    head_.trigger = head_.window->time.to;
    const auto wall = ParseWallTime(manifest.trigger_time);
    TimeNs ahead = 0;
    if (wall && !__builtin_sub_overflow(*wall, *head_.trigger, &ahead))
      head_.wall_minus_monotonic = ahead;
  }

  void AcceptPart(std::unique_ptr<TraceSource> part, int64_t task_shift) {
    parts_.push_back({std::move(part), task_shift});
  }

  void NoteFailure(const Status& failure) {
    failure_ = failure;
    head_.warnings.push_back(failure.message());
  }

  void Take(Result<std::unique_ptr<TraceSource>> part) {
    if (part.ok())
      AcceptPart(std::move(*part), 0);
    else
      NoteFailure(part.status());
  }

  Result<std::unique_ptr<TraceSource>> Finish() {
    if (parts_.empty()) {
      if (!failure_.ok()) return failure_;
      return Status::NotFound(fmt::format(
          "'{}' has nothing in it to export: no scope, no events of CPUs, no trace, no threads",
          Printable(head_.name)));
    }
    if (head_.recorded_by.empty() && head_.window)
      head_.recorded_by = "hangscope " HANGSCOPE_VERSION;
    return FilterTrace(MergeTraces(std::move(head_), std::move(parts_)), request_);
  }

  FileSystem& files_;
  Clock& clock_;
  const TraceRequest& request_;
  TraceHead head_;
  RecordedElf recorded_elf_;  // of a snapshot, where none was asked for
  std::vector<TracePart> parts_;
  bool tells_of_tasks_ = false;  // of a firmware
  Status failure_;
};

}  // namespace

TraceEvent& BeginEvent(TraceItem* item) {
  auto* const event = std::get_if<TraceEvent>(item);
  if (event == nullptr) return item->emplace<TraceEvent>();
  event->ambiguous = false;
  event->task.reset();
  event->from.reset();
  event->to.reset();
  event->from_waits = false;
  event->to_recorded = true;
  event->what.clear();
  event->where.clear();
  event->count = 0;
  return *event;
}

Result<std::unique_ptr<TraceSource>> OpenTraceSource(FileSystem& files, Clock& clock,
                                                     const TraceRequest& request) {
  return Opener(files, clock, request).Open();
}

}  // namespace hangscope
