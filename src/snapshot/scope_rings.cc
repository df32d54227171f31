#include "snapshot/scope_rings.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "snapshot/scope_items.h"
#include "window/spans.h"

namespace hangscope {
namespace {

// A held span has so many records at most: the newest N bytes of a ring are found to this many.
constexpr uint64_t kSpanRecords = 64;

// One core's, record after record. Offsets count records of one size, those that are lost, too.
class HistoryBuilder {
 public:
  HistoryBuilder(const ScopeLayout& layout, const AlignedClock& clock, TimeNs read_at)
      : record_bytes_(layout.record_bytes), clock_(clock) {
    history_.capacity_bytes = uint64_t{layout.ring_capacity} * layout.record_bytes;
    history_.recorded_until = read_at;
  }

  void Add(const EventList& items, size_t place) {
    if (items.age(place) > 0) {  // of an earlier start, whose clock this is not
      earlier_ = true;
      return;
    }
    if (items.is_event(place))
      AddEvent(items.event(place));
    else
      AddLoss(items.loss(place));
  }

  RingHistory Finish(RingName name) {
    Close();
    PlaceLosses(history_.recorded_until);
    history_.ring = std::move(name);
    history_.head = next_ * record_bytes_;
    return std::move(history_);
  }

  TimeNs error() const { return error_; }

 private:
  void AddEvent(const ScopeEvent& event) {
    if (event.ambiguous) {
      AddLoss({event.core, event.sequence, event.sequence + 1, EventLossReason::kUnread, 0, 0});
      return;
    }
    error_ = std::max(error_, clock_.ErrorAt(event.time));
    // Handlers that interrupt one another record out of order, by little; and what came while it
    // was read belongs to the end.
    time_ = std::clamp(clock_.HostTime(event.time),
                       std::min(time_.value_or(kBeginOfTime), history_.recorded_until),
                       history_.recorded_until);
    Begin(event.sequence, *time_);
    PlaceLosses(*time_);
    if (open_ && (open_->end_offset != event.sequence * record_bytes_ ||
                  open_->end_offset - open_->begin_offset >= kSpanRecords * record_bytes_))
      Close();
    if (!open_)
      open_ = HeldSpan{
          {*time_, *time_}, event.sequence * record_bytes_, event.sequence * record_bytes_, {}};
    open_->time.to = *time_;
    next_ = event.sequence + 1;
    open_->end_offset = next_ * record_bytes_;
  }

  void AddLoss(const EventLoss& loss) {
    Close();
    next_ = std::max(next_, loss.end);
    if (loss.reason == EventLossReason::kOverwritten && !time_) return;  // as the offsets say
    waiting_.push_back({{},
                        GapReasonOf(loss.reason),
                        (loss.end - loss.begin) * record_bytes_,
                        AmountUnit::kBytes,
                        {}});
  }

  // A ring that was cleared, or whose target began anew, records since then; else it has all there
  // ever was.
  void Begin(uint64_t first, TimeNs time) {
    if (begun_) return;
    begun_ = true;
    if (earlier_ || (first > 0 && next_ == 0)) history_.recording_since = time;
  }

  // What is lost lies between the events beside it.
  void PlaceLosses(TimeNs until) {
    for (KnownLoss& loss : waiting_) {
      loss.time = {std::min(history_.held.empty() ? until : history_.held.back().time.to, until),
                   until};
      history_.losses.push_back(loss);
    }
    waiting_.clear();
  }

  void Close() {
    if (open_) history_.held.push_back(*open_);
    open_.reset();
  }

  const uint64_t record_bytes_;
  const AlignedClock& clock_;
  RingHistory history_;
  std::vector<KnownLoss> waiting_;  // for the event after them
  std::optional<HeldSpan> open_;
  std::optional<TimeNs> time_;  // of the event before
  uint64_t next_ = 0;
  bool earlier_ = false;
  bool begun_ = false;
  TimeNs error_ = 0;
};

}  // namespace

Result<ScopeRings> ReadScopeRings(ScopeView& view, const ScopeClock& clock, TimeNs read_at) {
  view.StartOver();
  if (Status status = view.Poll(true); !status.ok()) return status;
  ScopeRings found;
  for (const ScopeCore& core : view.Cores()) {
    EventList items = view.DrainCore(core.index);
    if (!core.in_use && items.empty()) continue;
    auto aligned = clock.Align(view.layout(), core.index);
    if (!aligned.ok()) {
      found.left_out = aligned.status().message();
      continue;
    }
    items.SortByRecord();
    HistoryBuilder builder(view.layout(), *aligned, read_at);
    for (size_t i = 0; i < items.size(); ++i) builder.Add(items, i);
    found.rings.push_back(builder.Finish({RingKind::kCore, core.index, "scope"}));
    const ClockAlignment& fit = aligned->alignment;
    const TimeNs error = std::max(builder.error(), fit.error);
    found.clocks.push_back({core.index, fit.target, fit.host, fit.ns_per_count, error});
    found.clock_error = std::max(found.clock_error, error);
  }
  return found;
}

}  // namespace hangscope
