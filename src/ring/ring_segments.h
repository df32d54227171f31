// The segments of a ring as its writer uses them: which one is next, and what is appended to the
// current one. The order of writing and the loads that pair with it are in ring/ring_format.h and,
// of frames, in ring/zstd_frames.h.
//
// Not thread-safe; RingStore has the lock.
#ifndef HANGSCOPE_RING_RING_SEGMENTS_H
#define HANGSCOPE_RING_RING_SEGMENTS_H

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/file_system.h"
#include "ring/disk_refusals.h"
#include "ring/ring_format.h"
#include "ring/ring_index.h"

namespace hangscope {

class RingSegments {
 public:
  // `geometry`, `index` and `refusals` outlive this.
  RingSegments(FileSystem& files, const std::string& prefix, const RingGeometry& geometry,
               RingIndex& index, DiskRefusals& refusals)
      : files_(files), prefix_(prefix), geometry_(geometry), index_(index), refusals_(refusals) {}

  // Goes on with the current segment of a killed recorder, behind its last byte.
  void ReadBack();

  // Stream offset behind the last byte that segments hold, or that is lost.
  uint64_t end() const { return end_; }
  // Stream offset behind the last byte that the current segment holds; 0: there is none.
  uint64_t held_end() const;
  // What a killed recorder left behind the segments begins at `offset`.
  void GoOnAt(uint64_t offset) { end_ = offset; }
  // The next `bytes` of the stream are lost. The current segment is closed.
  void Skip(uint64_t bytes) { end_ += bytes; }
  // Whether the current segment takes more of this encoding.
  bool HasRoomFor(Encoding encoding) const;
  // Makes another segment the current one. Tries each of them where the disk is full.
  Status OpenNext(Encoding encoding);
  // Nothing more is added to the current segment.
  void Close();
  // Closes a compressed segment that has no room for so many bytes of a frame.
  void CloseUnlessFits(uint64_t frame_bytes);
  // The files were deleted under their writer.
  void ForgetFile() { file_.reset(); }

  // Appends what fits into the current segment, a plain one with room, and returns how many bytes
  // the disk took.
  size_t AppendPlain(std::string_view bytes, TimeNs stamp);
  // Appends a frame of the next `stream_bytes` to the current segment, a compressed one. All or
  // nothing.
  bool AppendFrame(std::string_view framed, uint64_t stream_bytes, TimeNs stamp);

 private:
  void AdoptPublishedFrames();
  Status OpenOldest(Encoding encoding);
  std::optional<uint32_t> ChooseOldest();
  bool IsPinned(uint32_t segment);
  Status OpenAsItIs(const std::string& path);
  Status OpenNew(const std::string& path, Encoding encoding);
  Status OpenCompressed(const std::string& path);
  void NoteRefusal(const Status& why);
  std::string PathOf(uint32_t segment, Encoding encoding) const {
    return SegmentPath(prefix_, segment, encoding);
  }

  FileSystem& files_;
  const std::string prefix_;
  const RingGeometry& geometry_;
  RingIndex& index_;
  DiskRefusals& refusals_;
  std::unique_ptr<File> file_;  // of the current segment
  uint64_t end_ = 0;
};

}  // namespace hangscope

#endif
