#include "ring/ring_index.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "ring/ring_files.h"

namespace hangscope {
namespace {

constexpr TimeNs kFirstStampInterval = 10 * kMillisecond;
constexpr TimeNs kLongestDeath = 5 * kSecond;

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

HeldBytes HeldBy(const IndexSlot& slot) {
  const uint64_t untouched = std::max(slot.length, slot.touched_end);
  const uint64_t before = slot.prev_length - std::min(slot.prev_length, untouched);
  return {slot.length + before, FileBytesOf(slot) + before};
}

// Makes room for stamps that are spaced wider.
void ForgetEverySecond(std::vector<IndexStamp>* stamps) {
  size_t kept = 0;
  for (size_t i = 0; i < stamps->size(); i += 2) (*stamps)[kept++] = (*stamps)[i];
  stamps->resize(kept);
}

}  // namespace

Status RingIndex::Create(uint32_t segment_count) {
  auto file = ClaimRing(files_, prefix_, segment_count);
  if (!file.ok()) return file.status();
  file_ = std::move(*file);
  return {};
}

void RingIndex::Begin(const IndexHeader& header) {
  header_ = header;
  slots_.resize(header.segment_count);
  held_.resize(header.segment_count);
}

Status RingIndex::Inherit(Clock& clock) {
  auto file = files_.Open(IndexPath(prefix_), FileSystem::Mode::kRecorded);
  if (!file.ok()) return file.status();
  file_ = std::move(*file);
  // The kernel closes the files of a dead recorder one after the other.
  Status locked = file_->Lock();
  for (TimeNs waited = 0; locked.code() == Status::Code::kBusy && waited < kLongestDeath;
       waited += kMillisecond) {
    clock.Sleep(kMillisecond);
    locked = file_->Lock();
  }
  return locked.ok() ? ReadBack() : locked;
}

Status RingIndex::ReadBack() {
  IndexHeader header{};
  auto got = file_->ReadAt(0, {reinterpret_cast<char*>(&header), sizeof header});
  if (!got.ok()) return got.status();
  if (*got < sizeof header || header.check != CheckOf(header) || header.version != kIndexVersion ||
      !IsSane(header)) {
    return Status::Corrupt("the index '" + IndexPath(prefix_) + "' is damaged");
  }
  Begin(header);
  for (uint32_t k = 0; k < slots_.size(); ++k) {
    const bool sound = ReadRecord(*file_, SlotAt(k), &slots_[k]);
    CountSlot(k);
    if (!sound || slots_[k].sequence <= sequence_) continue;
    sequence_ = slots_[k].sequence;
    current_ = k;
  }
  if (has_current()) ReadBackStamps();
  return {};
}

void RingIndex::ReadBackStamps() {
  stamps_.resize(header_.stamps_per_segment);
  auto got = file_->ReadAt(StampsOf(current_), {reinterpret_cast<char*>(stamps_.data()),
                                                stamps_.size() * sizeof(IndexStamp)});
  stamps_.resize(got.value_or(0) / sizeof(IndexStamp));
  // 0 ends the list, and no clock counts from below it.
  const auto end =
      std::find_if(stamps_.begin(), stamps_.end(), [](const IndexStamp& s) { return s.time <= 0; });
  stamps_.erase(end, stamps_.end());
  stamp_interval_ = kFirstStampInterval;
}

bool RingIndex::IsDeleted() { return file_->LinkCount().value_or(0) == 0; }

Status RingIndex::Recreate() {
  auto file = files_.Open(IndexPath(prefix_), FileSystem::Mode::kRecordedNew);
  if (!file.ok()) return file.status();
  if (Status locked = (*file)->Lock(); !locked.ok()) return locked;
  for (uint32_t k = 0; k < slots_.size(); ++k) {
    if (slots_[k].sequence == 0 || files_.Exists(SegmentPath(prefix_, k, slots_[k].encoding)))
      continue;
    header_.lost_bytes += slots_[k].length;
    header_.lost_errno = ENOENT;
    slots_[k] = IndexSlot{};
    CountSlot(k);
  }
  file_ = std::move(*file);
  return {};
}

Status RingIndex::WriteAll(const IndexTail& tail, uint64_t end_offset) {
  header_.end_offset = end_offset;
  std::string image(StampsOf(header_.segment_count), '\0');
  PutRecords(header_, tail, slots_, &image);
  size_t written = 0;
  return file_->WriteAt(0, image, &written);
}

void RingIndex::Replace(uint32_t segment, const IndexSlot& slot) {
  slots_[segment] = slot;
  PublishSlot(segment);
}

void RingIndex::MakeCurrent(uint32_t segment) {
  current_ = segment;
  sequence_ = slots_[segment].sequence;
  stamps_.clear();
  stamp_interval_ = kFirstStampInterval;
}

void RingIndex::PublishSlot(uint32_t segment) {
  IndexSlot& slot = slots_[segment];
  CountSlot(segment);
  slot.check = CheckOf(slot);
  Write(SlotAt(segment), &slot, sizeof slot);
}

void RingIndex::PublishTail(IndexTail* tail) {
  tail->check = CheckOf(*tail);
  Write(kTailAt, tail, sizeof *tail);
}

void RingIndex::PublishHeader(uint64_t end_offset) {
  header_.end_offset = end_offset;
  header_.check = CheckOf(header_);
  Write(0, &header_, sizeof header_);
}

void RingIndex::AddStamp(uint64_t offset, TimeNs stamp) {
  if (!has_current()) return;
  if (!stamps_.empty() &&
      (stamp - stamps_.back().time < stamp_interval_ || offset <= stamps_.back().offset))
    return;
  if (stamps_.size() == header_.stamps_per_segment) {
    ForgetEverySecond(&stamps_);
    stamp_interval_ *= 2;
  }
  if (stamps_.size() < header_.stamps_per_segment) stamps_.push_back({offset, stamp});
  PublishStamps();
}

void RingIndex::PublishStamps() {
  std::vector<IndexStamp> image = stamps_;
  if (image.size() < header_.stamps_per_segment) image.push_back({});  // ends the list
  Write(StampsOf(current_), image.data(), image.size() * sizeof(IndexStamp));
}

// An index that cannot be written does not stop the ring: what it would have described is not
// history then.
void RingIndex::Write(uint64_t offset, const void* bytes, size_t count) {
  size_t written = 0;
  (void)file_->WriteAt(offset, {static_cast<const char*>(bytes), count}, &written).ok();
}

void RingIndex::CountSlot(uint32_t segment) {
  HeldBytes& held = held_[segment];
  held_in_all_.history -= held.history;
  held_in_all_.disk -= held.disk;
  held = HeldBy(slots_[segment]);
  held_in_all_.history += held.history;
  held_in_all_.disk += held.disk;
}

Result<std::string> RingIndex::ImageOf(const IndexHeader& header, const IndexTail& tail,
                                       const std::vector<IndexSlot>& slots) {
  std::string image(StampsOf(header_.segment_count), '\0');
  auto got = file_->ReadAt(0, {image.data(), image.size()});
  if (!got.ok()) return got.status();
  PutRecords(header, tail, slots, &image);
  return image;
}

}  // namespace hangscope
