// What others ask a recorder over its control socket: how it does, and for
// snapshots, which are answered once they are durable.
#ifndef HANGSCOPE_CONTROL_REMOTE_CONTROL_H
#define HANGSCOPE_CONTROL_REMOTE_CONTROL_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "control/control.h"
#include "snapshot/snapshot_syncer.h"

namespace hangscope {

// One thread.
class RemoteControl {
 public:
  struct SnapRequest {
    int ticket = 0;  // never 0; for Taken
    bool now = false;
    bool since_last = false;
  };

  explicit RemoteControl(FileSystem& files) : syncer_(files) {}

  // Without it, or when it failed, nobody ever asks.
  Status Open(const std::string& folder);
  // For poll; -1: none.
  int event_fd() const { return server_ == nullptr ? -1 : server_->event_fd(); }

  // Answers who asks how it does and who waits for what is durable now; returns
  // who wants a snapshot. Does not wait.
  std::vector<SnapRequest> Poll(TimeNs now, const std::function<RecorderStatus()>& status);
  // `ticket`'s snapshot is there, at an absolute path, or failed.
  void Answer(int ticket, const Result<std::string>& folder);
  // Waits for what is to become durable, answers, and goes.
  void Close();

 private:
  void AnswerDurable();

  std::unique_ptr<ControlServer> server_;
  SnapshotSyncer syncer_;
};

}  // namespace hangscope

#endif
