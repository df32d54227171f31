#include "capture/ring_store.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace hangscope {
namespace {

constexpr TimeNs kFirstStampInterval = 10 * kMillisecond;
constexpr uint64_t kSmallSegment = 1u << 20;

bool IsStaleFile(std::string_view name, std::string_view ring) {
  if (!name.starts_with(ring) || name.size() <= ring.size() + 1 || name[ring.size()] != '.') {
    return false;
  }
  std::string_view rest = name.substr(ring.size() + 1);
  if (rest == "index" || rest == "current" || rest == "current~" || rest == "snapshot") return true;
  if (rest.ends_with(".zst")) rest.remove_suffix(4);
  return std::all_of(rest.begin(), rest.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

Result<std::unique_ptr<RingStore>> RingStore::Create(FileSystem& files, Clock& clock,
                                                     const std::string& prefix,
                                                     const std::string& stream_name,
                                                     const RingGeometry& geometry,
                                                     uint64_t run_id) {
  const std::string folder = FolderOf(prefix);
  if (Status status = files.MakeFolders(folder); !status.ok()) return status;
  std::unique_ptr<RingStore> store(new RingStore(files, clock, prefix, stream_name, geometry));

  auto index = files.Open(IndexPath(prefix), FileSystem::Mode::kCreate);
  if (!index.ok()) return index.status();
  if (Status status = (*index)->Lock(); !status.ok()) {
    if (status.code() != Status::Code::kBusy) return status;
    return Status::Busy("the ring '" + prefix +
                        "' is in use by a live recorder; give this one another --prefix");
  }
  store->index_ = std::move(*index);

  // The index is kept (it carries the lock) and emptied first, so that at no
  // instant an old index describes the segments of this run.
  if (Status status = store->index_->Truncate(0); !status.ok()) return status;
  for (const std::string& name : files.List(folder)) {
    if (IsStaleFile(name, NameOf(prefix)) && name != NameOf(IndexPath(prefix))) {
      if (Status status = files.Remove(folder + "/" + name); !status.ok()) return status;
    }
  }
  if (Status status = store->PrepareIndex(run_id); !status.ok()) return status;
  return store;
}

RingStore::RingStore(FileSystem& files, Clock& clock, std::string prefix, std::string stream_name,
                     const RingGeometry& geometry)
    : files_(files),
      clock_(clock),
      prefix_(std::move(prefix)),
      stream_name_(std::move(stream_name)),
      geometry_(geometry),
      slots_(geometry.segment_count),
      segments_(geometry.segment_count) {}

RingStore::~RingStore() = default;

Status RingStore::PrepareIndex(uint64_t run_id) {
  std::memcpy(header_.magic, kIndexMagic, sizeof kIndexMagic);
  header_.version = kIndexVersion;
  header_.header_bytes = sizeof(IndexHeader);
  header_.segment_count = geometry_.segment_count;
  header_.stamps_per_segment = geometry_.stamps_per_segment;
  header_.segment_bytes = geometry_.segment_bytes;
  header_.bound_bytes = geometry_.bound_bytes;
  header_.run_id = run_id;
  header_.start_monotonic = clock_.Monotonic();
  header_.start_wall = clock_.Wall();
  stream_name_.copy(header_.name, sizeof header_.name - 1);

  // All of the index is written now, so that a disk that fills later has room
  // for every update of it.
  std::string image(geometry_.index_bytes(), '\0');
  header_.check = CheckOf(header_);
  std::memcpy(image.data(), &header_, sizeof header_);
  for (uint32_t k = 0; k < geometry_.segment_count; ++k) {
    slots_[k].check = CheckOf(slots_[k]);
    std::memcpy(image.data() + SlotAt(k), &slots_[k], sizeof(IndexSlot));
  }
  size_t written = 0;
  return index_->WriteAt(0, image, &written);
}

void RingStore::Append(std::string_view bytes, TimeNs stamp) {
  const std::lock_guard lock(mutex_);
  while (!bytes.empty()) {
    const IndexSlot& slot = slots_[current_];
    const bool full = slot.length == geometry_.segment_bytes;
    if (sequence_ == 0 || slot.closed != 0 || full) {
      if (Status status = OpenNextSegment(); !status.ok()) return CountLoss(bytes.size(), status);
    }
    const size_t done = WriteToSegment(bytes, stamp);
    if (done == 0) return;
    bytes.remove_prefix(done);
  }
}

Status RingStore::OpenNextSegment() {
  const uint32_t next = sequence_ == 0 ? 0 : (current_ + 1) % geometry_.segment_count;
  IndexSlot& slot = slots_[next];
  std::unique_ptr<File>& file = segments_[next];
  const std::string path = SegmentPath(prefix_, next);

  // A segment that a snapshot links to belongs to the snapshot: give up its
  // history here first, then put a new file in its place.
  bool replace = false;
  if (file != nullptr) {
    auto links = file->LinkCount();
    replace = !links.ok() || *links != 1;  // 0: somebody deleted it under us
  }
  const IndexSlot before = slot;
  slot = IndexSlot{};
  slot.sequence = sequence_ + 1;
  slot.begin_offset = head_;
  if (file != nullptr && !replace) {
    slot.prev_begin = before.begin_offset;
    slot.prev_length = before.length;
  }
  PublishSlot(next);
  if (replace) {
    file.reset();
    if (Status status = files_.Remove(path); !status.ok()) return status;
  }
  if (file == nullptr) {
    auto opened = files_.Open(path, FileSystem::Mode::kCreate);
    if (!opened.ok()) return opened.status();
    file = std::move(*opened);
  }
  current_ = next;
  ++sequence_;
  stamps_.clear();
  stamp_interval_ = kFirstStampInterval;
  // The link is a convenience for people; the index is what readers trust.
  (void)files_.PointLink(CurrentPath(prefix_), NameOf(path)).ok();
  return {};
}

// Writes what fits into the current segment; returns how many bytes it took
// care of (written or, at an error, counted as lost). 0: all lost.
size_t RingStore::WriteToSegment(std::string_view bytes, TimeNs stamp) {
  IndexSlot& slot = slots_[current_];
  if (slot.length == 0) slot.begin_offset = head_;  // losses may have moved the head
  const size_t room = geometry_.segment_bytes - slot.length;
  // Small pieces on small rings: what is in flight is not history either.
  const std::string_view piece =
      bytes.substr(0, std::min<uint64_t>(room, geometry_.reserve_bytes));

  if (slot.prev_length > slot.length && slot.length + piece.size() > slot.reserved_end) {
    slot.reserved_end = std::min(slot.length + geometry_.reserve_bytes, geometry_.segment_bytes);
    PublishSlot(current_);  // (a): gives up the old bytes; pairs with the reader's second look
  }
  AddStamp(stamp);
  size_t written = 0;
  const Status status = segments_[current_]->WriteAt(slot.length, piece, &written);  // (b)
  slot.length += written;
  head_ += written;
  if (!status.ok() && slot.length > 0) slot.closed = 1;  // a gap never lies inside a segment
  PublishSlot(current_);                                  // (c): pairs with the reader's first look
  if (!status.ok()) {
    CountLoss(bytes.size() - written, status);
    return 0;
  }
  return written;
}

void RingStore::CountLoss(uint64_t bytes, const Status& why) {
  head_ += bytes;
  header_.lost_bytes += bytes;
  header_.lost_errno = why.error();
  PublishHeader();
}

void RingStore::AddStamp(TimeNs stamp) {
  if (!stamps_.empty() && stamp - stamps_.back().time < stamp_interval_) return;
  if (stamps_.size() == geometry_.stamps_per_segment) ThinStamps();
  if (stamps_.size() < geometry_.stamps_per_segment) stamps_.push_back({head_, stamp});
  PublishStamps();
}

// Makes room by forgetting every second stamp and spacing later ones wider.
void RingStore::ThinStamps() {
  size_t kept = 0;
  for (size_t i = 0; i < stamps_.size(); i += 2) stamps_[kept++] = stamps_[i];
  stamps_.resize(kept);
  stamp_interval_ *= 2;
}

void RingStore::PublishSlot(uint32_t segment) {
  IndexSlot& slot = slots_[segment];
  slot.check = CheckOf(slot);
  size_t written = 0;
  (void)index_->WriteAt(SlotAt(segment), {reinterpret_cast<const char*>(&slot), sizeof slot}, &written)
      .ok();
}

void RingStore::PublishStamps() {
  std::vector<IndexStamp> image = stamps_;
  if (image.size() < geometry_.stamps_per_segment) image.push_back({});  // ends the list
  size_t written = 0;
  (void)index_
      ->WriteAt(StampsAt(geometry_.segment_count, geometry_.stamps_per_segment, current_),
                {reinterpret_cast<const char*>(image.data()), image.size() * sizeof(IndexStamp)},
                &written)
      .ok();
}

void RingStore::PublishHeader() {
  header_.end_offset = head_;
  header_.check = CheckOf(header_);
  size_t written = 0;
  (void)index_->WriteAt(0, {reinterpret_cast<const char*>(&header_), sizeof header_}, &written).ok();
}

Status RingStore::Freeze(const std::string& folder) {
  const std::string pinned = folder + "/" + stream_name_;
  const std::lock_guard lock(mutex_);
  // The segment being filled: a small one is copied, so that many snapshots in a
  // row cost the ring no history; a large one is closed early and linked.
  const bool open = sequence_ != 0 && slots_[current_].closed == 0 && slots_[current_].length > 0;
  const bool copy = open && geometry_.segment_bytes <= kSmallSegment;
  if (open && !copy) {
    slots_[current_].closed = 1;  // the next append opens the next segment
    PublishSlot(current_);
  }
  PublishHeader();
  for (uint32_t k = 0; k < geometry_.segment_count; ++k) {
    if (slots_[k].sequence == 0 || segments_[k] == nullptr) continue;
    Status status = copy && k == current_ ? CopySegment(k, pinned) : LinkSegment(k, pinned);
    if (!status.ok()) return status;
  }
  std::string image(geometry_.index_bytes(), '\0');
  auto got = index_->ReadAt(0, {image.data(), image.size()});
  if (!got.ok()) return got.status();
  return WriteWholeFile(files_, IndexPath(pinned), image);
}

Status RingStore::LinkSegment(uint32_t segment, const std::string& pinned_prefix) {
  const std::string to = SegmentPath(pinned_prefix, segment);
  if (files_.Link(SegmentPath(prefix_, segment), to).ok()) return {};
  return CopySegment(segment, pinned_prefix);  // no hard links here: FAT, some network disks
}

Status RingStore::CopySegment(uint32_t segment, const std::string& pinned_prefix) {
  const IndexSlot& slot = slots_[segment];
  std::string bytes(std::max(slot.length, slot.prev_length), '\0');
  auto got = segments_[segment]->ReadAt(0, {bytes.data(), bytes.size()});
  if (!got.ok()) return got.status();
  return WriteWholeFile(files_, SegmentPath(pinned_prefix, segment), {bytes.data(), *got});
}

void RingStore::Finish() {
  const std::lock_guard lock(mutex_);
  header_.flags |= kIndexFinished;
  PublishHeader();
}

RingFill RingStore::fill() const {
  const std::lock_guard lock(mutex_);
  RingFill fill;
  fill.total_bytes = head_;
  fill.bound_bytes = geometry_.bound_bytes;
  fill.lost_bytes = header_.lost_bytes;
  fill.lost_errno = static_cast<int>(header_.lost_errno);
  for (const IndexSlot& slot : slots_) {
    fill.history_bytes += slot.length;
    const uint64_t untouched = std::max(slot.length, slot.reserved_end);
    if (slot.prev_length > untouched) fill.history_bytes += slot.prev_length - untouched;
  }
  return fill;
}

}  // namespace hangscope
