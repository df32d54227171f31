// Who ran when, as the switches of a recording tell it.
#ifndef HANGSCOPE_PERF_PERF_RUNS_H
#define HANGSCOPE_PERF_PERF_RUNS_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "perf/perf_activity.h"
#include "window/find_window.h"

namespace hangscope {

struct PerfRuns {
  std::vector<TaskRun> runs;  // in no order
  bool left_out = false;      // there were more: these are the newest
};

// From coming to leaving, or to `until`; of wanted threads, and at most `most`. Takes no more
// memory than these and what of `switches` is not in the order of time.
PerfRuns FindRuns(const std::map<int64_t, PerfSwitches>& switches, TimeNs until, size_t most,
                  const std::function<bool(int tid)>& is_wanted);

}  // namespace hangscope

#endif
