// P.tail as the writer of a compressed ring keeps it: the newest bytes of the stream, too few for
// a frame. They follow the last byte of the segments.
//
// Not thread-safe; RingStore has the lock.
#ifndef HANGSCOPE_RING_RING_TAIL_H
#define HANGSCOPE_RING_RING_TAIL_H

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/file_system.h"
#include "ring/disk_refusals.h"
#include "ring/ring_format.h"
#include "ring/ring_index.h"

namespace hangscope {

class RingTail {
 public:
  // `block_bytes`: stream bytes in a frame; 0: the ring is plain and has no tail. `index` and
  // `refusals` outlive this.
  RingTail(FileSystem& files, const std::string& prefix, uint64_t block_bytes, RingIndex& index,
           DiskRefusals& refusals)
      : files_(files),
        prefix_(prefix),
        block_bytes_(block_bytes),
        index_(index),
        refusals_(refusals) {}

  // Writes all of the file, so that a disk that fills later has room for every update: zeros, or
  // what the file held that somebody deleted.
  Status WriteAll();
  // Reads back what a killed recorder left. `held_end`: where the segments end; their frames may
  // hold the first bytes of the tail already, and the rest moves to the front. `stream_end`:
  // as far as index and segments tell, which may count the tail and what is lost behind it.
  Status ReadBack(uint64_t held_end, uint64_t stream_end, TimeNs now);

  // Adds as much of `bytes` as there is room for, and returns how much the disk took. `begin`:
  // where the segments end.
  size_t Append(std::string_view bytes, uint64_t begin, TimeNs stamp);
  // The bytes are in a frame by now. The record of them stays published until the next Append: a
  // reader that finds them in both places takes them once.
  void Clear() { bytes_.clear(); }
  // Clear was called, and Append will not be called any more.
  void Close(uint64_t begin);

  bool exists() const { return file_ != nullptr; }
  bool empty() const { return bytes_.empty(); }
  bool full() const { return bytes_.size() == block_bytes_; }
  uint64_t block_bytes() const { return block_bytes_; }
  const std::string& bytes() const { return bytes_; }
  TimeNs stamp() const { return stamp_; }  // when its first byte arrived
  const IndexTail& record() const { return record_; }

 private:
  void Reset(uint64_t begin);

  FileSystem& files_;
  const std::string prefix_;
  uint64_t block_bytes_;
  RingIndex& index_;
  DiskRefusals& refusals_;
  std::unique_ptr<File> file_;
  IndexTail record_{};
  std::string bytes_;  // what the file holds
  TimeNs stamp_ = 0;
};

}  // namespace hangscope

#endif
