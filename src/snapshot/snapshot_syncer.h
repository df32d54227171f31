// Makes snapshots durable in a thread of its own: to bring a gigabyte to the
// disk takes a while, and recording does not wait for it.
#ifndef HANGSCOPE_SNAPSHOT_SNAPSHOT_SYNCER_H
#define HANGSCOPE_SNAPSHOT_SNAPSHOT_SYNCER_H

#include <mutex>
#include <string>
#include <vector>

#include "base/background_queue.h"
#include "base/file_system.h"
#include "base/status.h"

namespace hangscope {

class SnapshotSyncer {
 public:
  struct Done {
    int ticket = 0;
    std::string folder;
    Status status;
  };

  // Its end waits for all that was asked for.
  explicit SnapshotSyncer(FileSystem& files);

  // One thread calls these.
  void Sync(const std::string& folder, int ticket) { queue_.Add({ticket, folder, {}}); }
  std::vector<Done> DrainDone();
  // Waits for all that was asked for.
  void Finish() { queue_.Finish(); }

 private:
  std::mutex mutex_;  // guards the one below
  std::vector<Done> done_;
  BackgroundQueue<Done> queue_;  // the last: its thread uses the others
};

// The files of a snapshot, its folder, and the folder that it is in.
Status SyncSnapshot(FileSystem& files, const std::string& folder);

}  // namespace hangscope

#endif
