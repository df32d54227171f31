// P.snapshot: the newest snapshot of one stream as one plain, chronological file, for
// those who want nothing but the bytes.
//
// It is written by a thread of its own, so that nobody waits for it, into P.snapshot~,
// and gets its name when it is whole. The one before it is removed first: there is room
// for one in the bound.
#ifndef HANGSCOPE_SNAPSHOT_PLAIN_SNAPSHOT_H
#define HANGSCOPE_SNAPSHOT_PLAIN_SNAPSHOT_H

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "base/file_system.h"

namespace hangscope {

// Any thread may call.
class PlainSnapshot {
 public:
  // Writes at most the newest `limit_bytes` into `path`, in whole lines where there are lines.
  PlainSnapshot(FileSystem& files, std::string path, uint64_t limit_bytes);
  ~PlainSnapshot();  // finishes what was asked for
  PlainSnapshot(const PlainSnapshot&) = delete;
  PlainSnapshot& operator=(const PlainSnapshot&) = delete;

  // Asks for the stream `ring_prefix` of a snapshot ("trace/x.snapshot-0001/stdin"). A
  // newer wish replaces one that has not begun.
  void Write(const std::string& ring_prefix);
  // Waits until what was asked for is done.
  void Finish();
  // Why the latest one could not be written, if so.
  Status status() const;

 private:
  void Run();
  Status WriteOne(const std::string& ring_prefix);

  FileSystem& files_;
  const std::string path_;
  const uint64_t limit_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::condition_variable done_;
  std::string wanted_;
  bool busy_ = false;
  bool stopping_ = false;
  Status status_;
  std::thread thread_;
};

}  // namespace hangscope

#endif
