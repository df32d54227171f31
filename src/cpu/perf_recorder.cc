// CpuRecorder over perf_event_open. docs/cpu-recording.md says what is recorded, what it costs, and
// who may.
//
// A CPU has two rings, both of a dummy event of our own, so that they outlive every thread: a
// backward one that overwrites itself, for all events, and a small forward one for the side band
// (names, forks, exits, mappings), which Tick empties. Each thread that there is gets every event
// on every CPU, with inheritance: threads and processes that it makes later are recorded from their
// first instruction, by the kernel itself.
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>

#include "base/file_system.h"
#include "base/units.h"
#include "cpu/aux_tracer.h"
#include "cpu/copy_priority.h"
#include "cpu/cpu_recorder.h"
#include "cpu/perf_events.h"
#include "cpu/perf_open.h"
#include "cpu/perf_permission.h"
#include "cpu/perf_ring.h"
#include "cpu/process_tree.h"
#include "cpu/ring_pause.h"
#include "cpu/shared_samples.h"
#include "cpu/side_band_recorder.h"
#include "cpu/task_ends.h"
#include "proc/proc_folder.h"

namespace hangscope {
namespace {

constexpr uint64_t kSmallestPerfRing = 16u << 10;
constexpr uint64_t kLargestRing = uint64_t{1} << 40;
constexpr uint64_t kMostSideBand = 8u << 20;
// in which threads are looked for that came while others were attached
constexpr int kRounds = 50;
constexpr int kAttempts = 3;  // to attach while the program makes no thread
// From the instant when the kernel takes over a maker's events for a new thread until it tells of
// the thread.
constexpr TimeNs kForkTime = 2 * kMillisecond;

// What runs, sleeps and waits are told from.
constexpr const char* kUsualEvents[] = {
    "sched:sched_switch",     "sched:sched_waking",    "sched:sched_migrate_task",
    "raw_syscalls:sys_enter", "raw_syscalls:sys_exit", "signal:signal_generate",
    "signal:signal_deliver",  "page-faults",
};

uint64_t RingBytes(uint64_t asked) {
  uint64_t bytes = std::max(static_cast<uint64_t>(sysconf(_SC_PAGESIZE)), kSmallestPerfRing);
  while (bytes < asked && bytes < kLargestRing) bytes *= 2;
  return bytes;
}

uint64_t SideBandBytes(uint64_t ring_bytes) {
  return std::clamp<uint64_t>(ring_bytes / 8, kSmallestPerfRing, 512u << 10);
}

PerfEventSpec Dummy() {
  PerfEventSpec spec;
  spec.event.name = "dummy:u";
  spec.event.attr.type = PERF_TYPE_SOFTWARE;
  spec.event.attr.config = PERF_COUNT_SW_DUMMY;
  spec.event.attr.sample_period = 1;
  spec.event.attr.exclude_kernel = 1;  // it counts nothing; so everybody may open it
  return spec;
}

// Tracepoints have the numbers of the first PID namespace, records those of ours.
bool NumbersAreTheKernels() { return ProcFolder("/proc").IsInFirstPidNamespace().value_or(false); }

PerfEventSpec SideBandEvent() {
  PerfEventSpec spec = Dummy();
  perf_event_attr& attr = spec.event.attr;
  attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = 1;
  return spec;
}

// That a thread begins and ends to run. sched_switch says only the end of what is recorded; of a
// whole machine it says both.
PerfEventSpec SwitchEvent() {
  PerfEventSpec spec = Dummy();
  spec.event.attr.context_switch = 1;
  return spec;
}

// To as many as the administrator allows.
void AllowMoreDescriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

struct CpuRings {
  int cpu = 0;
  PerfDescriptor events_owner, side_owner;
  PerfRingMapping events, side;
  std::optional<BackwardRingReader> reader;
  std::optional<RingPause> pause;  // of the events
};

// Before a snapshot has read a ring, so much of it may be written over.
uint64_t MostOverwritten(const CpuRings& rings) { return rings.events.pages().capacity_bytes / 8; }
// What wants a CPU that others have may wait for it so long.
constexpr TimeNs kWaitsForCpu = 20 * kMillisecond;

struct RecordedEvent {
  PerfEvent event;
  std::string path;  // of a uprobe
  bool side_band = false;

