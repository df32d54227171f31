#include "trace/trace_of_hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "base/units.h"
#include "base/utf8.h"
#include "perf/code/recorded_code.h"
#include "perf/perf_activity.h"
#include "perf/perf_rings.h"
#include "perf/traces/span_decoder.h"
#include "trace/branch_track.h"

namespace hangscope {
namespace {

constexpr uint64_t kMostTraceBytes = 64u << 20;  // decoded of one ring: its newest
constexpr uint64_t kFewTraceBytes = 1u << 20;    // likewise where time is short
constexpr size_t kMostBreaks = 100;              // of a span

class HardwareTrace final : public TraceSource {
 public:
  HardwareTrace(FileSystem& files, std::string path, std::unique_ptr<PerfFile> file,
                const TraceRequest& request)
      : path_(std::move(path)),
        request_(request),
        file_(std::move(file)),
        activity_(file_->events()),
        rings_(*file_, NameOfTracer(*file_)),
        decoder_(*file_),
        code_(file_->facts(), PlacesOf(files, path_, request.code)) {}

  Status Open();
  const TraceHead& head() const override { return head_; }
  const TraceEnd& end() const override { return end_; }
  double progress() const override {
    return total_ == 0 ? 1 : 1 - static_cast<double>(items_.size()) / static_cast<double>(total_);
  }
  Result<bool> Next(TraceItem* item) override {
    if (items_.empty()) return false;
    *item = std::move(items_.front());
    items_.pop_front();
    ++(std::holds_alternative<TraceEvent>(*item) ? end_.events : end_.losses);
    return true;
  }

 private:
  // What was decoded of a span, and which of the ring's newest branches are in it.
  using Decoded = std::optional<TraceSummary>;

  void AddKinds();
  void Warn(const std::string& why);
  std::vector<Decoded> DecodeRing(const PerfAuxRing& ring);
  // What a row has of a span: all, or what one CPU wrote into a sink that several share.
  struct Slice {
    const PerfAuxSpan* span = nullptr;
    const Decoded* decoded = nullptr;
    uint64_t number = 0;  // of the span, in its ring
    TimeSpan time;
    int tid = -1;
    uint64_t bytes = 0;
    bool is_share = false;
    int cpu = -1;             // of a share
    bool is_carriers = true;  // of the CPU whose ring it is
  };
  struct Row {
    RingName name;
    std::vector<Slice> slices;
  };

  std::vector<Row> RowsOf(const std::vector<std::vector<Decoded>>& decoded) const;
  void AddRow(Row row);
  std::string NameOfSlice(const Slice& slice) const;
  void AddSlice(const Slice& slice, size_t track, BranchTrack* branches);
  void AddLosses(const Slice& slice, const TraceSummary& summary, size_t track);
  TimeNs Advance(TimeNs time) { return last_ = std::max(last_, time); }
  static TimeNs TimeOfItem(const TraceItem& item) {
    if (const auto* event = std::get_if<TraceEvent>(&item)) return event->time;
    return std::get<TraceLoss>(item).time.to;
  }

