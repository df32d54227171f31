#include "cpu/tracer_port.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "cpu/perf_open.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace hangscope {
namespace {

class Mapping {
 public:
  Mapping() = default;
  Mapping(int fd, uint64_t bytes, int protection, uint64_t offset) {
    void* const memory =
        mmap(nullptr, bytes, protection, MAP_SHARED, fd, static_cast<off_t>(offset));
    if (memory == MAP_FAILED) return;
    memory_ = memory;
    bytes_ = bytes;
  }
  ~Mapping() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }
  Mapping(Mapping&& other) noexcept { *this = std::move(other); }
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  bool ok() const { return memory_ != nullptr; }
  char* at(uint64_t offset) const { return static_cast<char*>(memory_) + offset; }
  uint64_t bytes() const { return bytes_; }

 private:
  void* memory_ = nullptr;
  uint64_t bytes_ = 0;
};

class KernelTracerEvent final : public TracerEvent {
 public:
  explicit KernelTracerEvent(PerfDescriptor event) : event_(std::move(event)) {}

  uint64_t id() const override { return PerfEventId(event_); }

  int Map(uint64_t record_bytes, uint64_t trace_bytes) override {
    trace_ = {};
    records_ = {};
    records_ = Mapping(event_.get(), PageBytes() + record_bytes, PROT_READ | PROT_WRITE, 0);
    if (!records_.ok()) return errno;
    // Where the kernel looks when the second mapping asks for the AUX area.
    control()->aux_offset = records_.bytes();
    control()->aux_size = trace_bytes;
    // Read-only: the kernel overwrites, and does not wait for a reader.
    trace_ = Mapping(event_.get(), trace_bytes, PROT_READ, records_.bytes());
    return trace_.ok() ? 0 : errno;
  }
  TracerPages pages() const override {
    if (!trace_.ok()) return {};
    const PerfPages records{control(), records_.at(PageBytes()), records_.bytes() - PageBytes()};
    return {records, reinterpret_cast<const unsigned char*>(trace_.at(0)), trace_.bytes()};
  }
  int WriteInto(const TracerEvent& owner) override {
    return Control(PERF_EVENT_IOC_SET_OUTPUT,
                   static_cast<const KernelTracerEvent&>(owner).event_.get());
  }
  int SetFilter(const std::string& filter) override {
    return ioctl(event_.get(), PERF_EVENT_IOC_SET_FILTER, filter.c_str()) == 0 ? 0 : errno;
  }
  int Start() override { return Control(PERF_EVENT_IOC_ENABLE, 0); }
  int Stop() override { return Control(PERF_EVENT_IOC_DISABLE, 0); }

 private:
  perf_event_mmap_page* control() const {
    return reinterpret_cast<perf_event_mmap_page*>(records_.at(0));
  }
  int Control(unsigned long request, int argument) const {
    return ioctl(event_.get(), request, argument) == 0 ? 0 : errno;
  }

  const PerfDescriptor event_;
  Mapping records_;
  Mapping trace_;  // unmapped before the records, whose page has its size
};

class KernelPort final : public TracerPort {
 public:
  std::unique_ptr<TracerEvent> Open(const perf_event_attr& attr, pid_t tid, int cpu,
                                    int* error) override {
    PerfDescriptor event = OpenPerfEvent(attr, tid, cpu);
    *error = event.ok() ? 0 : errno;
    if (!event.ok()) return nullptr;
    return std::make_unique<KernelTracerEvent>(std::move(event));
  }

  // The records have CLOCK_MONOTONIC's times, for which the kernel offers no conversion: its own is
  // of its local clock. The counter's rate is the same for both but for steering, so that is taken,
  // and zero is measured.
  std::optional<CounterTime> MonotonicOfCounter(Clock& clock) override {
#if defined(__x86_64__)
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_DUMMY;
    attr.exclude_kernel = 1;
    attr.disabled = 1;
    const PerfDescriptor event = OpenPerfEvent(attr, 0, -1);
    if (!event.ok()) return std::nullopt;
    const Mapping page(event.get(), PageBytes(), PROT_READ, 0);
    if (!page.ok()) return std::nullopt;
    const auto* const control = reinterpret_cast<const perf_event_mmap_page*>(page.at(0));
    if (control->cap_user_time_zero == 0 || control->time_mult == 0) return std::nullopt;
    CounterTime time{control->time_shift, control->time_mult, 0};
    const uint64_t before = __rdtsc();
    const TimeNs now = clock.Monotonic();
    const uint64_t counter = before + (__rdtsc() - before) / 2;
    const auto elapsed = static_cast<unsigned __int128>(counter) * time.multiplier >> time.shift;
    time.zero = static_cast<uint64_t>(now) - static_cast<uint64_t>(elapsed);
    return time;
#else
    (void)clock;
    return std::nullopt;
#endif
  }
};

}  // namespace

TracerPort& KernelTracerPort() {
  static KernelPort port;
  return port;
}

}  // namespace hangscope
