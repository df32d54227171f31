#include "control/remote_control.h"

namespace hangscope {

Status RemoteControl::Open(const std::string& folder) {
  auto server = ControlServer::Open(folder);
  if (!server.ok()) return server.status();
  server_ = std::move(*server);
  return {};
}

std::vector<RemoteControl::SnapRequest> RemoteControl::Poll(
    TimeNs now, const std::function<RecorderStatus()>& status) {
  std::vector<SnapRequest> snaps;
  if (server_ == nullptr) return snaps;
  AnswerDurable();
  for (const ControlServer::Call& call : server_->Poll(now)) {
    if (call.request.command == ControlRequest::Command::kStatus) {
      server_->Answer(call.client, StatusReply(status()));
    } else {
      snaps.push_back({call.client, call.request.now, call.request.since_last});
    }
  }
  return snaps;
}

void RemoteControl::Answer(int ticket, const Result<std::string>& folder) {
  if (server_ == nullptr) return;
  if (folder.ok()) {
    syncer_.Sync(folder.value(), ticket);
  } else {
    server_->Answer(ticket, FailedReply(folder.status().message()));
  }
}

void RemoteControl::AnswerDurable() {
  for (const SnapshotSyncer::Done& done : syncer_.DrainDone()) {
    server_->Answer(done.ticket,
                    done.status.ok() ? SnapReply(done.folder) : FailedReply(done.status.message()));
  }
}

void RemoteControl::Close() {
  if (server_ == nullptr) return;
  syncer_.Finish();
  AnswerDurable();
  server_.reset();
}

}  // namespace hangscope
