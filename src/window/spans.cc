#include "window/spans.h"

#include <algorithm>

namespace hangscope {

Spans MakeSpans(std::vector<TimeSpan> spans) {
  std::erase_if(spans, [](const TimeSpan& span) { return span.from >= span.to; });
  const auto by_begin = [](const TimeSpan& a, const TimeSpan& b) { return a.from < b.from; };
  if (!std::is_sorted(spans.begin(), spans.end(), by_begin))
    std::sort(spans.begin(), spans.end(), by_begin);
  Spans joined;
  for (const TimeSpan& span : spans) {
    if (!joined.empty() && span.from <= joined.back().to) {
      joined.back().to = std::max(joined.back().to, span.to);
    } else {
      joined.push_back(span);
    }
  }
  return joined;
}

Spans Union(const Spans& a, const Spans& b) {
  std::vector<TimeSpan> all = a;
  all.insert(all.end(), b.begin(), b.end());
  return MakeSpans(std::move(all));
}

Spans Intersect(const Spans& a, TimeSpan b) {
  // The first that ends after b begins: sets may be long, and are asked for each of many short
  // spans.
  auto span = std::upper_bound(a.begin(), a.end(), b.from,
                               [](TimeNs from, const TimeSpan& s) { return from < s.to; });
  Spans common;
  for (; span != a.end() && span->from < b.to; ++span) {
    const TimeSpan part = Clip(*span, b);
    if (part.from < part.to) common.push_back(part);
  }
  return common;
}

Spans Subtract(const Spans& a, const Spans& b) {
  Spans rest;
  auto taken = b.begin();
  for (TimeSpan span : a) {
    while (taken != b.end() && taken->to <= span.from) ++taken;
    for (auto t = taken; t != b.end() && t->from < span.to; ++t) {
      if (t->from > span.from) rest.push_back({span.from, t->from});
      span.from = std::max(span.from, t->to);
    }
    if (span.from < span.to) rest.push_back(span);
  }
  return rest;
}

std::vector<TimeSpan> SplitAt(const Spans& spans, const std::vector<TimeNs>& instants) {
  std::vector<TimeSpan> split;
  auto instant = instants.begin();
  for (TimeSpan span : spans) {
    instant = std::upper_bound(instant, instants.end(), span.from);
    for (; instant != instants.end() && *instant < span.to; ++instant) {
      if (*instant == span.from) continue;
      split.push_back({span.from, *instant});
      span.from = *instant;
    }
    split.push_back(span);
  }
  return split;
}

TimeSpan Clip(TimeSpan a, TimeSpan b) { return {std::max(a.from, b.from), std::min(a.to, b.to)}; }

}  // namespace hangscope
