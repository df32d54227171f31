// Which tasks ran inside a window, and whether rings cover all of it.
#ifndef HANGSCOPE_WINDOW_TASK_COVERAGE_H
#define HANGSCOPE_WINDOW_TASK_COVERAGE_H

#include <vector>

#include "window/ring_timeline.h"

namespace hangscope {

// `timelines`: of the input's rings, in their order. A task that only held spans name counts as
// never continuous where nobody knows its runs. `wants_runs`: TaskCoverage::ran is filled.
std::vector<TaskCoverage> CoverTasks(const WindowInput& input,
                                     const std::vector<RingTimeline>& timelines, TimeSpan window,
                                     bool wants_runs);

}  // namespace hangscope

#endif
