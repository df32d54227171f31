// What a perf.data says about a hang: who stands still, and how. Without memory and stacks little is certain: what
// sleeps may sleep for a reason, so only those who want to run and do not, and those whom no signal would wake, count.
#ifndef HANGSCOPE_VERDICT_PERF_ANALYSIS_H
#define HANGSCOPE_VERDICT_PERF_ANALYSIS_H

#include <string>
#include <vector>

#include "base/clock.h"
#include "decode/perf_activity.h"
#include "model/confidence.h"

namespace hangscope {

enum class PerfThreadState { kRunning, kWaitsForCpu, kBlocked, kEnded, kUnknown };

// Where a thread was when the recording ended, and since when.
struct PerfThreadView {
  const PerfThreadActivity* thread = nullptr;
  PerfThreadState state = PerfThreadState::kUnknown;
  TimeNs since = -1;  // -1: not known
  char letter = ' ';  // of kBlocked: as ps has it; '?': not known
};

struct PerfFinding {
  Confidence confidence = Confidence::kPossible;
  int tid = -1;        // -1: of all
  std::string summary; // one sentence without an end
  std::vector<std::string> doubts;

  bool IsBad() const { return confidence > Confidence::kPossible; }
};

struct PerfAnalysis {
  std::vector<PerfThreadView> threads;  // running, waiting for a CPU, blocked, others; in each, the newest first
  std::vector<PerfFinding> findings;    // the worst first; bounded
};

// `stall`: what lasts so long is a hang. `activity` must outlive the result.
PerfAnalysis AnalysePerf(const PerfActivity& activity, TimeNs stall);

}  // namespace hangscope

#endif