  const std::string path_;
  const TraceRequest& request_;
  std::unique_ptr<PerfFile> file_;
  PerfActivity activity_;
  PerfRingsReader rings_;
  SpanDecoder decoder_;
  RecordedCode code_;
  TraceHead head_;
  TraceEnd end_;
  size_t span_kind_ = 0;  // that of its end is the next
  size_t first_branch_kind_ = 0;
  const PerfAuxSpan* span_ = nullptr;  // whose branches are added
  int process_ = -1;                   // whose code that is
  TimeNs last_ = 0;                    // of the track
  std::deque<TraceItem> items_;
  size_t total_ = 0;
};

void HardwareTrace::Warn(const std::string& why) {
  const std::string sentence = fmt::format("'{}': {}", Printable(path_), why);
  const auto known = std::find(head_.warnings.begin(), head_.warnings.end(), sentence);
  if (known == head_.warnings.end()) head_.warnings.push_back(sentence);
}

void HardwareTrace::AddKinds() {
  span_kind_ = head_.kinds.size();
  head_.kinds.push_back({"trace_span",
                         "trace",
                         "span %u of thread %d: %u bytes, %u packets, %u atoms, %u instructions, "
                         "%u branches",
                         {{"span", TraceFieldType::kUnsigned, 64},
                          {"thread", TraceFieldType::kSigned, 64},
                          {"bytes", TraceFieldType::kUnsigned, 64},
                          {"packets", TraceFieldType::kUnsigned, 64},
                          {"atoms", TraceFieldType::kUnsigned, 64},
                          {"instructions", TraceFieldType::kUnsigned, 64},
                          {"branches", TraceFieldType::kUnsigned, 64}},
                         TraceMeaning::kEnter});
  head_.kinds.push_back({"trace_span_end",
                         "trace",
                         "span %u",
                         {{"span", TraceFieldType::kUnsigned, 64}},
                         TraceMeaning::kLeave});
  head_.kinds[span_kind_].of_track = head_.kinds[span_kind_ + 1].of_track = true;
  first_branch_kind_ = AddBranchKinds(&head_.kinds);
}

Status HardwareTrace::Open() {
  head_.name = path_;
  AddKinds();
  const Status status = file_->ForEach([this](const PerfRecord& record) {
    activity_.Add(record);
    rings_.Add(record);
    if (record.type == PERF_RECORD_SAMPLE) return true;  // the others need none
    decoder_.Add(record);
    code_.Add(record);
    return true;
  });
  if (!status.ok()) return status;
  rings_.Finish(activity_, std::max<TimeNs>(activity_.last(), 0));
  std::vector<std::vector<Decoded>> decoded;
  for (const PerfAuxRing& ring : rings_.aux()) decoded.push_back(DecodeRing(ring));
  for (Row& row : RowsOf(decoded)) AddRow(std::move(row));
  for (const std::string& warning : code_.warnings()) head_.warnings.push_back(warning);
  if (const std::string why = decoder_.why_no_times(); !why.empty()) Warn(why);
  std::stable_sort(items_.begin(), items_.end(), [](const TraceItem& a, const TraceItem& b) {
    return TimeOfItem(a) < TimeOfItem(b);
  });
  total_ = items_.size();
  if (!items_.empty()) head_.time = {TimeOfItem(items_.front()), TimeOfItem(items_.back())};
  end_.time = head_.time.to;
  return {};
}

// The newest, as far as bytes and branches are wanted.
std::vector<HardwareTrace::Decoded> HardwareTrace::DecodeRing(const PerfAuxRing& ring) {
  const std::vector<Decoded> none(ring.spans.size());
  if (!request_.streams) return none;
  SpanDecodeRequest request;
  request.last_branches = request_.branches;
  request.most_discontinuities = kMostBreaks;
  if (request_.branches > 0)
    request.code = [this](const PerfAuxSpan& span, int cpu) {
      return code_.CodeOf(code_.ProcessOf(span, cpu), span.time.to);
    };
  uint64_t left = request_.stream_bytes != 0 ? kFewTraceBytes : kMostTraceBytes;
  request.first_span = ring.spans.size();
  while (request.first_span > 0 && ring.spans[request.first_span - 1].held_bytes <= left)
    left -= ring.spans[--request.first_span].held_bytes;
  if (request.first_span > 0) Warn("of its hardware traces only the newest spans are decoded");
  request.auxtrace_info = rings_.AuxTraceInfoFor(ring.cpu);
  auto decoded = decoder_.Decode(ring, request);
  if (decoded.ok()) return std::move(*decoded);
  Warn(decoded.status().message());
  return none;
}

// A ring is a row. Of a sink that several CPUs share each has one with what it wrote, whoever's
// ring has the bytes.
std::vector<HardwareTrace::Row> HardwareTrace::RowsOf(
    const std::vector<std::vector<Decoded>>& decoded) const {
  std::vector<Row> rows;
  const auto row_of = [&](const RingName& name) -> Row& {
    for (Row& row : rows) {
      if (row.name.kind == name.kind && row.name.number == name.number) return row;
    }
    return rows.emplace_back(Row{name, {}});
  };
  for (const PerfAuxRing& ring : rings_.aux()) (void)row_of(ring.name);
  for (size_t r = 0; r < decoded.size(); ++r) {
    const PerfAuxRing& ring = rings_.aux()[r];
    for (size_t s = 0; s < ring.spans.size(); ++s) {
      const PerfAuxSpan& span = ring.spans[s];
      Slice whole{&span, &decoded[r][s], s, span.time, span.tid};
      whole.bytes = span.end_offset - span.begin_offset;
      if (span.shares.empty() || ring.name.kind != RingKind::kCpu) {
        row_of(ring.name).slices.push_back(whole);
        continue;
      }
      for (const PerfTraceShare& share : span.shares) {
        Slice slice = whole;
        slice.is_share = true;
        slice.cpu = share.cpu;
        slice.is_carriers = share.cpu == ring.cpu;
        slice.bytes = share.bytes;
        slice.tid = share.threads.size() == 1 ? share.threads.front() : -1;
        if (!share.threads.empty()) slice.time = share.ran;
        RingName name = ring.name;
        // Those of no known CPU are in the ring's row.
        if (share.cpu >= 0) name.number = share.cpu;
        row_of(name).slices.push_back(slice);
      }
    }
  }
  return rows;
}

void HardwareTrace::AddRow(Row row) {
  const size_t track = head_.tracks.size();
  head_.tracks.push_back({row.name, fmt::format("{} {} {}", RingKindName(row.name.kind),
                                                row.name.number, row.name.what)});
  last_ = 0;
  BranchTrack branches(
      track, first_branch_kind_,
      [this](uint64_t address) { return code_.Locate(process_, span_->time.to, address); },
      &items_);
  std::stable_sort(row.slices.begin(), row.slices.end(),
                   [](const Slice& a, const Slice& b) { return a.time.from < b.time.from; });
  for (const Slice& slice : row.slices) AddSlice(slice, track, &branches);
}

// "4711 worker".
std::string HardwareTrace::NameOfSlice(const Slice& slice) const {
  const std::string sampled = slice.span->sampled ? ", of a sample" : "";
  if (slice.tid < 0) return FormatSize(slice.bytes) + sampled;
  const auto thread = activity_.threads().find(slice.tid);
  const bool named = thread != activity_.threads().end() && !thread->second.name.empty();
  return fmt::format("{}{}{}", slice.tid, named ? " " + thread->second.name : "", sampled);
}

void HardwareTrace::AddSlice(const Slice& slice, size_t track, BranchTrack* branches) {
  static const TraceSummary kNothing;
  const PerfAuxSpan& span = *slice.span;
  const bool decoded = slice.decoded->has_value();
  const TraceSummary& summary = decoded ? **slice.decoded : kNothing;
  TraceEvent& begin = branches->AddEvent(span_kind_, Advance(slice.time.from));
  begin.what = NameOfSlice(slice);
  // Without the code there were none to follow. What is counted is that of all CPUs in the span.
  const bool counted = decoded && !slice.is_share;
  const bool followed = counted && summary.instructions > 0;
  begin.values = {{slice.number},
                  {static_cast<uint64_t>(int64_t{slice.tid}), {}, slice.tid >= 0},
                  {slice.bytes},
                  {summary.packets, {}, counted},
                  {summary.atoms, {}, counted},
                  {summary.instructions, {}, followed},
                  {summary.branches, {}, followed}};
  span_ = &span;
  process_ = code_.ProcessOf(span, slice.is_carriers ? -1 : slice.cpu);
  for (const TraceBranch& branch : summary.last_branches) {
    if (slice.is_share && branch.cpu != slice.cpu) continue;
    const TimeBounds when = BoundsOfBranch(span, summary, branch);
    const TimeNs at =
        Advance(std::min(std::max(when.from.value_or(0), slice.time.from), slice.time.to));
    std::optional<uint64_t> within;
    if (when.from && when.to) within = static_cast<uint64_t>(std::max<TimeNs>(0, *when.to - at));
    branches->Add(branch, at, within);
  }
  const TimeNs end = Advance(slice.time.to);
  branches->LeaveAll(end);
  branches->AddEvent(span_kind_ + 1, end).values = {{slice.number}};
  // Behind its end: a loss forgets what is open.
  AddLosses(slice, summary, track);
}

// What the tracer, or who fetched its bytes, could not keep.
void HardwareTrace::AddLosses(const Slice& slice, const TraceSummary& summary, size_t track) {
  constexpr uint64_t kTruncated = 0x1;  // PERF_AUX_FLAG_TRUNCATED
  const PerfAuxSpan& span = *slice.span;
  const TimeNs at = Advance(slice.time.to);
  uint64_t overflows = 0, damaged = 0;
  for (const Discontinuity& gap : summary.discontinuities) {
    if (slice.is_share && gap.cpu >= 0 && gap.cpu != slice.cpu) continue;
    overflows += gap.reason == DiscontinuityReason::kOverflow;
    damaged +=
        gap.reason == DiscontinuityReason::kNoSync || gap.reason == DiscontinuityReason::kBadData;
  }
  const auto add = [&](GapReason reason, uint64_t bytes) {
    items_.emplace_back(TraceLoss{track, {at, at}, reason, bytes, AmountUnit::kBytes});
  };
  if (slice.is_share && slice.bytes == 0) add(GapReason::kOverwritten, 0);
  if (overflows > 0 || (span.flags & kTruncated) != 0) add(GapReason::kNoRoom, 0);
  const uint64_t missing = span.end_offset - span.begin_offset - span.held_bytes;
  if (damaged > 0 || missing > 0) add(GapReason::kUnreadable, missing);
}

}  // namespace

Result<std::unique_ptr<TraceSource>> OpenHardwareTrace(FileSystem& files, const std::string& path,
                                                       const TraceRequest& request) {
  auto file = PerfFile::Open(files, path);
  if (!file.ok()) return file.status();
  auto trace = std::make_unique<HardwareTrace>(files, path, std::move(*file), request);
  if (Status status = trace->Open(); !status.ok()) return status;
  if (trace->head().tracks.empty()) return std::unique_ptr<TraceSource>();
  return std::unique_ptr<TraceSource>(std::move(trace));
}

}  // namespace hangscope
