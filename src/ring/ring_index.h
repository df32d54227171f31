// P.index as the writer of a ring keeps it (ring/ring_format.h): the header, a slot for each
// segment, and the stamps of the current segment, which is the one that was opened last.
//
// A record is changed here and then published: each Publish writes one record, whole and with its
// check, and pairs with ReadRecord in the readers. Not thread-safe; RingStore has the lock.
#ifndef HANGSCOPE_RING_RING_INDEX_H
#define HANGSCOPE_RING_RING_INDEX_H

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "ring/ring_format.h"

namespace hangscope {

// Bytes of the stream that are history, and the bytes of the disk that they take.
struct HeldBytes {
  uint64_t history = 0;
  uint64_t disk = 0;
};

class RingIndex {
 public:
  RingIndex(FileSystem& files, const std::string& prefix) : files_(files), prefix_(prefix) {}

  // Takes the ring over for a new run of `segment_count` segments (ring/ring_files.h): at no
  // instant does an old index describe the segments of the new run. kBusy: a recorder is alive.
  Status Create(uint32_t segment_count);
  // Sets the header of the new run; none of its segments is used.
  void Begin(const IndexHeader& header);
  // Locks the ring of a recorder that was killed, and reads its index back.
  Status Inherit(Clock& clock);
  // Whether somebody deleted the file under its writer.
  bool IsDeleted();
  // Makes a new file in place of a deleted one. Segments that were deleted, too, count as lost.
  Status Recreate();
  // Writes the whole file but the stamps, so that a disk that fills later has room for every
  // update.
  Status WriteAll(const IndexTail& tail, uint64_t end_offset);

  IndexHeader& header() { return header_; }
  const std::vector<IndexSlot>& slots() const { return slots_; }
  bool has_current() const { return sequence_ != 0; }
  uint32_t current_segment() const { return current_; }
  IndexSlot& current() { return slots_[current_]; }
  uint64_t sequence() const { return sequence_; }  // of the current segment; 0: there is none
  HeldBytes held() const { return held_in_all_; }  // by all segments, as published

  // A segment gets a new slot; it is not the current one yet.
  void Replace(uint32_t segment, const IndexSlot& slot);
  // The segment whose slot was replaced last is open: stamps are its own from now on.
  void MakeCurrent(uint32_t segment);
  void PublishCurrent() { PublishSlot(current_); }
  void PublishTail(IndexTail* tail);
  void PublishHeader(uint64_t end_offset);
  // The byte at `offset` arrived at `stamp`: kept if it is far enough from the stamp before.
  void AddStamp(uint64_t offset, TimeNs stamp);

  // Reads the record of the tail back; false where it is damaged.
  bool ReadTail(IndexTail* tail) { return ReadRecord(*file_, kTailAt, tail); }
  // The index of a snapshot: these records, and the stamps as they are on disk.
  Result<std::string> ImageOf(const IndexHeader& header, const IndexTail& tail,
                              const std::vector<IndexSlot>& slots);

 private:
  Status ReadBack();
  void ReadBackStamps();
  void PublishSlot(uint32_t segment);
  void PublishStamps();
  void CountSlot(uint32_t segment);
  void Write(uint64_t offset, const void* bytes, size_t count);
  // Where a segment's stamps are; of the segment behind the last: the file's size.
  uint64_t StampsOf(uint32_t segment) const {
    return StampsAt(header_.segment_count, header_.stamps_per_segment, segment);
  }

  FileSystem& files_;
  const std::string prefix_;
  std::unique_ptr<File> file_;
  IndexHeader header_{};
  std::vector<IndexSlot> slots_;
  std::vector<HeldBytes> held_;  // by each segment
  HeldBytes held_in_all_;
  uint64_t sequence_ = 0;
  uint32_t current_ = 0;
  std::vector<IndexStamp> stamps_;  // of the current segment
  TimeNs stamp_interval_ = 0;
};

}  // namespace hangscope

#endif
