// The ring on disk, writer's side: append with a stamp, freeze into a snapshot.
//
// The stream is in three pieces, one behind the other: the segments (ring/ring_segments.h), the
// tail (ring/ring_tail.h) where the ring is compressed, and a gap of bytes that are lost. The index
// (ring/ring_index.h) says what the first two hold.
//
// Thread safety: every member may be called from any thread. What changes the ring
// waits for the disk, and a slow one makes that long: whoever must not wait hands its
// bytes to a thread that may (ring/staging_buffer.h). fill, head and last_error never wait.
#ifndef HANGSCOPE_RING_RING_STORE_H
#define HANGSCOPE_RING_RING_STORE_H

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/file_system.h"
#include "ring/disk_refusals.h"
#include "ring/ring_format.h"
#include "ring/ring_index.h"
#include "ring/ring_segments.h"
#include "ring/ring_tail.h"
#include "ring/zstd_frames.h"

namespace hangscope {

struct RingFill {
  uint64_t total_bytes = 0;          // offered since the start
  uint64_t history_bytes = 0;        // of the stream, held on disk now
  uint64_t disk_bytes = 0;           // that they take
  uint64_t bound_bytes = 0;          // N x S
  uint64_t lost_bytes = 0;           // never written
  int lost_errno = 0;                // why, the latest time; 0: the disk was too slow
  bool failing = false;              // the disk refuses bytes right now
  bool gave_up_compression = false;  // since it could not keep up

  double fraction() const {
    return bound_bytes == 0 ? 0
                            : static_cast<double>(disk_bytes) / static_cast<double>(bound_bytes);
  }
};

class RingStore {
 public:
  // Makes the ring `prefix`, removing what an earlier run left of it (its
  // snapshot folders stay). Fails when the folder cannot be written, a live
  // recorder has the same prefix, or a name is taken by what is no part of a ring.
  static Result<std::unique_ptr<RingStore>> Create(FileSystem& files, Clock& clock,
                                                   const std::string& prefix,
                                                   const std::string& stream_name,
                                                   const RingGeometry& geometry, uint64_t run_id);
  // Goes on with a ring whose recorder was killed, exactly behind its last byte.
  static Result<std::unique_ptr<RingStore>> Resume(FileSystem& files, Clock& clock,
                                                   const std::string& prefix);
  ~RingStore();

  // Adds bytes that arrived at `stamp` (monotonic) and returns how many of them
  // the disk took. The rest may be offered again or given up with Lose.
  size_t Append(std::string_view bytes, TimeNs stamp);
  // The next `bytes` of the stream will never come: counted and located.
  // `error`: an errno, or 0 where the disk was too slow.
  void Lose(uint64_t bytes, int error);
  // Whether bytes wait for the disk: under kAuto the ring stops compressing.
  void SetPressed(bool pressed) { pressed_.store(pressed, std::memory_order_relaxed); }

  // Pins what the ring holds now: links its segments as FOLDER/NAME.k with their
  // index; BlockReader tells the window that they cover. The ring goes on with
  // its history. Only bytes from stream offset `first_offset` on belong to it.
  Status Freeze(const std::string& folder, uint64_t first_offset = 0);

  // Marks the stream as ended. Append must not be called any more.
  void Finish();

  // As the latest change left it; one that still waits for the disk does not show.
  RingFill fill() const;
  uint64_t head() const;   // stream offset of the next byte
  int last_error() const;  // errno of the latest refusal
  const std::string& prefix() const { return prefix_; }
  const std::string& stream_name() const { return stream_name_; }

 private:
  class Change;

  RingStore(FileSystem& files, Clock& clock, const std::string& prefix, std::string stream_name,
            const RingGeometry& geometry);
  Status ReadBack();
  Status WriteIndex();
  Status Reinstate();
  Encoding NextEncoding() const;
  bool PrepareSegment(Encoding encoding, TimeNs stamp);
  size_t AppendPlain(std::string_view bytes, TimeNs stamp);
  size_t AppendCompressed(std::string_view bytes, TimeNs stamp);
  bool WriteFrame(std::string_view block, TimeNs stamp);
  bool FlushTail();
  bool CloseBeforeGap();
  std::optional<uint32_t> CloseForPin();
  uint64_t EndOffset() const { return segments_.end() + tail_.bytes().size() + gap_; }
  void PublishFill();

  FileSystem& files_;
  Clock& clock_;
  const std::string prefix_;
  std::string stream_name_;
  RingGeometry geometry_;
  std::atomic<bool> pressed_{false};

  mutable std::mutex fill_mutex_;  // guards these two; nobody writes to disk under it
  RingFill fill_;
  int last_error_ = 0;

  std::mutex mutex_;  // guards everything below
  DiskRefusals refusals_;
  RingIndex index_;
  RingSegments segments_;
  RingTail tail_;
  FrameEncoder encoder_;
  uint64_t gap_ = 0;  // bytes behind segments and tail that will never come
  bool gave_up_compression_ = false;
};

}  // namespace hangscope

#endif
