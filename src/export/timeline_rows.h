// The rows of a picture of a trace: what is open on each, and how it nests. TimelineBuilder says
// what happens on them.
#ifndef HANGSCOPE_EXPORT_TIMELINE_ROWS_H
#define HANGSCOPE_EXPORT_TIMELINE_ROWS_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "export/timeline.h"

namespace hangscope {

struct TimelineSlice {
  SliceState state = SliceState::kOther;
  std::string name;
  TimelineArguments arguments = {};
};

// Passes everything on to a sink, until that fails once.
class TimelinePen {
 public:
  explicit TimelinePen(TimelineSink& sink) : sink_(sink) {}

  TimelineTrackId Define(TimelineTrack track);  // its id is given here
  uint64_t NewFlow() { return ++flows_; }
  template <typename Call>
  void Emit(const Call& call) {
    if (status_.ok()) status_ = call(sink_);
  }
  const Status& status() const { return status_; }

  uint64_t late = 0;  // times that were smaller than their row's before

 private:
  TimelineSink& sink_;
  Status status_;
  TimelineTrackId tracks_ = 0;
  uint64_t flows_ = 0;
};

// A track of the picture. A time that is smaller than the one before is drawn at that one, and
// counted.
class TimelineLane {
 public:
  TimelineLane(TimelinePen& pen, TimelineTrackId id) : pen_(&pen), id_(id) {}

  void Begin(TimeNs time, const TimelineSlice& slice);
  void End(TimeNs time);
  // Ends slices until `depth` are open.
  void EndTo(size_t depth, TimeNs time);
  void Instant(TimeNs time, const TraceEvent& event, const TraceEventKind& kind);
  void Count(TimeNs time, uint64_t value);
  void Gap(const TimeSpan& time, const TimelineGap& gap);
  // From what is open here to what is open there.
  void Flow(TimelineLane& to, TimeNs time, const std::string& name, bool wakes);

  TimelineTrackId id() const { return id_; }
  size_t open() const { return open_; }
  // What is told next is told of this time, or a later one.
  TimeNs last() const { return last_; }
  // As `time` would be drawn.
  TimeNs Drawn(TimeNs time) const { return told_ && time < last_ ? last_ : time; }

 private:
  TimeNs Advance(TimeNs time);

  TimelinePen* pen_;
  TimelineTrackId id_;
  size_t open_ = 0;
  bool told_ = false;
  TimeNs last_ = 0;
};

// What began and has not ended, by whoever it belongs to: a task takes its own with it where it
// goes, what belongs to the row stays.
struct NestedSlice {
  TimelineSlice slice;
  bool function = false;
  bool of_task = false;
  // of those whose ends say what they end: nothing else ends with them
  std::optional<uint64_t> key = {};
};

class NestedSlices {
 public:
  static constexpr size_t kMost = 256;  // deeper ones are counted, and not drawn

  // False: too deep.
  bool Enter(TimelineLane& lane, TimeNs time, NestedSlice nested);
  // Ends the innermost of its sort. Those of the same owner inside it had no end of their own: they
  // are ended and added to *unended; those of another go on.
  enum class Left { kIt, kTooDeep, kNone };  // kNone: there is none
  Left Leave(TimelineLane& lane, TimeNs time, bool function, bool of_task, uint64_t* unended);
  // Likewise of the row's innermost that has this state and key.
  Left LeaveKey(TimelineLane& lane, TimeNs time, SliceState state, uint64_t key, uint64_t* unended);
  // On the lane; all stay begun.
  void Close(TimelineLane& lane, TimeNs time) const;
  void Reopen(TimelineLane& lane, TimeNs time);
  // While they are closed: takes those of the task out; puts them in again below those of the row.
  std::vector<NestedSlice> ReleaseOfTask();
  void PutOfTask(std::vector<NestedSlice> nested);
  void Clear();
  // The innermost; null: there is none.
  const TimelineSlice* innermost() const {
    return nested_.empty() ? nullptr : &nested_.back().slice;
  }
  // The innermost with a key that has this state; null: there is none.
  const NestedSlice* FindOpen(SliceState state) const;

 private:
  Left LeaveAt(size_t at, TimelineLane& lane, TimeNs time, bool of_task, uint64_t* unended);

  std::vector<NestedSlice> nested_;
  uint64_t too_deep_ = 0;
};

// Of a task or thread: how it stands, and in that, while it runs, its system calls.
class TaskRow {
 public:
  enum class State { kUnknown, kRunning, kWaiting, kReady };

  TaskRow(TimelinePen& pen, TimelineTrackId id, int64_t task, std::string task_name)
      : lane(pen, id), number(task), name(std::move(task_name)) {}

  void Run(TimeNs time, size_t core_index, const std::string& core_name);
  // It gave its core up for `what` (empty: for what it is in), or it had to.
  void Wait(TimeNs time, const std::string& what);
  void BeReady(TimeNs time);
  // Nobody knows what it does from now on, or that it did not end what it had begun.
  void Forget(TimeNs time);

  TimelineLane lane;
  const int64_t number;
  const std::string name;
  State state = State::kUnknown;
  size_t core = 0;  // kRunning
  NestedSlices calls;
  std::vector<NestedSlice> functions;  // while it does not run

 private:
  void Close(TimeNs time);
};

// Of a core or CPU: inside what is stale or missing who runs, and in that functions and interrupts.
class CoreRow {
 public:
  CoreRow(TimelinePen& pen, TimelineTrackId id, std::string core_name)
      : lane(pen, id), name(std::move(core_name)) {}

  // Null: nobody, or not known. The rows of the tasks are not changed.
  void Run(TimeNs time, TaskRow* task, TimelineArguments arguments);
  // Somebody who is not recorded, until somebody else runs.
  void RunUnrecorded(TimeNs time, TimelineArguments arguments);
  // All that happened before is void.
  void Forget(TimeNs time);
  // What lies until `to` is stale, or missing; what is begun goes on in it. Where it lies in such a
  // slice already there is no second one.
  void Cover(TimeNs time, TimeNs to, const TimelineSlice& slice);
  // False: there is none that ends by `time`.
  bool Uncover(TimeNs time);

  TimelineLane lane;
  const std::string name;
  TaskRow* running = nullptr;
  NestedSlices nested;

 private:
  void Close(TimeNs time);
  void Reopen(TimeNs time);

  bool unrecorded_ = false;  // runs here; `running` is null
  std::optional<SliceState> cover_;
  TimeNs cover_to_ = 0;
  TimelineArguments run_arguments_;
};

}  // namespace hangscope

#endif
