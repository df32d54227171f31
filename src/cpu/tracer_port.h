// What a hardware tracer needs of the kernel: an event of its PMU, the ring with that event's
// records, and the area that the hardware writes its trace into. Behind an interface, for few
// machines have such hardware.
#ifndef HANGSCOPE_CPU_TRACER_PORT_H
#define HANGSCOPE_CPU_TRACER_PORT_H

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "cpu/perf_ring.h"

namespace hangscope {

// As long as the event is mapped.
struct TracerPages {
  // a forward ring: PERF_RECORD_AUX and what else tells of the trace
  PerfPages records;
  const unsigned char* trace = nullptr;  // the AUX area, which overwrites itself
  uint64_t trace_bytes = 0;
};

// An event of a tracer's, disabled at first. Closed with this. Those that fail return an errno
// value; 0: it worked. One thread.
class TracerEvent {
 public:
  virtual ~TracerEvent() = default;
  // Of its records; 0 where the kernel does not say.
  virtual uint64_t id() const = 0;
  // Gives it rings, both a power of two of pages; once more after a failure. EPERM: more than may
  // be locked in memory.
  virtual int Map(uint64_t record_bytes, uint64_t trace_bytes) = 0;
  virtual TracerPages pages() const = 0;
  // Into the rings of `owner`, which is mapped and of the same CPU. That one must outlive this.
  virtual int WriteInto(const TracerEvent& owner) = 0;
  // Which code is traced, as the kernel takes it (cpu/address_filter.h); before Start.
  virtual int SetFilter(const std::string& filter) = 0;
  // With whatever inherited it. When Stop returns, all that was traced is in the area, its head and
  // record published.
  virtual int Start() = 0;
  virtual int Stop() = 0;
};

// Time from counts of the time stamp counter: ns = zero + (count * multiplier >> shift), where
// `zero` may stand for a negative number.
struct CounterTime {
  uint16_t shift = 0;
  uint32_t multiplier = 0;
  uint64_t zero = 0;
};

class TracerPort {
 public:
  virtual ~TracerPort() = default;
  // tid -1: everybody on `cpu`; 0: this thread. null: `error` says why, an errno value.
  virtual std::unique_ptr<TracerEvent> Open(const perf_event_attr& attr, pid_t tid, int cpu,
                                            int* error) = 0;
  // How the time stamp counter gives CLOCK_MONOTONIC now. Over a second of the past it is as exact
  // as the clock is steered: 500 us at most. Nothing where perf's time does not follow the counter.
  virtual std::optional<CounterTime> MonotonicOfCounter(Clock& clock) = 0;
};

// The kernel's. Any thread may ask for it.
TracerPort& KernelTracerPort();

}  // namespace hangscope

#endif
