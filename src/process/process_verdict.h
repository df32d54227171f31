// Why a process hangs, from looks at it and at those it waits for. Pure; docs/verdicts.md has the
// rules.
#ifndef HANGSCOPE_PROCESS_PROCESS_VERDICT_H
#define HANGSCOPE_PROCESS_PROCESS_VERDICT_H

#include <map>
#include <string>
#include <vector>

#include "model/process.h"
#include "process/process_graph.h"

namespace hangscope {

// In all looks the same, of a thread of which it is known who could end it.
struct KnownWait {
  int thread = 0;
  std::vector<int> whom;  // threads; never empty
  std::string doubt;      // why others might, too; empty: nobody else can
};

struct ProcessJudgement {
  std::vector<ProcessFinding> findings;  // the surest first
  std::map<int, ThreadStand> stands;     // by thread
  ProcessStanding standing;
  std::vector<KnownWait> waits;  // not of all that there are, where there are very many
  std::vector<int> still;        // threads that slept the same sleep in all looks

  bool IsBad() const;
};

// `looks`: one or more at the same process, the newest last. From one alone nothing is certain: who
// waits in it may have been about to go on. A thread that ran between two is not stuck.
ProcessJudgement JudgeProcess(const std::vector<SystemSample>& looks);

}  // namespace hangscope

#endif
