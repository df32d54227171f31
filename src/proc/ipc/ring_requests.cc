#include "proc/ipc/ring_requests.h"

#include <poll.h>

#include <algorithm>
#include <set>

namespace hangscope {
namespace {

// struct io_uring_sqe, as far as it matters; the kernel's headers may be older than the ring.
struct Entry {
  uint8_t operation;
  uint8_t flags;
  uint16_t priority;
  int32_t fd;
  uint64_t offset;
  uint64_t address;
  uint32_t bytes;
  uint32_t poll_events;
  uint64_t rest[4];
};
static_assert(sizeof(Entry) == 64);

constexpr uint64_t kEntriesAt = 0x10000000;  // IORING_OFF_SQES
constexpr uint64_t kMostEntries = 32768;     // as the kernel allows
constexpr uint8_t kNothing = 0;              // IORING_OP_NOP, and a place that was never used
constexpr uint8_t kPollAdd = 6;
constexpr uint8_t kAccept = 13;

// IORING_OP_READV, READ_FIXED, RECVMSG, READ, RECV
bool Reads(uint8_t operation) {
  constexpr uint8_t kReads[] = {1, 4, 10, 22, 27, kAccept};
  return std::find(std::begin(kReads), std::end(kReads), operation) != std::end(kReads);
}

// IORING_OP_WRITEV, WRITE_FIXED, SENDMSG, WRITE, SEND
bool Writes(uint8_t operation) {
  constexpr uint8_t kWrites[] = {2, 5, 9, 23, 26};
  return std::find(std::begin(kWrites), std::end(kWrites), operation) != std::end(kWrites);
}

}  // namespace

bool WasGivenNothing(const RingCounts& ring) {
  return ring.taken == 0 && ring.offered == 0 && !ring.has_kernel_thread;
}

std::optional<std::vector<RingRequest>> OpenRequests(const RingCounts& ring,
                                                     const std::vector<MemoryMapping>& mappings,
                                                     const ReadMemory& read) {
  const uint64_t open = ring.taken - ring.completed;
  const bool all_polled = ring.is_whole && ring.taken >= ring.completed &&
                          open == ring.polled.size() && ring.taken == ring.offered;
  if (!all_polled || ring.taken > ring.entries || ring.entries > kMostEntries ||
      ring.has_kernel_thread)
    return std::nullopt;
  const auto mapping =
      std::find_if(mappings.begin(), mappings.end(), [&](const MemoryMapping& each) {
        return each.inode == ring.inode && each.file_offset == kEntriesAt &&
               each.path.ends_with("[io_uring]");
      });
  std::vector<Entry> entries(ring.entries);
  if (mapping == mappings.end() || mapping->size_bytes() < ring.entries * sizeof(Entry) ||
      !read(mapping->begin, entries.data(), entries.size() * sizeof(Entry)))
    return std::nullopt;
  std::vector<RingRequest> requests;
  std::multiset<int> found;
  for (const Entry& entry : entries) {
    if (entry.operation == kNothing) continue;
    const bool polls = entry.operation == kPollAdd;
    // Without flags it is one request of a descriptor, and has one completion.
    const bool is_plain = entry.flags == 0 && entry.priority == 0 && (!polls || entry.bytes == 0);
    if (!is_plain || (!polls && !Reads(entry.operation) && !Writes(entry.operation)))
      return std::nullopt;
    if (std::count(ring.polled.begin(), ring.polled.end(), entry.operation) == 0) continue;
    found.insert(entry.operation);
    requests.push_back(
        {entry.fd, polls ? (entry.poll_events & POLLOUT) == 0 : !Writes(entry.operation)});
  }
  // A place that was used again hides what it held.
  for (const int operation : ring.polled) {
    const auto at = found.find(operation);
    if (at == found.end()) return std::nullopt;
    found.erase(at);
  }
  return requests;
}

}  // namespace hangscope
