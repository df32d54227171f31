#include "ring/ring_segments.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "ring/zstd_frames.h"

namespace hangscope {

void RingSegments::ReadBack() {
  end_ = index_.header().end_offset;
  if (!index_.has_current()) return;
  IndexSlot& slot = index_.current();
  auto file =
      files_.Open(PathOf(index_.current_segment(), slot.encoding), FileSystem::Mode::kRecorded);
  if (file.ok())
    file_ = std::move(*file);
  else
    slot.closed = 1;
  AdoptPublishedFrames();
  end_ = std::max(end_, held_end());
}

uint64_t RingSegments::held_end() const {
  return index_.has_current() ? index_.current().begin_offset + index_.current().length : 0;
}

// The recorder may have been killed between a frame and its slot.
void RingSegments::AdoptPublishedFrames() {
  IndexSlot& slot = index_.current();
  if (file_ == nullptr || slot.encoding != Encoding::kZstd) return;
  for (;;) {
    std::string head(sizeof(FrameHead), '\0');
    auto got = file_->ReadAt(slot.touched_end, {head.data(), head.size()});
    head.resize(got.value_or(0));
    const auto frame = ParseFrameHead(head, slot.touched_end, index_.header().run_id);
    if (!frame || frame->begin_offset != slot.begin_offset + slot.length ||
        frame->next > geometry_.segment_bytes)
      return;
    slot.length += frame->stream_bytes;
    slot.touched_end = frame->next;
    index_.PublishCurrent();
  }
}

bool RingSegments::HasRoomFor(Encoding encoding) const {
  if (!index_.has_current() || file_ == nullptr) return false;
  const IndexSlot& slot = index_.current();
  return slot.closed == 0 && slot.encoding == encoding &&
         FileBytesOf(slot) < geometry_.segment_bytes;
}

Status RingSegments::OpenNext(Encoding encoding) {
  refusals_.ForgetFullDisk();
  Status status = OpenOldest(encoding);
  while (!status.ok() && refusals_.NextMayFit(status, geometry_.segment_count))
    status = OpenOldest(encoding);
  return status;
}

Status RingSegments::OpenOldest(Encoding encoding) {
  Close();
  const std::optional<uint32_t> chosen = ChooseOldest();
  if (!chosen) return Status::FromErrno(ENOSPC, "write", prefix_);
  const uint32_t next = *chosen;
  const IndexSlot before = index_.slots()[next];
  const bool in_place = encoding == Encoding::kPlain && before.sequence != 0 &&
                        before.encoding == Encoding::kPlain && !IsPinned(next);
  // The index gives the segment's history up first; then the file goes.
  IndexSlot fresh{};
  fresh.sequence = index_.sequence() + 1;
  fresh.begin_offset = end_;
  fresh.encoding = encoding;
  if (in_place) {
    fresh.prev_begin = before.begin_offset;
    fresh.prev_length = before.length;
  }
  index_.Replace(next, fresh);
  const std::string path = PathOf(next, encoding);
  Status status;
  if (!in_place && before.sequence != 0) {  // else what has the name is not ours
    status = files_.Remove(PathOf(next, Encoding::kPlain));
    if (status.ok()) status = files_.Remove(PathOf(next, Encoding::kZstd));
  }
  if (status.ok()) status = in_place ? OpenAsItIs(path) : OpenNew(path, encoding);
  if (!status.ok()) {
    index_.Replace(next, IndexSlot{});
    return status;
  }
  index_.MakeCurrent(next);
  // The link is a convenience for people; the index is what readers trust.
  (void)files_.PointLink(CurrentPath(prefix_), NameOf(path)).ok();
  return {};
}

// The segment that was filled longest ago; a fresh one before all others, unless the disk is full:
// then one that brings its room with it.
std::optional<uint32_t> RingSegments::ChooseOldest() {
  const std::vector<IndexSlot>& slots = index_.slots();
  std::optional<uint32_t> best;
  for (uint32_t k = 0; k < slots.size(); ++k) {
    if (index_.has_current() && k == index_.current_segment()) continue;
    if (refusals_.disk_full() && (slots[k].sequence == 0 || IsPinned(k))) continue;
    if (!best || slots[k].sequence < slots[*best].sequence) best = k;
  }
  return best;
}

// Whether a snapshot links to the segment, or somebody deleted it: it must not be written to again.
bool RingSegments::IsPinned(uint32_t segment) {
  auto file =
      files_.Open(PathOf(segment, index_.slots()[segment].encoding), FileSystem::Mode::kRecorded);
  if (!file.ok()) return true;
  return (*file)->LinkCount().value_or(0) != 1;
}

Status RingSegments::OpenAsItIs(const std::string& path) {
  auto opened = files_.Open(path, FileSystem::Mode::kRecorded);
  if (opened.ok()) file_ = std::move(*opened);
  return opened.status();
}

Status RingSegments::OpenNew(const std::string& path, Encoding encoding) {
  if (encoding == Encoding::kZstd) return OpenCompressed(path);
  auto opened = files_.Open(path, FileSystem::Mode::kRecordedNew);
  if (opened.ok()) file_ = std::move(*opened);
  return opened.status();
}

// The file gets its name once it is valid: all of it one unused rest.
Status RingSegments::OpenCompressed(const std::string& path) {
  const std::string next = prefix_ + ".next";
  if (Status status = files_.Remove(next); !status.ok()) return status;  // of a killed recorder
  auto file = files_.Open(next, FileSystem::Mode::kRecordedNew);
  if (!file.ok()) return file.status();
  size_t written = 0;
  Status status = (*file)->Truncate(geometry_.segment_bytes);
  if (status.ok()) status = (*file)->WriteAt(0, UnusedRest(geometry_.segment_bytes), &written);
  if (status.ok()) status = files_.Rename(next, path);
  if (status.ok())
    file_ = std::move(*file);
  else
    (void)files_.Remove(next).ok();
  return status;
}

void RingSegments::Close() {
  if (!index_.has_current() || index_.current().closed != 0) return;
  IndexSlot& slot = index_.current();
  slot.closed = 1;
  index_.PublishCurrent();
  if (slot.encoding == Encoding::kZstd && file_ != nullptr)
    (void)file_->Truncate(slot.touched_end).ok();  // without the unused rest
}

void RingSegments::CloseUnlessFits(uint64_t frame_bytes) {
  if (!index_.has_current() || index_.current().encoding != Encoding::kZstd) return;
  const uint64_t room = geometry_.segment_bytes - index_.current().touched_end;
  if (frame_bytes != room && frame_bytes + kSkippableHeaderBytes > room) Close();
}

size_t RingSegments::AppendPlain(std::string_view bytes, TimeNs stamp) {
  IndexSlot& slot = index_.current();
  if (slot.length == 0) slot.begin_offset = end_;  // losses may have moved the end
  const size_t room = geometry_.segment_bytes - slot.length;
  // Small pieces on small rings: what is in flight is not history either.
  const std::string_view piece = bytes.substr(0, std::min<uint64_t>(room, geometry_.reserve_bytes));

  if (slot.prev_length > slot.length && slot.length + piece.size() > slot.touched_end) {
    slot.touched_end = std::min(slot.length + geometry_.reserve_bytes, geometry_.segment_bytes);
    index_.PublishCurrent();  // (a): gives up the old bytes; pairs with the reader's second look
  }
  index_.AddStamp(end_, stamp);
  size_t written = 0;
  const Status status = file_->WriteAt(slot.length, piece, &written);  // (b)
  slot.length += written;
  end_ += written;
  if (written > 0) refusals_.NoteWritten();
  if (!status.ok()) NoteRefusal(status);
  index_.PublishCurrent();  // (c): pairs with the reader's first look
  return written;
}

bool RingSegments::AppendFrame(std::string_view framed, uint64_t stream_bytes, TimeNs stamp) {
  IndexSlot& slot = index_.current();
  if (slot.length == 0) slot.begin_offset = end_;
  const uint64_t at = slot.touched_end;
  const uint64_t rest = geometry_.segment_bytes - at - framed.size();
  std::string inside(framed.substr(kSkippableHeaderBytes));
  if (rest > 0) inside += UnusedRest(rest);
  size_t written = 0;
  Status status = file_->WriteAt(at + kSkippableHeaderBytes, inside, &written);  // (a)
  if (status.ok())
    status = file_->WriteAt(at, framed.substr(0, kSkippableHeaderBytes), &written);  // (b)
  if (!status.ok()) {
    NoteRefusal(status);
    index_.PublishCurrent();
    return false;
  }
  refusals_.NoteWritten();
  index_.AddStamp(end_, stamp);
  slot.length += stream_bytes;
  slot.touched_end += framed.size();
  end_ += stream_bytes;
  index_.PublishCurrent();  // pairs with ReadSlots; AdoptPublishedFrames finds (b) without it
  return true;
}

// What the disk refused is either offered to the next segment or a gap, which never lies inside a
// segment.
void RingSegments::NoteRefusal(const Status& why) {
  index_.current().closed = 1;
  if (!refusals_.NextMayFit(why, geometry_.segment_count)) refusals_.Refuse(why);
}

}  // namespace hangscope