  // An inherited uprobe has its path read anew by each fork and each new thread, out of the memory
  // of the program, where it is not: then they fail with EFAULT. So probes are not inherited but
  // set for everybody, by CPU. So are those with a filter, for tasks that have no events any more.
  bool of_everybody() const { return !path.empty() || !event.filter.empty(); }
};

struct RecordedThread {
  pid_t tid = 0;
  TimeNs begun = 0;     // when the first event was there
  TimeNs complete = 0;  // when all were: what it makes from then on has all
  std::vector<PerfDescriptor> events;
};

class PerfRecorder final : public CpuRecorder {
 public:
  PerfRecorder(Clock& clock, pid_t pid, const CpuRecorderOptions& options,
               const PerfSources& sources, TracerPort& tracer_port)
      : clock_(clock),
        pid_(pid),
        options_(options),
        sources_(sources),
        tracer_port_(tracer_port),
        whole_machine_(options.whole_machine) {}

  Status Start();
  void Tick() override;
  Result<CpuCapture> Take() override;
  const std::vector<std::string>& warnings() const override { return warnings_; }

 private:
  Status OpenRings();
  Status MapRings();
  bool MapRings(uint64_t bytes);

  void ChooseEvents();
  void Choose(const std::string& name, Refusals* refusals);
  void AddEnds();
  void AddTracer(const PerfEventSpec& spec, Refusals* refusals);
  bool Add(PerfEventSpec spec, bool side_band, Refusals* refusals);
  PerfDescriptor Open(const RecordedEvent& recorded, pid_t tid, int cpu) const;

  Status AttachAll();
  Status AttachTree();
  Status Attach(pid_t tid);
  Status AttachEvents(RecordedThread* thread, bool side_band);
  Status AttachToEverybody();
  Status AttachEvent(RecordedEvent* recorded, RecordedThread* thread, bool side_band);
  bool MadeWhileAttaching() const;
  void AttachTracers(pid_t tid);
  void DescribeBeginning();

  void DrainSideBand();
  void ReadRings(CpuCapture* capture);
  void PauseFilling(const std::vector<size_t>& rings, size_t first);
  std::vector<size_t> OrderOfReading() const;

