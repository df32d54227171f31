#include "cpu/perf_ring.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace hangscope {
namespace {

constexpr uint64_t kGroupBytes = 64u << 10;  // that are copied between two looks at data_head

// Pairs with the kernel's store of data_head (perf_output_put_handle), which comes after the
// records' bytes.
uint64_t LoadHead(const PerfPages& pages) {
  return __atomic_load_n(&pages.control->data_head, __ATOMIC_ACQUIRE);
}

// The same behind what was copied: a byte that a writer had replaced is behind the head that is
// then seen.
uint64_t LoadHeadAfterCopy(const PerfPages& pages) {
#ifndef __SANITIZE_THREAD__  // which knows no fences, and whose copies acquire word by word
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
  return LoadHead(pages);
}

perf_event_header LoadHeader(const PerfPages& pages, uint64_t position) {
  const char* at = pages.data + (position & (pages.capacity_bytes - 1));
  const uint64_t word = __atomic_load_n(reinterpret_cast<const uint64_t*>(at), __ATOMIC_RELAXED);
  perf_event_header header;
  std::memcpy(&header, &word, sizeof(header));
  return header;
}

bool IsRecord(const perf_event_header& header, uint64_t available) {
  return header.size >= sizeof(header) && header.size % 8 == 0 && header.size <= available;
}

// The kernel may write there meanwhile: what comes of it is dropped. Appending fills no memory
// twice, which is a quarter of the time that it takes to read a ring.
void AppendShared(const char* from, size_t bytes, std::string* to) {
#ifdef __SANITIZE_THREAD__
  for (size_t i = 0; i < bytes; i += 8) {
    const uint64_t word =
        __atomic_load_n(reinterpret_cast<const uint64_t*>(from + i), __ATOMIC_ACQUIRE);
    to->append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
#else
  to->append(from, bytes);
#endif
}

void AppendWrapped(const PerfPages& pages, uint64_t position, size_t bytes, std::string* to) {
  const uint64_t at = position & (pages.capacity_bytes - 1);
  const size_t first = std::min<uint64_t>(bytes, pages.capacity_bytes - at);
  AppendShared(pages.data + at, first, to);
  if (first < bytes) AppendShared(pages.data, bytes - first, to);
}

// { header, u64 id, u64 lost }.
uint64_t LostCount(const char* record) {
  uint64_t lost = 0;
  std::memcpy(&lost, record + 16, sizeof(lost));
  return lost;
}

}  // namespace

void BackwardRingReader::Begin() { begin_ = LoadHead(pages_); }

void BackwardRingReader::NoteHead(Clock& clock) {
  const TimeNs now = clock.Monotonic();
  noted_ = NotedHead{LoadHead(pages_), now};
}

uint64_t BackwardRingReader::Written() const { return begin_ - LoadHead(pages_); }

uint64_t BackwardRingReader::WrittenSinceNoted() const {
  return noted_ ? noted_->head - LoadHead(pages_) : 0;
}

void BackwardRingReader::Read(Clock& clock, PerfRing* ring) {
  if (!noted_) NoteHead(clock);
  const auto [head, time] = *noted_;
  noted_.reset();
  ring->taken = time;
  ring->capacity_bytes = pages_.capacity_bytes;
  ring->head = begin_ - head;
  const uint64_t available = std::min(ring->head, pages_.capacity_bytes);
  const uint64_t total = DropLapped(Walk(head, available), head);
  Copy(total, head, &ring->records);
  ring->discarded_bytes = available - ring->records.size();
  ring->lost_before = ring->records.size() < ring->head;
}

// Notes the records' sizes. Where the kernel has written meanwhile there may be anything.
uint64_t BackwardRingReader::Walk(uint64_t head, uint64_t available) {
  sizes_.clear();
  uint64_t total = 0;
  while (total + sizeof(perf_event_header) <= available) {
    const perf_event_header header = LoadHeader(pages_, head + total);
    if (!IsRecord(header, available - total)) break;
    sizes_.push_back(header.size);
    total += header.size;
  }
  return total;
}

// How many of the bytes behind `head` no writer can have touched until now.
uint64_t BackwardRingReader::Intact(uint64_t head) const {
  const uint64_t written = head - LoadHeadAfterCopy(pages_);
  const uint64_t doubtful = written + std::min(kInFlightBytes, pages_.capacity_bytes / 4);
  return doubtful < pages_.capacity_bytes ? pages_.capacity_bytes - doubtful : 0;
}

uint64_t BackwardRingReader::DropLapped(uint64_t total, uint64_t head) {
  const uint64_t intact = Intact(head);
  while (total > intact) {
    total -= sizes_.back();
    sizes_.pop_back();
  }
  return total;
}

// Copies the records in groups, the oldest first. Where the kernel laps one, all before it goes
// too: what is kept has no hole.
void BackwardRingReader::Copy(uint64_t total, uint64_t head, std::string* records) const {
  records->clear();
  records->reserve(total);
  uint64_t end = total;
  for (size_t last = sizes_.size(); last > 0;) {
    uint64_t begin = end;
    size_t first = last;
    while (first > 0 && end - begin < kGroupBytes) begin -= sizes_[--first];
    AppendGroup(first, last, head + end, records);
    if (end > Intact(head)) records->clear();
    end = begin;
    last = first;
  }
}

// The records sizes_[first ... last - 1], the last of which ends at `position`: that one first.
void BackwardRingReader::AppendGroup(size_t first, size_t last, uint64_t position,
                                     std::string* records) const {
  for (size_t i = last; i-- > first;) {
    position -= sizes_[i];
    AppendWrapped(pages_, position, sizes_[i], records);
  }
}

ForwardRingCounts DrainForwardRing(const PerfPages& pages, uint64_t most_bytes,
                                   std::string* records) {
  ForwardRingCounts counts;
  const uint64_t head = LoadHead(pages);
  uint64_t tail = pages.control->data_tail;  // only we write it
  while (head - tail >= sizeof(perf_event_header)) {
    const perf_event_header header = LoadHeader(pages, tail);
    if (!IsRecord(header, head - tail)) break;
    const size_t before = records->size();
    AppendWrapped(pages, tail, header.size, records);
    if (header.type == PERF_RECORD_LOST && header.size >= 24) {
      counts.lost_records += LostCount(records->data() + before);
      records->resize(before);
    } else if (records->size() > most_bytes) {
      records->resize(before);
      ++counts.dropped_records;
    }
    tail += header.size;
  }
  // Pairs with the kernel's load of data_tail (perf_output_begin): it writes there only after we
  // have read.
  __atomic_store_n(&pages.control->data_tail, head, __ATOMIC_RELEASE);
  return counts;
}

}  // namespace hangscope
