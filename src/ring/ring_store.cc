#include "ring/ring_store.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <utility>

namespace hangscope {
namespace {

constexpr TimeNs kFirstStampInterval = 10 * kMillisecond;
// A segment that holds no more is copied into a snapshot; a fuller one is closed
// early and linked.
constexpr uint64_t kCheapCopy = 1u << 20;
constexpr TimeNs kLongestDeath = 5 * kSecond;
constexpr TimeNs kFullDiskPause = kSecond;  // before new room is asked for again

bool IsStaleFile(std::string_view name, std::string_view ring) {
  if (!name.starts_with(ring) || name.size() <= ring.size() + 1 || name[ring.size()] != '.') {
    return false;
  }
  std::string_view rest = name.substr(ring.size() + 1);
  for (const std::string_view known :
       {"index", "current", "current~", "snapshot", "snapshot~", "tail", "next"}) {
    if (rest == known) return true;
  }
  if (rest.ends_with(".zst")) rest.remove_suffix(4);
  return !rest.empty() && std::all_of(rest.begin(), rest.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool IsFull(const Status& status) { return status.error() == ENOSPC || status.error() == EDQUOT; }

// Of this round.
uint64_t FileBytes(const IndexSlot& slot) {
  return slot.encoding == Encoding::kZstd ? slot.touched_end : slot.length;
}

template <typename Record>
void PutRecord(Record record, uint64_t offset, std::string* index) {
  record.check = CheckOf(record);
  std::memcpy(index->data() + offset, &record, sizeof record);
}

// An index up to its stamps.
void PutRecords(const IndexHeader& header, const IndexTail& tail,
                const std::vector<IndexSlot>& slots, std::string* index) {
  PutRecord(header, 0, index);
  PutRecord(tail, kTailAt, index);
  for (uint32_t k = 0; k < slots.size(); ++k) PutRecord(slots[k], SlotAt(k), index);
}

// A compressed segment on its way to its name.
std::string NextPath(const std::string& prefix) { return prefix + ".next"; }

}  // namespace

// Holds the ring while it changes, and tells what became of it.
class RingStore::Change {
 public:
  explicit Change(RingStore* store) : store_(*store), lock_(store->mutex_) {}
  ~Change() { store_.Tell(); }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  RingStore& store_;
  const std::lock_guard<std::mutex> lock_;
};

Result<std::unique_ptr<RingStore>> RingStore::Create(FileSystem& files, Clock& clock,
                                                     const std::string& prefix,
                                                     const std::string& stream_name,
                                                     const RingGeometry& geometry,
                                                     uint64_t run_id) {
  if (Status status = files.MakeFolders(FolderOf(prefix)); !status.ok()) return status;
  std::unique_ptr<RingStore> store(new RingStore(files, clock, prefix));
  store->stream_name_ = stream_name;
  store->geometry_ = geometry;
  store->slots_.resize(geometry.segment_count);
  store->held_.resize(geometry.segment_count);

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
  if (Status status = store->RemoveStale(); !status.ok()) return status;

  IndexHeader& header = store->header_;
  std::memcpy(header.magic, kIndexMagic, sizeof kIndexMagic);
  header.version = kIndexVersion;
  header.header_bytes = sizeof(IndexHeader);
  header.segment_count = geometry.segment_count;
  header.stamps_per_segment = geometry.stamps_per_segment;
  header.segment_bytes = geometry.segment_bytes;
  header.bound_bytes = geometry.bound_bytes;
  header.run_id = run_id;
  header.start_monotonic = clock.Monotonic();
  header.start_wall = clock.Wall();
  if (geometry.compress != Compress::kNone) header.flags |= kIndexZstd;
  if (geometry.compress == Compress::kAuto) header.flags |= kIndexAuto;
  stream_name.copy(header.name, sizeof header.name - 1);
  if (Status status = store->WriteIndex(); !status.ok()) return status;
  store->Tell();
  return store;
}

RingStore::RingStore(FileSystem& files, Clock& clock, std::string prefix)
    : files_(files), clock_(clock), prefix_(std::move(prefix)) {}

RingStore::~RingStore() = default;

Status RingStore::RemoveStale() {
  const std::string folder = FolderOf(prefix_);
  for (const std::string& name : files_.List(folder)) {
    if (!IsStaleFile(name, NameOf(prefix_)) || name == NameOf(IndexPath(prefix_))) continue;
    if (Status status = files_.Remove(folder + "/" + name); !status.ok()) return status;
  }
  return {};
}

// All of the index and the tail is written, so that a disk that fills later has
// room for every update of them.
Status RingStore::WriteIndex() {
  std::string image(geometry_.index_bytes(), '\0');
  // While the tail becomes a frame, the head is before it; it is history all the time.
  header_.end_offset = std::max(head_, tail_.begin_offset + tail_.length) + gap_;
  PutRecords(header_, tail_, slots_, &image);
  size_t written = 0;
  if (Status status = index_->WriteAt(0, image, &written); !status.ok()) return status;
  if (geometry_.block_bytes == 0) return {};
  std::string bytes(geometry_.block_bytes, '\0');
  if (tail_file_ != nullptr) (void)tail_file_->ReadAt(0, bytes).ok();  // likewise
  auto tail = files_.Open(TailPath(prefix_), FileSystem::Mode::kCreate);
  if (!tail.ok()) return tail.status();
  tail_file_ = std::move(*tail);
  return tail_file_->WriteAt(0, bytes, &written);
}

Result<std::unique_ptr<RingStore>> RingStore::Resume(FileSystem& files, Clock& clock,
                                                     const std::string& prefix) {
  std::unique_ptr<RingStore> store(new RingStore(files, clock, prefix));
  auto index = files.Open(IndexPath(prefix), FileSystem::Mode::kReadWrite);
  if (!index.ok()) return index.status();
  store->index_ = std::move(*index);
  // The kernel closes the files of a dead recorder one after the other.
  Status locked = store->index_->Lock();
  for (TimeNs waited = 0; locked.code() == Status::Code::kBusy && waited < kLongestDeath;
       waited += kMillisecond) {
    clock.Sleep(kMillisecond);
    locked = store->index_->Lock();
  }
  if (!locked.ok()) return locked;
  if (Status status = store->ReadBack(); !status.ok()) return status;
  store->Tell();
  return store;
}

Status RingStore::ReadBack() {
  auto got = index_->ReadAt(0, {reinterpret_cast<char*>(&header_), sizeof header_});
  if (!got.ok()) return got.status();
  if (*got < sizeof header_ || header_.check != CheckOf(header_) ||
      header_.version != kIndexVersion || !IsSane(header_)) {
    return Status::Corrupt("the index '" + IndexPath(prefix_) + "' is damaged");
  }
  stream_name_.assign(header_.name, strnlen(header_.name, sizeof header_.name));
  geometry_.bound_bytes = header_.bound_bytes;
  geometry_.segment_count = header_.segment_count;
  geometry_.stamps_per_segment = header_.stamps_per_segment;
  geometry_.segment_bytes = header_.segment_bytes;
  geometry_.reserve_bytes = ReserveBytes(header_.bound_bytes);
  head_ = header_.end_offset;
  ReadBackSlots();
  if (sequence_ != 0) ReadBackCurrent();
  if ((header_.flags & kIndexZstd) != 0) return ReadBackTail();
  return {};
}

void RingStore::ReadBackSlots() {
  slots_.resize(geometry_.segment_count);
  held_.resize(geometry_.segment_count);
  for (uint32_t k = 0; k < slots_.size(); ++k) {
    IndexSlot& slot = slots_[k];
    const bool sound = ReadRecord(*index_, SlotAt(k), &slot);
    CountSlot(k);
    if (!sound || slot.sequence <= sequence_) continue;
    sequence_ = slot.sequence;
    current_ = k;
  }
}

void RingStore::ReadBackCurrent() {
  auto segment =
      files_.Open(SegmentPath(prefix_, current_, current().encoding), FileSystem::Mode::kReadWrite);
  if (segment.ok())
    segment_ = std::move(*segment);
  else
    current().closed = 1;
  AdoptPublishedFrames();
  head_ = std::max(head_, current().begin_offset + current().length);
  stamps_.resize(geometry_.stamps_per_segment);
  auto got = index_->ReadAt(
      StampsAt(geometry_.segment_count, geometry_.stamps_per_segment, current_),
      {reinterpret_cast<char*>(stamps_.data()), stamps_.size() * sizeof(IndexStamp)});
  stamps_.resize(got.value_or(0) / sizeof(IndexStamp));
  const auto end =
      std::find_if(stamps_.begin(), stamps_.end(), [](const IndexStamp& s) { return s.time == 0; });
  stamps_.erase(end, stamps_.end());
  stamp_interval_ = kFirstStampInterval;
}

// Frames may cover the beginning of the tail already; what is behind them moves
// to the front.
Status RingStore::ReadBackTail() {
  geometry_.compress = (header_.flags & kIndexAuto) != 0 ? Compress::kAuto : Compress::kZstd;
  auto file = files_.Open(TailPath(prefix_), FileSystem::Mode::kReadWrite);
  if (!file.ok()) return file.status();
  tail_file_ = std::move(*file);
  geometry_.block_bytes = tail_file_->Size().value_or(0);
  const bool sound = ReadRecord(*index_, kTailAt, &tail_) && tail_.length <= geometry_.block_bytes;
  const uint64_t end = tail_.begin_offset + tail_.length;
  if (!sound || end <= head_ || tail_.begin_offset > head_) return {};
  std::string bytes(end - head_, '\0');
  auto got = tail_file_->ReadAt(head_ - tail_.begin_offset, {bytes.data(), bytes.size()});
  bytes.resize(got.value_or(0));
  const TimeNs now = clock_.Monotonic();
  if (tail_.begin_offset == head_) {
    tail_bytes_ = bytes;
    tail_stamp_ = now;
    head_ += bytes.size();
    return {};
  }
  return AddToTail(bytes, now) == bytes.size()
             ? Status()
             : Status::FromErrno(last_error_, "write", TailPath(prefix_));
}

// The recorder may have been killed between a frame and its slot.
void RingStore::AdoptPublishedFrames() {
  if (segment_ == nullptr || current().encoding != Encoding::kZstd) return;
  for (;;) {
    std::string head(sizeof(FrameHead), '\0');
    auto got = segment_->ReadAt(current().touched_end, {head.data(), head.size()});
    head.resize(got.value_or(0));
    const auto frame = ParseFrameHead(head, current().touched_end, header_.run_id);
    if (!frame || frame->begin_offset != current().begin_offset + current().length ||
        frame->next > geometry_.segment_bytes)
      return;
    current().length += frame->stream_bytes;
    current().touched_end = frame->next;
    PublishSlot(current_);
  }
}

size_t RingStore::Append(std::string_view bytes, TimeNs stamp) {
  const Change change(this);
  failing_ = false;
  if (!CloseBeforeGap()) return 0;
  size_t taken = 0;
  while (taken < bytes.size() && !failing_) {
    const std::string_view rest = bytes.substr(taken);
    const bool plain = NextEncoding() == Encoding::kPlain;
    if (plain && !tail_bytes_.empty() && !FlushTail()) break;
    taken += plain ? AppendPlain(rest, stamp) : AppendCompressed(rest, stamp);
  }
  return taken;
}

// An open segment goes on as it is, unless it is compressed and too slow.
Encoding RingStore::NextEncoding() const {
  if (geometry_.compress == Compress::kNone || geometry_.block_bytes == 0) return Encoding::kPlain;
  if (geometry_.compress == Compress::kZstd) return Encoding::kZstd;
  if (pressed_.load(std::memory_order_relaxed)) return Encoding::kPlain;
  return HasRoom() ? slots_[current_].encoding : Encoding::kZstd;
}

// Whether the current segment takes more.
bool RingStore::HasRoom() const {
  return sequence_ != 0 && segment_ != nullptr && slots_[current_].closed == 0 &&
         FileBytes(slots_[current_]) < geometry_.segment_bytes;
}

// Makes the current segment one of this encoding with room in it.
bool RingStore::PrepareSegment(Encoding encoding, TimeNs stamp) {
  if (HasRoom() && current().encoding == encoding) return true;
  if (geometry_.compress == Compress::kAuto && encoding == Encoding::kPlain)
    gave_up_compression_ = true;
  if (const Status status = Reinstate(); !status.ok()) {
    Refuse(status);
    return false;
  }
  const bool again = disk_full_ && clock_.Monotonic() - full_since_ >= kFullDiskPause;
  if (again) disk_full_ = false;  // there may be room by now
  Status status = OpenNextSegment(encoding);
  while (!status.ok() && NextMayFit(status)) status = OpenNextSegment(encoding);
  if (!status.ok()) {
    Refuse(status);
    return false;
  }
  AddStamp(current().begin_offset, stamp);
  return true;
}

// After a refusal: whether another segment may have room. A full disk has none for
// a fresh one, but the oldest ones need none. At most one turn of the ring.
bool RingStore::NextMayFit(const Status& refusal) {
  if (!IsFull(refusal)) return false;
  if (!disk_full_) full_since_ = clock_.Monotonic();
  disk_full_ = true;
  return ++barren_ <= slots_.size();
}

// The one that was filled longest ago; a fresh one before all others, unless the
// disk is full: then one that brings its room with it.
std::optional<uint32_t> RingStore::ChooseSegment() {
  std::optional<uint32_t> best;
  for (uint32_t k = 0; k < slots_.size(); ++k) {
    if (sequence_ != 0 && k == current_) continue;
    if (disk_full_ && (slots_[k].sequence == 0 || IsPinned(k))) continue;
    if (!best || slots_[k].sequence < slots_[*best].sequence) best = k;
  }
  return best;
}

// Whether a snapshot links to it, or somebody deleted it under us: not to be
// written to again.
bool RingStore::IsPinned(uint32_t segment) {
  auto file = files_.Open(SegmentPath(prefix_, segment, slots_[segment].encoding),
                          FileSystem::Mode::kReadWrite);
  if (!file.ok()) return true;
  return (*file)->LinkCount().value_or(0) != 1;
}

void RingStore::CloseCurrent() {
  if (sequence_ == 0 || current().closed != 0) return;
  current().closed = 1;
  PublishSlot(current_);
  if (current().encoding == Encoding::kZstd && segment_ != nullptr) {
    (void)segment_->Truncate(current().touched_end).ok();  // the unused rest
  }
}

Status RingStore::OpenNextSegment(Encoding encoding) {
  CloseCurrent();
  const std::optional<uint32_t> chosen = ChooseSegment();
  if (!chosen) return Status::FromErrno(ENOSPC, "write", prefix_);
  const uint32_t next = *chosen;
  const IndexSlot before = slots_[next];
  const bool in_place = encoding == Encoding::kPlain && before.sequence != 0 &&
                        before.encoding == Encoding::kPlain && !IsPinned(next);
  // Its history is given up here first, in the index; then the file goes.
  IndexSlot fresh{};
  fresh.sequence = sequence_ + 1;
  fresh.begin_offset = head_ - tail_bytes_.size();
  fresh.encoding = encoding;
  if (in_place) {
    fresh.prev_begin = before.begin_offset;
    fresh.prev_length = before.length;
  }
  slots_[next] = fresh;
  PublishSlot(next);
  Status status;
  if (!in_place) {
    status = files_.Remove(SegmentPath(prefix_, next, Encoding::kPlain));
    if (status.ok()) status = files_.Remove(SegmentPath(prefix_, next, Encoding::kZstd));
  }
  if (status.ok()) status = OpenSegment(next, encoding);
  if (!status.ok()) {
    slots_[next] = IndexSlot{};
    PublishSlot(next);
    return status;
  }
  current_ = next;
  ++sequence_;
  stamps_.clear();
  stamp_interval_ = kFirstStampInterval;
  // The link is a convenience for people; the index is what readers trust.
  (void)files_.PointLink(CurrentPath(prefix_), NameOf(SegmentPath(prefix_, next, encoding))).ok();
  return {};
}

Status RingStore::OpenSegment(uint32_t segment, Encoding encoding) {
  const std::string path = SegmentPath(prefix_, segment, encoding);
  if (encoding == Encoding::kZstd) {
    if (Status status = CreateCompressed(path); !status.ok()) return status;
  }
  auto opened = files_.Open(path, FileSystem::Mode::kCreate);
  if (!opened.ok()) return opened.status();
  segment_ = std::move(*opened);
  return {};
}

// It gets its name once it is valid: all of it one unused rest.
Status RingStore::CreateCompressed(const std::string& path) {
  const std::string next = NextPath(prefix_);
  auto file = files_.Open(next, FileSystem::Mode::kCreate);
  if (!file.ok()) return file.status();
  size_t written = 0;
  Status status = (*file)->Truncate(geometry_.segment_bytes);
  if (status.ok()) status = (*file)->WriteAt(0, UnusedRest(geometry_.segment_bytes), &written);
  if (status.ok()) status = files_.Rename(next, path);
  if (!status.ok()) (void)files_.Remove(next).ok();
  return status;
}

void RingStore::Refuse(const Status& why) {
  failing_ = true;
  barren_ = 0;
  last_error_ = why.error() != 0 ? why.error() : EIO;
}

// Writes what fits into the current segment; returns how many bytes the disk took.
size_t RingStore::AppendPlain(std::string_view bytes, TimeNs stamp) {
  if (!PrepareSegment(Encoding::kPlain, stamp)) return 0;
  IndexSlot& slot = slots_[current_];
  if (slot.length == 0) slot.begin_offset = head_;  // losses may have moved the head
  const size_t room = geometry_.segment_bytes - slot.length;
  // Small pieces on small rings: what is in flight is not history either.
  const std::string_view piece = bytes.substr(0, std::min<uint64_t>(room, geometry_.reserve_bytes));

  if (slot.prev_length > slot.length && slot.length + piece.size() > slot.touched_end) {
    slot.touched_end = std::min(slot.length + geometry_.reserve_bytes, geometry_.segment_bytes);
    PublishSlot(current_);  // (a): gives up the old bytes; pairs with the reader's second look
  }
  AddStamp(head_, stamp);
  size_t written = 0;
  const Status status = segment_->WriteAt(slot.length, piece, &written);  // (b)
  slot.length += written;
  head_ += written;
  if (written > 0) barren_ = 0;
  if (!status.ok()) {
    slot.closed = 1;  // a gap never lies inside a segment
    if (!NextMayFit(status)) Refuse(status);
  }
  PublishSlot(current_);  // (c): pairs with the reader's first look
  return written;
}

size_t RingStore::AppendCompressed(std::string_view bytes, TimeNs stamp) {
  if (tail_bytes_.size() == geometry_.block_bytes && !FlushTail()) return 0;
  if (tail_bytes_.empty() && bytes.size() >= geometry_.block_bytes) {
    return WriteFrame(bytes.substr(0, geometry_.block_bytes), stamp) ? geometry_.block_bytes : 0;
  }
  return AddToTail(bytes, stamp);
}

size_t RingStore::AddToTail(std::string_view bytes, TimeNs stamp) {
  const std::string_view piece = bytes.substr(0, geometry_.block_bytes - tail_bytes_.size());
  if (tail_bytes_.empty()) {
    tail_stamp_ = stamp;
    ResetTail();  // (a): pairs with the reader's second look
  }
  size_t written = 0;
  const Status status = tail_file_->WriteAt(tail_bytes_.size(), piece, &written);  // (b)
  AddStamp(head_, stamp);
  if (tail_bytes_.empty()) tail_.time = stamp;
  tail_.recent_offset = head_;
  tail_.recent_time = stamp;
  tail_bytes_.append(piece.substr(0, written));
  tail_.length = tail_bytes_.size();
  head_ += written;
  PublishTail();  // (c): pairs with the reader's first look
  if (!status.ok()) Refuse(status);
  return written;
}

// Makes a frame of what is in the tail.
bool RingStore::FlushTail() {
  const std::string block = std::move(tail_bytes_);
  tail_bytes_.clear();
  head_ -= block.size();
  if (WriteFrame(block, tail_stamp_)) return true;
  head_ += block.size();
  tail_bytes_ = block;
  return false;
}

// A frame of `block`, whose first byte is at the head.
bool RingStore::WriteFrame(std::string_view block, TimeNs stamp) {
  const std::string_view framed = encoder_.Encode(header_.run_id, head_, block);
  if (framed.empty()) {
    Refuse(Status::FromErrno(ENOMEM, "compress for", prefix_));
    return false;
  }
  if (sequence_ != 0 && current().encoding == Encoding::kZstd) {
    const uint64_t room = geometry_.segment_bytes - current().touched_end;
    if (framed.size() != room && framed.size() + kSkippableHeaderBytes > room) CloseCurrent();
  }
  while (PrepareSegment(Encoding::kZstd, stamp)) {
    if (WriteFramed(framed, block.size(), stamp)) return true;
    if (failing_) return false;
  }
  return false;
}

bool RingStore::WriteFramed(std::string_view framed, uint64_t stream_bytes, TimeNs stamp) {
  IndexSlot& slot = slots_[current_];
  if (slot.length == 0) slot.begin_offset = head_;
  const uint64_t at = slot.touched_end;
  const uint64_t rest = geometry_.segment_bytes - at - framed.size();
  std::string inside(framed.substr(kSkippableHeaderBytes));
  if (rest > 0) inside += UnusedRest(rest);
  size_t written = 0;
  Status status = segment_->WriteAt(at + kSkippableHeaderBytes, inside, &written);  // (a)
  // (b)
  if (status.ok())
    status = segment_->WriteAt(at, framed.substr(0, kSkippableHeaderBytes), &written);
  if (!status.ok()) {
    slot.closed = 1;
    PublishSlot(current_);
    if (!NextMayFit(status)) Refuse(status);
    return false;
  }
  barren_ = 0;
  AddStamp(head_, stamp);
  slot.length += stream_bytes;
  slot.touched_end += framed.size();
  head_ += stream_bytes;
  PublishSlot(current_);
  return true;
}

void RingStore::Lose(uint64_t bytes, int error) {
  const Change change(this);
  header_.lost_bytes += bytes;
  header_.lost_errno = error;
  gap_ += bytes;
  (void)CloseBeforeGap();
  PublishHeader();
}

// A gap lies neither inside a segment nor inside the tail. False while the disk does
// not take what is before it.
bool RingStore::CloseBeforeGap() {
  if (gap_ == 0) return true;
  if (!tail_bytes_.empty() && !FlushTail()) return false;
  CloseCurrent();
  head_ += std::exchange(gap_, 0);
  return true;
}

// Where somebody deleted the ring under us: a new one in its place, with what is left.
Status RingStore::Reinstate() {
  if (index_->LinkCount().value_or(0) != 0) return {};
  Status status = files_.MakeFolders(FolderOf(prefix_));
  if (!status.ok()) return status;
  auto index = files_.Open(IndexPath(prefix_), FileSystem::Mode::kCreate);
  if (!index.ok()) return index.status();
  if (Status locked = (*index)->Lock(); !locked.ok()) return locked;
  for (uint32_t k = 0; k < slots_.size(); ++k) {
    if (slots_[k].sequence == 0 || files_.Exists(SegmentPath(prefix_, k, slots_[k].encoding)))
      continue;
    header_.lost_bytes += slots_[k].length;
    header_.lost_errno = ENOENT;
    slots_[k] = IndexSlot{};
    CountSlot(k);
  }
  index_ = std::move(*index);
  segment_.reset();
  return WriteIndex();
}

void RingStore::AddStamp(uint64_t offset, TimeNs stamp) {
  if (sequence_ == 0) return;
  if (!stamps_.empty() &&
      (stamp - stamps_.back().time < stamp_interval_ || offset <= stamps_.back().offset))
    return;
  if (stamps_.size() == geometry_.stamps_per_segment) ThinStamps();
  if (stamps_.size() < geometry_.stamps_per_segment) stamps_.push_back({offset, stamp});
  PublishStamps();
}

// Makes room by forgetting every second stamp and spacing later ones wider.
void RingStore::ThinStamps() {
  size_t kept = 0;
  for (size_t i = 0; i < stamps_.size(); i += 2) stamps_[kept++] = stamps_[i];
  stamps_.resize(kept);
  stamp_interval_ *= 2;
}

// An index that cannot be written is not worth a stop: what it would have said is
// not history then.
void RingStore::WriteToIndex(uint64_t offset, const void* bytes, size_t count) {
  size_t written = 0;
  (void)index_->WriteAt(offset, {static_cast<const char*>(bytes), count}, &written).ok();
}

void RingStore::ResetTail() {
  tail_ = IndexTail{};
  tail_.begin_offset = head_;
  PublishTail();
}

void RingStore::PublishTail() {
  tail_.check = CheckOf(tail_);
  WriteToIndex(kTailAt, &tail_, sizeof tail_);
}

void RingStore::PublishSlot(uint32_t segment) {
  IndexSlot& slot = slots_[segment];
  CountSlot(segment);
  slot.check = CheckOf(slot);
  WriteToIndex(SlotAt(segment), &slot, sizeof slot);
}

void RingStore::PublishStamps() {
  std::vector<IndexStamp> image = stamps_;
  if (image.size() < geometry_.stamps_per_segment) image.push_back({});  // ends the list
  WriteToIndex(StampsAt(geometry_.segment_count, geometry_.stamps_per_segment, current_),
               image.data(), image.size() * sizeof(IndexStamp));
}

void RingStore::PublishHeader() {
  header_.end_offset = head_ + gap_;
  header_.check = CheckOf(header_);
  WriteToIndex(0, &header_, sizeof header_);
}

Status RingStore::Freeze(const std::string& folder, uint64_t first_offset) {
  const std::string pinned = folder + "/" + stream_name_;
  const Change change(this);
  auto slots = PinSegments(pinned, first_offset);
  if (!slots.ok()) return slots.status();
  std::string image(geometry_.index_bytes(), '\0');
  auto got = index_->ReadAt(0, {image.data(), image.size()});
  if (!got.ok()) return got.status();
  IndexHeader header = header_;
  header.end_offset = head_ + gap_;
  header.first_offset = first_offset;
  IndexTail tail = tail_;
  tail.begin_offset = head_ - tail_bytes_.size();
  tail.length = tail_bytes_.size();
  PutRecords(header, tail, *slots, &image);
  if (tail_file_ != nullptr) {
    if (Status status = WriteWholeFile(files_, TailPath(pinned), tail_bytes_); !status.ok())
      return status;
  }
  return WriteWholeFile(files_, IndexPath(pinned), image);
}

Result<std::vector<IndexSlot>> RingStore::PinSegments(const std::string& pinned_prefix,
                                                      uint64_t first_offset) {
  // The segment being filled: little is copied, so that many snapshots in a row
  // cost the ring no history; much is closed early and linked.
  const bool open = sequence_ != 0 && current().closed == 0 && current().length > 0;
  const bool copy = open && std::max(FileBytes(current()), current().prev_length) <= kCheapCopy;
  if (open && !copy) CloseCurrent();  // the next append opens the next segment
  std::vector<IndexSlot> slots = slots_;
  for (uint32_t k = 0; k < slots.size(); ++k) {
    IndexSlot& slot = slots[k];
    if (slot.sequence == 0) continue;
    const uint64_t end =
        std::max(slot.begin_offset + slot.length, slot.prev_begin + slot.prev_length);
    if (end <= first_offset) {
      slot = IndexSlot{};
      continue;
    }
    Status status =
        copy && k == current_ ? CopySegment(k, pinned_prefix) : LinkSegment(k, pinned_prefix);
    if (status.error() == ENOENT)
      slot = IndexSlot{};  // deleted under us: a reader tells the gap
    else if (!status.ok())
      return status;
  }
  return slots;
}

Status RingStore::LinkSegment(uint32_t segment, const std::string& pinned_prefix) {
  const Encoding encoding = slots_[segment].encoding;
  const std::string to = SegmentPath(pinned_prefix, segment, encoding);
  if (files_.Link(SegmentPath(prefix_, segment, encoding), to).ok()) return {};
  return CopySegment(segment, pinned_prefix);  // no hard links here: FAT, some network disks
}

Status RingStore::CopySegment(uint32_t segment, const std::string& pinned_prefix) {
  const IndexSlot& slot = slots_[segment];
  auto file = files_.Open(SegmentPath(prefix_, segment, slot.encoding), FileSystem::Mode::kRead);
  if (!file.ok()) return file.status();
  std::string bytes(std::max(FileBytes(slot), slot.prev_length), '\0');
  auto got = (*file)->ReadAt(0, {bytes.data(), bytes.size()});
  if (!got.ok()) return got.status();
  return WriteWholeFile(files_, SegmentPath(pinned_prefix, segment, slot.encoding),
                        {bytes.data(), *got});
}

void RingStore::Finish() {
  const Change change(this);
  if (!tail_bytes_.empty() && FlushTail()) {
    ResetTail();
    (void)tail_file_->Truncate(0).ok();
  }
  if (sequence_ != 0 && current().encoding == Encoding::kZstd) CloseCurrent();
  header_.flags |= kIndexFinished;
  PublishHeader();
}

uint64_t RingStore::head() const { return fill().total_bytes; }

int RingStore::last_error() const {
  const std::lock_guard lock(told_mutex_);
  return told_error_;
}

RingFill RingStore::fill() const {
  const std::lock_guard lock(told_mutex_);
  return told_;
}

// Nothing here is slow: it is done after every append.
void RingStore::Tell() {
  RingFill fill;
  fill.total_bytes = head_ + gap_;
  fill.bound_bytes = geometry_.bound_bytes;
  fill.lost_bytes = header_.lost_bytes;
  fill.lost_errno = static_cast<int>(header_.lost_errno);
  fill.failing = failing_;
  fill.gave_up_compression = gave_up_compression_;
  fill.history_bytes = held_in_all_.history + tail_bytes_.size();
  fill.disk_bytes = held_in_all_.disk + tail_bytes_.size();
  const std::lock_guard lock(told_mutex_);
  told_ = fill;
  told_error_ = last_error_;
}

RingStore::Held RingStore::HeldBy(const IndexSlot& slot) {
  const uint64_t untouched = std::max(slot.length, slot.touched_end);
  const uint64_t before = slot.prev_length - std::min(slot.prev_length, untouched);
  return {slot.length + before, FileBytes(slot) + before};
}

void RingStore::CountSlot(uint32_t segment) {
  Held& held = held_[segment];
  held_in_all_.history -= held.history;
  held_in_all_.disk -= held.disk;
  held = HeldBy(slots_[segment]);
  held_in_all_.history += held.history;
  held_in_all_.disk += held.disk;
}

}  // namespace hangscope
