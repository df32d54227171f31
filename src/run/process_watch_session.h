// `hangscope watch pid:N` of any program that runs already, with or without a scope: its threads
// and those of all that descends from it are watched, and its mailboxes beside, as `hangscope run`
// does with a program that it started; with --cpu, what the kernel does with it goes into the
// snapshots.
#ifndef HANGSCOPE_RUN_PROCESS_WATCH_SESSION_H
#define HANGSCOPE_RUN_PROCESS_WATCH_SESSION_H

#include <sys/types.h>

#include <string>

#include "act/hang_action.h"
#include "observe/observer_options.h"

namespace hangscope {

struct ProcessWatchOptions {
  pid_t pid = 0;
  bool record_cpus = false;
  CpuRecorderOptions recorder;
  ObserverOptions observer;  // its prefix is the snapshots'
  HangAction on_hang;
  InheritedSignals signals;   // that its command gets
  std::string junit_path;     // empty: none
  bool exit_on_hang = false;  // ends at the first, once that is done
  TimeNs length = 0;          // 0: until the process ends
};

struct ProcessWatchOutcome {
  bool interrupted = false;
  bool found = false;  // a hang, or that a signal killed the process
  Status status;       // why it cannot be watched, if so
};

// Until the process ends, the time is over, or a signal comes other than SIGUSR1 and SIGUSR2, which
// take a snapshot. Fails where there is no such process, nothing of it can be recorded where that
// is wanted, or, with kUsage, where it is not to be ended though a hang is to end it.
ProcessWatchOutcome WatchProcess(const Environment& environment,
                                 const ProcessWatchOptions& options);

}  // namespace hangscope

#endif
