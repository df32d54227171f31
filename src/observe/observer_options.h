// What the user wants of a recorder, and the world that it works in.
#ifndef HANGSCOPE_OBSERVE_OBSERVER_OPTIONS_H
#define HANGSCOPE_OBSERVE_OBSERVER_OPTIONS_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "code/code_source.h"
#include "cpu/cpu_recorder.h"
#include "cpu/history_recorder.h"
#include "model/verdict.h"
#include "observe/narrator.h"
#include "observe/triggers.h"
#include "proc/child_process.h"
#include "proc/process_inspector.h"
#include "scope/scope_view.h"
#include "snapshot/window_finder.h"
#include "stream/line_matcher.h"
#include "stream/place_rule.h"
#include "target/target_spec.h"

namespace hangscope {

// From which rings a report says what threads did before they stopped.
enum class HistoryOf {
  kNobody,
  kThreads,  // each has one of its own, where the kernel permits it
  kCpus,     // those that go into snapshots
};

// Which ends of the program a snapshot is taken of.
enum class OnExit {
  kNone,
  kFailure,        // it died, or returned another status than 0
  kUnlessStopped,  // likewise, but not if hangscope had passed SIGTERM, SIGINT or SIGQUIT on
  kAlways,
};

struct ObserverOptions {
  std::string prefix;  // of the snapshots
  TimeNs stall = 10 * kSecond;
  TimeNs heartbeat = 5 * kSecond;
  ActOn act_on;              // which hangs the caller acts on
  bool acts = false;         // it does, beyond a snapshot
  TimeNs expect_output = 0;  // silence of so long is a hang, whatever it waits for; 0: it is not
  bool closed = false;       // nobody outside will come: who waits for the outside hangs
  bool snapshot_on_hang = true;
  OnExit on_exit = OnExit::kFailure;
  TriggerOptions triggers;
  std::shared_ptr<const LinePatterns> patterns;  // the triggers' compiled; may be null
  int max_snapshots = 2;
  // PREFIX.snapshot of the one stream, too; takes the place of a folder
  bool plain_snapshot = false;
  uint64_t bound_bytes = 0;  // of a ring, for that
  std::string elf_path;      // for the manifest
  std::string elf_copy;      // a path of the same file as it was at the start

  // The scope of process `pid`.
  ScopeSource ScopeOf(int pid) const {
    return {scope.TargetOf(pid), elf_path, false, open_scope, elf_copy};
  }
  ScopePlace scope;  // the program's
  HistoryOf history = HistoryOf::kNobody;
  // How it is read, where not by that name; may be empty.
  std::function<Result<std::unique_ptr<Target>>()> open_scope;
  WindowChoice window;  // that snapshots declare, where CPUs are recorded
  std::vector<std::string> command;
};

// The world as a session sees it; the command line provides it.
struct Environment {
  FileSystem* files = nullptr;
  Clock* clock = nullptr;
  CodeSource* elf = nullptr;  // may be null
  // the inspector works in a process of its own: libdw may crash there
  bool look_beside = false;
  const PlaceRule* place_rule = nullptr;  // what a place of a log is; may be null
  // may be null: nobody looks at the threads of a silent program
  ProcessInspector* inspector = nullptr;
  int signal_fd = -1;          // a signalfd
  std::string guard_program;   // this hangscope (observe/standby.h); empty: no guards
  std::string control_folder;  // for the control socket; empty: none
  // How programs are looked for and started; tests put a fake child here.
  std::function<Status(const std::string&)> check_program = CheckProgram;
  std::function<Result<std::unique_ptr<ChildProcess>>(const ChildOptions&)> start_child =
      StartChild;
  // How what the kernel does with a process is recorded; tests put a fake recorder here.
  std::function<Result<std::unique_ptr<CpuRecorder>>(Clock&, pid_t, const CpuRecorderOptions&)>
      record_cpus = StartCpuRecorder;
  std::function<std::unique_ptr<HistoryRecorder>(Clock&, TimeNs)> keep_history =
      StartHistoryRecorder;
  NarratorOptions narrator;
};

}  // namespace hangscope

#endif
