#include "trace/trace_of_debugger.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "base/utf8.h"
#include "code/elf_image.h"
#include "hwtrace/debugger_traces.h"
#include "trace/branch_track.h"

namespace hangscope {
namespace {

GapReason ReasonOfBreak(DiscontinuityReason reason) {
  switch (reason) {
    case DiscontinuityReason::kBegin:
    case DiscontinuityReason::kTraceOff:
      return GapReason::kNotRecorded;
    case DiscontinuityReason::kOverflow:
      return GapReason::kNoRoom;
    case DiscontinuityReason::kNoSync:
    case DiscontinuityReason::kBadData:
    case DiscontinuityReason::kNoCode:
      return GapReason::kUnreadable;
  }
  return GapReason::kUnreadable;
}

class DebuggerTrace final : public TraceSource {
 public:
  explicit DebuggerTrace(std::unique_ptr<ElfImage> elf) : elf_(std::move(elf)) {}

  Status Open(FileSystem& files, const std::string& folder, const TraceRequest& request) {
    auto snapshot = ReadDebuggerSnapshot(files, folder);
    if (!snapshot.ok()) return snapshot.status();
    head_.name = folder;
    head_.counts_clock = head_.counts_bytes = true;
    head_.warnings = snapshot->warnings;
    const size_t first_kind = AddBranchKinds(&head_.kinds);
    if (request.streams) {
      TraceDecodeOptions options;
      options.last_branches = request.branches;
      const DebuggerTraces all = DecodeDebuggerSnapshot(files, *snapshot, options, true);
      head_.warnings.insert(head_.warnings.end(), all.warnings.begin(), all.warnings.end());
      for (const SourceTrace& trace : all.traces) AddTrack(*snapshot, trace, first_kind);
    }
    if (elf_ == nullptr)
      head_.warnings.push_back(
          fmt::format("'{}': the names of its functions are not known; --elf FILE, the program, "
                      "brings them",
                      Printable(folder)));
    std::stable_sort(items_.begin(), items_.end(), [](const TraceItem& a, const TraceItem& b) {
      return TimeOfItem(a) < TimeOfItem(b);
    });
    end_.time = head_.time.to;
    return {};
  }

  const TraceHead& head() const override { return head_; }
  const TraceEnd& end() const override { return end_; }
  double progress() const override {
    return total_ == 0 ? 1 : 1 - static_cast<double>(items_.size()) / static_cast<double>(total_);
  }
  Result<bool> Next(TraceItem* item) override {
    total_ = std::max(total_, items_.size());
    if (items_.empty()) return false;
    *item = std::move(items_.front());
    items_.pop_front();
    ++(std::holds_alternative<TraceEvent>(*item) ? end_.events : end_.losses);
    return true;
  }

 private:
  static TimeNs TimeOfItem(const TraceItem& item) {
    if (const auto* event = std::get_if<TraceEvent>(&item)) return event->time;
    return std::get<TraceLoss>(item).time.to;
  }

  void AddTrack(const DebuggerSnapshot& snapshot, const SourceTrace& trace, size_t first_kind) {
    const SnapshotSource& source = snapshot.sources[trace.source];
    const size_t track = head_.tracks.size();
    const std::string core =
        source.core ? snapshot.cores[*source.core].name + " " + source.name : source.name;
    head_.tracks.push_back({{RingKind::kStream, static_cast<int64_t>(trace.source),
                             snapshot.buffers[trace.buffer].name},
                            core});
    head_.time.to = std::max<TimeNs>(head_.time.to, static_cast<TimeNs>(trace.summary.bytes));
    BranchTrack branches(
        track, first_kind,
        [this](uint64_t address) { return elf_ ? elf_->Locate(address) : Location(); }, &items_);
    auto gap = trace.summary.discontinuities.begin();
    TimeNs last = 0;
    // Before the branches that are kept nothing is drawn that could be missing.
    const auto& kept = trace.summary.last_branches;
    const uint64_t from = kept.empty() ? 0 : kept.front().offset;
    for (const TraceBranch& branch : kept) {
      for (; gap != trace.summary.discontinuities.end() && gap->offset <= branch.offset; ++gap) {
        if (gap->offset < from) continue;
        const TimeNs at = std::max(last, static_cast<TimeNs>(gap->offset));
        items_.emplace_back(
            TraceLoss{track, {at, at}, ReasonOfBreak(gap->reason), 0, AmountUnit::kUnknown});
        last = at;
      }
      last = std::max(last, static_cast<TimeNs>(branch.offset));
      branches.Add(branch, last, 0);
    }
    branches.LeaveAll(std::max(last, static_cast<TimeNs>(trace.summary.bytes)));
  }

  std::unique_ptr<ElfImage> elf_;
  TraceHead head_;
  TraceEnd end_;
  std::deque<TraceItem> items_;
  size_t total_ = 0;
};

}  // namespace

Result<std::unique_ptr<TraceSource>> OpenDebuggerTrace(FileSystem& files, const std::string& folder,
                                                       const TraceRequest& request) {
  std::unique_ptr<ElfImage> elf;
  if (!request.source.elf.empty()) {
    auto opened = ElfImage::Open(request.source.elf);
    if (!opened.ok()) return opened.status();
    elf = std::move(*opened);
  }
  auto trace = std::make_unique<DebuggerTrace>(std::move(elf));
  if (Status status = trace->Open(files, folder, request); !status.ok()) return status;
  return std::unique_ptr<TraceSource>(std::move(trace));
}

}  // namespace hangscope
