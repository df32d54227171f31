#include "ring/block_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace hangscope {
namespace {

constexpr uint64_t kLargestOffset = uint64_t{1} << 62;

constexpr size_t kScanBytes = 64 * 1024;

bool IsSameRing(const IndexHeader& a, const IndexHeader& b) {
  return a.run_id == b.run_id && a.segment_count == b.segment_count &&
         a.segment_bytes == b.segment_bytes && a.stamps_per_segment == b.stamps_per_segment;
}

}  // namespace

BlockReader::BlockReader(FileSystem& files, std::string prefix)
    : files_(&files), prefix_(std::move(prefix)) {}

Result<BlockReader> BlockReader::Open(FileSystem& files, const std::string& prefix) {
  BlockReader reader(files, prefix);
  auto index = files.Open(IndexPath(prefix), FileSystem::Mode::kRead);
  if (!index.ok()) return index.status();
  reader.index_ = std::move(*index);
  if (Status status = reader.ReadHeader(); !status.ok()) return status;
  reader.slots_.resize(reader.header_.segment_count);
  reader.segments_.resize(reader.header_.segment_count);
  if (Status status = reader.Refresh(); !status.ok()) return status;
  reader.position_ = reader.begin_offset();
  return reader;
}

Status BlockReader::ReadHeader() {
  const std::string path = IndexPath(prefix_);
  for (int tries = 0; tries < kRecordReadTries; ++tries) {
    IndexHeader header{};
    auto got = index_->ReadAt(0, {reinterpret_cast<char*>(&header), sizeof header});
    if (!got.ok()) return got.status();
    if (*got < sizeof header || std::memcmp(header.magic, kIndexMagic, sizeof kIndexMagic) != 0) {
      return Status::Corrupt(fmt::format(
          "'{}' is not the index of a hangscope ring (its first bytes are not HSRINGIX)", path));
    }
    if (header.version != kIndexVersion) {
      return Status::Corrupt(fmt::format(
          "'{}' has format version {} and this hangscope reads version {}; use the hangscope that "
          "wrote it",
          path, header.version, kIndexVersion));
    }
    if (header.check != CheckOf(header)) continue;  // caught in the middle of an update
    if (!IsSane(header)) break;
    if (!slots_.empty() && !IsSameRing(header, header_)) {
      return Status::NotFound(fmt::format("'{}' belongs to another recording by now", path));
    }
    header_ = header;
    return {};
  }
  return Status::Corrupt(
      fmt::format("the header of '{}' is damaged (its check does not match)", path));
}

// All at once; those that the writer was just changing, again.
void BlockReader::ReadSlots() {
  damaged_segments_ = 0;
  auto got = index_->ReadAt(
      SlotAt(0), {reinterpret_cast<char*>(slots_.data()), slots_.size() * sizeof(IndexSlot)});
  const size_t whole = got.value_or(0) / sizeof(IndexSlot);
  for (uint32_t k = 0; k < slots_.size(); ++k) {
    if (k < whole && slots_[k].check == CheckOf(slots_[k])) continue;
    if (!ReadRecord(*index_, SlotAt(k), &slots_[k])) ++damaged_segments_;
  }
}

Status BlockReader::Refresh() {
  if (Status status = ReadHeader(); !status.ok()) return status;
  ReadSlots();
  if (!ReadRecord(*index_, kTailAt, &tail_)) ++damaged_segments_;
  PlanExtents();
  return {};
}

// The bytes of the running round, and of the round before where untouched.
void BlockReader::AppendExtents(const IndexSlot& slot, uint32_t segment, const IndexHeader& header,
                                std::vector<Extent>* out) {
  if (slot.sequence == 0) return;
  if (slot.begin_offset > kLargestOffset || slot.prev_begin > kLargestOffset) return;  // damaged
  if (slot.encoding == Encoding::kZstd) {
    if (slot.length > 0 && slot.length < kLargestOffset) {
      out->push_back(
          {slot.begin_offset, slot.begin_offset + slot.length, segment, 0, Encoding::kZstd});
    }
    return;
  }
  const uint64_t length = std::min(slot.length, header.segment_bytes);
  if (length > 0) out->push_back({slot.begin_offset, slot.begin_offset + length, segment, 0});
  const uint64_t from = std::max(slot.length, slot.touched_end);
  const uint64_t to = std::min(slot.prev_length, header.segment_bytes);
  if (from < to) out->push_back({slot.prev_begin + from, slot.prev_begin + to, segment, from});
}

