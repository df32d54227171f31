#include "session/snapshot_syncer.h"

#include <utility>

namespace hangscope {

Status SyncSnapshot(FileSystem& files, const std::string& folder) {
  for (const std::string& name : files.List(folder)) {
    if (Status status = files.Sync(folder + "/" + name); !status.ok()) return status;
  }
  if (Status status = files.Sync(folder); !status.ok()) return status;
  return files.Sync(FolderOf(folder));
}

SnapshotSyncer::~SnapshotSyncer() { Finish(); }

void SnapshotSyncer::Sync(const std::string& folder, int ticket) {
  {
    const std::lock_guard lock(mutex_);
    wanted_.push_back({ticket, folder, {}});
    finishing_ = false;
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  wake_.notify_all();
}

std::vector<SnapshotSyncer::Done> SnapshotSyncer::TakeDone() {
  const std::lock_guard lock(mutex_);
  return std::exchange(done_, {});
}

void SnapshotSyncer::Finish() {
  {
    const std::lock_guard lock(mutex_);
    finishing_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void SnapshotSyncer::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return finishing_ || !wanted_.empty(); });
    if (wanted_.empty()) return;
    Done next = std::move(wanted_.front());
    wanted_.pop_front();
    lock.unlock();
    next.status = SyncSnapshot(files_, next.folder);
    lock.lock();
    done_.push_back(std::move(next));
  }
}

}  // namespace hangscope
