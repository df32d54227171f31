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

// `looks` are those that `graph` was made of; `stuck`: its nodes that nobody who moves could
// release; `findings`: what is said of them.
ProcessStanding StandingOf(const std::vector<SystemSample>& looks, const ProcessGraph& graph,
                           const std::vector<bool>& stuck,
                           const std::vector<ProcessFinding>& findings);

}  // namespace hangscope

#endif