  Clock& clock_;
  const pid_t pid_;
  const CpuRecorderOptions options_;
  const PerfSources sources_;
  TracerPort& tracer_port_;
  const PerfPermission permission_ = ReadPerfPermission();
  bool whole_machine_;
  std::vector<std::string> warnings_;
  Refusals without_values_, outside_only_;
  std::vector<CpuRings> rings_;
  std::vector<RecordedEvent> events_;
  std::vector<PerfDescriptor> trials_;
  std::vector<RecordedThread> threads_;
  std::vector<std::unique_ptr<AuxTracer>> tracers_;
  std::map<std::string, uint64_t> unrecorded_;  // threads, by the reason
  std::map<std::string, int> untraced_;         // likewise
  std::map<pid_t, pid_t> at_start_;             // the process of each thread
  TimeNs recording_since_ = 0;
  PerfSideBand side_band_{kMostSideBand};
};

Status PerfRecorder::Start() {
  if (Status status = OpenRings(); !status.ok()) return status;
  if (Status status = MapRings(); !status.ok()) return status;
  ChooseEvents();
  if (events_.empty())
    return Status::Io("nothing of process " + std::to_string(pid_) +
                      " can be recorded: " + (warnings_.empty() ? "" : warnings_.back()));
  if (Status status = AttachAll(); !status.ok()) return status;
  if (Status status = AttachToEverybody(); !status.ok()) return status;
  trials_.clear();
  for (const auto& [reason, threads] : unrecorded_)
    warnings_.push_back(std::to_string(threads) + " of " + std::to_string(at_start_.size()) +
                        " threads are not recorded: " + reason);
  for (const auto& [reason, threads] : untraced_)
    warnings_.push_back(std::to_string(threads) + " of " +
                        std::to_string(std::max<size_t>(1, at_start_.size())) +
                        " threads are not traced by hardware: " + reason);
  // What came while threads were attached is incomplete: of some, or of events that are closed
  // again.
  for (CpuRings& rings : rings_) rings.reader->Begin();
  recording_since_ = clock_.Monotonic();
  DescribeBeginning();
  return {};
}

Status PerfRecorder::OpenRings() {
  perf_event_attr side = Recorded(Dummy().event.attr);
  perf_event_attr backward = side;
  backward.write_backward = 1;
  const auto cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
  for (int cpu = 0; cpu < cpus; ++cpu) {
    CpuRings rings;
    rings.cpu = cpu;
    rings.events_owner = OpenPerfEvent(backward, 0, cpu);
    if (rings.events_owner.ok()) rings.side_owner = OpenPerfEvent(side, 0, cpu);
    if (rings.side_owner.ok()) {
      rings_.push_back(std::move(rings));
    } else if (errno == ENODEV) {
      warnings_.push_back("CPU " + std::to_string(cpu) +
                          " is offline: what runs there later is not recorded; 'echo 1 > "
                          "/sys/devices/system/cpu/cpu" +
                          std::to_string(cpu) + "/online' before the recording brings it in");
    } else {
      return Status::Io("the kernel records nothing: perf_event_open: " + ErrorText(errno) + "; " +
                        WhyRefused({}, errno, permission_));
    }
  }
  return rings_.empty() ? Status::Io("the kernel records nothing: no CPU is online") : Status();
}

// As large as may be locked in memory.
Status PerfRecorder::MapRings() {
  const uint64_t asked = RingBytes(options_.ring_bytes);
  for (uint64_t bytes = asked; bytes >= kSmallestPerfRing; bytes /= 2) {
    if (MapRings(bytes)) {
      if (bytes == asked) return {};
      const uint64_t needed = LockedBytesOfCpu(asked) >> 10;
      warnings_.push_back(
          "rings have " + FormatSize(bytes) + " a CPU in place of " + FormatSize(asked) +
          ": no more may be locked in memory; as root, 'sysctl kernel.perf_event_mlock_kb=" +
          std::to_string(needed) + "' allows it");
      return {};
    }
    if (errno != EPERM && errno != ENOMEM && errno != EINVAL) break;
  }
  return Status::Io("cannot map the rings of " + std::to_string(rings_.size()) +
                    " CPUs: " + ErrorText(errno) +
                    "; 'sysctl kernel.perf_event_mlock_kb' says how much may be locked");
}

bool PerfRecorder::MapRings(uint64_t bytes) {
  for (CpuRings& rings : rings_) {
    rings.events = {};
    rings.side = {};
  }
  for (CpuRings& rings : rings_) {
    rings.events = PerfRingMapping(rings.events_owner, bytes, PerfRingMapping::Kind::kOverwrite);
    if (!rings.events.ok()) return false;
    rings.side =
        PerfRingMapping(rings.side_owner, SideBandBytes(bytes), PerfRingMapping::Kind::kForward);
    if (!rings.side.ok()) return false;
    rings.reader.emplace(rings.events.pages());
    rings.pause.emplace([event = rings.events_owner.get()](bool off) {
      return ioctl(event, PERF_EVENT_IOC_PAUSE_OUTPUT, off ? 1 : 0) == 0;
    });
  }
  return true;
}

void PerfRecorder::ChooseEvents() {
  Refusals refusals;
  if (whole_machine_ && !Add(SideBandEvent(), true, &refusals)) {
    whole_machine_ = false;
    warnings_.push_back("only the program is recorded and not the whole machine: " +
                        WhyForbidden(permission_));
    refusals = {};
  }
  if (events_.empty()) Add(SideBandEvent(), true, &refusals);
  for (const char* name : kUsualEvents) Choose(name, &refusals);
  if (!events_.empty() && !whole_machine_ && permission_.tracepoints() && NumbersAreTheKernels())
    AddEnds();
  const bool sees_switches = std::any_of(
      events_.begin(), events_.end(),
      [](const RecordedEvent& each) { return each.event.name == "sched:sched_switch"; });
  if (!whole_machine_ || !sees_switches) Add(SwitchEvent(), false, &refusals);
  for (const std::string& name : options_.events) Choose(name, &refusals);
  const auto warn = [&](const Refusals& of, std::string_view one, std::string_view several) {
    for (std::string& sentence : of.Sentences(one, several))
      warnings_.push_back(std::move(sentence));
  };
  warn(without_values_, "is recorded without its values", "are recorded without their values");
  warn(outside_only_, "is recorded outside of the kernel only",
       "are recorded outside of the kernel only");
  warn(refusals, "is not recorded", "are not recorded");
}

// Where they are left out or refused, windows say what is missing.
void PerfRecorder::AddEnds() {
  Refusals untold;
  for (const FilteredEvent& each : kEventsOfEnds) {
    auto specs = PerfEventFinder(PosixFileSystem(), sources_).Find(each.name);
    if (!specs.ok() || specs->size() != 1) continue;
    specs->front().event.filter = each.filter;
    Add(std::move(specs->front()), false, &untold);
  }
}

void PerfRecorder::Choose(const std::string& name, Refusals* refusals) {
  const auto same = [&](const RecordedEvent& each) { return each.event.name == name; };
  if (std::any_of(events_.begin(), events_.end(), same)) return;
  auto specs = PerfEventFinder(PosixFileSystem(), sources_).Find(name);
  if (!specs.ok()) return refusals->Add(name, specs.status().message());
  for (PerfEventSpec& spec : *specs) {
    if (spec.tracer)
      AddTracer(spec, refusals);
    else
      Add(std::move(spec), false, refusals);
  }
}

// A file in perf's form has the description of one kind of tracer.
void PerfRecorder::AddTracer(const PerfEventSpec& spec, Refusals* refusals) {
  const auto known = [&](const auto& tracer) { return tracer->event().name == spec.event.name; };
  if (std::any_of(tracers_.begin(), tracers_.end(), known)) return;
  const auto kind = TracerKindOf(spec.event.name.substr(0, spec.event.name.find('/')));
  if (!tracers_.empty() && (kind != tracers_.front()->kind() || kind != TracerKind::kArmSpe)) {
    return refusals->Add(spec.event.name, "one hardware trace at a time, and '" +
                                              tracers_.front()->event().name + "' is recorded");
  }
  AllowMoreDescriptors();
  AuxTracerOptions options;
  options.pmus = sources_.pmus;
  for (const CpuRings& rings : rings_) options.cpus.push_back(rings.cpu);
  options.trace_bytes = RingBytes(options_.ring_bytes);
  options.whole_machine = whole_machine_;
  options.filter = options_.filter;
  options.permission = permission_;
  auto tracer = AuxTracer::Open(PosixFileSystem(), tracer_port_, clock_, spec, options, &warnings_);
  if (tracer.ok())
    tracers_.push_back(std::move(*tracer));
  else
    refusals->Add(spec.event.name, tracer.status().message());
}

// Whether it may be recorded is tried, with less where the kernel refuses all.
bool PerfRecorder::Add(PerfEventSpec spec, bool side_band, Refusals* refusals) {
  RecordedEvent recorded{std::move(spec.event), std::move(spec.path), side_band};
  perf_event_attr& attr = recorded.event.attr;
  attr = Recorded(attr);
  attr.inherit = !whole_machine_ && !recorded.of_everybody();
  attr.write_backward = !side_band;
  if (options_.call_stacks && recorded.event.name != "dummy:u") {
    attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
    attr.exclude_callchain_kernel = !permission_.kernel();
  }
  // Kept until the recording has begun: to switch a tracepoint off and on again takes the kernel
  // tens of milliseconds.
  PerfDescriptor& trial = trials_.emplace_back();
  const auto opens = [&] {
    return (trial = Open(recorded, whole_machine_ || recorded.of_everybody() ? -1 : pid_,
                         rings_.front().cpu))
        .ok();
  };
  bool ok = opens();
  int error = errno;
  if (!ok && (error == EACCES || error == EPERM)) {
    if (attr.type == PERF_TYPE_TRACEPOINT && permission_.kernel()) {
      attr.sample_type &= ~uint64_t{PERF_SAMPLE_RAW};
      if ((ok = opens())) without_values_.Add(recorded.event.name, WhyForbidden(permission_));
    } else if (attr.type != PERF_TYPE_TRACEPOINT && attr.exclude_kernel == 0) {
      attr.exclude_kernel = 1;
      if ((ok = opens())) outside_only_.Add(recorded.event.name, WhyForbidden(permission_));
    }
  }
  if (!ok) {
    refusals->Add(recorded.event.name, error == ESRCH
                                           ? "there is no process " + std::to_string(pid_)
                                           : WhyRefused(recorded.event, error, permission_));
    return false;
  }
  events_.push_back(std::move(recorded));
  return true;
}

PerfDescriptor PerfRecorder::Open(const RecordedEvent& recorded, pid_t tid, int cpu) const {
  perf_event_attr attr = recorded.event.attr;
  if (!recorded.path.empty()) attr.config1 = reinterpret_cast<uintptr_t>(recorded.path.c_str());
  PerfDescriptor event = OpenPerfEvent(attr, tid, cpu);
  if (!event.ok() && errno == EMFILE) {
    AllowMoreDescriptors();
    event = OpenPerfEvent(attr, tid, cpu);
  }
  const std::string& filter = recorded.event.filter;
  if (event.ok() && !filter.empty() && !SetPerfFilter(event, filter)) return PerfDescriptor();
  return event;
}

// A thread that is made while its maker gets its events inherits only those that are there already.
// Then all begins anew.
Status PerfRecorder::AttachAll() {
  if (whole_machine_) {
    AttachTracers(-1);
    return Attach(-1);
  }
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    threads_.clear();
    at_start_.clear();
    unrecorded_.clear();
    untraced_.clear();
    for (auto& tracer : tracers_) tracer->DetachAll();
    side_band_.Clear();
    for (RecordedEvent& each : events_) each.event.ids.clear();
    if (Status status = AttachTree(); !status.ok()) return status;
    clock_.Sleep(kForkTime);
    DrainSideBand();
    if (!MadeWhileAttaching()) return {};
  }
  warnings_.push_back(
      "the program made threads all the time while the recording began: some of their events may "
      "be there twice or missing");
  return {};
}

Status PerfRecorder::AttachTree() {
  std::set<pid_t> known;
  for (int round = 0; round < kRounds; ++round) {
    bool found = false;
    for (const auto& [tid, process] : ThreadsOfTree(PosixFileSystem(), pid_)) {
      if (!known.insert(tid).second) continue;
      DrainSideBand();
      if (Forks(side_band_.records()).contains(tid)) continue;  // it has its maker's events
      found = true;
      if (Status status = Attach(tid); !status.ok()) return status;
      at_start_[tid] = process;
    }
    if (!found) break;
  }
  return threads_.empty() ? Status::NotFound("process " + std::to_string(pid_) + " has ended")
                          : Status();
}

Status PerfRecorder::Attach(pid_t tid) {
  RecordedThread thread;
  thread.tid = tid;
  // First of all what tells of new threads.
  Status status = AttachEvents(&thread, true);
  thread.begun = clock_.Monotonic();
  if (status.ok()) status = AttachEvents(&thread, false);
  if (status.ok() && tid != -1) AttachTracers(tid);
  thread.complete = clock_.Monotonic();
  if (status.code() == Status::Code::kNotFound) return {};
  if (!status.ok() && threads_.empty())
    return Status::Io("nothing of process " + std::to_string(pid_) +
                      " can be recorded: " + status.message());
  if (status.ok())
    threads_.push_back(std::move(thread));
  else
    ++unrecorded_[status.message()];
  return {};
}

// Who is not traced is recorded all the same.
void PerfRecorder::AttachTracers(pid_t tid) {
  for (auto& tracer : tracers_) {
    const Status status = tracer->Attach(tid);
    if (!status.ok() && status.code() != Status::Code::kNotFound)
      ++untraced_["'" + tracer->event().name + "': " + status.message()];
  }
}

// Where the whole machine is recorded they are set already.
Status PerfRecorder::AttachToEverybody() {
  if (whole_machine_ || std::none_of(events_.begin(), events_.end(),
                                     [](const RecordedEvent& each) { return each.of_everybody(); }))
    return {};
  RecordedThread everybody;
  everybody.tid = -1;
  for (RecordedEvent& recorded : events_) {
    if (!recorded.of_everybody()) continue;
    if (Status status = AttachEvent(&recorded, &everybody, false); !status.ok()) return status;
  }
  for (const PerfDescriptor& event : everybody.events) ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0);
  threads_.push_back(std::move(everybody));
  return {};
}

