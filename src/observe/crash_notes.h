// What is said of crashes: where the program or a process that it started crashed, from the core
// dump that the kernel left, else why nobody knows.
#ifndef HANGSCOPE_OBSERVE_CRASH_NOTES_H
#define HANGSCOPE_OBSERVE_CRASH_NOTES_H

#include <string>
#include <vector>

#include "base/clock.h"
#include "model/verdict.h"
#include "proc/crash_listener.h"

namespace hangscope {

// The program itself, `pid`, which was started as `command` at `started` (wall), has crashed.
void AddProgramCrash(int pid, const std::vector<std::string>& command, TimeNs started,
                     Verdict* verdict);

// Crashes of processes that the program started. They make no hang and no failure: whether they
// matter, the program's own end tells.
class CrashNotes {
 public:
  // `started`: of the program (wall); `after`: how long after its start the crash came. Returns a
  // sentence for the user; empty: enough of them have been reported.
  std::string Add(const ProcessCrash& crash, TimeNs started, TimeNs after);
  // To what lies behind the verdict: their sentences and stacks.
  void AddTo(Verdict* verdict) const;

 private:
  std::vector<std::string> sentences_;
  std::vector<SubjectStack> stacks_;
  uint64_t unreported_ = 0;
};

}  // namespace hangscope

#endif
