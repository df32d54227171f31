// Why a process hangs, from looks at it and at those it waits for. Pure; docs/verdicts.md has the
// rules.
#ifndef HANGSCOPE_PROCESS_PROCESS_VERDICT_H
#define HANGSCOPE_PROCESS_PROCESS_VERDICT_H

#include <map>
#include <vector>

#include "model/process.h"
#include "process/process_graph.h"

namespace hangscope {

struct ProcessJudgement {
  std::vector<ProcessFinding> findings;  // the surest first
  std::map<int, ThreadStand> stands;     // by thread

  bool IsBad() const;
};

// `looks`: one or more at the same process, the newest last. From one alone nothing is certain: who
// waits in it may have been about to go on. A thread that ran between two is not stuck.
ProcessJudgement JudgeProcess(const std::vector<SystemSample>& looks);

}  // namespace hangscope

#endif
