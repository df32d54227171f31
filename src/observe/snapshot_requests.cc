#include "observe/snapshot_requests.h"

#include <utility>

namespace hangscope {
namespace {

constexpr TimeNs kRateWindow = 2 * kSecond;  // what "lately" means

}  // namespace

SnapshotRequests::SnapshotRequests(FileSystem& files, Clock& clock, const Recording& recording,
                                   const TriggerOptions& options,
                                   std::shared_ptr<const LinePatterns> patterns, TimeNs start)
    : clock_(clock),
      recording_(recording),
      options_(options),
      triggers_(options, start),
      rate_(kRateWindow),
      remote_(files) {
  rate_.Add(start, 0);
  if (patterns == nullptr) return;
  lines_ = std::make_unique<LineWatch>(files, clock, recording, std::move(patterns), options.quiet);
  lines_->Start();
}

void SnapshotRequests::SampleStreams() {
  std::vector<StreamProgress> streams;
  uint64_t total = 0;
  for (const RecordedStream& stream : recording_.streams()) {
    streams.push_back({stream.ring->stream_name(), stream.drain->total_bytes(),
                       stream.drain->last_byte(), stream.drain->blocked()});
    total += streams.back().total_bytes;
  }
  const TimeNs now = clock_.Monotonic();
  triggers_.Sample(now, streams);
  rate_.Add(now, total);
}

void SnapshotRequests::OnSignal(const std::string& name) {
  SampleStreams();
  Trigger trigger;
  trigger.kind = TriggerKind::kSignal;
  trigger.name = name;
  trigger.time = clock_.Monotonic();
  triggers_.Request(trigger, false, false, 0);
}

void SnapshotRequests::OnExit(const std::string& how) {
  Trigger trigger;
  trigger.kind = TriggerKind::kExit;
  trigger.name = "exit";
  trigger.detail = how;
  trigger.time = clock_.Monotonic();
  (void)triggers_.Fire(trigger);
}

void SnapshotRequests::FireOnLines() {
  if (lines_ == nullptr) return;
  for (WatchedLine& line : lines_->Take()) {
    Trigger trigger;
    trigger.kind = TriggerKind::kRegex;
    trigger.name = "regex: " + options_.patterns[line.hit.pattern];
    trigger.detail = std::move(line.hit.line);
    trigger.time = line.time;
    trigger.stream = line.stream;
    trigger.begin_offset = line.hit.begin_offset;
    trigger.end_offset = line.hit.end_offset;
    (void)triggers_.Fire(trigger, line.more);
  }
}

void SnapshotRequests::Poll(const AnnounceStatus& status) {
  SampleStreams();
  FireOnLines();
  for (const RemoteControl::SnapRequest& request : remote_.Poll(clock_.Monotonic(), status)) {
    Trigger trigger;
    trigger.kind = TriggerKind::kSnap;
    trigger.name = "snap";
    trigger.time = clock_.Monotonic();
    triggers_.Request(trigger, request.now, request.since_last, request.ticket);
  }
}

void SnapshotRequests::Answer(const DueSnapshot& snapshot, const Result<std::string>& folder) {
  if (snapshot.ticket != 0) remote_.Answer(snapshot.ticket, folder);
}

std::vector<DueSnapshot> SnapshotRequests::Finish(const AnnounceStatus& status) {
  if (lines_ != nullptr) lines_->Finish();
  Poll(status);
  return triggers_.DrainAll();
}

}  // namespace hangscope
