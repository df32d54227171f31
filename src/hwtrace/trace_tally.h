// What the decoders of hardware traces have in common: filling a TraceSummary without ever growing
// beyond what was asked for.
#ifndef HANGSCOPE_HWTRACE_TRACE_TALLY_H
#define HANGSCOPE_HWTRACE_TRACE_TALLY_H

#include "hwtrace/instruction_trace.h"

namespace hangscope {

class TraceTally {
 public:
  TraceTally(TraceSummary* summary, const TraceDecodeOptions& options)
      : summary_(summary), options_(options) {}

  void Break(const Discontinuity& discontinuity) {
    if (summary_->discontinuities.size() < options_.most_discontinuities)
      summary_->discontinuities.push_back(discontinuity);
    else
      ++summary_->more_discontinuities;
  }

  // Drops the oldest beyond the last N; `branches` counts those that the flow itself took.
  void Branch(const TraceBranch& branch) {
    if (options_.last_branches == 0) return;
    if (summary_->last_branches.size() >= options_.last_branches)
      summary_->last_branches.pop_front();
    summary_->last_branches.push_back(branch);
  }

 private:
  TraceSummary* summary_;
  const TraceDecodeOptions& options_;
};

}  // namespace hangscope

#endif