// kNotFound: the thread has ended.
Status PerfRecorder::AttachEvents(RecordedThread* thread, bool side_band) {
  const size_t first = thread->events.size();
  for (RecordedEvent& recorded : events_) {
    if (recorded.side_band != side_band || (recorded.of_everybody() && thread->tid != -1)) continue;
    if (Status status = AttachEvent(&recorded, thread, side_band); !status.ok()) return status;
  }
  // Of the threads that were made meanwhile, too.
  for (size_t i = first; i < thread->events.size(); ++i)
    ioctl(thread->events[i].get(), PERF_EVENT_IOC_ENABLE, 0);
  return {};
}

Status PerfRecorder::AttachEvent(RecordedEvent* recorded, RecordedThread* thread, bool side_band) {
  for (CpuRings& rings : rings_) {
    PerfDescriptor event = Open(*recorded, thread->tid, rings.cpu);
    if (!event.ok() && errno == ESRCH) return Status::NotFound("");
    if (!event.ok()) return Status::Io(WhyRefused(recorded->event, errno, permission_));
    const int owner = side_band ? rings.side_owner.get() : rings.events_owner.get();
    if (ioctl(event.get(), PERF_EVENT_IOC_SET_OUTPUT, owner) != 0)
      return Status::Io("cannot direct '" + recorded->event.name +
                        "' into a ring: " + ErrorText(errno));
    recorded->event.ids.push_back(PerfEventId(event));
    thread->events.push_back(std::move(event));
  }
  return {};
}

