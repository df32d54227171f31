// What a perf.data says about a hang: who stands still, and how. Without memory and stacks little
// is certain: what sleeps may sleep for a reason, so only those who want to run and do not, and
// those whom no signal would wake, count.
#ifndef HANGSCOPE_PERF_PERF_ANALYSIS_H
#define HANGSCOPE_PERF_PERF_ANALYSIS_H

#include <string>
#include <vector>

#include "base/clock.h"
#include "model/finding.h"
#include "perf/perf_activity.h"

namespace hangscope {

enum class PerfThreadState { kRunning, kWaitsForCpu, kBlocked, kEnded, kUnknown };

// Where a thread was when the recording ended, and since when.
struct PerfThreadView {
  const PerfThreadActivity* thread = nullptr;
  PerfThreadState state = PerfThreadState::kUnknown;
  TimeNs since = -1;  // -1: not known
  char letter = ' ';  // of kBlocked: as ps has it; '?': not known
  // of a whole machine: not of the program that was started with the recording
  bool is_other = false;
};

struct PerfFinding : SourceFinding {
  PerfFinding() { source = Source::kPerf; }
  int tid = -1;  // -1: of all
};

struct PerfAnalysis {
  // Of the program first; there, running, waiting for a CPU, blocked, others; in each, the newest
  // first.
  std::vector<PerfThreadView> threads;
  std::vector<PerfFinding> findings;  // the worst first; bounded
  // A sentence: why the records cannot say whether anybody hangs. Empty: they can.
  std::string cannot_tell;
};

struct PerfQuestion {
  TimeNs stall = 0;         // what lasts so long is a hang
  TimeNs end = 0;           // when it was asked: the trigger; else the newest record
  std::string command;      // that was recorded, as the file has it
  int process = 0;          // its own; 0: not known, and those of its name are taken for it
  bool has_traces = false;  // of hardware
};

// `activity` must outlive the result.
PerfAnalysis AnalysePerf(const PerfActivity& activity, const PerfQuestion& question);

}  // namespace hangscope

#endif
