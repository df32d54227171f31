// What `run`, `tee` and `watch --cpu` have in common once they record: the heartbeat, the verdict
// of all sources together, and the snapshots that somebody or something asks for.
#ifndef HANGSCOPE_RUN_OBSERVER_H
#define HANGSCOPE_RUN_OBSERVER_H

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/analysis.h"
#include "run/narrator.h"
#include "run/observer_options.h"
#include "run/recording.h"
#include "run/scope_watch.h"
#include "run/snapshot_requests.h"
#include "run/snapshot_taker.h"
#include "run/stream_warnings.h"

namespace hangscope {

// One thread.
class Observer {
 public:
  Observer(const Environment& environment, const ObserverOptions& options,
           const Recording& recording, TimeNs start, TimeNs start_wall);

  Narrator& narrator() { return narrator_; }
  Analysis& analysis() { return analysis_; }
  // From now on the rings of `recorder` go into every snapshot. Reports what it could not record.
  void RecordCpus(std::unique_ptr<CpuRecorder> recorder) {
    snapshots_.RecordCpus(std::move(recorder));
  }
  TimeNs start() const { return start_; }

  // For poll: something to do for Tick; -1: never.
  int control_fd() const { return requests_.event_fd(); }

  // To be called a few times a second: beats, reports losses, notices hangs, takes
  // the snapshots that are due.
  // `child` may say that nothing is known. Returns true once for each new hang,
  // after it was reported.
  bool Tick(const ChildView& child, int pid);
  // True when that signal asks for a snapshot.
  bool OnSignal(int number);
  // The program ended; its streams perhaps not yet.
  void OnExit(const ChildExit& exit);
  // After the streams ended.
  Verdict Conclude(const ChildView& child);

  // The hang that was reported last, if any.
  const Verdict* last_hang() const { return last_hang_ ? &*last_hang_ : nullptr; }
  bool hang_now() const { return hang_now_; }
  const std::string& last_snapshot() const { return snapshots_.last(); }
  // The one that Conclude took for the program's end, and what is in it; or empty.
  const std::string& exit_snapshot() const { return exit_snapshot_; }
  const std::string& exit_contents() const { return exit_contents_; }

 private:
  void SampleScope();
  void SampleThreads(const Verdict& verdict);
  Verdict VerdictNow() const;
  bool IsBeatDue() const { return clock_.Monotonic() >= next_beat_; }
  void ReportCode();
  void Beat(const ChildView& child, const Verdict& verdict);
  void ReportHang(const Verdict& verdict);
  void ReportEndOfHang(const Verdict& verdict);
  void ReportPutOff();
  void SnapshotAllOf(const std::vector<DueSnapshot>& due, const Verdict& verdict);
  RecorderStatus StatusNow();

  FileSystem& files_;
  Clock& clock_;
  ProcessInspector* const inspector_;
  const bool look_beside_;
  const CodeSource* const elf_;
  const ObserverOptions options_;
  const Recording& recording_;
  const TimeNs start_;
  Narrator narrator_;
  Analysis analysis_;
  SnapshotTaker snapshots_;
  StreamWarnings warnings_;
  SnapshotRequests requests_;
  // null: none was asked for, or nobody knows yet of which process
  std::unique_ptr<ScopeWatch> scope_watch_;
  int pid_ = 0;
  const TimeNs beat_interval_;
  TimeNs next_beat_;
  TimeNs last_beat_;
  TimeNs last_cpu_ = 0;
  std::vector<uint64_t> last_totals_;
  bool hang_now_ = false;
  bool elf_changed_ = false;                // and that was said
  bool elf_failed_ = false;                 // likewise
  std::vector<ProcessFinding> of_threads_;  // of the hang that is on
  // likewise: all of them, for its snapshots; empty: not sampled
  std::string threads_seen_;
  std::optional<Verdict> last_hang_;
  std::string exit_snapshot_;
  std::string exit_contents_;
};

}  // namespace hangscope

#endif
