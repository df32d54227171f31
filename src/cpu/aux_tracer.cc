#include "cpu/aux_tracer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/comma_list.h"
#include "base/units.h"
#include "cpu/address_filter.h"
#include "cpu/perf_open.h"
#include "cpu/side_band_recorder.h"
#include "model/perf_format.h"

namespace hangscope {
namespace {

// of the ring beside the area: thousands of switches between two ticks
constexpr uint64_t kRecordBytes = 256u << 10;
constexpr uint64_t kSmallestTrace = 64u << 10;
constexpr size_t kMostKept = 512u << 10;
constexpr size_t kMostTracedRuns = 65536;  // of each CPU

std::string PmuOf(const PerfEvent& event) { return event.name.substr(0, event.name.find('/')); }

std::string Listed(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

// "0-3,6": as the kernel lists CPUs.
bool IsInList(const std::string& list, int cpu) {
  for (const std::string& range : SplitAtCommas(list)) {
    const int first = std::atoi(range.c_str());
    const size_t dash = range.find('-');
    const int last = dash == std::string::npos ? first : std::atoi(range.c_str() + dash + 1);
    if (!range.empty() && cpu >= first && cpu <= last) return true;
  }
  return false;
}

// Whether sysfs says that the CPU has this tracer.
bool HasTracer(FileSystem& files, const std::string& folder, TracerKind kind, int cpu) {
  if (kind == TracerKind::kCoreSight) {
    const std::vector<std::string> names = files.List(folder);
    return std::find(names.begin(), names.end(), "cpu" + std::to_string(cpu)) != names.end();
  }
  auto list = ReadWholeFile(files, folder + "/cpumask");
  return !list.ok() || IsInList(*list, cpu);
}

// Where nobody names a sink, the driver takes one that it can reach: which ones there are, should
// be known then.
void WarnOfSinks(FileSystem& files, const std::string& folder, const PerfEvent& event,
                 std::vector<std::string>* warnings) {
  std::vector<std::string> sinks = files.List(folder + "/sinks");
  if (event.attr.config2 != 0 || sinks.size() < 2) return;
  std::sort(sinks.begin(), sinks.end());
  std::string names;
  for (const std::string& sink : sinks) names += (names.empty() ? "" : ", ") + sink;
  warnings->push_back("'" + event.name + "' names no sink, so the kernel chooses one of " + names +
                      "; '" + PmuOf(event) + "/@" + sinks.front() + "/' names one");
}

// cs_etm counts all bytes since Linux 5.5. The drivers of the others tell an offset in areas that
// overwrite themselves.
AuxHeadKind HeadKindOf(TracerKind kind) {
  return kind == TracerKind::kCoreSight ? AuxHeadKind::kCountsAll : AuxHeadKind::kWithinArea;
}

AuxArea AreaOf(const TracerPages& pages, TracerKind kind) {
  static_assert(sizeof(pages.records.control->aux_head) == sizeof(uint64_t));
  return {pages.trace, pages.trace_bytes,
          reinterpret_cast<const uint64_t*>(&pages.records.control->aux_head), HeadKindOf(kind)};
}

uint64_t Word(std::string_view record, size_t index) {
  uint64_t word = 0;
  std::memcpy(&word, record.data() + sizeof(perf_event_header) + index * 8, sizeof word);
  return word;
}

void Put(std::string* bytes, uint64_t word) {
  bytes->append(reinterpret_cast<const char*>(&word), sizeof word);
}

}  // namespace

Result<std::unique_ptr<AuxTracer>> AuxTracer::Open(FileSystem& files, TracerPort& port,
                                                   Clock& clock, const PerfEventSpec& spec,
                                                   const AuxTracerOptions& options,
                                                   std::vector<std::string>* warnings) {
  const std::string pmu = PmuOf(spec.event);
  const std::string folder = options.pmus + "/" + pmu;
  const std::optional<TracerKind> kind = TracerKindOf(pmu);
  if (!kind)
    return Status::Usage(
        "hangscope records cs_etm, intel_pt and arm_spe; 'perf record -S' may record this");
  std::vector<int> cpus, without;
  for (const int cpu : options.cpus)
    (HasTracer(files, folder, *kind, cpu) ? cpus : without).push_back(cpu);
  if (cpus.empty()) return Status::NotFound("no CPU that is online has this tracer");
  if (!without.empty())
    warnings->push_back("'" + spec.event.name + "' does not trace on CPU " + Listed(without) +
                        ": they have no such tracer");
  auto info = TracerInfo::Read(files, folder, *kind, spec.event.attr, cpus);
  if (!info.ok()) return info.status();
  auto tracer =
      std::unique_ptr<AuxTracer>(new AuxTracer(port, clock, options, *kind, std::move(*info)));
  tracer->event_ = spec.event;
  tracer->event_.attr = Recorded(spec.event.attr);
  tracer->event_.attr.inherit = !options.whole_machine;
  // When a thread came to the CPU, and so when the tracer began.
  tracer->event_.attr.context_switch = !options.whole_machine;
  if (Status status = tracer->TakeFilter(files, folder); !status.ok()) return status;
  if (Status status = tracer->OpenCpus(cpus, warnings); !status.ok()) return status;
  if (Status status = tracer->MapCpus(warnings); !status.ok()) return status;
  if (*kind == TracerKind::kCoreSight) WarnOfSinks(files, folder, spec.event, warnings);
  return tracer;
}

// What the kernel and the hardware can filter, sysfs says.
Status AuxTracer::TakeFilter(FileSystem& files, const std::string& folder) {
  if (options_.filter.empty()) return {};
  auto filters = ParseAddressFilters(options_.filter);
  if (!filters.ok()) return filters.status();
  auto most = ReadWholeFile(files, folder + "/nr_addr_filters");
  const int available = most.ok() ? std::atoi(most->c_str()) : 0;
  if (available == 0)
    return Status::NotFound("it cannot filter by address: '" + folder + "/nr_addr_filters' " +
                            (most.ok() ? "is 0" : "does not exist"));
  if (filters->count > available)
    return Status::Usage(std::to_string(filters->count) +
                         " address filters were asked for, and it has " +
                         std::to_string(available));
  if (options_.whole_machine && filters->of_files)
    return Status::Usage(
        "the kernel filters by a program's file only where it traces that program's threads: "
        "leave -a out, or give an address of the kernel");
  filter_ = filters->text;
  return {};
}

Status AuxTracer::WhyUnfiltered(int error) const {
  return Status::Io("the kernel does not take the address filter '" + filter_ +
                    "': " + ErrorText(error));
}

Status AuxTracer::OpenCpus(const std::vector<int>& cpus, std::vector<std::string>* warnings) {
  std::vector<int> without;
  for (size_t i = 0; i < cpus.size(); ++i) {
    perf_event_attr attr = event_.attr;
    attr.inherit = 0;  // ours is nobody else's
    CpuTrace trace;
    trace.cpu = cpus[i];
    int error = 0;
    trace.owner = port_.Open(attr, options_.whole_machine ? -1 : 0, trace.cpu, &error);
    if (trace.owner == nullptr && (error == EACCES || error == EPERM) && attr.exclude_kernel == 0 &&
        traces_.empty()) {
      event_.attr.exclude_kernel = attr.exclude_kernel = 1;
      trace.owner = port_.Open(attr, options_.whole_machine ? -1 : 0, trace.cpu, &error);
      if (trace.owner != nullptr)
        warnings->push_back("'" + event_.name + "' is traced outside of the kernel only: " +
                            WhyForbidden(options_.permission));
    }
    if (trace.owner != nullptr) {
      traces_.push_back(std::move(trace));
    } else if (error == ENODEV || error == ENOENT) {
      without.push_back(cpus[i]);
    } else {
      return Status::Io(WhyRefused(event_, error, options_.permission));
    }
  }
  if (traces_.empty()) return Status::Io("no CPU that is online has this tracer");
  if (!without.empty())
    warnings->push_back("'" + event_.name + "' does not trace on CPU " + Listed(without) +
                        ": the kernel finds no tracer there");
  return {};
}

// As large as may be locked in memory.
Status AuxTracer::MapCpus(std::vector<std::string>* warnings) {
  const uint64_t asked = std::max(options_.trace_bytes, kSmallestTrace);
  int error = 0;
  for (uint64_t bytes = asked; bytes >= kSmallestTrace; bytes /= 2) {
    error = Map(bytes);
    if (error == 0 && bytes < asked) {
      warnings->push_back(
          "'" + event_.name + "' has " + FormatSize(bytes) + " a CPU in place of " +
          FormatSize(asked) +
          ": no more may be locked in memory; as root, 'sysctl kernel.perf_event_mlock_kb=" +
          std::to_string((2 * asked + asked / 4 + kRecordBytes) >> 10) +
          "' allows it, or a smaller --cpu-size leaves it more");
    }
    if (error == 0) return {};
    if (error != EPERM && error != ENOMEM) break;
  }
  return Status::Io(
      "cannot map the areas that the tracer writes into, of " + std::to_string(traces_.size()) +
      " CPUs: " + ErrorText(error) +
      (error == EPERM ? "; 'sysctl kernel.perf_event_mlock_kb' says how much may be locked" : ""));
}

// errno; 0: all are mapped.
int AuxTracer::Map(uint64_t trace_bytes) {
  for (CpuTrace& trace : traces_) {
    if (const int error = trace.owner->Map(kRecordBytes, trace_bytes); error != 0) return error;
  }
  for (CpuTrace& trace : traces_) {
    trace.reader = std::make_unique<AuxReader>(AreaOf(trace.owner->pages(), kind_), trace.cpu, -1);
    trace.reader->ReadHead();
    trace.since = trace.drained = trace.runs_known_since = clock_.Monotonic();
  }
  return 0;
}

Status AuxTracer::Attach(pid_t tid) {
  std::vector<std::unique_ptr<TracerEvent>> events;
  for (CpuTrace& trace : traces_) {
    if (options_.whole_machine) break;
    int error = 0;
    auto event = port_.Open(event_.attr, tid, trace.cpu, &error);
    if (event != nullptr) error = event->WriteInto(*trace.owner);
    if (error == ESRCH) return Status::NotFound("");
    if (error != 0) return Status::Io(WhyRefused(event_, error, options_.permission));
    if (!filter_.empty()) error = event->SetFilter(filter_);
    if (error != 0) return WhyUnfiltered(error);
    events.push_back(std::move(event));
  }
  for (auto& event : events) {
    if (const int error = event->Start(); error != 0)
      return Status::Io("the kernel does not switch it on: " + ErrorText(error));
  }
  for (auto& event : events) {
    event_.ids.push_back(event->id());
    threads_.push_back(std::move(event));
  }
  return options_.whole_machine ? AttachAll() : Status();
}

Status AuxTracer::AttachAll() {
  for (CpuTrace& trace : traces_) {
    const int error = filter_.empty() ? 0 : trace.owner->SetFilter(filter_);
    if (error != 0) return WhyUnfiltered(error);
    event_.ids.push_back(trace.owner->id());
  }
  return Switch(true) ? Status() : Status::Io("the kernel does not switch it on");
}

void AuxTracer::DetachAll() {
  if (options_.whole_machine) Switch(false);
  threads_.clear();
  event_.ids.clear();
}

// Whether all of them took it.
bool AuxTracer::Switch(bool on) {
  bool ok = true;
  const auto change = [&](TracerEvent& event) {
    ok = (on ? event.Start() : event.Stop()) == 0 && ok;
  };
  for (auto& event : threads_) change(*event);
  if (options_.whole_machine) {
    for (CpuTrace& trace : traces_) change(*trace.owner);
  }
  return ok;
}

void AuxTracer::Tick() {
  for (CpuTrace& trace : traces_) Drain(&trace);
}

void AuxTracer::Drain(CpuTrace* trace) {
  std::string records;
  const PerfPages pages = trace->owner->pages().records;
  const TimeNs now = clock_.Monotonic();
  const ForwardRingCounts counts = DrainForwardRing(pages, pages.capacity_bytes, &records);
  if (counts.lost_records != 0) {
    trace->reader->LoseRecords({trace->drained, now});
    trace->runs_known_since = now;
  }
  trace->drained = now;
  for (size_t at = 0; at < records.size();) {
    perf_event_header header;
    std::memcpy(&header, records.data() + at, sizeof header);
    HandleRecord(std::string_view(records).substr(at, header.size), trace);
    at += header.size;
  }
  trace->reader->ReadHead();
}

void AuxTracer::HandleRecord(std::string_view record, CpuTrace* trace) {
  perf_event_header header;
  std::memcpy(&header, record.data(), sizeof header);
  if (record.size() < sizeof header + kPerfRecordEndBytes) return;
  const size_t body_bytes = record.size() - sizeof header - kPerfRecordEndBytes;
  const PerfRecordEnd end = EndOfPerfRecord(record);
  if (header.type == PERF_RECORD_AUX && body_bytes >= 24) {
    process_of_[end.tid] = end.pid;
    const auto task =
        options_.whole_machine || end.tid <= 0 ? std::nullopt : std::optional<int64_t>(end.tid);
    trace->reader->HandleRecord(trace->since, end.time, Word(record, 0), Word(record, 1),
                                Word(record, 2), task);
    trace->since = end.time;  // it may go on at once
  } else if (header.type == PERF_RECORD_SWITCH) {
    if ((header.misc & PERF_RECORD_MISC_SWITCH_OUT) != 0) {
      trace->Leaves(end.time);
    } else {
      trace->since = end.time;
      trace->Comes(end.tid, end.time);
    }
  } else {
    if (header.type == PERF_RECORD_ITRACE_START) {
      trace->since = end.time;
      trace->Comes(end.tid, end.time);
    }
    if (header.type == kPerfAuxOutputHardwareId && body_bytes >= 8)
      info_.StoreHardwareId(end.cpu, Word(record, 0));
    if (kept_.size() + record.size() > kMostKept)
      ++kept_lost_;
    else
      kept_ += record;
  }
}

void AuxTracer::CpuTrace::Comes(int64_t task, TimeNs time) {
  if (running && running->task == task) return;
  Leaves(time);
  running = AuxRun{task, {time, time}};
}

void AuxTracer::CpuTrace::Leaves(TimeNs time) {
  if (!running) return;
  running->time.to = std::max(running->time.from, time);
  runs.push_back(*running);
  running.reset();
  if (runs.size() <= kMostTracedRuns) return;
  runs_known_since = std::max(runs_known_since, runs.front().time.to);
  runs.pop_front();
}

void AuxTracer::Take(CpuCapture* capture) {
  if (stopped_ == 0) stopped_ = clock_.Monotonic();
  Switch(false);
  const TimeNs taken = clock_.Monotonic();
  const size_t first = capture->aux.size();
  for (CpuTrace& trace : traces_) {
    Drain(&trace);
    AuxRing ring = trace.reader->Take(false, taken, {stopped_, taken + 1}).ring;
    ring.spans = trace.reader->held();
    ring.losses = trace.reader->losses();
    if (!options_.whole_machine) {
      ring.runs.assign(trace.runs.begin(), trace.runs.end());
      if (trace.running)
        ring.runs.push_back({trace.running->task, {trace.running->time.from, taken}});
      ring.runs_known_since = trace.runs_known_since;
    }
    capture->aux.push_back(std::move(ring));
  }
  const bool traces_again = Switch(true);
  const TimeSpan blind{stopped_, clock_.Monotonic()};
  for (size_t i = first; i < capture->aux.size(); ++i) capture->aux[i].blind = blind;
  if (traces_again) stopped_ = 0;  // else the next snapshot tells of all of the time
  for (size_t i = 0; i < traces_.size(); ++i)
    AppendRecords(traces_[i], capture->aux[first + i].spans, capture);
  capture->events.push_back(event_);
  info_.SetSwitches(SwitchesIn(*capture));
  if (const auto time =
          kind_ == TracerKind::kIntelPt ? port_.MonotonicOfCounter(clock_) : std::nullopt)
    info_.SetTime(*time);
  capture->side_band.insert(0, info_.Record() + kept_);
  capture->side_band_lost += kept_lost_;
}

ReportedSwitches AuxTracer::SwitchesIn(const CpuCapture& capture) const {
  const auto any = [&](auto has) {
    return std::any_of(capture.events.begin(), capture.events.end(), has);
  };
  if (any([](const PerfEvent& event) { return event.attr.context_switch != 0; }))
    return options_.whole_machine ? ReportedSwitches::kRecordsOfAll : ReportedSwitches::kRecords;
  return any([](const PerfEvent& event) { return event.name == "sched:sched_switch"; })
             ? ReportedSwitches::kTracepoint
             : ReportedSwitches::kNone;
}

// The records of what is held, with offsets that count all bytes, as those of the areas in a file
// do.
void AuxTracer::AppendRecords(const CpuTrace& trace, const std::vector<AuxSpan>& spans,
                              CpuCapture* capture) const {
  const uint64_t id = event_.ids.empty() ? 0 : event_.ids.front();
  for (const AuxSpan& span : spans) {
    const bool tells_end = (span.flags & PERF_AUX_FLAG_OVERWRITE) != 0;
    std::string body;
    Put(&body, tells_end ? span.end_offset : span.begin_offset);
    Put(&body, span.end_offset - span.begin_offset);
    Put(&body, span.flags);
    const auto tid = static_cast<pid_t>(span.task.value_or(-1));
    const auto process = process_of_.find(tid);
    capture->side_band += MakePerfRecord(
        PERF_RECORD_AUX, 0, body,
        {process == process_of_.end() ? tid : process->second, tid, span.time.to, trace.cpu, id});
  }
}

}  // namespace hangscope