bool PerfRecorder::MadeWhileAttaching() const {
  for (const auto& [tid, fork] : Forks(side_band_.records())) {
    for (const RecordedThread& thread : threads_) {
      if (thread.tid == fork.maker && fork.time <= thread.complete + kForkTime) return true;
    }
  }
  return false;
}

void PerfRecorder::DescribeBeginning() {
  if (whole_machine_) at_start_ = ThreadsOfTree(PosixFileSystem(), 1);
  const std::vector<uint64_t>& ids = events_.front().event.ids;
  for (const auto& [tid, process] : at_start_)
    side_band_.AddThread(PosixFileSystem(), process, tid, recording_since_,
                         ids.empty() ? 0 : ids.front());
}

void PerfRecorder::DrainSideBand() {
  for (CpuRings& rings : rings_) side_band_.Drain(rings.side.pages());
}

void PerfRecorder::Tick() {
  DrainSideBand();
  for (CpuRings& rings : rings_) rings.pause->Note(rings.reader->Written(), clock_.Monotonic());
  for (auto& tracer : tracers_) tracer->Tick();
}

Result<CpuCapture> PerfRecorder::Take() {
  CpuCapture capture;
  capture.whole_machine = whole_machine_;
  ReadRings(&capture);
  DrainSideBand();
  for (const RecordedEvent& each : events_) capture.events.push_back(each.event);
  const TaskEnds ends(side_band_.records());
  for (PerfRing& ring : capture.rings) {
    MendSharedSamples(capture.events, &ring.records);
    NameEndedTasks(capture.events, ends, &ring);
  }
  capture.threads_at_start = at_start_.size();
  for (const auto& [reason, threads] : unrecorded_) capture.threads_not_recorded += threads;
  capture.side_band = side_band_.records();
  capture.side_band_lost = side_band_.lost();
  for (auto& tracer : tracers_) tracer->Take(&capture);
  return capture;
}

