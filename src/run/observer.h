// What `run` and `tee` have in common once bytes flow: heartbeat, verdict,
// snapshots.
#ifndef HANGSCOPE_RUN_OBSERVER_H
#define HANGSCOPE_RUN_OBSERVER_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "code/code_source.h"
#include "proc/child_process.h"
#include "proc/process_inspector.h"
#include "run/analysis.h"
#include "run/narrator.h"
#include "run/recording.h"
#include "run/report_writer.h"
#include "run/scope_watch.h"
#include "run/snapshot_requests.h"
#include "snapshot/cpu_recording.h"
#include "snapshot/plain_snapshot.h"
#include "snapshot/scope_capture.h"
#include "snapshot/scope_clock.h"
#include "snapshot/scope_rings.h"
#include "snapshot/snapshots.h"

namespace hangscope {

struct ObserverOptions {
  std::string prefix;  // of the snapshots
  TimeNs stall = 10 * kSecond;
  TimeNs heartbeat = 5 * kSecond;
  bool snapshot_on_hang = true;
  bool snapshot_on_exit = true;  // when it died, or returned another status than 0
  TriggerOptions triggers;
  std::shared_ptr<const LinePatterns> patterns;  // the triggers' compiled; may be null
  int max_snapshots = 2;
  // PREFIX.snapshot of the one stream, too; takes the place of a folder
  bool plain_snapshot = false;
  uint64_t bound_bytes = 0;  // of a ring, for that
  std::string elf_path;      // for the manifest
  // where the program's scope is, as for hangscope show; empty: nowhere
  std::string scope;
  WindowChoice window;  // that snapshots declare, where CPUs are recorded
  std::vector<std::string> command;
};

// The world as a session sees it; the command line provides it.
struct Environment {
  FileSystem* files = nullptr;
  Clock* clock = nullptr;
  CodeSource* elf = nullptr;              // may be null
  const PlaceRule* place_rule = nullptr;  // what a place of a log is; may be null
  // may be null: nobody looks at the threads of a silent program
  ProcessInspector* inspector = nullptr;
  int signal_fd = -1;          // a signalfd
  std::string guard_program;   // this hangscope (run/guard.h); empty: no guards
  std::string control_folder;  // for the control socket; empty: none
  // How programs are looked for and started; tests put a fake child here.
  std::function<Status(const std::string&)> check_program = CheckProgram;
  std::function<Result<std::unique_ptr<ChildProcess>>(const ChildOptions&)> start_child =
      StartChild;
  // How what the kernel does with a process is recorded; tests put a fake recorder here.
  std::function<Result<std::unique_ptr<CpuRecorder>>(Clock&, pid_t, const CpuRecorderOptions&)>
      record_cpus = StartCpuRecorder;
  NarratorOptions narrator;
};

// One thread.
class Observer {
 public:
  Observer(const Environment& environment, const ObserverOptions& options,
           const Recording& recording, TimeNs start, TimeNs start_wall);

  Narrator& narrator() { return narrator_; }
  Analysis& analysis() { return analysis_; }
  // From now on the rings of `recorder` go into every snapshot. Tells what it could not record.
  void RecordCpus(std::unique_ptr<CpuRecorder> recorder);
  TimeNs start() const { return start_; }

  // For poll: something to do for Tick; -1: never.
  int control_fd() const { return requests_.event_fd(); }

  // To be called a few times a second: beats, tells losses, notices hangs, takes
  // the snapshots that are due.
  // `child` may say that nothing is known. Returns true once for each new hang,
  // after it was told.
  bool Tick(const ChildView& child, int pid);
  // True when that signal asks for a snapshot.
  bool OnSignal(int number);
  // The program ended; its streams perhaps not yet.
  void OnExit(const ChildExit& exit);
  // After the streams ended.
  Verdict Conclude(const ChildView& child);

  // The hang that was told last, if any.
  const Verdict* last_hang() const { return hang_told_ ? &last_hang_ : nullptr; }
  bool hang_now() const { return hang_now_; }
  const std::string& last_snapshot() const { return last_snapshot_; }
  // The one that Conclude took for the program's end, and what is in it; or empty.
  const std::string& exit_snapshot() const { return exit_snapshot_; }
  const std::string& exit_contents() const { return exit_contents_; }

 private:
  void LookAtScope(int pid);
  void LookAtThreads(const Verdict& verdict);
  // Of streams and scope together.
  Verdict VerdictNow() const;
  void Beat(const ChildView& child, const Verdict& verdict);
  // What a stream has to put up with, and which of it was told.
  struct Troubles {
    bool failing = false;
    bool plain = false;
    uint64_t not_passed_on = 0;
    uint64_t lost = 0;
  };

  void TellTroubles(bool all);
  void TellTroublesOf(const RecordedStream& stream, bool all, Troubles* told);
  void TellHang(const Verdict& verdict);
  void FinishPlainSnapshot();
  void TellReports();
  void TellPutOff();
  void TellUnseen(bool all);
  void TakeDue(const std::vector<DueSnapshot>& due, const Verdict& verdict);
  // The folder, or why there is none after that was told.
  Result<std::string> TakeSnapshot(const DueSnapshot& due, const Verdict& verdict, bool with_text);
  std::vector<std::pair<std::string, std::string>> TakeScope(Manifest* manifest);
  bool CaptureCpus();
  // The window over what has been put into `folder`, and the CPUs' rings.
  Status AddWindow(const std::string& folder, bool has_cpus, bool since_last, Manifest* manifest);
  ScopeRings ScopeRingsIn(const std::string& folder, Manifest* manifest);
  Manifest NewManifest(const DueSnapshot& due, const Verdict& verdict);
  RecorderStatus StatusNow();
  std::string AbsolutePath(const std::string& path) const;

  FileSystem& files_;
  Clock& clock_;
  ProcessInspector* const inspector_;
  const ObserverOptions options_;
  const Recording& recording_;
  const TimeNs start_;
  const TimeNs start_wall_;
  Narrator narrator_;
  Analysis analysis_;
  Snapshots snapshots_;
  std::unique_ptr<PlainSnapshot> plain_snapshot_;
  ReportWriter reports_;
  SnapshotRequests requests_;
  WindowFinder windows_;
  std::unique_ptr<CpuRecording> cpus_;  // null: they are not recorded
  ScopeClock scope_clock_;
  TimeNs scope_read_at_ = 0;             // monotonic; the latest snapshot's
  std::unique_ptr<ScopeCapture> scope_;  // null: none was asked for
  // null: none was asked for, or nobody knows yet of which process
  std::unique_ptr<ScopeWatch> scope_watch_;
  const std::string absolute_folder_;  // of the prefix
  uint64_t snapshots_taken_ = 0;
  bool unseen_told_ = false;
  int pid_ = 0;
  TimeNs beat_interval_;
  TimeNs next_beat_;
  TimeNs last_beat_;
  TimeNs last_cpu_ = 0;
  std::vector<uint64_t> last_totals_;
  std::vector<Troubles> told_;  // by stream
  bool hang_now_ = false;
  std::vector<ProcessFinding> of_threads_;  // of the hang that is on
  // likewise: all of them, for its snapshots; empty: nobody looked
  std::string threads_seen_;
  bool hang_told_ = false;
  Verdict last_hang_;
  std::string last_snapshot_;
  std::string last_contents_;
  std::string exit_snapshot_;
  std::string exit_contents_;
};

}  // namespace hangscope

#endif
