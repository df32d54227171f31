#include "hwtrace/trace_times.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace hangscope {

void TraceTimes::Add(const TraceTime& time) {
  if (!times_->empty() && (time.time < times_->back().time || time.offset < times_->back().offset))
    return;
  if (count_++ % every_ != 0) return;
  if (times_->size() == kMost) {
    for (size_t i = 0; i < kMost / 2; ++i) (*times_)[i] = (*times_)[2 * i];
    times_->resize(kMost / 2);
    every_ *= 2;
  }
  times_->push_back(time);
}

TimeSpan TimeOfOffset(const TimeSpan& piece, const std::vector<TraceTime>& times, uint64_t offset,
                      int cpu) {
  auto after =
      std::upper_bound(times.begin(), times.end(), offset,
                       [](uint64_t at, const TraceTime& time) { return at < time.offset; });
  auto before = after;
  while (before != times.begin() && std::prev(before)->cpu != cpu) --before;
  while (after != times.end() && after->cpu != cpu) ++after;
  TimeSpan span = piece;
  const auto believed = [&](TimeNs time) { return time >= piece.from && time <= piece.to; };
  if (before != times.begin() && believed(std::prev(before)->time))
    span.from = std::prev(before)->time;
  if (after != times.end() && believed(after->time)) span.to = after->time;
  return span.from <= span.to ? span : piece;
}

TimeSpan TimeOfBranch(const TimeSpan& piece, const std::vector<TraceTime>& times,
                      const TraceBranch& branch) {
  TimeSpan span = TimeOfOffset(piece, times, branch.offset, branch.cpu);
  span.from = branch.after == 0 ? piece.from
                                : TimeOfOffset(piece, times, branch.after - 1, branch.cpu).from;
  return span.from <= span.to ? span : piece;
}

namespace {

// In one trace nothing happened before what stands before it, nor after what stands behind it.
void NarrowByOrder(std::vector<TraceMoment>* moments) {
  std::map<size_t, TimeNs> reached;
  for (TraceMoment& moment : *moments) {
    TimeNs& from = reached.try_emplace(moment.trace, moment.within.from).first->second;
    from = std::max(from, moment.within.from);
    moment.within = {from, std::max(from, moment.within.to)};
  }
  reached.clear();
  for (auto moment = moments->rbegin(); moment != moments->rend(); ++moment) {
    TimeNs& to = reached.try_emplace(moment->trace, moment->within.to).first->second;
    to = std::min(to, moment->within.to);
    moment->within.to = to;
  }
}

// The greatest value of all traces, and that of all but its own.
class GreatestOfOthers {
 public:
  void Add(size_t trace, TimeNs value) {
    if (trace != trace_ && value > greatest_) {
      other_ = greatest_;
      trace_ = trace;
    }
    (trace == trace_ ? greatest_ : other_) = std::max(trace == trace_ ? greatest_ : other_, value);
  }
  TimeNs Of(size_t trace) const { return trace == trace_ ? other_ : greatest_; }

 private:
  static constexpr TimeNs kNone = std::numeric_limits<TimeNs>::min();
  size_t trace_ = std::numeric_limits<size_t>::max();
  TimeNs greatest_ = kNone;
  TimeNs other_ = kNone;
};

// By their begin: those of other traces before it have ended, and none behind it begins before it
// ends.
void MarkCertain(std::vector<TraceMoment>* moments) {
  GreatestOfOthers ends;
  for (TraceMoment& moment : *moments) {
    moment.certain = ends.Of(moment.trace) < moment.within.from;
    ends.Add(moment.trace, moment.within.to);
  }
  GreatestOfOthers begins;  // the next, negative
  for (auto moment = moments->rbegin(); moment != moments->rend(); ++moment) {
    moment->certain = moment->certain && -moment->within.to > begins.Of(moment->trace);
    begins.Add(moment->trace, -moment->within.from);
  }
}

}  // namespace

std::vector<size_t> OrderMoments(std::vector<TraceMoment>* moments) {
  NarrowByOrder(moments);
  std::vector<size_t> order(moments->size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return (*moments)[a].within.from < (*moments)[b].within.from;
  });
  std::vector<TraceMoment> sorted;
  for (const size_t at : order) sorted.push_back((*moments)[at]);
  MarkCertain(&sorted);
  *moments = std::move(sorted);
  return order;
}

}  // namespace hangscope
