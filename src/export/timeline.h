// From a trace to a picture of it: who ran, who waited for whom, what was going on, on tracks of
// slices that nest. Perfetto, Chrome's trace viewer and the report draw the same picture.
#ifndef HANGSCOPE_EXPORT_TIMELINE_H
#define HANGSCOPE_EXPORT_TIMELINE_H

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "export/trace_writer.h"
#include "model/trace.h"

namespace hangscope {

enum class TimelineRow {
  kCore,     // a core's or CPU's: which task runs on it, interrupts, functions, its events
  kTask,     // a task's or thread's: runs, waits, system calls
  kCounter,  // a number over time
  kState,    // below a core's: at which waypoint it is
};

// From 1, in the order in which they are defined; never used for another.
using TimelineTrackId = uint64_t;

struct TimelineTrack {
  TimelineTrackId id = 0;
  TimelineTrackId parent = 0;  // 0: none
  TimelineRow row = TimelineRow::kCore;
  std::string name;
  std::optional<size_t> trace_track;  // kCore
  std::optional<int64_t> task;        // kTask
};

enum class SliceState {
  kRunning,
  kWaiting,
  kReady,
  kHalted,
  kStale,
  kGap,
  kFunction,
  kSystemCall,
  kInterrupt,
  kOther
};

// "running", "waiting", ...
const char* SliceStateName(SliceState state);

using TimelineArguments = std::vector<std::pair<std::string, std::string>>;

// Why nothing is known of some time.
struct TimelineGap {
  std::string why;     // "overwritten"
  std::string amount;  // "12 records"; empty: not known

  std::string Text() const { return why + (amount.empty() ? "" : ": ") + amount; }
};

// Told in the order of time, of each track: slices nest and are balanced, what is open at the end
// is closed there.
class TimelineSink {
 public:
  virtual ~TimelineSink() = default;
  virtual Status Define(const TimelineTrack& track) = 0;  // before anything is told of it
  virtual Status Begin(TimelineTrackId track, TimeNs time, SliceState state,
                       const std::string& name, const TimelineArguments& arguments) = 0;
  virtual Status End(TimelineTrackId track, TimeNs time) = 0;  // the innermost
  virtual Status Instant(TimelineTrackId track, TimeNs time, const TraceEvent& event,
                         const TraceEventKind& kind) = 0;
  virtual Status Count(TimelineTrackId track, TimeNs time, uint64_t value) = 0;
  // From who ends a wait (`wakes`), or should, to who waits: both ends lie in slices. `id` is its
  // own.
  virtual Status Flow(uint64_t id, TimelineTrackId from, TimeNs from_time, TimelineTrackId to,
                      TimeNs to_time, const std::string& name, bool wakes) = 0;
  // Of a track; also where it lies in a slice of kGap or kStale.
  virtual Status Gap(TimelineTrackId track, const TimeSpan& time, const TimelineGap& gap) = 0;
};

// Draws a trace into `sink`, which outlives it.
class TimelineBuilder final : public TraceWriter {
 public:
  explicit TimelineBuilder(TimelineSink& sink);
  ~TimelineBuilder() override;
  Status Begin(const TraceHead& head) override;
  Status Write(const TraceEvent& event) override;
  Status Write(const TraceLoss& loss) override;
  Status End(const TraceEnd& end) override;
  // Behind End, one sentence each: what the trace begins or ends in the middle of, as each does
  // that was overwritten.
  std::vector<std::string> notes() const;
  // What of the trace contradicts itself, and what became of it.
  std::vector<std::string> warnings() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hangscope

#endif
