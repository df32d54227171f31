#include "why/why_perf.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hwtrace/trace_times.h"
#include "perf/code/recorded_code.h"
#include "perf/perf_rings.h"
#include "perf/perf_text.h"
#include "perf/traces/span_decoder.h"

namespace hangscope {
namespace {

constexpr TimeNs kLongestSilence = 365 * 86400 * kSecond;  // before a trigger that is believed
constexpr TimeNs kLongestCopy = 600 * kSecond;  // of a snapshot's rings, after its trigger

class WhyPerf {
 public:
  WhyPerf(FileSystem& files, Clock& clock, const WhyPerfOptions& options,
          std::unique_ptr<PerfFile> file)
      : clock_(clock),
        options_(options),
        file_(std::move(file)),
        activity_(file_->events()),
        rings_(*file_, NameOfTracer(*file_)),
        decoder_(*file_),
        code_(file_->facts(), PlacesOf(files, options.path, options.code)) {}

  Result<WhyPart> Look() {
    const Status status = file_->ForEach([this](const PerfRecord& record) {
      activity_.Add(record);
      rings_.Add(record);
      if (record.type == PERF_RECORD_SAMPLE) return true;  // the others need none
      decoder_.Add(record);
      code_.Add(record);
      return true;
    });
    if (!status.ok() || file_->came_late())
      return status.ok() ? WhyPart() : Result<WhyPart>(status);
    activity_.Finish();
    LookForWindow();
    const auto& rings = file_->facts().rings;
    analysis_ = AnalysePerf(activity_, {options_.stall, window_.time.to, file_->facts().command,
                                        rings ? rings->process : 0, !file_->aux().empty()});
    DecodeTraces();
    return Part();
  }

 private:
  bool IsTheirs(const TimeSpan& window) const;
  void LookForWindow();
  void DecodeTraces();
  void AddBranch(size_t ring, const PerfAuxSpan& span, const TraceSummary& summary,
                 const TraceBranch& branch);
  void OrderBranches();

  WhyPart Part() {
    const PerfScene scene{options_.path, file_.get(), &activity_, &analysis_, &rings_.aux(),
                          &window_,      to_trigger_, &traces_,   warning_,   &branches_};
    WhyPart part{options_.path, clock_.Monotonic(), ToldSightings(scene), "", ""};
    part.evidence = options_.json ? PerfJson(scene, clock_.Wall()) : PerfText(scene, kScreenLines);
    return part;
  }

