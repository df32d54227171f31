// CpuRecorder over perf_event_open. docs/cpu-recording.md says what is recorded, what it costs, and who may.
//
// A CPU has two rings, both of a dummy event of our own, so that they outlive every thread: a backward one that
// overwrites itself, for all events, and a small forward one for the side band (names, forks, exits, mappings),
// which Tick empties. Each thread that there is gets every event on every CPU, with inheritance: threads and
// processes that it makes later are recorded from their first instruction, by the kernel itself.
#include <dirent.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>

#include "base/file_system.h"
#include "capture/cpu_recorder.h"
#include "capture/perf_events.h"
#include "capture/perf_open.h"
#include "capture/perf_ring.h"

namespace hangscope {
namespace {

constexpr uint64_t kSmallestRing = 16u << 10;
constexpr uint64_t kMostSideBand = 8u << 20;
constexpr int kRounds = 20;  // in which threads are looked for that came while others were attached

// What switches, sleeps and waits are told from.
constexpr const char* kUsualEvents[] = {
    "sched:sched_switch", "sched:sched_waking",     "sched:sched_migrate_task", "raw_syscalls:sys_enter",
    "raw_syscalls:sys_exit", "signal:signal_generate", "signal:signal_deliver",    "page-faults",
};

uint64_t RingBytes(uint64_t asked) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t bytes = std::max(page, kSmallestRing);
  while (bytes < asked && bytes < uint64_t{1} << 40) bytes *= 2;
  return bytes;
}

uint64_t SideBandBytes(uint64_t ring_bytes) { return std::clamp<uint64_t>(ring_bytes / 8, 16u << 10, 512u << 10); }

// What every event has in common: the clock, and the fields by which records are told apart and put in order.
perf_event_attr CommonAttributes(perf_event_attr attr) {
  attr.size = sizeof(attr);
  attr.sample_type |= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.disabled = 1;
  return attr;
}

perf_event_attr Dummy() {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.sample_period = 1;
  attr.exclude_kernel = 1;  // it counts nothing; so everybody may open it
  return CommonAttributes(attr);
}

std::vector<int> OnlineCpus() {
  std::vector<int> cpus;
  const long possible = sysconf(_SC_NPROCESSORS_CONF);
  for (int cpu = 0; cpu < possible; ++cpu) cpus.push_back(cpu);
  return cpus;
}

std::set<int> ThreadsOf(pid_t pid) {
  std::set<int> threads;
  for (const std::string& name : PosixFileSystem().List("/proc/" + std::to_string(pid) + "/task")) threads.insert(std::atoi(name.c_str()));
  return threads;
}

// One CPU.
struct CpuRings {
  int cpu = 0;
  PerfDescriptor events_owner, side_owner;
  PerfRingMapping events, side;
  std::optional<BackwardRingReader> reader;
};

class PerfRecorder final : public CpuRecorder {
 public:
  PerfRecorder(Clock& clock, pid_t pid, const CpuRecorderOptions& options) : clock_(clock), pid_(pid), options_(options) {}

  Status Start();
  void Tick() override;
  Result<CpuCapture> Take() override;
  const std::vector<std::string>& warnings() const override { return warnings_; }

 private:
  Status OpenRings();
  bool MapRings(uint64_t bytes);
  void ChooseEvents();
  void AddEvent(PerfEventSpec spec, bool forward);
  Status AttachThreads();
  Status Attach(pid_t tid);
  void DrainSideBand();

  struct Chosen {
    PerfEvent event;
    std::string path;
    bool side_band = false;
  };

