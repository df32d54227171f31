#include "session/why_perf.h"

#include <fmt/format.h>

#include <algorithm>

#include "decode/perf_header.h"
#include "export/perf_text.h"
#include "window/perf_rings.h"

namespace hangscope {
namespace {

constexpr size_t kScreenLines = 23;
constexpr uint64_t kMostSpanBytes = 64u << 20;  // decoded of one span: its newest

// "cs_etm" of an event "cs_etm/@sink/u".
std::string TracerOf(const PerfFile& file) {
  for (const PerfEvent& event : file.events()) {
    const size_t slash = event.name.find('/');
    if (slash != std::string::npos && slash > 0) return event.name.substr(0, slash);
  }
  return "trace";
}

class WhyPerf {
 public:
  WhyPerf(Clock& clock, const WhyPerfOptions& options, std::unique_ptr<PerfFile> file) : clock_(clock), options_(options), file_(std::move(file)), activity_(file_->events()), rings_(*file_, TracerOf(*file_)) {}

  Result<WhyReport> Ask() {
    const Status status = file_->ForEach([this](const PerfRecord& record) {
      activity_.Add(record);
      rings_.Add(record);
      return true;
    });
    if (!status.ok()) return status;
    rings_.Finish(activity_);
    WindowRequest request;
    request.trigger = std::max<TimeNs>(activity_.last(), 0);
    window_ = FindWindow(rings_.input(), request);
    analysis_ = AnalysePerf(activity_, options_.stall);
    DecodeTraces();
    return Report();
  }

 private:
  void DecodeTraces();
  std::string BytesOf(const PerfAuxRing& ring, const PerfAuxSpan& span);

  WhyReport Report() {
    const PerfScene scene{options_.path, file_.get(), &activity_, &analysis_, &rings_.aux(), &window_, &traces_, trouble_, &branches_};
    WhyReport report;
    report.is_bad = std::any_of(analysis_.findings.begin(), analysis_.findings.end(), [](const PerfFinding& finding) { return finding.IsBad(); });
    report.text = options_.json ? PerfJson(scene, clock_.Wall()) : PerfText(scene, kScreenLines);
    return report;
  }

  Clock& clock_;
  const WhyPerfOptions& options_;
  std::unique_ptr<PerfFile> file_;
  PerfActivity activity_;
  PerfRingsReader rings_;
  Window window_;
  PerfAnalysis analysis_;
  std::vector<PerfSpanTrace> traces_;
  std::vector<PerfBranch> branches_;
  std::string trouble_;
};

// The newest of the span's bytes that the file has in one piece.
std::string WhyPerf::BytesOf(const PerfAuxRing& ring, const PerfAuxSpan& span) {
  for (auto piece = ring.pieces.rbegin(); piece != ring.pieces.rend(); ++piece) {
    const uint64_t end = std::min(piece->end_offset, span.end_offset);
    uint64_t begin = std::max(piece->begin_offset, span.begin_offset);
    if (begin >= end) continue;
    if (end - begin > kMostSpanBytes) begin = end - kMostSpanBytes;
    return file_->ReadAux(file_->aux()[piece->trace], begin - piece->begin_offset, end - begin).value_or("");
  }
  return {};
}

void WhyPerf::DecodeTraces() {
  constexpr uint64_t kRaw = 0x100;  // PERF_AUX_FLAG_CORESIGHT_FORMAT_RAW
  for (size_t r = 0; r < rings_.aux().size(); ++r) {
    const PerfAuxRing& ring = rings_.aux()[r];
    auto decoder = OpenInstructionTrace(file_->facts().auxtrace_info, ring.cpu);
    if (!decoder.ok()) {
      trouble_ = decoder.status().message();
      return;
    }
    for (size_t s = 0; s < ring.spans.size(); ++s) {
      const std::string bytes = BytesOf(ring, ring.spans[s]);
      if (bytes.empty()) continue;
      TraceDecodeOptions options;
      options.last_branches = options_.branches;
      options.raw = (ring.spans[s].flags & kRaw) != 0;
      traces_.push_back({r, s, (*decoder)->Decode(bytes, options)});
    }
  }
}

}  // namespace

bool IsPerfData(FileSystem& files, const std::string& path) {
  if (files.IsFolder(path)) return false;
  auto file = files.Open(path, FileSystem::Mode::kRead);
  if (!file.ok()) return false;
  char magic[8];
  auto got = (*file)->ReadAt(0, magic);
  return got.ok() && FindPerfMagic({magic, *got}) != PerfMagic::kNone;
}

Result<WhyReport> AskWhyPerf(FileSystem& files, Clock& clock, const WhyPerfOptions& options) {
  auto file = PerfFile::Open(files, options.path);
  if (!file.ok()) return file.status();
  return WhyPerf(clock, options, std::move(*file)).Ask();
}

}  // namespace hangscope
