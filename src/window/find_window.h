// Rings of different CPUs, cores and threads hold different spans of time: which window do they
// cover together, and what is missing in it? Pure; docs/windows.md has the rules and a drawing.
//
// Whoever reads rings (scopes, streams, perf rings, perf.data files) brings them into this form;
// nothing here knows what is in them. What is said to be covered is; what is not known is not
// covered.
#ifndef HANGSCOPE_WINDOW_FIND_WINDOW_H
#define HANGSCOPE_WINDOW_FIND_WINDOW_H

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/window.h"

namespace hangscope {

// A piece of a ring's history that it still has without a hole: an AUX record, a run of events.
// Offsets count what was ever written to the ring, in 64 bits that never wrap.
struct HeldSpan {
  TimeSpan time;
  uint64_t begin_offset = 0;
  uint64_t end_offset = 0;
  std::optional<int64_t> task;  // whose, where the ring is switched with its task
  uint64_t others_bytes = 0;    // of these; of RingHistory::counts_sink
};

// Something that the recorder says is missing, as far as it can say where. Between two held spans
// that do not touch by their offsets, bytes are missing whether this says so or not.
struct KnownLoss {
  TimeSpan time;  // when it happened; all that the recorder knows
  GapReason reason = GapReason::kOverwritten;
  uint64_t amount = 0;  // 0: not known
  AmountUnit unit = AmountUnit::kUnknown;
  std::optional<int64_t> task;
};

struct RingHistory {
  RingName ring;
  uint64_t capacity_bytes = 0;   // 0: not known
  uint64_t head = 0;             // bytes ever written to it
  uint64_t discarded_bytes = 0;  // of those that it had: overwritten while it was read
  TimeNs recording_since = 0;    // monotonic; 0: since before all else that is known
  // when it was read: whatever came later is not in it; 0: with its newest data
  TimeNs recorded_until = 0;
  std::vector<HeldSpan> held;  // ascending and disjoint in time and offsets
  std::vector<KnownLoss> losses;
  std::optional<size_t> sink;  // of WindowInput::sinks: where its data passes through
  // it records whoever runs; else only while a task in WindowInput::runs does
  bool always_on = true;
  bool of_unknown_cpus = false;  // it records the runs whose CPU nobody told
  // Offsets count all that came out of its sink, whoever wrote it: how much of what is missing is
  // its own, nobody knows.
  bool counts_sink = false;
};

// Where trace data waits before it gets into a ring: what is not drained yet is what an overwriting
// neighbour destroys. Several CPUs may share one (N:1).
struct SinkHistory {
  RingName sink;
  uint64_t capacity_bytes = 0;
  // What is left in it, oldest first: whose and when.
  struct Rest {
    size_t ring = 0;  // of WindowInput::rings
    TimeSpan time;
    uint64_t bytes = 0;
  };
  std::vector<Rest> rest;
};

// A task ran there and then, as the scheduler's records or the program itself say.
struct TaskRun {
  int64_t task = 0;
  // RingName::number of the ring of kind kCpu (or kThread's task) that records it; -1: it is not
  // known
  int64_t cpu = 0;
  TimeSpan time;
};

struct EndOfTask {
  int64_t task = 0;
  TimeNs time = 0;
};

struct WindowInput {
  std::vector<RingHistory> rings;
  std::vector<SinkHistory> sinks;
  std::vector<TaskRun> runs;
  std::vector<EndOfTask> ends;
  // From here to the trigger `runs` has every run of every task that a ring which is not always on
  // would record. Where bytes are missing it is then only while one of them ran. Nothing: they are
  // as complete as they look, from the first one on, and tell of rings from which no byte is
  // missing, but not where missing bytes were.
  std::optional<TimeNs> runs_known_since;
  std::vector<std::pair<int64_t, std::string>> task_names;
  TimeNs clock_error = 0;
};

struct WindowRequest {
  WindowPolicy policy = WindowPolicy::kCoherent;
  TimeNs trigger = 0;                // monotonic: t1
  TimeNs length = 0;                 // of kLastTime
  uint64_t bytes = 0;                // of kLastBytes
  std::vector<uint64_t> last_heads;  // of kSinceLast: by ring, its head at the snapshot before
  TimeNs last_trigger = 0;           // of kSinceLast
  bool wants_runs = true;            // TaskCoverage::ran; else they stay empty
};

Window FindWindow(const WindowInput& input, const WindowRequest& request);

}  // namespace hangscope

#endif
