// The ring on disk, writer's side: append with a stamp, freeze into a snapshot.
//
// Thread safety: every member may be called from any thread. What changes the ring
// waits for the disk, and a slow one makes that long: whoever must not wait hands its
// bytes to a thread that may (ring/stage.h). fill, head and last_error never wait.
#ifndef HANGSCOPE_RING_RING_STORE_H
#define HANGSCOPE_RING_RING_STORE_H

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "ring/ring_format.h"
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
  // snapshot folders stay). Fails when the folder cannot be written or a live
  // recorder has the same prefix.
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

  RingStore(FileSystem& files, Clock& clock, std::string prefix);

  // Bytes of one segment.
  struct Held {
    uint64_t history = 0;
    uint64_t disk = 0;
  };

  void Tell();
  static Held HeldBy(const IndexSlot& slot);
  void CountSlot(uint32_t segment);
  Status RemoveStale();
  Status WriteIndex();
  Status ReadBack();
  void ReadBackSlots();
  void ReadBackCurrent();
  Status ReadBackTail();
  void AdoptPublishedFrames();
  Status Reinstate();
  size_t AppendPlain(std::string_view bytes, TimeNs stamp);
  size_t AppendCompressed(std::string_view bytes, TimeNs stamp);
  size_t AddToTail(std::string_view bytes, TimeNs stamp);
  bool FlushTail();
  bool WriteFrame(std::string_view block, TimeNs stamp);
  bool WriteFramed(std::string_view framed, uint64_t stream_bytes, TimeNs stamp);
  bool PrepareSegment(Encoding encoding, TimeNs stamp);
  Encoding NextEncoding() const;
  bool HasRoom() const;
  Status OpenNextSegment(Encoding encoding);
  Status OpenSegment(uint32_t segment, Encoding encoding);
  Status CreateCompressed(const std::string& path);
  bool NextMayFit(const Status& refusal);
  std::optional<uint32_t> ChooseSegment();
  bool IsPinned(uint32_t segment);
  void CloseCurrent();
  bool CloseBeforeGap();
  void Refuse(const Status& why);
  void AddStamp(uint64_t offset, TimeNs stamp);
  void ThinStamps();
  void ResetTail();
  void PublishTail();
  void PublishSlot(uint32_t segment);
  void PublishStamps();
  void PublishHeader();
  void WriteToIndex(uint64_t offset, const void* bytes, size_t count);
  // The slots of what was pinned.
  Result<std::vector<IndexSlot>> PinSegments(const std::string& pinned_prefix,
                                             uint64_t first_offset);
  Status LinkSegment(uint32_t segment, const std::string& pinned_prefix);
  Status CopySegment(uint32_t segment, const std::string& pinned_prefix);
  IndexSlot& current() { return slots_[current_]; }

  FileSystem& files_;
  Clock& clock_;
  const std::string prefix_;
  std::string stream_name_;
  RingGeometry geometry_;
  std::atomic<bool> pressed_{false};

  mutable std::mutex told_mutex_;  // guards these two; nobody writes to disk under it
  RingFill told_;
  int told_error_ = 0;

  std::mutex mutex_;  // guards everything below
  std::unique_ptr<File> index_;
  std::unique_ptr<File> segment_;  // the current one
  std::unique_ptr<File> tail_file_;
  IndexHeader header_{};
  IndexTail tail_{};
  std::vector<IndexSlot> slots_;
  std::vector<Held> held_;  // by each of them
  Held held_in_all_;
  uint64_t head_ = 0;               // stream offset of the next byte
  uint64_t gap_ = 0;                // bytes behind the head that will never come
  uint64_t sequence_ = 0;           // of the current segment; 0: none yet
  uint32_t current_ = 0;            // the current segment
  std::vector<IndexStamp> stamps_;  // of the current segment
  TimeNs stamp_interval_ = 0;
  std::string tail_bytes_;  // what P.tail holds
  TimeNs tail_stamp_ = 0;   // when its first byte arrived
  FrameEncoder encoder_;
  bool failing_ = false;    // the latest append was refused
  bool disk_full_ = false;  // a new segment found no room: reuse the oldest
  TimeNs full_since_ = 0;
  size_t barren_ = 0;  // segments in a row that took no byte
  bool gave_up_compression_ = false;
  int last_error_ = 0;
};

}  // namespace hangscope

#endif
