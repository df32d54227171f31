// Which tasks ran inside a window, and whether rings cover all of it.
#ifndef HANGSCOPE_WINDOW_TASK_COVERAGE_H
#define HANGSCOPE_WINDOW_TASK_COVERAGE_H

#include <vector>

#include "window/ring_timeline.h"

namespace hangscope {

// `timelines`: of the input's rings, in their order. A task that only held spans name counts as
// never continuous where nobody knows its runs.
std::vector<TaskCoverage> CoverTasks(const WindowInput& input,
                                     const std::vector<RingTimeline>& timelines, TimeSpan window);

}  // namespace hangscope

#endif
