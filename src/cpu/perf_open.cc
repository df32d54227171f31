#include "cpu/perf_open.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace hangscope {
uint64_t PageBytes() {
  static const auto bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void PerfDescriptor::Close() {
  if (fd_ >= 0) close(fd_);
}

perf_event_attr Recorded(perf_event_attr attr) {
  attr.size = sizeof(attr);
  attr.sample_type |= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.disabled = 1;
  return attr;
}

PerfDescriptor OpenPerfEvent(const perf_event_attr& attr, pid_t pid, int cpu) {
  return PerfDescriptor(
      static_cast<int>(syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
}

uint64_t PerfEventId(const PerfDescriptor& event) {
  uint64_t id = 0;
  return ioctl(event.get(), PERF_EVENT_IOC_ID, &id) == 0 ? id : 0;
}

bool SetPerfFilter(const PerfDescriptor& event, const std::string& filter) {
  return ioctl(event.get(), PERF_EVENT_IOC_SET_FILTER, filter.c_str()) == 0;
}

PerfRingMapping::PerfRingMapping(const PerfDescriptor& event, uint64_t capacity_bytes, Kind kind) {
  // The kernel overwrites what is mapped read-only, and stops at data_tail where that can be
  // written.
  const int protection = kind == Kind::kForward ? PROT_READ | PROT_WRITE : PROT_READ;
  const uint64_t bytes = PageBytes() + capacity_bytes;
  void* memory = mmap(nullptr, bytes, protection, MAP_SHARED, event.get(), 0);
  if (memory == MAP_FAILED) return;
  memory_ = memory;
  bytes_ = bytes;
}

PerfRingMapping::~PerfRingMapping() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

PerfRingMapping& PerfRingMapping::operator=(PerfRingMapping&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

PerfPages PerfRingMapping::pages() const {
  return {static_cast<perf_event_mmap_page*>(memory_),
          static_cast<const char*>(memory_) + PageBytes(), bytes_ - PageBytes()};
}

}  // namespace hangscope
