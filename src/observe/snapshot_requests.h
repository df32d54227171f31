// Everything that asks for snapshots while a run goes on: lines that match, the
// rate, silence, signals, the program's end, clients of the control socket.
#ifndef HANGSCOPE_OBSERVE_SNAPSHOT_REQUESTS_H
#define HANGSCOPE_OBSERVE_SNAPSHOT_REQUESTS_H

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/remote_control.h"
#include "observe/line_watch.h"
#include "observe/recording.h"
#include "observe/triggers.h"

namespace hangscope {

// One thread.
class SnapshotRequests {
 public:
  using AnnounceStatus = std::function<RecorderStatus()>;

  // `recording` is draining already; it and `clock` outlive this. `patterns` may be null.
  SnapshotRequests(FileSystem& files, Clock& clock, const Recording& recording,
                   const TriggerOptions& options, std::shared_ptr<const LinePatterns> patterns,
                   TimeNs start);

  Status OpenControl(const std::string& folder) { return remote_.Open(folder); }
  int event_fd() const { return remote_.event_fd(); }

  void OnSignal(const std::string& name);
  void OnExit(const std::string& how);
  // To be called a few times a second.
  void Poll(const AnnounceStatus& status);
  // Those to be taken now; each is owed a Taken.
  std::vector<DueSnapshot> DrainDue() { return triggers_.DrainDue(); }
  // Those that wait for their --post since the last call.
  std::vector<DueSnapshot> DrainPutOff() { return triggers_.DrainPutOff(); }
  // `folder` is absolute.
  void Answer(const DueSnapshot& snapshot, const Result<std::string>& folder);

  // The streams ended: looks at the rest of them; all that is still wanted.
  std::vector<DueSnapshot> Finish(const AnnounceStatus& status);
  // Answers who still waits.
  void Close() { remote_.Close(); }

  uint64_t unseen_bytes() const { return lines_ == nullptr ? 0 : lines_->unseen_bytes(); }
  std::map<std::string, uint64_t> Suppressed() const { return triggers_.Suppressed(); }
  double bytes_per_second() const { return rate_.bytes_per_second(); }

 private:
  void SampleStreams();
  void FireOnLines();

  Clock& clock_;
  const Recording& recording_;
  const TriggerOptions options_;
  Triggers triggers_;
  RateMeter rate_;
  RemoteControl remote_;
  std::unique_ptr<LineWatch> lines_;
};

}  // namespace hangscope

#endif
