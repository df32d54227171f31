// What `run`, `tee` and `watch` of any process have in common once they record: the heartbeat, the
// verdict of all sources together, and the snapshots that somebody or something asks for.
#ifndef HANGSCOPE_OBSERVE_OBSERVER_H
#define HANGSCOPE_OBSERVE_OBSERVER_H

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "act/hang_tracker.h"
#include "cpu/history_recorder.h"
#include "observe/analysis.h"
#include "observe/crash_notes.h"
#include "observe/narrator.h"
#include "observe/observer_options.h"
#include "observe/recording.h"
#include "observe/scope_finder.h"
#include "observe/scope_watch.h"
#include "observe/snapshot_requests.h"
#include "observe/snapshot_taker.h"
#include "observe/stream_warnings.h"
#include "observe/thread_watch.h"

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
  // `child` may say that nothing is known. Returns true once for each hang, after it was reported:
  // when --act-on covers what is known of it. `has_ended`: asked just before a hang is reported or
  // acted on, whether the program has ended just now; then neither is done.
  bool Tick(const ChildView& child, int pid, const std::function<bool()>& has_ended);
  // The program is being ended: what it does from now on is no news.
  void StopJudging() { judges_ = false; }
  // The command of --on-hang runs, and may attach to the program's threads.
  void NoteAttach() {
    if (thread_watch_ != nullptr) thread_watch_->NoteAttach();
  }
  // True when that signal asks for a snapshot.
  bool OnSignal(int number);
  // Of a process that the program started.
  void OnCrash(const ProcessCrash& crash);
  // The program ended; its streams perhaps not yet.
  void OnExit(const ChildExit& exit);
  // After the streams ended. `pid`: as for Tick, which a short program never saw.
  Verdict Conclude(const ChildView& child, int pid);

  // The hang that was reported last, if any.
  const Verdict* last_hang() const { return hang_.last(); }
  bool hang_now() const { return hang_.is_on(); }
  // The program was given so long, and has not ended: says what it does, and takes a snapshot where
  // there is none of the hang that is on. To be called once.
  void ReportTimeout(TimeNs after);
  // What was said then.
  const Verdict& at_timeout() const { return at_timeout_; }
  const std::string& last_snapshot() const { return snapshots_.last(); }
  // The one that Conclude took for the program's end, and what is in it; or empty.
  const std::string& exit_snapshot() const { return exit_snapshot_; }
  const std::string& exit_contents() const { return exit_contents_; }

 private:
  bool TickNow(const ChildView& child, int pid, const std::function<bool()>& has_ended);
  bool FollowHang(Verdict verdict, const Verdict& streams, const std::function<bool()>& has_ended);
  void Report(HangTracker::News news, const Verdict& verdict);
  void FindScope(const ChildView& child, const Verdict& streams);
  void NoteAbsence();
  bool WasStoppedInHang() const;
  void SampleScope();
  void SampleThreads(const ChildView& child, const Verdict& streams);
  Verdict Judge(const Verdict& streams) const;
  Verdict VerdictNow() const { return Judge(analysis_.verdict()); }
  Verdict Explained(const Verdict& judged);
  bool IsBeatDue() const { return clock_.Monotonic() >= next_beat_; }
  void ReportCode();
  void Beat(const ChildView& child, const Verdict& verdict);
  void ReportHang();
  TimeNs StartWall() const { return clock_.Wall() - (clock_.Monotonic() - start_); }
  std::vector<LastOutput> LastOutputBy(const std::string& snapshot) const;
  void ReportBetter();
  void ReportEndOfHang(const Verdict& verdict);
  void ReportPutOff();
  void SnapshotAllOf(const std::vector<DueSnapshot>& due, const Verdict& judged);
  RecorderStatus StatusNow();
  // For snapshots: what the threads do; empty: nobody looked.
  std::string ThreadsSeen() const {
    return thread_watch_ != nullptr ? thread_watch_->details() : std::string();
  }

  FileSystem& files_;
  Clock& clock_;
  const CodeSource* const elf_;
  const ObserverOptions options_;
  const Recording& recording_;
  const TimeNs start_;
  Narrator narrator_;
  Analysis analysis_;
  SnapshotTaker snapshots_;
  StreamWarnings warnings_;
  SnapshotRequests requests_;
  std::unique_ptr<ScopeFinder> scope_finder_;  // null: it is not searched for
  // null: none was asked for, or nobody knows yet of which process
  std::unique_ptr<ScopeWatch> scope_watch_;
  // null: there is no process, or nobody looks at it
  std::unique_ptr<ThreadWatch> thread_watch_;
  // null: it is not permitted, or not wanted
  const std::unique_ptr<HistoryRecorder> history_;
  TimeNs ticked_;               // monotonic; when the latest Tick began; at first, the start
  TimeNs counts_from_ = 0;      // likewise: before that, nobody could run, or nobody looked
  TimeNs stopped_at_ = 0;       // monotonic: the program was last seen stopped while a hang was on
  TimeNs suspected_since_ = 0;  // monotonic: the streams look like a hang; 0: they do not
  int pid_ = 0;
  const TimeNs beat_interval_;
  TimeNs next_beat_;
  TimeNs last_beat_;
  TimeNs last_cpu_ = 0;
  std::vector<uint64_t> last_totals_;
  HangTracker hang_;
  CrashNotes crashes_;
  bool elf_changed_ = false;  // and that was said
  bool elf_failed_ = false;   // likewise
  bool judges_ = true;
  std::string hang_snapshot_;  // its folder
  Verdict at_timeout_;
  std::string exit_snapshot_;
  std::string exit_contents_;
};

}  // namespace hangscope

#endif
