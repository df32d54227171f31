// Sets of instants, as ascending spans that are neither empty nor touch.
#ifndef HANGSCOPE_WINDOW_SPANS_H
#define HANGSCOPE_WINDOW_SPANS_H

#include <algorithm>
#include <vector>

#include "model/window.h"

namespace hangscope {

using Spans = std::vector<TimeSpan>;

// Before and after all that a ring tells. Half of what TimeNs holds, so that any two may be
// subtracted.
constexpr TimeNs kBeginOfTime = -(TimeNs{1} << 61);
constexpr TimeNs kEndOfTime = TimeNs{1} << 61;

constexpr TimeNs InTime(TimeNs time) { return std::clamp(time, kBeginOfTime, kEndOfTime); }
constexpr TimeSpan InTime(TimeSpan span) { return {InTime(span.from), InTime(span.to)}; }

// Sorted and joined; spans that are empty or run backwards are left out.
Spans MakeSpans(std::vector<TimeSpan> spans);

Spans Union(const Spans& a, const Spans& b);
Spans Intersect(const Spans& a, TimeSpan b);
Spans Subtract(const Spans& a, const Spans& b);

// The same set, in spans that touch at the instants inside; these ascend.
std::vector<TimeSpan> SplitAt(const Spans& spans, const std::vector<TimeNs>& instants);

// The instants of a that b has, too; empty (from >= to) where there are none.
TimeSpan Clip(TimeSpan a, TimeSpan b);

}  // namespace hangscope

#endif
