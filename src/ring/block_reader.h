// The one reader of rings, live, finished, killed or in a snapshot: the next
// block, loss or end. `cat`, recovery, analysis and export all use it.
//
// It trusts nothing: the index is checked, a block is looked up again after it
// was read (the writer may have overwritten it meanwhile), and whatever cannot
// be vouched for is a loss with its offsets.
//
// One thread at a time; any number of readers beside the one writer.
#ifndef HANGSCOPE_RING_BLOCK_READER_H
#define HANGSCOPE_RING_BLOCK_READER_H

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "model/stream_window.h"
#include "ring/ring_format.h"
#include "ring/zstd_frames.h"

namespace hangscope {

class BlockReader {
 public:
  enum class Event { kBlock, kLoss, kEnd };

  // `prefix` names the ring ("trace/fw.stdout") or a snapshot's stream
  // ("trace/fw.snapshot-0001/stdout").
  static Result<BlockReader> Open(FileSystem& files, const std::string& prefix);

  // Reads the index anew. The position stays. Fails where another recording took
  // the ring's place: what was read of this one is all there is.
  Status Refresh();

  // The next read begins at stream offset `offset` (or at the oldest byte held
  // after it, with the loss between reported first).
  void Seek(uint64_t offset) { position_ = offset; }
  uint64_t position() const { return position_; }

  // At kBlock `block()` holds bytes that begin at `block_offset()`; at kLoss
  // `loss()` tells what is missing; at kEnd nothing more is there (yet: Refresh
  // and call again while the writer is alive). A block has at most `limit` bytes.
  Event Next(size_t limit = 1u << 20);
  std::string_view block() const { return block_; }
  uint64_t block_offset() const { return block_offset_; }
  const Loss& loss() const { return loss_; }

  // Whether the position may be within a line: a snapshot since the last one begins where that one
  // ended, in the middle of a line or not, and together they are whole.
  bool MayCutLine() const { return position() > 0 && position() != header_.first_offset; }

  // Oldest byte held and one past the newest, as of the last Refresh.
  uint64_t begin_offset() const;
  uint64_t end_offset() const;
  // When the byte at `offset` had arrived: the time of the latest stamp at or
  // before it; nothing where the stamps are overwritten.
  std::optional<TimeNs> TimeOf(uint64_t offset);
  // The arrival of the oldest byte that still has a stamp.
  std::optional<TimeNs> OldestTime();

  const IndexHeader& header() const { return header_; }
  std::string stream_name() const;
  bool finished() const { return (header_.flags & kIndexFinished) != 0; }
  // Whether a recorder still holds the ring.
  bool HasWriter();

  // Segments whose entry in the index is damaged: what they hold is unknown, and no
  // loss tells of it.
  uint32_t damaged_segments() const { return damaged_segments_; }

  StreamWindow Window();

 private:
  // A run of bytes that lies in one segment, or in the tail.
  struct Extent {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint32_t segment = 0;      // kTail: P.tail
    uint64_t file_offset = 0;  // of the byte at `begin`; compressed: 0
    Encoding encoding = Encoding::kPlain;
  };
  static constexpr uint32_t kTail = UINT32_MAX;
  // An open segment, and where its blocks are if it is compressed.
  struct OpenSegment {
    std::unique_ptr<File> file;
    uint64_t sequence = 0;  // of the slot when it was opened
    std::vector<FrameRef> frames;
    uint64_t scanned_to = 0;
  };

  BlockReader(FileSystem& files, std::string prefix);
  Status ReadHeader();
  void ReadSlots();
  void PlanExtents();
  static void AppendExtents(const IndexSlot& slot, uint32_t segment, const IndexHeader& header,
                            std::vector<Extent>* out);
  static void AppendTail(const IndexTail& tail, std::vector<Extent>* out);
  std::optional<Extent> ExtentAtOrAfter(uint64_t offset) const;
  OpenSegment* OpenFor(const Extent& extent);
  bool ReadExtent(const Extent& extent, size_t limit);
  bool ReadFrame(const Extent& extent, size_t limit);
  const FrameRef* FindFrame(OpenSegment* segment, uint64_t offset, uint64_t file_bytes);
  bool StillHeld(const Extent& extent, uint64_t begin, uint64_t end);
  std::vector<IndexStamp> StampsOf(uint32_t segment);
  Event ReportLoss(uint64_t end, LossReason reason);

  FileSystem* files_;
  std::string prefix_;
  std::unique_ptr<File> index_;
  IndexHeader header_{};
  std::vector<IndexSlot> slots_;
  std::vector<Extent> extents_;  // sorted, disjoint
  uint32_t damaged_segments_ = 0;
  IndexTail tail_{};
  std::vector<OpenSegment> segments_;
  OpenSegment tail_file_;
  std::unique_ptr<FrameDecoder> decoder_;
  std::string frame_bytes_;
  std::string frame_block_;         // the block decompressed last ...
  uint64_t frame_block_begin_ = 0;  // ... and its stream offset
  uint64_t unreadable_end_ = 0;     // stream offset behind the latest damaged frame
  uint64_t position_ = 0;
  std::string block_;
  uint64_t block_offset_ = 0;
  Loss loss_;
};

}  // namespace hangscope

#endif
