// A kernel with a hardware tracer: events of threads on CPUs, a control page and two rings a CPU,
// and a sink: CoreSight's all CPUs share, and as the drivers do, only the last to stop gets what is
// in it. A test says who runs where and what the hardware traces there.
#ifndef HANGSCOPE_TESTS_FAKES_FAKE_TRACER_H
#define HANGSCOPE_TESTS_FAKES_FAKE_TRACER_H

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cpu/side_band_recorder.h"
#include "cpu/tracer_port.h"
#include "fakes/fake_clock.h"
#include "fakes/simulated_sink.h"

namespace hangscope {

class FakeTracerKernel final : public TracerPort {
 public:
  static constexpr pid_t kProcess = 4711;

  FakeTracerKernel(FakeClock& clock, size_t cpus, AuxHeadKind kind, uint64_t sink_bytes)
      : clock_(clock),
        kind_(kind),
        sinks_(IsShared() ? 1 : cpus, SimulatedSink(sink_bytes, IsShared())),
        cpus_(cpus) {}

  // What it refuses, and what it says.
  std::map<int, int> open_errors;          // by CPU: errno
  std::map<pid_t, int> thread_errors;      // by thread
  bool kernel_is_forbidden = false;        // EACCES for whoever wants to see it
  uint64_t lockable_bytes = ~uint64_t{0};  // of all areas
  bool tells_whole_area = false;           // as Intel PT does, of each piece
  bool tells_hardware_ids = false;         // 0x31 + CPU
  bool starts = true;
  int filter_error = 0;
  std::optional<CounterTime> counter_time;

  std::vector<std::string> filters;     // that were set, one an event
  std::vector<perf_event_attr> opened;  // their attributes
  int running_stops = 0;                // that found the tracer running
  uint64_t untraced_bytes = 0;          // of programs that ran while it was stopped
  size_t open_events() const { return events_.size(); }

  // `tid` gets the CPU; with `maker` it has inherited that one's events.
  void Run(size_t cpu, pid_t tid, pid_t maker = 0) {
    if (maker != 0) maker_[tid] = maker;
    cpus_[cpu].tid = tid;
    if (!IsTraced(cpu)) return;
    if (cpus_[cpu].begun.insert(tid).second) {
      Record(cpu, PERF_RECORD_ITRACE_START, 0,
             {uint64_t{kProcess} | uint64_t(uint32_t(tid)) << 32});
      if (tells_hardware_ids) Record(cpu, 21, 0, {0x31 + cpu});
    }
    Record(cpu, PERF_RECORD_SWITCH, 0, {});
  }
  void Trace(size_t cpu, const std::string& bytes) {
    if (!IsTraced(cpu))
      untraced_bytes += bytes.size();
    else
      for (const char byte : bytes)
        SinkOf(cpu).Write(cpu, clock_.Monotonic(), static_cast<unsigned char>(byte));
  }
  // It leaves the CPU; what is in the sink goes into its area, if nobody else is traced. `flags`:
  // what went wrong.
  void Leave(size_t cpu, uint64_t flags = 0) {
    if (IsTraced(cpu)) {
      Record(cpu, PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT, {});
      Drain(cpu, flags);
    }
    cpus_[cpu].tid = 0;
  }

  std::unique_ptr<TracerEvent> Open(const perf_event_attr& attr, pid_t tid, int cpu,
                                    int* error) override {
    opened.push_back(attr);
    *error = 0;
    if (const auto found = open_errors.find(cpu); found != open_errors.end())
      *error = found->second;
    if (const auto found = thread_errors.find(tid); found != thread_errors.end())
      *error = found->second;
    if (kernel_is_forbidden && attr.exclude_kernel == 0) *error = EACCES;
    if (*error != 0) return nullptr;
    return std::make_unique<Event>(this, attr, tid, static_cast<size_t>(cpu));
  }
  std::optional<CounterTime> MonotonicOfCounter(Clock&) override { return counter_time; }

 private:
  class Event final : public TracerEvent {
   public:
    Event(FakeTracerKernel* kernel, const perf_event_attr& its_attr, pid_t its_tid, size_t its_cpu)
        : attr(its_attr), tid(its_tid), cpu(its_cpu), kernel_(kernel), id_(++kernel->last_id_) {
      kernel_->events_.insert(this);
    }
    ~Event() override {
      kernel_->events_.erase(this);
      if (mapped_) kernel_->cpus_[cpu].Unmap();
    }
    uint64_t id() const override { return id_; }
    int Map(uint64_t record_bytes, uint64_t trace_bytes) override {
      FakeCpu& mine = kernel_->cpus_[cpu];
      mine.Unmap();
      uint64_t locked = trace_bytes;
      for (const FakeCpu& other : kernel_->cpus_)
        locked += other.area.empty() ? 0 : other.area[0].area().capacity;
      if (locked > kernel_->lockable_bytes) return EPERM;
      mine.records.assign(record_bytes / 8, 0);
      mine.area.emplace_back(trace_bytes, kernel_->kind_);
      mapped_ = true;
      return 0;
    }
    TracerPages pages() const override {
      FakeCpu& mine = kernel_->cpus_[cpu];
      const AuxArea area = mine.area[0].area();
      return {{&mine.control, reinterpret_cast<const char*>(mine.records.data()),
               mine.records.size() * 8},
              area.bytes,
              area.capacity};
    }
    int WriteInto(const TracerEvent& owner) override {
      const auto& other = static_cast<const Event&>(owner);
      return other.cpu == cpu && other.mapped_ && other.attr.type == attr.type &&
                     other.attr.clockid == attr.clockid
                 ? 0
                 : EINVAL;
    }
    int SetFilter(const std::string& filter) override {
      if (kernel_->filter_error == 0) kernel_->filters.push_back(filter);
      return kernel_->filter_error;
    }
    int Start() override {
      if (!kernel_->starts) return EINVAL;
      on = true;
      return 0;
    }
    int Stop() override {
      if (on && kernel_->IsTraced(cpu) && kernel_->EventOf(cpu) == this) {
        ++kernel_->running_stops;
        kernel_->Drain(cpu, 0);
      }
      on = false;
      return 0;
    }

