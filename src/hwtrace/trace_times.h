// When was a byte of a hardware trace written? Between the time stamps in the trace around it, and
// within the time in which the piece was written: PERF_RECORD_AUX comes when a piece is closed,
// PERF_RECORD_ITRACE_START or a switch when it was begun.
#ifndef HANGSCOPE_HWTRACE_TRACE_TIMES_H
#define HANGSCOPE_HWTRACE_TRACE_TIMES_H

#include <cstdint>
#include <vector>

#include "hwtrace/instruction_trace.h"
#include "model/window.h"

namespace hangscope {

// Keeps time stamps, however many there are, in bounded memory: of too many, every second is
// forgotten, and of those to come every second is not taken.
class TraceTimes {
 public:
  static constexpr size_t kMost = 4096;

  // `times`: filled; must outlive this.
  explicit TraceTimes(std::vector<TraceTime>* times) : times_(times) {}
  // What runs backwards is damaged, and not taken.
  void Add(const TraceTime& time);

 private:
  std::vector<TraceTime>* times_;
  uint64_t every_ = 1;
  uint64_t count_ = 0;
};

// [begin, end] in which what stands at `offset` of the trace of `cpu` in a piece happened. `piece`:
// when the piece was written, in the clock of `times`. Stamps that the piece's own time contradicts
// are not believed.
TimeSpan TimeOfOffset(const TimeSpan& piece, const std::vector<TraceTime>& times, uint64_t offset,
                      int cpu = -1);
// The same of a branch.
TimeSpan TimeOfBranch(const TimeSpan& piece, const std::vector<TraceTime>& times,
                      const TraceBranch& branch);

// Something in one of several traces, each of which has its own in order.
struct TraceMoment {
  size_t trace = 0;
  TimeSpan within;      // it happened between these times
  bool certain = true;  // filled: whether it is known of all of the other traces which came first
};

// Orders moments by the time before which they did not happen, and narrows each by those that are
// known to be before and behind it. Those of one trace come in their order, and keep it. Gives the
// places that they had.
std::vector<size_t> OrderMoments(std::vector<TraceMoment>* moments);

}  // namespace hangscope

#endif