// All end where their heads are when it begins.
void PerfRecorder::ReadRings(CpuCapture* capture) {
  const CopyPriority priority;
  capture->time = clock_.Monotonic();
  for (CpuRings& rings : rings_) {
    const TimeNs now = clock_.Monotonic();
    if (!priority.goes_first() && rings.pause->ComesWithin(MostOverwritten(rings), kWaitsForCpu,
                                                           rings.reader->Written(), now))
      rings.pause->Begin(now);
    rings.reader->NoteHead(clock_);
  }
  capture->rings.resize(rings_.size());
  const std::vector<size_t> order = OrderOfReading();
  for (size_t at = 0; at < order.size(); ++at) {
    PauseFilling(order, at);
    CpuRings& rings = rings_[order[at]];
    PerfRing& ring = capture->rings[order[at]];
    // lost_records stays 0: what the kernel could not write while a ring was off is in its records.
    ring.cpu = rings.cpu;
    ring.recording_since = recording_since_;
    ring.blind = rings.pause->was_off();
    rings.reader->Read(clock_, &ring);
    rings.pause->End(clock_.Monotonic());
  }
  capture->took = clock_.Monotonic() - capture->time;
}

// Those that are not read yet, and of which too much is gone already.
void PerfRecorder::PauseFilling(const std::vector<size_t>& rings, size_t first) {
  for (size_t at = first; at < rings.size(); ++at) {
    CpuRings& each = rings_[rings[at]];
    if (each.reader->WrittenSinceNoted() >= MostOverwritten(each))
      each.pause->Begin(clock_.Monotonic());
  }
}

