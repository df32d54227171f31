// Reading the rings that Linux's perf writes, on the memory that kernel and reader share.
//
// A backward ring (perf_event_attr.write_backward, mapped read-only) overwrites itself. Its
// data_head counts down from 0; the newest record begins there, older ones follow at growing
// addresses:
//
//        data_head                                  data_head + capacity
//            |  newest  |  older  |  ...  |  oldest  |
//                                           <- the kernel writes on from this end
//
// It is read while the kernel goes on writing: the sizes first, from the newest record to the
// oldest, then the records, from the oldest to the newest, so that the reader runs ahead of the
// writer; data_head is looked at again after each step, and what was lapped is dropped. No event is
// off meanwhile: there is no blind time, but where somebody pauses one (cpu/ring_pause.h). Where
// several rings are read, the heads of all are noted first: they end at one instant, however long
// it takes to copy them.
//
// The kernel reserves room, writes, and publishes data_head last; interrupts may nest records of
// their own in between, and all are published together. So the bytes behind data_head + capacity -
// kInFlightBytes are never taken, whoever writes there.
//
// A forward ring keeps what was not taken yet (data_tail) and counts what finds no room.
#ifndef HANGSCOPE_CPU_PERF_RING_H
#define HANGSCOPE_CPU_PERF_RING_H

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/perf_event.h"

namespace hangscope {

// A mapped ring. Owns nothing.
struct PerfPages {
  // data_head is the kernel's; data_tail, of a forward ring, ours
  perf_event_mmap_page* control = nullptr;
  const char* data = nullptr;   // aligned to 8 bytes
  uint64_t capacity_bytes = 0;  // a power of two
};

// As long as the kernel has not published them, at most so many bytes are being written: the
// largest record that there can be, which is also hundreds of those that there are. Less in rings
// below 256 KiB.
constexpr uint64_t kInFlightBytes = 64u << 10;

// Reads one backward ring. One thread.
class BackwardRingReader {
 public:
  explicit BackwardRingReader(const PerfPages& pages) : pages_(pages) {}

  // What was written until now does not count: Read gives what comes later, and heads count from
  // here.
  void Begin();
  // Read gives what has been written by now, and not what comes until it is called.
  void NoteHead(Clock& clock);
  // Bytes, since Begin.
  uint64_t Written() const;
  // Of these, since NoteHead: they are written over the oldest of what Read will give.
  uint64_t WrittenSinceNoted() const;
  // Sets capacity_bytes, head, records, discarded_bytes, lost_before and taken. `records` is
  // reused. Ends where NoteHead was called since the Read before, else at what is written by now.
  void Read(Clock& clock, PerfRing* ring);

 private:
  uint64_t Walk(uint64_t head, uint64_t available);
  uint64_t DropLapped(uint64_t total, uint64_t head);
  uint64_t Intact(uint64_t head) const;
  void Copy(uint64_t total, uint64_t head, std::string* records) const;
  void AppendGroup(size_t first, size_t last, uint64_t position, std::string* records) const;

  PerfPages pages_;
  struct NotedHead {
    uint64_t head = 0;
    TimeNs time = 0;
  };

  uint64_t begin_ = 0;  // data_head when Begin was called
  std::optional<NotedHead> noted_;
  // of the records, the newest first; kept, so that no memory is asked for
  std::vector<uint16_t> sizes_;
};

struct ForwardRingCounts {
  uint64_t lost_records = 0;     // by the kernel, for want of room
  uint64_t dropped_records = 0;  // by the reader, whose `most_bytes` were full
};

// Takes all records out of a forward ring and appends them to `records`, which does not grow over
// `most_bytes`.
ForwardRingCounts DrainForwardRing(const PerfPages& pages, uint64_t most_bytes,
                                   std::string* records);

}  // namespace hangscope

#endif
