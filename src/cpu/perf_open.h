// perf_event_open(2), and the memory of its rings.
#ifndef HANGSCOPE_CPU_PERF_OPEN_H
#define HANGSCOPE_CPU_PERF_OPEN_H

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>

#include "cpu/perf_ring.h"

namespace hangscope {

// Of this machine: what a mapping is counted in.
uint64_t PageBytes();

// Owns a file descriptor.
class PerfDescriptor {
 public:
  PerfDescriptor() = default;
  explicit PerfDescriptor(int fd) : fd_(fd) {}
  ~PerfDescriptor() { Close(); }
  PerfDescriptor(PerfDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  PerfDescriptor& operator=(PerfDescriptor&& other) noexcept {
    Close();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  void Close();

  int fd_ = -1;
};

// What every event that is recorded has: the clock, and the fields by which records are told apart
// and put in order. Disabled.
perf_event_attr Recorded(perf_event_attr attr);

// Close-on-exec. Not ok(): errno says why. pid -1: every process; cpu -1: wherever it runs.
PerfDescriptor OpenPerfEvent(const perf_event_attr& attr, pid_t pid, int cpu);

// The id that its records carry; 0 where the kernel does not say.
uint64_t PerfEventId(const PerfDescriptor& event);

// Only what the kernel finds to match `filter`, a tracepoint's filter as tracefs takes it, is
// recorded. False: errno says why.
bool SetPerfFilter(const PerfDescriptor& event, const std::string& filter);

// Owns the mapping of a ring.
class PerfRingMapping {
 public:
  enum class Kind { kOverwrite, kForward };

  PerfRingMapping() = default;
  // `capacity_bytes`: a power of two of pages. Not ok(): errno says why; EPERM: more than may be
  // locked.
  PerfRingMapping(const PerfDescriptor& event, uint64_t capacity_bytes, Kind kind);
  ~PerfRingMapping();
  PerfRingMapping(PerfRingMapping&& other) noexcept { *this = std::move(other); }
  PerfRingMapping& operator=(PerfRingMapping&& other) noexcept;

  bool ok() const { return memory_ != nullptr; }
  PerfPages pages() const;

 private:
  void* memory_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace hangscope

#endif
