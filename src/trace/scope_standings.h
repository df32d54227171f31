// How a scope's cores and tasks stood at the end: as their mailboxes and records say.
#ifndef HANGSCOPE_TRACE_SCOPE_STANDINGS_H
#define HANGSCOPE_TRACE_SCOPE_STANDINGS_H

#include <vector>

#include "device/live_device.h"
#include "model/trace.h"
#include "scope/live_scope.h"
#include "snapshot/scope_times.h"

namespace hangscope {

// Of what `view` has looked at once at least. What cannot be read is left out.
std::vector<TraceStanding> StandingsOf(LiveScope& view, const ScopeTimes& times);
// Likewise of a device of several memories; its cores by its own numbers, a task's behind
// `task_shift` times the place of its memory.
std::vector<TraceStanding> StandingsOf(LiveDevice& device, int64_t task_shift);
// Where there are no mailboxes: of the tasks' records alone.
std::vector<TraceStanding> StandingsOf(const std::vector<TaskWait>& tasks, const WatchNames& names,
                                       const ScopeTimes& times);

}  // namespace hangscope

#endif
