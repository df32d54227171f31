// Takes the snapshots of a recorder: the streams, the scope, the CPUs' rings and the threads, the
// window that they cover together, the manifest, and the report.
//
// One thread.
#ifndef HANGSCOPE_OBSERVE_SNAPSHOT_TAKER_H
#define HANGSCOPE_OBSERVE_SNAPSHOT_TAKER_H

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "device/live_device.h"
#include "observe/observer_options.h"
#include "observe/recording.h"
#include "observe/report_writer.h"
#include "snapshot/cpu_recording.h"
#include "snapshot/plain_snapshot.h"
#include "snapshot/scope_capture.h"
#include "snapshot/scope_clock.h"
#include "snapshot/scope_rings.h"
#include "snapshot/snapshots.h"

namespace hangscope {

class SnapshotTaker {
 public:
  // All of them outlive this. `start` and `start_wall` are the recording's.
  SnapshotTaker(FileSystem& files, Clock& clock, const ObserverOptions& options,
                const Recording& recording, Narrator& narrator, TimeNs start, TimeNs start_wall);

  // From now on the rings of `recorder` go into every snapshot. Reports what it could not record.
  void RecordCpus(std::unique_ptr<CpuRecorder> recorder);
  // What these say of each thread's last steps; nothing: they are not recorded, or cannot be read.
  std::optional<ThreadHistory> ReadHistory();
  // To be called a few times a second: follows the CPUs and the scope of the process `pid`, 0 while
  // there is none.
  void Tick(int pid);
  // From now on the scope there goes into every snapshot; of a place that is empty none does.
  void RecordScope(const ScopeSource& place);
  // From now on the memories of `device`, which outlives this, go into every snapshot.
  void RecordDevice(LiveDevice& device) { device_ = &device; }
  // Another start of the target, or another target in its place: its scope is looked for anew.
  void ForgetScope();
  bool found_scope() const { return scope_ != nullptr && scope_->found(); }

  // Returns the folder, or why there is none, which is reported, too. `threads`: what the threads
  // of the process wait for, as JSON Lines; empty: not sampled.
  Result<std::string> Take(const DueSnapshot& due, const Verdict& verdict,
                           const std::string& threads, bool with_text);
  // The snapshot that was taken last says from now on what is known better of it. Nothing where
  // none was taken, or it is gone: false then.
  bool AmendLast(const Verdict& verdict, const std::string& threads);
  // Why reports could not be written since the last call.
  void ReportUnwrittenReports();
  // Waits for PREFIX.snapshot.
  void FinishPlainSnapshot();
  // Waits for the reports.
  void FinishReports();

  uint64_t count() const { return count_; }                  // taken so far
  const std::string& last() const { return last_; }          // folder of the latest; empty: none
  const std::string& contents() const { return contents_; }  // of the latest, for the user
  // What the streams had printed last when it was taken.
  const std::vector<LastOutput>& last_output() const { return manifest_.verdict.last_output; }
  // As it was told there: it has the last branches of the threads that it blames, where they are
  // traced.
  const Verdict& last_verdict() const { return manifest_.verdict; }
  // Of a file beside the snapshots.
  std::string AbsolutePath(const std::string& path) const;

 private:
  using Parts = std::vector<std::pair<std::string, std::string>>;  // names and bytes

  void ShowWork(const char* what);
  Manifest NewManifest(const DueSnapshot& due, const Verdict& verdict);
  const std::string& ElfId();
  Parts CaptureScope(Manifest* manifest);
  bool CaptureCpus();
  std::vector<RingStore*> CatchUpStreams();
  ScopeRings ScopeRingsIn(const std::string& folder, const Manifest& manifest) const;
  Status AddWindow(const std::string& folder, bool has_cpus, bool since_last, Manifest* manifest);
  void TellLastBranches(const std::string& folder, Verdict* verdict);
  void WritePlainSnapshot(const std::string& folder, const Manifest& manifest);

  FileSystem& files_;
  Clock& clock_;
  const ObserverOptions& options_;
  const Recording& recording_;
  Narrator& narrator_;
  const TimeNs start_;
  const TimeNs start_wall_;
  const std::string absolute_folder_;  // of the prefix
  Snapshots snapshots_;
  std::unique_ptr<PlainSnapshot> plain_snapshot_;
  ReportWriter reports_;
  WindowFinder windows_;
  int pid_ = 0;
  std::unique_ptr<CpuRecording> cpus_;  // null: they are not recorded
  ScopeClock scope_clock_;
  TimeNs scope_read_at_ = 0;             // monotonic; the latest snapshot's
  std::unique_ptr<ScopeCapture> scope_;  // null: none was asked for, or found
  LiveDevice* device_ = nullptr;         // null: it is none
  std::optional<std::string> elf_id_;
  uint64_t count_ = 0;
  std::string last_;
  std::string contents_;
  Manifest manifest_;  // of the latest
};

}  // namespace hangscope

#endif