    const perf_event_attr attr;
    const pid_t tid;
    const size_t cpu;
    bool on = false;

   private:
    FakeTracerKernel* const kernel_;
    const uint64_t id_;
    bool mapped_ = false;
  };

  struct FakeCpu {
    perf_event_mmap_page control{};
    std::vector<uint64_t> records;
    std::vector<SimulatedAux> area;  // one, or none
    uint64_t lost = 0;
    pid_t tid = 0;  // who runs; 0: nobody
    pid_t last_tid = 0;
    std::set<pid_t> begun;

    void Unmap() {
      area.clear();
      control = {};
    }
  };

  Event* EventOf(size_t cpu) {
    pid_t tid = cpus_[cpu].tid;
    if (tid == 0) return nullptr;
    while (maker_.count(tid) != 0) tid = maker_[tid];
    for (Event* event : events_) {
      if (event->cpu == cpu && (event->tid == tid || event->tid == -1)) return event;
    }
    return nullptr;
  }
  bool IsTraced(size_t cpu) {
    const Event* const event = EventOf(cpu);
    return event != nullptr && event->on && !cpus_[cpu].area.empty();
  }

  bool IsShared() const { return kind_ == AuxHeadKind::kCountsAll; }
  SimulatedSink& SinkOf(size_t cpu) { return sinks_[IsShared() ? 0 : cpu]; }

  // Its tracer stops.
  void Drain(size_t cpu, uint64_t flags) {
    for (size_t other = 0; IsShared() && other < cpus_.size(); ++other) {
      if (other != cpu && IsTraced(other)) return;
    }
    cpus_[cpu].last_tid = cpus_[cpu].tid;
    const uint64_t drained = SinkOf(cpu).Drain(cpus_[cpu].area[0]);
    if (drained > 0) TellPiece(cpu, drained, flags);
  }
  // As perf_aux_output_end does in overwrite mode: where the head is now.
  void TellPiece(size_t cpu, uint64_t bytes, uint64_t flags) {
    const AuxArea area = cpus_[cpu].area[0].area();
    Record(cpu, PERF_RECORD_AUX, 0,
           {*area.head, tells_whole_area ? area.capacity : bytes, flags | PERF_AUX_FLAG_OVERWRITE});
    // Pairs with the acquire in AuxReader::Load.
    __atomic_store_n(&cpus_[cpu].control.aux_head, *area.head, __ATOMIC_RELEASE);
  }

  void Record(size_t cpu, uint32_t type, uint16_t misc, const std::vector<uint64_t>& words) {
    FakeCpu& mine = cpus_[cpu];
    if (mine.lost > 0 && Append(cpu, PERF_RECORD_LOST, 0, {1, mine.lost})) mine.lost = 0;
    if (!Append(cpu, type, misc, words)) ++mine.lost;
  }
  bool Append(size_t cpu, uint32_t type, uint16_t misc, const std::vector<uint64_t>& words) {
    FakeCpu& mine = cpus_[cpu];
    const std::string body(reinterpret_cast<const char*>(words.data()), words.size() * 8);
    const pid_t tid = mine.tid != 0 ? mine.tid : mine.last_tid;
    const Event* const event = EventOf(cpu);
    const std::string record =
        MakePerfRecord(type, misc, body,
                       {kProcess, tid, clock_.Monotonic(), static_cast<int>(cpu),
                        event == nullptr ? 0 : event->id()});
    const uint64_t capacity = mine.records.size() * 8;
    uint64_t head = mine.control.data_head;
    if (head + record.size() - __atomic_load_n(&mine.control.data_tail, __ATOMIC_ACQUIRE) >
        capacity)
      return false;
    for (const char byte : record)
      reinterpret_cast<char*>(mine.records.data())[head++ % capacity] = byte;
    // Pairs with the acquire in DrainForwardRing.
    __atomic_store_n(&mine.control.data_head, head, __ATOMIC_RELEASE);
    return true;
  }

  FakeClock& clock_;
  const AuxHeadKind kind_;
  std::vector<SimulatedSink> sinks_;  // of all CPUs, or of each
  std::vector<FakeCpu> cpus_;
  std::set<Event*> events_;
  std::map<pid_t, pid_t> maker_;
  uint64_t last_id_ = 500;
};

}  // namespace hangscope

#endif
