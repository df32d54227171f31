// How the asked processes and those of their children that were looked at stand: who moves, who
// waits for what comes from outside, and of whom that is not known. Pure.
#ifndef HANGSCOPE_PROCESS_PROCESS_STANDING_H
#define HANGSCOPE_PROCESS_PROCESS_STANDING_H

#include <set>
#include <vector>

#include "model/process.h"
#include "process/process_graph.h"

namespace hangscope {

// Whom a look asks about.
std::set<int> AskedProcesses(const SystemSample& look);

// Whether a thread that moves may do no more than nap and look, as far as two looks tell: on a busy
// machine it may wait for a CPU in both. One between them, or soon after, that sees it nap tells.
bool MayBeTicker(const std::vector<SystemSample>& looks, int tid);

// `looks` are those that `graph` was made of; `stuck`: its nodes that nobody who moves could
// release; `findings`: what is said of them.
ProcessStanding StandingOf(const std::vector<SystemSample>& looks, const ProcessGraph& graph,
                           const std::vector<bool>& stuck,
                           const std::vector<ProcessFinding>& findings);

}  // namespace hangscope

#endif