  Clock& clock_;
  const WhyPerfOptions& options_;
  std::unique_ptr<PerfFile> file_;
  PerfActivity activity_;
  PerfRingsReader rings_;
  SpanDecoder decoder_;
  RecordedCode code_;
  Window window_;
  bool to_trigger_ = false;
  PerfAnalysis analysis_;
  std::vector<PerfSpanTrace> traces_;
  std::vector<PerfBranch> branches_;
  std::string warning_;
};

// Whether the records can be those of a snapshot that was asked for at the window's end: some came
// before, and those that came later did while it was taken.
bool WhyPerf::IsTheirs(const TimeSpan& window) const {
  const TimeNs last = std::max<TimeNs>(activity_.last(), 0);
  return window.to > 0 && window.to >= activity_.first() &&
         window.to - std::min(last, window.to) < kLongestSilence &&
         last - std::min(last, window.to) < kLongestCopy;
}

// The manifest's; else of what the file itself says of its rings; else of its records.
void WhyPerf::LookForWindow() {
  const auto& told = file_->facts().rings;
  const bool by_manifest = options_.window && IsTheirs(options_.window->time);
  const bool by_file = !by_manifest && told && IsTheirs(told->window);
  to_trigger_ = by_manifest || by_file;
  WindowRequest request;
  request.wants_runs = options_.json;
  request.trigger = by_manifest ? options_.window->time.to
                    : by_file   ? told->window.to
                                : std::max<TimeNs>(activity_.last(), 0);
  rings_.Finish(activity_, request.trigger);
  if (by_manifest) {
    window_ = *options_.window;
    return;
  }
  // Of others than the coherent one only the snapshot knew what was asked for.
  if (by_file && told->policy != WindowPolicy::kCoherent) {
    request.policy = WindowPolicy::kSinceLast;
    request.last_trigger = told->window.from;
  }
  window_ = FindWindow(rings_.input(), request);
  if (by_file) window_.policy = told->policy;
}

void WhyPerf::AddBranch(size_t ring, const PerfAuxSpan& span, const TraceSummary& summary,
                        const TraceBranch& branch) {
  PerfBranch taken{ring, branch, {}, {}, BoundsOfBranch(span, summary, branch)};
  const int own = rings_.aux()[ring].cpu;
  const int process = code_.ProcessOf(span, branch.cpu == own ? -1 : branch.cpu);
  if (branch.from != 0) taken.from = code_.PlaceOf(process, span.time.to, branch.from);
  if (branch.to != 0) taken.to = code_.PlaceOf(process, span.time.to, branch.to);
  if (branch.cpu < 0) taken.branch.cpu = own;
  branches_.push_back(std::move(taken));
}

// Those of all rings, the oldest first.
void WhyPerf::OrderBranches() {
  std::map<std::pair<size_t, int>, size_t> traces;
  std::vector<TraceMoment> moments;
  for (const PerfBranch& branch : branches_) {
    const auto trace = traces.try_emplace({branch.ring, branch.branch.cpu}, traces.size()).first;
    moments.push_back({trace->second, WithinOf(branch.time)});
  }
  std::vector<PerfBranch> ordered;
  const std::vector<size_t> order = OrderMoments(&moments);
  for (size_t i = 0; i < order.size(); ++i) {
    ordered.push_back(std::move(branches_[order[i]]));
    ordered.back().time = BoundsOf(moments[i].within);
    ordered.back().order_known = moments[i].certain;
  }
  branches_ = std::move(ordered);
}

void WhyPerf::DecodeTraces() {
  SpanDecodeRequest request;
  request.last_branches = options_.branches;
  // Files are opened only where somebody asked for what needs them.
  if (options_.branches > 0 || !options_.code.binaries.empty() ||
      !options_.code.kernel.vmlinux.empty())
    request.code = [this](const PerfAuxSpan& span, int cpu) {
      return code_.CodeOf(code_.ProcessOf(span, cpu), span.time.to);
    };
  for (size_t ring = 0; ring < rings_.aux().size(); ++ring) {
    request.auxtrace_info = rings_.AuxTraceInfoFor(rings_.aux()[ring].cpu);
    auto decoded = decoder_.Decode(rings_.aux()[ring], request);
    if (!decoded.ok()) {
      warning_ = decoded.status().message();
      return;
    }
    for (size_t span = 0; span < decoded->size(); ++span) {
      std::optional<TraceSummary>& summary = (*decoded)[span];
      if (!summary) continue;
      for (const TraceBranch& branch : summary->last_branches)
        AddBranch(ring, rings_.aux()[ring].spans[span], *summary, branch);
      summary->last_branches.clear();
      traces_.push_back({ring, span, std::move(*summary)});
    }
  }
  OrderBranches();
  if (decoder_.left_out())
    warning_ = "of some spans only the newest bytes that lie together are decoded";
  std::vector<std::string> warnings = code_.warnings();
  if (const std::string why = decoder_.why_no_times(); !why.empty()) warnings.push_back(why);
  for (const std::string& warning : warnings) warning_ += (warning_.empty() ? "" : "; ") + warning;
}

}  // namespace

Result<WhyPart> LookAtPerf(FileSystem& files, Clock& clock, const WhyPerfOptions& options) {
  for (const PerfOpen how : {PerfOpen::kDefinitions, PerfOpen::kAll}) {
    auto file = PerfFile::Open(files, options.path, how);
    if (!file.ok()) return file.status();
    PerfFile& opened = **file;
    WhyPerf why(files, clock, options, std::move(*file));
    auto part = why.Look();
    if (!part.ok() || !opened.came_late()) return part;
  }
  return Status::Corrupt(options.path + " changes while it is read");
}

Result<WhyReport> AskWhyPerf(FileSystem& files, Clock& clock, const WhyPerfOptions& options) {
  auto part = LookAtPerf(files, clock, options);
  if (!part.ok()) return part.status();
  Picture picture;
  picture.cpus = part->sightings;
  picture.cpus.attached = true;  // there is nothing else to ask
  Verdict verdict = JudgeLook(clock, std::move(picture), part->begin);
  if (!part->sightings.incomplete.empty())
    verdict.Lower(Confidence::kPossible, part->sightings.incomplete);
  const std::string first = options.json ? WhyVerdictLine(clock, verdict, *part) : "";
  return WhyReport{first + part->evidence, IsBad(verdict)};
}

}  // namespace hangscope
