// Windows told in a line, so that a test reads as a story; times in milliseconds after some
// instant.
#ifndef HANGSCOPE_TESTS_UNIT_WINDOW_WINDOW_STORY_H
#define HANGSCOPE_TESTS_UNIT_WINDOW_WINDOW_STORY_H

#include <string>

#include "window/find_window.h"

namespace hangscope {

constexpr TimeNs kStoryBegin = 1000 * kMillisecond;

inline TimeNs At(int64_t ms) { return kStoryBegin + ms * kMillisecond; }
inline TimeSpan Between(int64_t from, int64_t to) { return {At(from), At(to)}; }

inline std::string Reported(TimeNs time) {
  const TimeNs after = time - kStoryBegin;
  if (after % kMillisecond == 0) return std::to_string(after / kMillisecond);
  return std::to_string(static_cast<double>(after) / 1e6);
}

inline std::string Reported(const TimeSpan& span) {
  return span.from == span.to ? "@" + Reported(span.from)
                              : Reported(span.from) + ".." + Reported(span.to);
}

inline std::string Reported(const RingName& ring) {
  return std::string(RingKindName(ring.kind)) + std::to_string(ring.number);
}

inline std::string Reported(const std::vector<TimeSpan>& spans) {
  std::string text;
  for (const TimeSpan& span : spans) text += (text.empty() ? "" : ",") + Reported(span);
  return text;
}

// "30..50 by CPU1": what the window is. "30..50 from the start".
inline std::string ReportedTime(const Window& window) {
  std::string text = Reported(window.time.from) + ".." + Reported(window.time.to);
  if (window.limited_by) text += " by " + Reported(window.rings[*window.limited_by].ring);
  if (window.from_the_start) text += " from the start";
  return text;
}

// "covered 40..50 idle 30..40 stale 0..10(20)", the age in brackets.
inline std::string Reported(const RingCoverage& ring) {
  std::string text;
  if (!ring.covered.empty()) text += " covered " + Reported(ring.covered);
  if (!ring.idle.empty()) text += " idle " + Reported(ring.idle);
  for (const StaleSpan& stale : ring.stale) {
    text += " stale " + Reported(stale.time) + "(" + Reported(stale.age + kStoryBegin) + ")";
  }
  return text.empty() ? text : text.substr(1);
}

inline std::string ReportedRing(const Window& window, size_t ring) {
  return Reported(window.rings[ring]);
}

// "CPU1 40..44 shared sink overwritten of 7; CPU2 @12 torn 3 records".
inline std::string ReportedGaps(const Window& window) {
  std::string text;
  for (const Gap& gap : window.gaps) {
    if (!text.empty()) text += "; ";
    text += Reported(window.rings[gap.ring].ring) + " " + Reported(gap.time) + " " +
            std::string(GapReasonName(gap.reason));
    if (gap.task) text += " of " + std::to_string(*gap.task);
    if (gap.unit == AmountUnit::kBytes) text += " " + std::to_string(gap.amount) + " bytes";
    if (gap.unit == AmountUnit::kRecords) text += " " + std::to_string(gap.amount) + " records";
  }
  return text;
}

// "7 continuous", "7 breaks 40..44".
inline std::string ReportedTasks(const Window& window) {
  std::string text;
  for (const TaskCoverage& task : window.tasks) {
    if (!text.empty()) text += "; ";
    text += std::to_string(task.task);
    if (task.continuous) text += " continuous";
    if (!task.breaks.empty()) text += " breaks " + Reported(task.breaks);
  }
  return text;
}

}  // namespace hangscope

#endif