// While we copy, the ring of our own CPU does not fill: it has time until the others are read.
std::vector<size_t> PerfRecorder::OrderOfReading() const {
  const int own = sched_getcpu();
  std::vector<size_t> order;
  for (size_t i = 0; i < rings_.size(); ++i) order.push_back(i);
  std::stable_partition(order.begin(), order.end(), [&](size_t i) { return rings_[i].cpu != own; });
  return order;
}

}  // namespace

// Each ring has a page beside its bytes.
uint64_t LockedBytesOfCpu(uint64_t ring_bytes) {
  const uint64_t events = RingBytes(ring_bytes);
  return events + SideBandBytes(events) + 2 * PageBytes();
}

Result<std::unique_ptr<CpuRecorder>> StartCpuRecorder(Clock& clock, pid_t pid,
                                                      const CpuRecorderOptions& options) {
  return StartTracingCpuRecorder(clock, pid, options, {}, KernelTracerPort());
}

Result<std::unique_ptr<CpuRecorder>> StartTracingCpuRecorder(Clock& clock, pid_t pid,
                                                             const CpuRecorderOptions& options,
                                                             const PerfSources& sources,
                                                             TracerPort& port) {
  auto recorder = std::make_unique<PerfRecorder>(clock, pid, options, sources, port);
  if (Status status = recorder->Start(); !status.ok()) return status;
  return std::unique_ptr<CpuRecorder>(std::move(recorder));
}

}  // namespace hangscope
