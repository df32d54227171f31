#include "window/find_window.h"

#include <algorithm>

#include "window/policies.h"
#include "window/ring_runs.h"
#include "window/ring_timeline.h"
#include "window/task_coverage.h"

namespace hangscope {
namespace {

std::vector<RingTimeline> MakeTimelines(const WindowInput& input, const WindowRequest& request,
                                        const RunIndex& runs) {
  const auto sinks = FindSinks(input, runs);
  std::vector<RingTimeline> timelines;
  for (size_t i = 0; i < input.rings.size(); ++i) {
    const RingHistory& ring = input.rings[i];
    const bool since_last =
        request.policy == WindowPolicy::kSinceLast && i < request.last_heads.size();
    timelines.push_back(since_last ? MakeTimelineSince(ring, runs.RunsOf(ring), sinks[i],
                                                       request.last_heads[i], request.last_trigger)
                                   : MakeTimeline(ring, runs.RunsOf(ring), sinks[i]));
  }
  return timelines;
}

// Inside the window: what ends where it begins is before it, but an instant there is not, unless it
// is what the window begins after.
bool IsInside(const RingLoss& loss, TimeSpan window) {
  if (loss.time.from < loss.time.to) {
    const TimeSpan part = Clip(loss.time, window);
    return part.from < part.to;
  }
  if (loss.time.from == window.from) return !loss.limits;
  return loss.time.from > window.from && loss.time.from <= window.to;
}

Gap GapOf(size_t ring, const RingLoss& loss, TimeSpan window) {
  Gap gap{ring, loss.task, loss.time, loss.reason, loss.amount, loss.unit};
  if (loss.time.from == loss.time.to) return gap;
  gap.time = Clip(loss.time, window);
  if (gap.time == loss.time) return gap;
  // How much of it lies inside nobody knows.
  gap.amount = 0;
  gap.unit = AmountUnit::kUnknown;
  return gap;
}

// One that goes on where the last one ends is the same.
void AddGap(std::vector<Gap>& gaps, const Gap& gap) {
  if (!gaps.empty()) {
    Gap& last = gaps.back();
    if (last.ring == gap.ring && last.task == gap.task && last.reason == gap.reason &&
        last.time.to == gap.time.from && last.amount == 0 && gap.amount == 0) {
      last.time.to = gap.time.to;
      return;
    }
  }
  gaps.push_back(gap);
}

std::vector<Gap> FindGaps(const WindowInput& input, const std::vector<RingTimeline>& timelines,
                          const RunIndex& runs, TimeSpan window) {
  std::vector<Gap> gaps;
  for (size_t i = 0; i < timelines.size(); ++i) {
    std::vector<Gap> of_ring;
    for (const RingLoss& loss : timelines[i].losses) {
      if (!IsInside(loss, window)) continue;
      Gap gap = GapOf(i, loss, window);
      if (!gap.task) gap.task = runs.OnlyTask(input.rings[i], gap.time);
      AddGap(of_ring, gap);
    }
    gaps.insert(gaps.end(), of_ring.begin(), of_ring.end());
  }
  std::stable_sort(gaps.begin(), gaps.end(),
                   [](const Gap& a, const Gap& b) { return a.time.from < b.time.from; });
  return gaps;
}

// Of a ring of its own it is nothing new that it once had more. What others destroyed in a sink was
// a whole run, perhaps, of whoever it was.
std::vector<Gap> FindLostBefore(const WindowInput& input,
                                const std::vector<RingTimeline>& timelines, const RunIndex& runs,
                                TimeNs begin) {
  constexpr size_t kMostOfRing = 16;
  std::vector<Gap> lost;
  for (size_t i = 0; i < timelines.size(); ++i) {
    std::vector<Gap> of_ring;
    for (const RingLoss& loss : timelines[i].losses) {
      const bool known = loss.time.from > kBeginOfTime && loss.time.from < begin && !loss.not_yet;
      if (loss.reason != GapReason::kSharedSink || !known) continue;
      Gap gap = GapOf(i, loss, {kBeginOfTime, begin});
      if (!gap.task) gap.task = runs.OnlyTask(input.rings[i], gap.time);
      AddGap(of_ring, gap);
    }
    const size_t left_out = of_ring.size() - std::min(of_ring.size(), kMostOfRing);
    lost.insert(lost.end(), of_ring.begin() + static_cast<ptrdiff_t>(left_out), of_ring.end());
  }
  std::stable_sort(lost.begin(), lost.end(),
                   [](const Gap& a, const Gap& b) { return a.time.from < b.time.from; });
  return lost;
}

std::vector<TimeSpan> Inside(const std::vector<TimeSpan>& spans, TimeSpan window) {
  std::vector<TimeSpan> inside;
  for (const TimeSpan& span : spans) {
    const TimeSpan part = Clip(span, window);
    if (part.from < part.to) inside.push_back(part);
  }
  return inside;
}

void AddStale(std::vector<StaleSpan>& stale, const RingPiece& piece, TimeSpan window) {
  StaleSpan span{{piece.time.from, std::min(piece.time.to, std::max(window.from, piece.time.from))},
                 0,
                 piece.bytes};
  span.age = std::max<TimeNs>(0, window.from - span.time.to);
  if (!stale.empty() && stale.back().time.to == span.time.from) {
    stale.back().time.to = span.time.to;
    stale.back().age = span.age;
    stale.back().bytes += span.bytes;
  } else {
    stale.push_back(span);
  }
}

RingCoverage CoverRing(const RingHistory& history, const RingTimeline& timeline, TimeSpan window) {
  RingCoverage ring;
  ring.ring = history.ring;
  ring.bytes_discarded = history.discarded_bytes;
  for (const RingPiece& piece : timeline.before) {
    ring.bytes_held += piece.bytes;
    AddStale(ring.stale, piece, window);
  }
  for (const RingPiece& piece : timeline.pieces) {
    const uint64_t inside = BytesInside(piece, window);
    ring.bytes_held += piece.bytes;
    ring.bytes_inside += inside;
    RingPiece older = piece;
    older.bytes = piece.bytes - BytesInside(piece, {window.from, kEndOfTime});
    if (piece.time.from < window.from) AddStale(ring.stale, older, window);
  }
  const auto& oldest = timeline.before.empty() ? timeline.pieces : timeline.before;
  const auto& newest = timeline.pieces.empty() ? timeline.before : timeline.pieces;
  if (!oldest.empty()) ring.held = TimeSpan{oldest.front().time.from, newest.back().time.to};
  ring.lost_any =
      std::any_of(timeline.losses.begin(), timeline.losses.end(),
                  [](const RingLoss& loss) { return loss.reason != GapReason::kNotRecorded; });
  ring.covered = Inside(timeline.covered, window);
  ring.idle = Inside(timeline.idle, window);
  return ring;
}

}  // namespace

Window FindWindow(const WindowInput& input, const WindowRequest& request) {
  WindowRequest asked = request;
  asked.trigger = std::clamp(request.trigger, kBeginOfTime, kEndOfTime);
  asked.last_trigger = std::clamp(request.last_trigger, kBeginOfTime, kEndOfTime);
  const RunIndex runs(input, asked.trigger);
  const std::vector<RingTimeline> timelines = MakeTimelines(input, asked, runs);
  const WindowBegin begin = FindBegin(input, timelines, asked);

  Window window;
  window.policy = asked.policy;
  window.time = {begin.time, asked.trigger};
  window.from_the_start = begin.from_the_start;
  window.limited_by = begin.limited_by;
  window.clock_error = input.clock_error;
  for (size_t i = 0; i < timelines.size(); ++i) {
    window.rings.push_back(CoverRing(input.rings[i], timelines[i], window.time));
  }
  window.gaps = FindGaps(input, timelines, runs, window.time);
  if (window.limited_by) window.lost_before = FindLostBefore(input, timelines, runs, begin.time);
  window.tasks = CoverTasks(input, timelines, window.time, asked.wants_runs);
  return window;
}

}  // namespace hangscope
