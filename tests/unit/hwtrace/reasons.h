// Why a trace is interrupted, in one line for expectations.
#ifndef HANGSCOPE_TESTS_UNIT_HWTRACE_REASONS_H
#define HANGSCOPE_TESTS_UNIT_HWTRACE_REASONS_H

#include <string>

#include "hwtrace/instruction_trace.h"

namespace hangscope {

inline std::string Reasons(const TraceSummary& summary) {
  std::string reasons;
  for (const Discontinuity& one : summary.discontinuities) {
    reasons += (reasons.empty() ? "" : ", ") + std::string(DiscontinuityReasonName(one.reason));
  }
  return reasons;
}

}  // namespace hangscope

#endif
