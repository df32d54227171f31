#include "hwtrace/trace_times.h"

#include <algorithm>

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

TimeSpan TimeOfOffset(const TimeSpan& piece, const std::vector<TraceTime>& times, uint64_t offset) {
  const auto after =
      std::upper_bound(times.begin(), times.end(), offset,
                       [](uint64_t at, const TraceTime& time) { return at < time.offset; });
  TimeSpan span = piece;
  const auto believed = [&](TimeNs time) { return time >= piece.from && time <= piece.to; };
  if (after != times.begin() && believed(std::prev(after)->time))
    span.from = std::prev(after)->time;
  if (after != times.end() && believed(after->time)) span.to = after->time;
  return span.from <= span.to ? span : piece;
}

}  // namespace hangscope
