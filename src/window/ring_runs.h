// Who ran where, brought to the rings that record it; and which sink a ring's data passes through.
#ifndef HANGSCOPE_WINDOW_RING_RUNS_H
#define HANGSCOPE_WINDOW_RING_RUNS_H

#include <map>
#include <optional>
#include <vector>

#include "window/ring_timeline.h"

namespace hangscope {

// The runs of a WindowInput, found by ring. Keeps what it needs.
class RunIndex {
 public:
  RunIndex(const WindowInput& input, TimeNs until);

  RunsOfRing RunsOf(const RingHistory& ring) const;
  // Whose is all that `ring` recorded inside `span`? Nothing: of several, or not known.
  std::optional<int64_t> OnlyTask(const RingHistory& ring, TimeSpan span) const;

 private:
  struct Run {
    int64_t task;
    TimeSpan time;
  };
  const std::vector<Run>* Find(const RingHistory& ring) const;

  std::map<int64_t, std::vector<Run>> by_cpu_;  // by their begin
  std::map<int64_t, std::vector<Run>> by_task_;
  std::optional<TimeNs> known_since_;
  bool trusted_ = false;
};

// By ring; nothing: its data passes through none.
std::vector<std::optional<SinkOfRing>> FindSinks(const WindowInput& input, const RunIndex& runs);

}  // namespace hangscope

#endif
