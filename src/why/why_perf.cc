#include "why/why_perf.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "hwtrace/auxtrace_info.h"
#include "perf/perf_rings.h"
#include "perf/perf_text.h"
#include "perf/recorded_code.h"

namespace hangscope {
namespace {

constexpr TimeNs kLongestSilence = 365 * 86400 * kSecond;  // before a trigger that is believed
constexpr TimeNs kLongestCopy = 600 * kSecond;  // of a snapshot's rings, after its trigger
constexpr uint64_t kMostSpanBytes = 64u << 20;  // decoded of one span: its newest

// "cs_etm" of an event "cs_etm/@sink/u".
std::string TracerOf(const PerfFile& file) {
  for (const PerfEvent& event : file.events()) {
    const size_t slash = event.name.find('/');
    if (slash != std::string::npos && slash > 0) return event.name.substr(0, slash);
  }
  return "trace";
}

KernelPlaces KernelOf(const WhyPerfOptions& options) {
  KernelPlaces places = options.kernel;
  places.beside = FolderOf(options.path);
  return places;
}

class WhyPerf {
 public:
  WhyPerf(Clock& clock, const WhyPerfOptions& options, std::unique_ptr<PerfFile> file)
      : clock_(clock),
        options_(options),
        file_(std::move(file)),
        activity_(file_->events()),
        rings_(*file_, TracerOf(*file_)),
        code_(file_->facts(), options.binaries, KernelOf(options)) {}

  Result<WhyPart> Look() {
    const Status status = file_->ForEach([this](const PerfRecord& record) {
      activity_.Add(record);
      rings_.Add(record);
      code_.Add(record);
      return true;
    });
    if (!status.ok()) return status;
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
  void DecodeSpan(InstructionTrace& decoder, size_t ring, size_t span);
  void CountBranches(size_t ring);
  uint64_t TracerConfig() const;
  std::string BytesOf(const PerfAuxRing& ring, const PerfAuxSpan& span);

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
  RecordedCode code_;
  Window window_;
  bool to_trigger_ = false;
  PerfAnalysis analysis_;
  std::vector<PerfSpanTrace> traces_;
  struct LastBranch {
    size_t span = 0;
    TraceBranch branch;
  };
  std::deque<LastBranch> last_branches_;  // of the ring that is decoded
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

// The newest of the span's bytes that the file has in one piece.
std::string WhyPerf::BytesOf(const PerfAuxRing& ring, const PerfAuxSpan& span) {
  for (auto piece = ring.pieces.rbegin(); piece != ring.pieces.rend(); ++piece) {
    const uint64_t end = std::min(piece->end_offset, span.end_offset);
    uint64_t begin = std::max(piece->begin_offset, span.begin_offset);
    if (begin >= end) continue;
    if (end - begin > kMostSpanBytes) begin = end - kMostSpanBytes;
    return file_->ReadAux(file_->aux()[piece->trace], begin - piece->begin_offset, end - begin)
        .value_or("");
  }
  return {};
}

// Of the event that traces: how it was set. Others may be a PMU's, too, such as uprobes.
uint64_t WhyPerf::TracerConfig() const {
  const auto info = ParseAuxTraceInfo(file_->facts().auxtrace_info);
  for (const PerfEvent& event : file_->events()) {
    if (info.ok() && event.attr.type == info->pmu_type) return event.attr.config;
  }
  return 0;
}

// The newest of a ring, whichever spans they are in.
void WhyPerf::CountBranches(size_t ring) {
  const size_t most = std::min(last_branches_.size(), options_.branches);
  for (auto last = last_branches_.end() - static_cast<ptrdiff_t>(most);
       last != last_branches_.end(); ++last) {
    const PerfAuxSpan& span = rings_.aux()[ring].spans[last->span];
    PerfBranch taken{ring, last->branch, {}, {}};
    if (last->branch.from != 0)
      taken.from = code_.PlaceOf(span.pid, span.time.to, last->branch.from);
    if (last->branch.to != 0) taken.to = code_.PlaceOf(span.pid, span.time.to, last->branch.to);
    if (taken.branch.cpu < 0) taken.branch.cpu = rings_.aux()[ring].cpu;
    branches_.push_back(std::move(taken));
  }
  last_branches_.clear();
}

void WhyPerf::DecodeSpan(InstructionTrace& decoder, size_t ring, size_t number) {
  constexpr uint64_t kRaw = 0x100;  // PERF_AUX_FLAG_CORESIGHT_FORMAT_RAW
  const PerfAuxSpan& span = rings_.aux()[ring].spans[number];
  const std::string bytes = BytesOf(rings_.aux()[ring], span);
  if (bytes.empty()) return;
  if (bytes.size() < span.held_bytes)
    warning_ = "of some spans only the newest bytes that lie together are decoded";
  TraceDecodeOptions options;
  options.last_branches = options_.branches;
  options.raw = (span.flags & kRaw) != 0;
  // Files are opened only where somebody asked for what needs them.
  if (options_.branches > 0 || !options_.binaries.empty() || !options_.kernel.vmlinux.empty())
    options.read_code = code_.CodeOf(span.pid, span.time.to);
  TraceSummary summary = decoder.Decode(bytes, options);
  for (const TraceBranch& branch : summary.last_branches)
    last_branches_.push_back({number, branch});
  while (last_branches_.size() > options_.branches) last_branches_.pop_front();
  summary.last_branches.clear();
  traces_.push_back({ring, number, std::move(summary)});
}

void WhyPerf::DecodeTraces() {
  for (size_t ring = 0; ring < rings_.aux().size(); ++ring) {
    const int cpu = rings_.aux()[ring].cpu;
    auto decoder = OpenInstructionTrace(rings_.AuxTraceInfoFor(cpu), cpu, TracerConfig());
    if (!decoder.ok()) {
      warning_ = decoder.status().message();
      return;
    }
    for (size_t span = 0; span < rings_.aux()[ring].spans.size(); ++span)
      DecodeSpan(**decoder, ring, span);
    CountBranches(ring);
  }
  for (const std::string& warning : code_.warnings())
    warning_ += (warning_.empty() ? "" : "; ") + warning;
}

}  // namespace

Result<WhyPart> LookAtPerf(FileSystem& files, Clock& clock, const WhyPerfOptions& options) {
  auto file = PerfFile::Open(files, options.path);
  if (!file.ok()) return file.status();
  return WhyPerf(clock, options, std::move(*file)).Look();
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
