// hangscope why --all-hung: which of all processes of this machine hang.
#ifndef HANGSCOPE_WHY_WHY_ALL_H
#define HANGSCOPE_WHY_WHY_ALL_H

#include <functional>
#include <memory>

#include "proc/proc_folder.h"
#include "proc/process_inspector.h"
#include "why/why.h"

namespace hangscope {

struct WhyAllOptions {
  TimeNs apart = 50 * kMillisecond;  // the first two looks; who runs in between is not stuck
  bool stop = true;                  // threads may be stopped for a moment
  bool json = false;
  size_t columns = 80;
  // From 0 to 1, how far it is; called often.
  std::function<void(double)> progress = [](double) {};
};

// A new one for each process: what it keeps of one is of no use for the next.
using OpenInspector = std::function<Result<std::unique_ptr<ProcessInspector>>()>;

// Looks twice at all processes at once, without stopping anybody, and then at each of which these
// looks do not show that it works or waits for the outside, as `why pid:N` does. What is stopped by
// a signal or a debugger is counted, and no hang. Fails where /proc shows no process.
Result<WhyReport> AskWhyAllHung(Clock& clock, const ProcFolder& proc, const OpenInspector& open,
                                const WhyAllOptions& options);

}  // namespace hangscope

#endif
