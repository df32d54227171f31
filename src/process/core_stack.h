// The stack of the thread that crashed, from the core dump that the kernel wrote of its process.
#ifndef HANGSCOPE_PROCESS_CORE_STACK_H
#define HANGSCOPE_PROCESS_CORE_STACK_H

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace hangscope {

struct CrashStack {
  std::string core;                 // the dump's path
  int thread = 0;                   // that got the signal
  std::vector<std::string> frames;  // "function  file.c:12", the innermost first
};

// Whether the kernel writes a core dump of a process that such a signal ends, where it may.
bool WritesCore(int signal);

// Where the kernel writes them: /proc/sys/kernel/core_pattern.
std::string CorePattern();

// Of process `pid`, which such a signal has ended in `folder` (empty: this process's), and which
// was started at `start` (wall) or later. `pattern`: as CorePattern. Only a dump that names this
// process, and was written since `start`, is read, in a process of its own; it stays. Fails where
// there is none, with a sentence on how to get one where that is known.
Result<CrashStack> ReadCrashStack(const std::string& pattern, int pid, TimeNs start,
                                  const std::string& folder = {});

}  // namespace hangscope

#endif
