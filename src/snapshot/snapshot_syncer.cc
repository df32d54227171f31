#include "snapshot/snapshot_syncer.h"

#include <utility>

namespace hangscope {

Status SyncSnapshot(FileSystem& files, const std::string& folder) {
  for (const std::string& name : files.List(folder)) {
    if (Status status = files.Sync(folder + "/" + name); !status.ok()) return status;
  }
  if (Status status = files.Sync(folder); !status.ok()) return status;
  return files.Sync(FolderOf(folder));
}

SnapshotSyncer::SnapshotSyncer(FileSystem& files)
    : queue_([this, &files](Done next) {
        next.status = SyncSnapshot(files, next.folder);
        const std::lock_guard lock(mutex_);
        done_.push_back(std::move(next));
      }) {}

std::vector<SnapshotSyncer::Done> SnapshotSyncer::DrainDone() {
  const std::lock_guard lock(mutex_);
  return std::exchange(done_, {});
}

}  // namespace hangscope
