// Who ran where, brought to the rings that record it; and which sink a ring's data passes through.
#ifndef HANGSCOPE_WINDOW_RING_RUNS_H
#define HANGSCOPE_WINDOW_RING_RUNS_H

#include <map>
#include <optional>
#include <vector>

#include "window/ring_timeline.h"

namespace hangscope {

// The runs of a WindowInput, found by ring. One thread.
class RunIndex {
 public:
  // `input` outlives it.
  RunIndex(const WindowInput& input, TimeNs until);

  RunsOfRing RunsOf(const RingHistory& ring) const;
  // Whose is all that `ring` recorded inside `span`? Nothing: of several, or not known.
  std::optional<int64_t> OnlyTask(const RingHistory& ring, TimeSpan span) const;

 private:
  // None of them runs backwards; their times may be beyond those that can be calculated with.
  using Runs = std::vector<const TaskRun*>;
  struct ByRing {
    std::map<int64_t, Runs> of_cpu;   // by their begin; of the CPUs that have a ring
    std::map<int64_t, Runs> of_task;  // likewise
  };
  const Runs* Find(const RingHistory& ring) const;
  ByRing Sort() const;

  const WindowInput& input_;
  // Made for the first that asks: of rings that record whoever runs, and lose nothing, nobody does.
  mutable std::optional<ByRing> by_ring_;
  std::optional<TimeNs> known_since_;
  bool trusted_ = false;
};

// By ring; nothing: its data passes through none.
std::vector<std::optional<SinkOfRing>> FindSinks(const WindowInput& input, const RunIndex& runs);

}  // namespace hangscope

#endif
