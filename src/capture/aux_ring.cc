#include "capture/aux_ring.h"

#include <linux/perf_event.h>

#include <algorithm>

namespace hangscope {
namespace {

constexpr uint64_t kReferenceBytes = 256;
constexpr size_t kMostRecords = 65536;

}  // namespace

AuxReader::AuxReader(const AuxArea& area, int cpu, int tid) : area_(area), cpu_(cpu), tid_(tid) {}

// Pairs with the kernel's release of aux_head, after the tracer's data is visible.
uint64_t AuxReader::Load() const { return __atomic_load_n(area_.head, __ATOMIC_ACQUIRE); }

void AuxReader::Look() {
  const uint64_t raw = Load();
  if (area_.head_kind == AuxHeadKind::kCountsAll) {
    head_ = std::max(head_, raw);
    return;
  }
  const uint64_t at = raw % area_.capacity;
  if (!looked_) {
    looked_ = true;
    const unsigned char* const behind = area_.bytes + at;
    const bool went_round = std::any_of(behind, area_.bytes + area_.capacity, [](unsigned char c) { return c != 0; });
    head_ = at + (went_round ? area_.capacity : 0);
    head_is_at_least_ = went_round;
  } else {
    const uint64_t last = head_ % area_.capacity;
    uint64_t advance = at >= last ? at - last : at + area_.capacity - last;
    if (ReferenceChanged(advance)) {
      advance += area_.capacity;
      head_is_at_least_ = true;
    }
    head_ += advance;
  }
  KeepReference();
}

// Of the bytes before the last head, those that `advance` more would not have written over.
bool AuxReader::ReferenceChanged(uint64_t advance) const {
  const uint64_t room = area_.capacity - std::min<uint64_t>(area_.capacity, reference_.size());
  const uint64_t written_over = advance > room ? advance - room : 0;
  const uint64_t begin = head_ - reference_.size();
  for (uint64_t i = written_over; i < reference_.size(); ++i) {
    if (area_.bytes[(begin + i) % area_.capacity] != static_cast<unsigned char>(reference_[i])) return true;
  }
  return false;
}

void AuxReader::KeepReference() {
  const uint64_t size = std::min({kReferenceBytes, head_, area_.capacity});
  reference_ = Copy(head_ - size, head_);
}

std::string AuxReader::Copy(uint64_t begin, uint64_t end) const {
  std::string bytes;
  bytes.reserve(end - begin);
  while (begin < end) {
    const uint64_t at = begin % area_.capacity;
    const uint64_t size = std::min(end - begin, area_.capacity - at);
    bytes.append(reinterpret_cast<const char*>(area_.bytes) + at, size);
    begin += size;
  }
  return bytes;
}

void AuxReader::TakeRecord(TimeNs since, TimeNs time, uint64_t offset, uint64_t size, uint64_t flags,
                           std::optional<int64_t> task) {
  const TimeNs before = last_record_;
  last_record_ = std::max(last_record_, time);
  if ((flags & (PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_COLLISION | PERF_AUX_FLAG_PARTIAL)) != 0) {
    if (losses_.size() == kMostRecords) losses_.erase(losses_.begin());
    losses_.push_back({{std::min(before == 0 ? since : before, time), time}, GapReason::kNoRoom});
  }
  Look();
  uint64_t end = offset + size;
  if (area_.head_kind == AuxHeadKind::kWithinArea) {
    // The latest such place that the head has passed.
    const uint64_t back = (head_ % area_.capacity + area_.capacity - end % area_.capacity) % area_.capacity;
    if (back > head_) return;
    end = head_ - back;
  }
  if (end > head_) return;
  const uint64_t last = spans_.empty() ? 0 : spans_.back().end_offset;
  // Drivers that know only where the newest ends say nothing of its size.
  const uint64_t begin = size == 0 ? last : std::max(last, end - std::min(end, size));
  if (end <= begin) return;
  if (spans_.size() == kMostRecords) spans_.erase(spans_.begin());
  spans_.push_back({{std::min(std::max(since, before), time), time}, begin, end, task});
}

AuxSnapshot AuxReader::Take(bool since_last, TimeNs now, TimeSpan blind) {
  Look();
  AuxSnapshot snapshot;
  const uint64_t head = head_;
  uint64_t begin = head - std::min(head, area_.capacity);
  if (since_last) begin = std::max(begin, last_taken_);
  std::string bytes = Copy(begin, head);
  // Whatever was written since the first look was written over the oldest.
  Look();
  const uint64_t safe = head_ - std::min(head_, area_.capacity);
  if (safe > begin) {
    snapshot.lapped_bytes = std::min(safe, head) - begin;
    bytes.erase(0, snapshot.lapped_bytes);
  }
  snapshot.begin_offset = begin + snapshot.lapped_bytes;
  snapshot.head_is_at_least = head_is_at_least_;
  AuxRing& ring = snapshot.ring;
  ring.cpu = cpu_;
  ring.tid = tid_;
  ring.capacity_bytes = area_.capacity;
  ring.head = head;
  ring.bytes = std::move(bytes);
  ring.lost_before = snapshot.begin_offset > (since_last ? last_taken_ : 0);
  ring.taken = now;
  ring.blind = blind;
  last_taken_ = head;
  oldest_held_ = snapshot.begin_offset;
  return snapshot;
}

std::vector<AuxSpan> AuxReader::held() const {
  std::vector<AuxSpan> held;
  for (AuxSpan span : spans_) {
    if (span.end_offset <= oldest_held_ || span.begin_offset >= last_taken_) continue;
    if (span.begin_offset < oldest_held_) {
      span.begin_offset = oldest_held_;
      span.time.from = span.time.to;
    }
    held.push_back(span);
  }
  return held;
}

}  // namespace hangscope
