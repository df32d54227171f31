// The ring on disk, writer's side: append with a stamp, freeze into a snapshot.
//
// Thread safety: every member may be called from any thread; Append and Freeze
// exclude each other by a mutex that is held for the writes of one append at
// most (reads of the input happen outside).
#ifndef HANGSCOPE_CAPTURE_RING_STORE_H
#define HANGSCOPE_CAPTURE_RING_STORE_H

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "capture/ring_format.h"

namespace hangscope {

struct RingFill {
  uint64_t total_bytes = 0;    // offered since the start
  uint64_t history_bytes = 0;  // held on disk now
  uint64_t bound_bytes = 0;    // N x S
  uint64_t lost_bytes = 0;     // never written
  int lost_errno = 0;          // why, the latest time

  double fraction() const {
    return bound_bytes == 0 ? 0 : static_cast<double>(history_bytes) / static_cast<double>(bound_bytes);
  }
};

class RingStore {
 public:
  // Makes the ring `prefix`, removing what an earlier run left of it (its
  // snapshot folders stay). Fails when the folder cannot be written or a live
  // recorder has the same prefix.
  static Result<std::unique_ptr<RingStore>> Create(FileSystem& files, Clock& clock,
                                                   const std::string& prefix,
                                                   const std::string& stream_name,
                                                   const RingGeometry& geometry, uint64_t run_id);
  ~RingStore();

  // Adds bytes that arrived at `stamp` (monotonic). Never fails: what the disk
  // refuses is counted and located as a loss, and the next call tries again.
  void Append(std::string_view bytes, TimeNs stamp);

  // Pins what the ring holds now: links its segments as FOLDER/NAME.k with their
  // index; BlockReader tells the window that they cover. The ring goes on with
  // its history.
  Status Freeze(const std::string& folder);

  // Marks the stream as ended. Append must not be called any more.
  void Finish();

  RingFill fill() const;
  const std::string& prefix() const { return prefix_; }
  const std::string& stream_name() const { return stream_name_; }

 private:
  RingStore(FileSystem& files, Clock& clock, std::string prefix, std::string stream_name,
            const RingGeometry& geometry);

  Status PrepareIndex(uint64_t run_id);
  Status OpenNextSegment();
  size_t WriteToSegment(std::string_view bytes, TimeNs stamp);
  void CountLoss(uint64_t bytes, const Status& why);
  void AddStamp(TimeNs stamp);
  void ThinStamps();
  void PublishSlot(uint32_t segment);
  void PublishStamps();
  void PublishHeader();
  Status LinkSegment(uint32_t segment, const std::string& pinned_prefix);
  Status CopySegment(uint32_t segment, const std::string& pinned_prefix);

  FileSystem& files_;
  Clock& clock_;
  const std::string prefix_;
  const std::string stream_name_;
  const RingGeometry geometry_;

  mutable std::mutex mutex_;  // guards everything below
  std::unique_ptr<File> index_;
  IndexHeader header_{};
  std::vector<IndexSlot> slots_;
  std::vector<std::unique_ptr<File>> segments_;
  uint64_t head_ = 0;       // stream offset of the next byte
  uint64_t sequence_ = 0;   // of the current segment; 0: none yet
  uint32_t current_ = 0;    // the current segment
  std::vector<IndexStamp> stamps_;  // of the current segment
  TimeNs stamp_interval_ = 0;
};

}  // namespace hangscope

#endif