  Clock& clock_;
  const pid_t pid_;
  const CpuRecorderOptions options_;
  std::vector<std::string> warnings_;
  std::vector<CpuRings> rings_;
  std::vector<Chosen> events_;
  std::vector<PerfDescriptor> opened_;
  TimeNs recording_since_ = 0;
  std::string side_band_;
  uint64_t side_band_lost_ = 0;
};

Status PerfRecorder::Start() {
  if (Status status = OpenRings(); !status.ok()) return status;
  ChooseEvents();
  if (Status status = AttachThreads(); !status.ok()) return status;
  recording_since_ = clock_.Monotonic();
  return {};
}

Status PerfRecorder::OpenRings() {
  perf_event_attr backward = Dummy();
  backward.write_backward = 1;
  for (const int cpu : OnlineCpus()) {
    CpuRings rings;
    rings.cpu = cpu;
    rings.events_owner = OpenPerfEvent(backward, 0, cpu);
    rings.side_owner = OpenPerfEvent(Dummy(), 0, cpu);
    if (rings.events_owner.ok() && rings.side_owner.ok()) {
      rings_.push_back(std::move(rings));
      continue;
    }
    if (errno != ENODEV) return Status::Io(std::string("the kernel lets nothing be recorded: perf_event_open: ") + ErrorText(errno));
    warnings_.push_back("CPU " + std::to_string(cpu) + " is offline: what runs there later is not recorded");
  }
  uint64_t bytes = RingBytes(options_.ring_bytes);
  while (!MapRings(bytes)) {
    if (bytes <= kSmallestRing) return Status::Io(std::string("no memory for rings of 16 KiB: ") + ErrorText(errno));
    bytes /= 2;
  }
  if (bytes < options_.ring_bytes) {
    warnings_.push_back("rings have " + std::to_string(bytes >> 10) + " KiB a CPU in place of " + std::to_string(options_.ring_bytes >> 10) +
                        ": no more memory may be locked; 'sysctl kernel.perf_event_mlock_kb=" +
                        std::to_string((RingBytes(options_.ring_bytes) + SideBandBytes(options_.ring_bytes) + 2 * kSmallestRing) >> 10) + "' as root allows it");
  }
  return {};
}

bool PerfRecorder::MapRings(uint64_t bytes) {
  for (CpuRings& rings : rings_) {
    rings.events = {};
    rings.side = {};
  }
  for (CpuRings& rings : rings_) {
    rings.events = PerfRingMapping(rings.events_owner, bytes, PerfRingMapping::Kind::kOverwrite);
    if (!rings.events.ok()) return false;
    rings.side = PerfRingMapping(rings.side_owner, SideBandBytes(bytes), PerfRingMapping::Kind::kForward);
    if (!rings.side.ok()) return false;
    rings.reader.emplace(rings.events.pages());
  }
  return true;
}

void PerfRecorder::ChooseEvents() {
  PerfEventSpec switches;
  switches.event.name = "dummy:u";
  switches.event.attr = Dummy();
  switches.event.attr.context_switch = 1;
  AddEvent(std::move(switches), false);

  PerfEventSpec side_band;
  side_band.event.name = "dummy:u";
  side_band.event.attr = Dummy();
  side_band.event.attr.mmap = side_band.event.attr.mmap2 = 1;
  side_band.event.attr.comm = side_band.event.attr.comm_exec = 1;
  side_band.event.attr.task = 1;
  AddEvent(std::move(side_band), true);

  std::vector<std::string> names(std::begin(kUsualEvents), std::end(kUsualEvents));
  names.insert(names.end(), options_.events.begin(), options_.events.end());
  const PerfEventFinder finder(PosixFileSystem());
  for (const std::string& name : names) {
    auto specs = finder.Find(name);
    if (!specs.ok()) {
      warnings_.push_back(specs.status().message());
      continue;
    }
    for (PerfEventSpec& spec : *specs) AddEvent(std::move(spec), false);
  }
}

void PerfRecorder::AddEvent(PerfEventSpec spec, bool side_band) {
  perf_event_attr& attr = spec.event.attr;
  attr = CommonAttributes(attr);
  attr.inherit = !options_.whole_machine;
  attr.write_backward = !side_band;
  if (options_.call_stacks && !side_band && attr.config != PERF_COUNT_SW_DUMMY) attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
  const PerfDescriptor trial = OpenPerfEvent(attr, options_.whole_machine ? -1 : pid_, rings_.front().cpu);
  if (!trial.ok()) {
    warnings_.push_back("'" + spec.event.name + "' is not recorded: " + ErrorText(errno));
    return;
  }
  events_.push_back({std::move(spec.event), std::move(spec.path), side_band});
}

Status PerfRecorder::AttachThreads() {
  if (options_.whole_machine) return Attach(-1);
  std::set<int> attached;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<int> fresh;
    for (const int tid : ThreadsOf(pid_)) {
      if (attached.insert(tid).second) fresh.push_back(tid);
    }
    if (fresh.empty()) return {};
    for (const int tid : fresh) {
      if (Status status = Attach(tid); !status.ok()) return status;
    }
  }
  return {};
}

Status PerfRecorder::Attach(pid_t tid) {
  const size_t first = opened_.size();
  for (CpuRings& rings : rings_) {
    for (Chosen& chosen : events_) {
      PerfDescriptor event = OpenPerfEvent(chosen.event.attr, tid, rings.cpu);
      if (!event.ok() && errno == ESRCH) return {};  // it has ended
      if (!event.ok()) return Status::Io("cannot record '" + chosen.event.name + "' of thread " + std::to_string(tid) + ": " + ErrorText(errno));
      const int owner = chosen.side_band ? rings.side_owner.get() : rings.events_owner.get();
      if (ioctl(event.get(), PERF_EVENT_IOC_SET_OUTPUT, owner) != 0) return Status::Io(std::string("cannot direct events into a ring: ") + ErrorText(errno));
      chosen.event.ids.push_back(PerfEventId(event));
      opened_.push_back(std::move(event));
    }
  }
  for (size_t i = first; i < opened_.size(); ++i) ioctl(opened_[i].get(), PERF_EVENT_IOC_ENABLE, 0);
  return {};
}

void PerfRecorder::DrainSideBand() {
  for (CpuRings& rings : rings_) {
    const ForwardRingCounts counts = DrainForwardRing(rings.side.pages(), kMostSideBand, &side_band_);
    side_band_lost_ += counts.lost_records + counts.dropped_records;
  }
}

void PerfRecorder::Tick() { DrainSideBand(); }

Result<CpuCapture> PerfRecorder::Take() {
  CpuCapture capture;
  capture.time = clock_.Monotonic();
  for (CpuRings& rings : rings_) {
    PerfRing ring;
    ring.cpu = rings.cpu;
    ring.recording_since = recording_since_;
    rings.reader->Read(clock_, &ring);
    capture.rings.push_back(std::move(ring));
  }
  capture.took = clock_.Monotonic() - capture.time;
  DrainSideBand();
  for (const Chosen& chosen : events_) capture.events.push_back(chosen.event);
  capture.side_band = side_band_;
  capture.side_band_lost = side_band_lost_;
  return capture;
}

}  // namespace

Result<std::unique_ptr<CpuRecorder>> StartCpuRecorder(Clock& clock, pid_t pid, const CpuRecorderOptions& options) {
  auto recorder = std::make_unique<PerfRecorder>(clock, pid, options);
  if (Status status = recorder->Start(); !status.ok()) return status;
  return std::unique_ptr<CpuRecorder>(std::move(recorder));
}

}  // namespace hangscope
