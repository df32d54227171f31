#include "cpu/aux_ring.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <utility>

namespace hangscope {
namespace {

constexpr uint64_t kReferenceBytes = 256;
constexpr size_t kMostRecords = 65536;

}  // namespace

AuxReader::AuxReader(const AuxArea& area, int cpu, int tid) : area_(area), cpu_(cpu), tid_(tid) {}

// Pairs with the kernel's release of aux_head, after the tracer's data is visible.
uint64_t AuxReader::Load() const { return __atomic_load_n(area_.head, __ATOMIC_ACQUIRE); }

void AuxReader::ReadHead() {
  if (follows_records_) return ReadBack();
  const uint64_t raw = Load();
  if (area_.head_kind == AuxHeadKind::kCountsAll) {
    head_ = std::max(head_, raw);
    return;
  }
  if (!looked_) {
    looked_ = true;
    const uint64_t at = raw % area_.capacity;
    const unsigned char* const behind = area_.bytes + at;
    const bool went_round =
        std::any_of(behind, area_.bytes + area_.capacity, [](unsigned char c) { return c != 0; });
    head_ = at + (went_round ? area_.capacity : 0);
    head_is_at_least_ = went_round;
  } else {
    Advance(raw);
    if (ReferenceChanged(head_ - reference_head_)) {
      head_ += area_.capacity;
      head_is_at_least_ = true;
    }
  }
  KeepReference();
}

// To a head within the area.
void AuxReader::Advance(uint64_t head) {
  const uint64_t at = head % area_.capacity;
  const uint64_t last = head_ % area_.capacity;
  head_ += at >= last ? at - last : at + area_.capacity - last;
}

// Whether the tracer went round within a record since the last look. In which one, and so whose the
// bytes are that are there now, nobody knows then.
void AuxReader::ReadBack() {
  if (ReferenceChanged(head_ - reference_head_)) {
    std::erase_if(spans_, [&](const AuxSpan& span) { return span.end_offset > reference_head_; });
    head_ += area_.capacity;
    told_until_ = head_;
    head_is_at_least_ = true;
  }
  KeepReference();
}

// Of the bytes before the last head, those that `advance` more would not have written over.
bool AuxReader::ReferenceChanged(uint64_t advance) const {
  const uint64_t room = area_.capacity - std::min<uint64_t>(area_.capacity, reference_.size());
  const uint64_t written_over = advance > room ? advance - room : 0;
  const uint64_t begin = reference_head_ - reference_.size();
  for (uint64_t i = written_over; i < reference_.size(); ++i) {
    if (area_.bytes[(begin + i) % area_.capacity] != static_cast<unsigned char>(reference_[i]))
      return true;
  }
  return false;
}

void AuxReader::KeepReference() {
  const uint64_t size = std::min({kReferenceBytes, head_, area_.capacity});
  reference_ = Copy(head_ - size, head_);
  reference_head_ = head_;
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

void AuxReader::HandleRecord(TimeNs since, TimeNs time, uint64_t offset, uint64_t size,
                             uint64_t flags, std::optional<int64_t> task) {
  const TimeNs before = last_record_;
  last_record_ = std::max(last_record_, time);
  if ((flags & (PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_COLLISION | PERF_AUX_FLAG_PARTIAL)) != 0)
    Lose({std::min(before == 0 ? since : before, time), time});
  const std::optional<uint64_t> known_end = EndOfRecord(offset, size, flags);
  if (!known_end || *known_end > head_) return;
  const uint64_t end = *known_end;
  // Drivers that know only where the newest ends say nothing of its size, or tell all of the area.
  const bool size_known = size != 0 && size < area_.capacity;
  if (std::exchange(records_lost_, false) && !size_known) told_until_ = end;
  const uint64_t begin =
      size_known ? std::max(told_until_, end - std::min(end, size)) : told_until_;
  if (end <= begin) return;
  told_until_ = end;
  if (spans_.size() == kMostRecords) spans_.erase(spans_.begin());
  spans_.push_back({{std::min(std::max(since, before), time), time}, begin, end, task, flags});
}

// Counting all bytes. Nothing: it is not among those that the head has passed.
std::optional<uint64_t> AuxReader::EndOfRecord(uint64_t offset, uint64_t size, uint64_t flags) {
  const bool overwrites = (flags & PERF_AUX_FLAG_OVERWRITE) != 0;
  // In overwrite mode the kernel tells where the head is now; else where it was.
  const uint64_t end = overwrites ? offset : offset + size;
  if (area_.head_kind == AuxHeadKind::kWithinArea && overwrites) {
    follows_records_ = looked_ = true;
    Advance(end);
    return head_;
  }
  ReadHead();
  if (area_.head_kind == AuxHeadKind::kCountsAll) return end;
  // The latest such place that the head has passed.
  const uint64_t back =
      (head_ % area_.capacity + area_.capacity - end % area_.capacity) % area_.capacity;
  if (back > head_) return std::nullopt;
  return head_ - back;
}

void AuxReader::LoseRecords(TimeSpan time) {
  records_lost_ = true;
  Lose(time);
}

void AuxReader::Lose(TimeSpan time) {
  if (losses_.size() == kMostRecords) losses_.erase(losses_.begin());
  losses_.push_back({time, GapReason::kNoRoom});
}

AuxSnapshot AuxReader::Take(bool since_last, TimeNs now, TimeSpan blind) {
  // Stopped: no record is on its way, and what none has told is nobody's.
  if (follows_records_ && blind.to > blind.from) Advance(Load());
  ReadHead();
  AuxSnapshot snapshot;
  const uint64_t head = head_;
  uint64_t begin = head - std::min(head, area_.capacity);
  if (since_last) begin = std::max(begin, last_taken_);
  std::string bytes = Copy(begin, head);
  // Whatever was written since the first look was written over the oldest.
  ReadHead();
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
