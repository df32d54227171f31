// `hangscope run`: start a program, record it, watch it.
#ifndef HANGSCOPE_RUN_RUN_SESSION_H
#define HANGSCOPE_RUN_RUN_SESSION_H

#include <string>
#include <vector>

#include "act/hang_action.h"
#include "observe/drain.h"
#include "observe/observer_options.h"
#include "observe/recording.h"
#include "proc/child_process.h"
#include "proc/inherited_signals.h"
#include "ring/ring_format.h"

namespace hangscope {

struct RunStream {
  CapturedStream captured;
  PassthroughOptions passthrough;
};

struct RunOptions {
  ObserverOptions observer;  // its command is the one that is run
  std::string ring_prefix;   // rings are RING_PREFIX.STREAM
  std::string place;         // the folder of the rings, told where they are kept; empty: not told
  bool keep_rings = false;   // whatever the end; without, where there is something to look at
  RingGeometry geometry;
  StagingOptions stages;
  std::vector<RunStream> streams = {{{"stdout", 1}, {}}, {{"stderr", 2}, {}}};
  std::vector<std::string> launcher;  // words before the command, which they become by exec
  HangAction on_hang;
  TimeNs timeout = 0;        // after that the program is ended; 0: never
  std::string junit_path;    // empty: none
  std::string junit_name;    // of the test case; empty: the command
  bool record_cpus = false;  // what the kernel does with the program goes into snapshots, too
  CpuRecorderOptions cpus;
  InheritedSignals signals;
};

// Exit statuses after timeout(1) and env(1).
enum RunExit {
  kRunHang = 124,
  kRunFailed = 125,
  kRunCannotExecute = 126,
  kRunNotFound = 127,
  kRunSignalBase = 128,
};

struct RunOutcome {
  int exit_status = kRunFailed;
  Status status;  // why it could not be run, if so
  // The terminal's, which ended the program: who waits for hangscope is to see that, too. 0: none.
  int terminal_signal = 0;
  bool keep_rings = false;  // as asked for; or for a hang, a snapshot, an end that is no success
};

RunOutcome RunProgram(const Environment& environment, const RunOptions& options);

}  // namespace hangscope

#endif
