// The branches that a hardware trace tells of, as events of a track: an instant each, and the
// functions that they lead through, as slices that nest.
//
// A branch to a function's first address is a call; one into a function that is open is a return to
// it; another ends the innermost and begins that one. Where the flow is not known nothing is open.
#ifndef HANGSCOPE_TRACE_BRANCH_TRACK_H
#define HANGSCOPE_TRACE_BRANCH_TRACK_H

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "code/code_source.h"
#include "hwtrace/instruction_trace.h"
#include "model/trace.h"

namespace hangscope {

// Adds the kinds of events of branches to `kinds`, and returns the first of them.
size_t AddBranchKinds(std::vector<TraceEventKind>* kinds);

// One thread.
class BranchTrack {
 public:
  // deeper calls belong to the innermost that is told
  static constexpr size_t kDeepestCalls = 128;

  // What lies at an address; without a function where nothing is known.
  using Locate = std::function<Location(uint64_t address)>;

  // `first_kind`: what AddBranchKinds returned; `items` outlives this.
  BranchTrack(size_t track, size_t first_kind, Locate locate, std::deque<TraceItem>* items)
      : track_(track), first_kind_(first_kind), locate_(std::move(locate)), items_(items) {}

  // The next branch; `within_ns`: so much later it may have been; nothing: not known.
  void Add(const TraceBranch& branch, TimeNs time, std::optional<uint64_t> within_ns);
  // Nothing is known from here on.
  void LeaveAll(TimeNs time);
  void SetTask(std::optional<int64_t> task) { task_ = task; }
  uint64_t sequence() const { return sequence_; }
  // Of an event of another kind on the same track.
  TraceEvent& AddEvent(size_t kind, TimeNs time);

 private:
  struct Open {
    std::string function;
    uint64_t begin = 0;
  };
  void Arrive(uint64_t address, TimeNs time);
  void Enter(const Location& location, uint64_t address, TimeNs time);
  void Leave(TimeNs time);

  const size_t track_;
  const size_t first_kind_;
  const Locate locate_;
  std::deque<TraceItem>* items_;
  std::vector<Open> open_;
  std::optional<int64_t> task_;
  uint64_t sequence_ = 0;
};

// "function+0x10"; empty: not known.
std::string NameOfPlace(const Location& location, uint64_t address);

}  // namespace hangscope

#endif
