#include "report/report_tracks.h"

#include <fmt/format.h>

#include "base/units.h"
#include "report/report_timeline.h"
#include "snapshot/cpu_recording.h"
#include "trace/trace_source.h"

namespace hangscope {
namespace {

constexpr uint64_t kNewestOfStream = 16u << 20;  // of an instruction trace, where time is short
constexpr uint64_t kBetweenLooks = 4096;         // items between two looks at the clock

// Reads a trace into tracks, unless that takes too long.
class TrackReader {
 public:
  TrackReader(Clock& clock, const TrackLimits& limits, TraceSource& source, TimeNs end)
      : clock_(clock),
        limits_(limits),
        source_(source),
        timeline_(source.head(), end, {limits.events, limits.events, kMostTracks}),
        builder_(timeline_) {}

  // False: it took too long.
  Result<bool> Read() {
    const TimeNs begin = clock_.Monotonic();
    if (Status status = builder_.Begin(source_.head()); !status.ok()) return status;
    TraceItem item;
    for (uint64_t items = 1;; ++items) {
      auto next = source_.Next(&item);
      if (!next.ok()) warning_ = next.status().message();
      if (!next.ok() || !*next) break;
      const Status status =
          std::visit([this](const auto& one) { return builder_.Write(one); }, item);
      if (!status.ok()) return status;
      if (items % kBetweenLooks != 0) continue;
      if (limits_.progress) limits_.progress((1 + source_.progress()) / 2);
      if (limits_.time != 0 && clock_.Monotonic() - begin > limits_.time) return false;
    }
    return true;
  }

  Status Finish(Report* report) {
    const TraceEnd& end = source_.end();
    if (Status status = builder_.End(end); !status.ok()) return status;
    timeline_.Finish(end, report);
    report->counts_clock = source_.head().counts_clock;
    AddWindow(source_.head(), report);
    for (const auto& warnings : {source_.head().warnings, end.warnings, builder_.warnings()}) {
      for (const std::string& warning : warnings) AddOnce(warning, report);
    }
    if (!warning_.empty()) AddOnce(warning_, report);
    report->notes = builder_.notes();
    return {};
  }

 private:
  static constexpr size_t kMostTracks = 2000;

  // Of a recording that is a part of a snapshot: that has said it already.
  static void AddWindow(const TraceHead& head, Report* report) {
    if (report->window || !head.window) return;
    const TimeSpan& time = head.window->time;
    TimeNs length = 0;
    if (__builtin_sub_overflow(time.to, time.from, &length)) return;
    report->window =
        ReportWindow{{-length, 0}, std::string(WindowPolicyName(head.window->policy)), ""};
  }

  // Another part of the report may have met the same.
  static void AddOnce(const std::string& warning, Report* report) {
    for (const std::string& known : report->warnings) {
      if (known == warning) return;
    }
    report->warnings.push_back(warning);
  }

  Clock& clock_;
  const TrackLimits& limits_;
  TraceSource& source_;
  ReportTimeline timeline_;
  TimelineBuilder builder_;
  std::string warning_;
};

}  // namespace

Status AddTracks(FileSystem& files, Clock& clock, const ScopeSource& source, const CodePlaces& code,
                 const TrackLimits& limits, ReportTime* end, Report* report) {
  TraceRequest request;
  request.source = source;
  request.code = code;
  // Else the page's own graph and list have them.
  request.threads = files.Exists(source.target + "/" + kCpuFileName);
  if (limits.time != 0) request.stream_bytes = kNewestOfStream;
  // It is looked through first, and then read.
  if (limits.progress)
    request.go_on = [&limits](double part) {
      limits.progress(part / 2);
      return true;
    };
  for (;;) {
    auto trace = OpenTraceSource(files, clock, request);
    if (!trace.ok()) return trace.status();
    const TraceHead& head = (*trace)->head();
    if (!*end) *end = head.window ? head.window->time.to : head.time.to;
    TrackReader reader(clock, limits, **trace, **end);
    auto in_time = reader.Read();
    if (!in_time.ok()) return in_time.status();
    if (*in_time) return reader.Finish(report);
    const std::string too_long = fmt::format(
        "it takes more than {} to read, and hangscope report draws it", FormatElapsed(limits.time));
    if (!request.streams) {
      report->lost.push_back("the page leaves out what happened when: " + too_long);
      return {};
    }
    report->lost.push_back(
        "the page leaves out the functions that an instruction trace tells of: " + too_long);
    request.streams = false;
  }
}

}  // namespace hangscope
