// Makes snapshots durable in a thread of its own: to bring a gigabyte to the
// disk takes a while, and recording does not wait for it.
#ifndef HANGSCOPE_SESSION_SNAPSHOT_SYNCER_H
#define HANGSCOPE_SESSION_SNAPSHOT_SYNCER_H

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

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

  explicit SnapshotSyncer(FileSystem& files) : files_(files) {}
  ~SnapshotSyncer();  // finishes what was asked for
  SnapshotSyncer(const SnapshotSyncer&) = delete;
  SnapshotSyncer& operator=(const SnapshotSyncer&) = delete;

  // One thread calls these.
  void Sync(const std::string& folder, int ticket);
  std::vector<Done> TakeDone();
  // Waits for all that was asked for.
  void Finish();

 private:
  void Run();

  FileSystem& files_;
  std::thread thread_;  // from the first Sync on
  std::mutex mutex_;    // guards the three below
  std::condition_variable wake_;
  std::deque<Done> wanted_;
  std::vector<Done> done_;
  bool finishing_ = false;
};

// The files of a snapshot, its folder, and the folder that it is in.
Status SyncSnapshot(FileSystem& files, const std::string& folder);

}  // namespace hangscope

#endif
