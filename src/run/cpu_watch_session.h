// `hangscope watch pid:N --cpu`: records what the kernel does with a process that runs already, and
// takes snapshots of it, with its scope where it has one.
#ifndef HANGSCOPE_RUN_CPU_WATCH_SESSION_H
#define HANGSCOPE_RUN_CPU_WATCH_SESSION_H

#include <sys/types.h>

#include "run/observer_options.h"

namespace hangscope {

struct CpuWatchOptions {
  pid_t pid = 0;
  CpuRecorderOptions recorder;
  ObserverOptions observer;  // its prefix is the snapshots'
  TimeNs length = 0;         // 0: until the process ends
};

enum class CpuWatchEnd { kProcessEnded, kTimeOver, kInterrupted };

// Until the process ends, the time is over, or a signal comes other than SIGUSR1 and SIGUSR2, which
// take a snapshot. Fails where nothing of the process can be recorded.
Result<CpuWatchEnd> WatchCpus(const Environment& environment, const CpuWatchOptions& options);

}  // namespace hangscope

#endif
