#include "ring/ring_store.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "ring/ring_pin.h"

namespace hangscope {
namespace {

// A segment that holds no more is copied into a snapshot; a fuller one is closed
// early and linked.
constexpr uint64_t kCheapCopy = 1u << 20;

IndexHeader HeaderOf(Clock& clock, const std::string& stream_name, const RingGeometry& geometry,
                     uint64_t run_id) {
  IndexHeader header{};
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
  return header;
}

}  // namespace

// Holds the ring while it changes, and publishes its fill afterwards.
class RingStore::Change {
 public:
  explicit Change(RingStore* store) : store_(*store), lock_(store->mutex_) {}
  ~Change() { store_.PublishFill(); }
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
  std::unique_ptr<RingStore> store(new RingStore(files, clock, prefix, stream_name, geometry));
  if (Status status = store->index_.Create(geometry.segment_count); !status.ok()) return status;
  store->index_.Begin(HeaderOf(clock, stream_name, geometry, run_id));
  if (Status status = store->WriteIndex(); !status.ok()) return status;
  store->PublishFill();
  return store;
}

Result<std::unique_ptr<RingStore>> RingStore::Resume(FileSystem& files, Clock& clock,
                                                     const std::string& prefix) {
  std::unique_ptr<RingStore> store(new RingStore(files, clock, prefix, "", {}));
  if (Status status = store->index_.Inherit(clock); !status.ok()) return status;
  if (Status status = store->ReadBack(); !status.ok()) return status;
  store->PublishFill();
  return store;
}

RingStore::RingStore(FileSystem& files, Clock& clock, const std::string& prefix,
                     std::string stream_name, const RingGeometry& geometry)
    : files_(files),
      clock_(clock),
      prefix_(prefix),
      stream_name_(std::move(stream_name)),
      geometry_(geometry),
      refusals_(clock),
      index_(files, prefix),
      segments_(files, prefix, geometry_, index_, refusals_),
      tail_(files, prefix, geometry.block_bytes, index_, refusals_) {}

RingStore::~RingStore() = default;

Status RingStore::ReadBack() {
  const IndexHeader& header = index_.header();
  stream_name_.assign(header.name, strnlen(header.name, sizeof header.name));
  geometry_.bound_bytes = header.bound_bytes;
  geometry_.segment_count = header.segment_count;
  geometry_.stamps_per_segment = header.stamps_per_segment;
  geometry_.segment_bytes = header.segment_bytes;
  geometry_.reserve_bytes = ReserveBytes(header.bound_bytes);
  segments_.ReadBack();
  if ((header.flags & kIndexZstd) == 0) return {};
  geometry_.compress = (header.flags & kIndexAuto) != 0 ? Compress::kAuto : Compress::kZstd;
  const uint64_t end = segments_.end();
  Status status = tail_.ReadBack(segments_.held_end(), end, clock_.Monotonic());
  if (!status.ok() || tail_.empty()) return status;
  segments_.GoOnAt(tail_.record().begin_offset);
  gap_ = end - std::min(end, EndOffset());  // lost behind a tail that could not be flushed
  return {};
}

Status RingStore::WriteIndex() {
  const IndexTail& tail = tail_.record();
  // The tail of a killed recorder that lies too far ahead to be gone on with is history, too.
  const uint64_t end = std::max(EndOffset(), tail.begin_offset + tail.length + gap_);
  if (Status status = index_.WriteAll(tail, end); !status.ok()) return status;
  return tail_.WriteAll();
}

// Where somebody deleted the ring under us: a new one in its place, with what is left.
Status RingStore::Reinstate() {
  if (!index_.IsDeleted()) return {};
  if (Status status = files_.MakeFolders(FolderOf(prefix_)); !status.ok()) return status;
  if (Status status = index_.Recreate(); !status.ok()) return status;
  segments_.ForgetFile();
  return WriteIndex();
}

size_t RingStore::Append(std::string_view bytes, TimeNs stamp) {
  const Change change(this);
  refusals_.BeginAppend();
  if (!CloseBeforeGap()) return 0;
  size_t taken = 0;
  while (taken < bytes.size() && !refusals_.failing()) {
    const std::string_view rest = bytes.substr(taken);
    const bool plain = NextEncoding() == Encoding::kPlain;
    if (plain && !FlushTail()) break;
    taken += plain ? AppendPlain(rest, stamp) : AppendCompressed(rest, stamp);
  }
  return taken;
}

// An open segment goes on as it is, unless it is compressed and too slow.
Encoding RingStore::NextEncoding() const {
  if (geometry_.compress == Compress::kNone || tail_.block_bytes() == 0) return Encoding::kPlain;
  if (geometry_.compress == Compress::kZstd) return Encoding::kZstd;
  if (pressed_.load(std::memory_order_relaxed)) return Encoding::kPlain;
  return segments_.HasRoomFor(Encoding::kPlain) ? Encoding::kPlain : Encoding::kZstd;
}

// Makes the current segment one of this encoding with room in it.
bool RingStore::PrepareSegment(Encoding encoding, TimeNs stamp) {
  if (segments_.HasRoomFor(encoding)) return true;
  if (geometry_.compress == Compress::kAuto && encoding == Encoding::kPlain)
    gave_up_compression_ = true;
  Status status = Reinstate();
  if (status.ok()) status = segments_.OpenNext(encoding);
  if (!status.ok()) {
    refusals_.Refuse(status);
    return false;
  }
  index_.AddStamp(segments_.end(), stamp);
  return true;
}

size_t RingStore::AppendPlain(std::string_view bytes, TimeNs stamp) {
  return PrepareSegment(Encoding::kPlain, stamp) ? segments_.AppendPlain(bytes, stamp) : 0;
}

size_t RingStore::AppendCompressed(std::string_view bytes, TimeNs stamp) {
  const size_t block = tail_.block_bytes();
  if (tail_.full() && !FlushTail()) return 0;
  if (tail_.empty() && bytes.size() >= block)
    return WriteFrame(bytes.substr(0, block), stamp) ? block : 0;
  return tail_.Append(bytes, segments_.end(), stamp);
}

// Makes a frame of what is in the tail, if anything is. False while the disk does not take it.
bool RingStore::FlushTail() {
  if (tail_.empty()) return true;
  if (!WriteFrame(tail_.bytes(), tail_.stamp())) return false;
  tail_.Clear();
  return true;
}

// Appends a frame of `block`, whose first byte follows the segments.
bool RingStore::WriteFrame(std::string_view block, TimeNs stamp) {
  const std::string_view framed = encoder_.Encode(index_.header().run_id, segments_.end(), block);
  if (framed.empty()) {
    refusals_.Refuse(Status::FromErrno(ENOMEM, "compress for", prefix_));
    return false;
  }
  segments_.CloseUnlessFits(framed.size());
  while (PrepareSegment(Encoding::kZstd, stamp)) {
    if (segments_.AppendFrame(framed, block.size(), stamp)) return true;
    if (refusals_.failing()) return false;
  }
  return false;
}

void RingStore::Lose(uint64_t bytes, int error) {
  const Change change(this);
  index_.header().lost_bytes += bytes;
  index_.header().lost_errno = error;
  gap_ += bytes;
  (void)CloseBeforeGap();
  index_.PublishHeader(EndOffset());
}

// A gap lies neither inside a segment nor inside the tail. False while the disk does
// not take what is before it.
bool RingStore::CloseBeforeGap() {
  if (gap_ == 0) return true;
  if (!FlushTail()) return false;
  segments_.Close();
  segments_.Skip(std::exchange(gap_, 0));
  return true;
}

Status RingStore::Freeze(const std::string& folder, uint64_t first_offset) {
  const std::string pinned = folder + "/" + stream_name_;
  const Change change(this);
  const std::optional<uint32_t> copied = CloseForPin();
  const auto close = [this] { segments_.Close(); };
  auto slots = PinSegments(files_, prefix_, pinned, first_offset, copied, close, index_.slots());
  if (!slots.ok()) return slots.status();
  IndexHeader header = index_.header();
  header.end_offset = EndOffset();
  header.first_offset = first_offset;
  IndexTail tail = tail_.record();
  tail.begin_offset = segments_.end();
  tail.length = tail_.bytes().size();
  auto index = index_.ImageOf(header, tail, *slots);
  if (!index.ok()) return index.status();
  if (tail_.exists()) {
    if (Status status =
            WriteWholeFile(files_, TailPath(pinned), tail_.bytes(), FileSystem::Mode::kRecordedNew);
        !status.ok())
      return status;
  }
  return WriteWholeFile(files_, IndexPath(pinned), *index, FileSystem::Mode::kRecordedNew);
}

// Of the segment that is being filled little is copied, so that many snapshots in a row cost the
// ring no history: returns it then. Much is closed early, so that it can be linked; the next append
// opens the next segment.
std::optional<uint32_t> RingStore::CloseForPin() {
  if (!index_.has_current()) return std::nullopt;
  const IndexSlot& slot = index_.current();
  if (slot.closed != 0 || slot.length == 0) return std::nullopt;
  if (std::max(FileBytesOf(slot), slot.prev_length) <= kCheapCopy) return index_.current_segment();
  segments_.Close();
  return std::nullopt;
}

void RingStore::Finish() {
  const Change change(this);
  if (!tail_.empty() && FlushTail()) tail_.Close(segments_.end());
  if (index_.has_current() && index_.current().encoding == Encoding::kZstd) segments_.Close();
  index_.header().flags |= kIndexFinished;
  index_.PublishHeader(EndOffset());
}

uint64_t RingStore::head() const { return fill().total_bytes; }

int RingStore::last_error() const {
  const std::lock_guard lock(fill_mutex_);
  return last_error_;
}

RingFill RingStore::fill() const {
  const std::lock_guard lock(fill_mutex_);
  return fill_;
}

// After every append, so nothing here may be slow.
void RingStore::PublishFill() {
  const HeldBytes held = index_.held();
  RingFill fill;
  fill.total_bytes = EndOffset();
  fill.bound_bytes = geometry_.bound_bytes;
  fill.lost_bytes = index_.header().lost_bytes;
  fill.lost_errno = static_cast<int>(index_.header().lost_errno);
  fill.failing = refusals_.failing();
  fill.gave_up_compression = gave_up_compression_;
  fill.history_bytes = held.history + tail_.bytes().size();
  fill.disk_bytes = held.disk + tail_.bytes().size();
  const std::lock_guard lock(fill_mutex_);
  fill_ = fill;
  last_error_ = refusals_.last_error();
}

}  // namespace hangscope
