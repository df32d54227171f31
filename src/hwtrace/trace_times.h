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

// [begin, end] in which what stands at `offset` of a piece happened. `piece`: when the piece was
// written, in the clock of `times`. Stamps that the piece's own time contradicts are not believed.
TimeSpan TimeOfOffset(const TimeSpan& piece, const std::vector<TraceTime>& times, uint64_t offset);

}  // namespace hangscope

#endif