void BlockReader::AppendTail(const IndexTail& tail, std::vector<Extent>* out) {
  if (tail.length == 0 || tail.length > kLargestOffset || tail.begin_offset > kLargestOffset)
    return;
  out->push_back({tail.begin_offset, tail.begin_offset + tail.length, kTail, 0});
}

void BlockReader::PlanExtents() {
  std::vector<Extent> found;
  for (uint32_t k = 0; k < slots_.size(); ++k) AppendExtents(slots_[k], k, header_, &found);
  AppendTail(tail_, &found);
  std::sort(found.begin(), found.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  extents_.clear();
  for (Extent& extent : found) {
    // A tail may begin with bytes that are in a frame by now, and a snapshot since
    // the last one begins inside a segment. Other overlaps happen only in a damaged
    // index; the first claim wins.
    uint64_t from = header_.first_offset;
    if (!extents_.empty()) from = std::max(from, extents_.back().end);
    if (extent.end <= from) continue;
    if (extent.begin < from) {
      const bool expected = extent.segment == kTail || from == header_.first_offset;
      if (!expected) continue;
      if (extent.encoding == Encoding::kPlain) extent.file_offset += from - extent.begin;
      extent.begin = from;
    }
    extents_.push_back(extent);
  }
}

uint64_t BlockReader::begin_offset() const {
  return extents_.empty() ? header_.end_offset : extents_.front().begin;
}

uint64_t BlockReader::end_offset() const {
  const uint64_t held = extents_.empty() ? 0 : extents_.back().end;
  return std::max(held, header_.end_offset);
}

std::optional<BlockReader::Extent> BlockReader::ExtentAtOrAfter(uint64_t offset) const {
  const auto at = std::upper_bound(extents_.begin(), extents_.end(), offset,
                                   [](uint64_t o, const Extent& e) { return o < e.end; });
  if (at == extents_.end()) return std::nullopt;
  return *at;
}

BlockReader::Event BlockReader::ReportLoss(uint64_t end, LossReason reason) {
  loss_ = {position_, end, reason};
  position_ = end;
  return Event::kLoss;
}

BlockReader::Event BlockReader::Next(size_t limit) {
  for (;;) {
    const std::optional<Extent> extent = ExtentAtOrAfter(position_);
    if (!extent) {
      if (position_ < header_.end_offset) {
        return ReportLoss(header_.end_offset, LossReason::kNotWritten);
      }
      return Event::kEnd;
    }
    if (position_ < extent->begin) {
      const bool oldest = extent->begin == extents_.front().begin;
      return ReportLoss(extent->begin, oldest ? LossReason::kOverwritten : LossReason::kNotWritten);
    }
    if (ReadExtent(*extent, limit)) return Event::kBlock;

    // Lapped by the writer, or damaged. Look again; what is still claimed and
    // still cannot be read is lost.
    if (!Refresh().ok()) return ReportLoss(extent->end, LossReason::kUnreadable);
    const std::optional<Extent> again = ExtentAtOrAfter(position_);
    if (!again || again->begin > position_) continue;
    if (ReadExtent(*again, limit)) return Event::kBlock;
    // A damaged frame takes nothing with it; anything else the rest of its segment.
    const bool frame_only = unreadable_end_ > position_ && unreadable_end_ < again->end;
    return ReportLoss(frame_only ? unreadable_end_ : again->end, LossReason::kUnreadable);
  }
}

BlockReader::OpenSegment* BlockReader::OpenFor(const Extent& extent) {
  OpenSegment* open = extent.segment == kTail ? &tail_file_ : &segments_[extent.segment];
  const uint64_t sequence = extent.segment == kTail ? 0 : slots_[extent.segment].sequence;
  if (open->file != nullptr && open->sequence == sequence) return open;
  const std::string path = extent.segment == kTail
                               ? TailPath(prefix_)
                               : SegmentPath(prefix_, extent.segment, extent.encoding);
  auto file = files_->Open(path, FileSystem::Mode::kRead);
  if (!file.ok()) return nullptr;
  *open = OpenSegment{};
  open->file = std::move(*file);
  open->sequence = sequence;
  return open;
}

// Reads from position_ to the end of the extent or `limit` bytes of it.
bool BlockReader::ReadExtent(const Extent& extent, size_t limit) {
  if (extent.encoding == Encoding::kZstd) return ReadFrame(extent, limit);
  OpenSegment* open = OpenFor(extent);
  if (open == nullptr) return false;
  const size_t want = std::min<uint64_t>(limit, extent.end - position_);
  block_.resize(want);
  auto got = open->file->ReadAt(extent.file_offset + (position_ - extent.begin),
                                {block_.data(), block_.size()});
  if (!got.ok() || *got == 0) return false;
  if (!StillHeld(extent, position_, position_ + *got)) return false;
  block_.resize(*got);
  block_offset_ = position_;
  position_ += *got;
  return true;
}

// The same from a compressed segment: at most to the end of a frame. A frame vouches
// for itself (run, offset, checksum), so it needs no second look.
bool BlockReader::ReadFrame(const Extent& extent, size_t limit) {
  const bool cached =
      position_ >= frame_block_begin_ && position_ < frame_block_begin_ + frame_block_.size();
  if (!cached) {
    OpenSegment* open = OpenFor(extent);
    if (open == nullptr) return false;
    const FrameRef* frame = FindFrame(open, position_, slots_[extent.segment].touched_end);
    if (frame == nullptr) {
      *open = OpenSegment{};  // perhaps replaced: look at the new file next time
      return false;
    }
    frame_bytes_.resize(frame->frame_bytes);
    auto got = open->file->ReadAt(frame->frame_at, {frame_bytes_.data(), frame_bytes_.size()});
    if (decoder_ == nullptr) decoder_ = std::make_unique<FrameDecoder>();
    const bool whole = got.value_or(0) == frame_bytes_.size() &&
                       decoder_->Decode(frame_bytes_, frame->stream_bytes, &frame_block_);
    if (!whole) {
      unreadable_end_ = frame->begin_offset + frame->stream_bytes;
      frame_block_.clear();
      return false;
    }
    frame_block_begin_ = frame->begin_offset;
  }
  const size_t from = position_ - frame_block_begin_;
  const uint64_t end = std::min<uint64_t>(frame_block_begin_ + frame_block_.size(), extent.end);
  block_.assign(frame_block_, from, std::min<uint64_t>(limit, end - position_));
  block_offset_ = position_;
  position_ += block_.size();
  return true;
}

// The frame that holds the byte at `offset`, looking at no more of the file than the
// slot vouches for.
const FrameRef* BlockReader::FindFrame(OpenSegment* segment, uint64_t offset, uint64_t file_bytes) {
  file_bytes = std::min(file_bytes, header_.segment_bytes);
  std::string piece;
  uint64_t piece_at = 0;
  while (segment->scanned_to + sizeof(FrameHead) <= file_bytes) {
    const uint64_t at = segment->scanned_to;
    if (at < piece_at || at + sizeof(FrameHead) > piece_at + piece.size()) {
      piece.resize(kScanBytes);
      piece.resize(segment->file->ReadAt(at, {piece.data(), piece.size()}).value_or(0));
      piece_at = at;
      if (piece.size() < sizeof(FrameHead)) break;
    }
    const auto frame =
        ParseFrameHead(std::string_view(piece).substr(at - piece_at), at, header_.run_id);
    if (!frame || frame->next > file_bytes) break;
    segment->frames.push_back(*frame);
    segment->scanned_to = frame->next;
  }
  const auto after =
      std::upper_bound(segment->frames.begin(), segment->frames.end(), offset,
                       [](uint64_t o, const FrameRef& f) { return o < f.begin_offset; });
  if (after == segment->frames.begin()) return nullptr;
  const FrameRef& frame = *(after - 1);
  return offset < frame.begin_offset + frame.stream_bytes ? &frame : nullptr;
}

// The second look at the slot or tail: pairs with the writer's publication (a).
bool BlockReader::StillHeld(const Extent& extent, uint64_t begin, uint64_t end) {
  std::vector<Extent> held;
  if (extent.segment == kTail) {
    IndexTail now{};
    if (!ReadRecord(*index_, kTailAt, &now)) return false;
    AppendTail(now, &held);
  } else {
    IndexSlot now{};
    if (!ReadRecord(*index_, SlotAt(extent.segment), &now)) return false;
    AppendExtents(now, extent.segment, header_, &held);
  }
  return std::any_of(held.begin(), held.end(), [&](const Extent& e) {
    const bool same_place = e.begin - e.file_offset == extent.begin - extent.file_offset;
    return same_place && e.begin <= begin && end <= e.end;
  });
}

std::vector<IndexStamp> BlockReader::StampsOf(uint32_t segment) {
  std::vector<IndexStamp> stamps(header_.stamps_per_segment);
  auto got =
      index_->ReadAt(StampsAt(header_.segment_count, header_.stamps_per_segment, segment),
                     {reinterpret_cast<char*>(stamps.data()), stamps.size() * sizeof(IndexStamp)});
  stamps.resize(got.ok() ? *got / sizeof(IndexStamp) : 0);
  // Keep the rising run that belongs to this round; anything else is older.
  const IndexSlot& slot = slots_[segment];
  size_t kept = 0;
  while (kept < stamps.size() && stamps[kept].time > 0 &&
         stamps[kept].offset >= slot.begin_offset && stamps[kept].offset <= kLargestOffset &&
         (kept == 0 || stamps[kept].offset > stamps[kept - 1].offset)) {
    ++kept;
  }
  stamps.resize(kept);
  return stamps;
}

std::optional<TimeNs> BlockReader::TimeOf(uint64_t offset) {
  // The newest segment that began at or before the offset has the stamp.
  const IndexSlot* best = nullptr;
  for (const IndexSlot& slot : slots_) {
    if (slot.sequence == 0 || slot.begin_offset > offset) continue;
    if (best == nullptr || slot.begin_offset > best->begin_offset) best = &slot;
  }
  std::optional<TimeNs> time;
  if (best != nullptr) {
    for (const IndexStamp& stamp : StampsOf(static_cast<uint32_t>(best - slots_.data()))) {
      if (stamp.offset <= offset) time = stamp.time;
    }
  }
  // The tail's own times are finer, or the only ones.
  if (tail_.length == 0 || offset < tail_.begin_offset) return time;
  const TimeNs arrival = offset >= tail_.recent_offset ? tail_.recent_time : tail_.time;
  return std::max(arrival, time.value_or(0));
}

std::optional<TimeNs> BlockReader::OldestTime() {
  const IndexSlot* oldest = nullptr;
  for (const IndexSlot& slot : slots_) {
    if (slot.sequence == 0 || slot.length == 0) continue;
    if (oldest == nullptr || slot.begin_offset < oldest->begin_offset) oldest = &slot;
  }
  if (oldest == nullptr) return tail_.length > 0 ? std::optional(tail_.time) : std::nullopt;
  const auto stamps = StampsOf(static_cast<uint32_t>(oldest - slots_.data()));
  if (stamps.empty()) return std::nullopt;
  return stamps.front().time;
}

std::string BlockReader::stream_name() const {
  return {header_.name, strnlen(header_.name, sizeof header_.name)};
}

bool BlockReader::HasWriter() {
  auto probe = files_->Open(IndexPath(prefix_), FileSystem::Mode::kRead);
  return probe.ok() && (*probe)->IsLocked();
}

StreamWindow BlockReader::Window() {
  StreamWindow window;
  window.name = stream_name();
  window.begin_offset = begin_offset();
  window.end_offset = end_offset();
  window.begin_time = OldestTime().value_or(header_.start_monotonic);
  uint64_t at = window.begin_offset;
  for (const Extent& extent : extents_) {
    if (at < extent.begin) window.losses.push_back({at, extent.begin, LossReason::kNotWritten});
    at = extent.end;
  }
  if (at < window.end_offset) {
    window.losses.push_back({at, window.end_offset, LossReason::kNotWritten});
  }
  return window;
}

}  // namespace hangscope
