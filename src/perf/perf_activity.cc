#include "perf/perf_activity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "model/perf_format.h"
#include "perf/perf_side_band.h"

namespace hangscope {
namespace {

constexpr size_t kMostThreads = 200'000;
constexpr size_t kMostCpus = 16'384;  // Linux allows 8192
constexpr size_t kMostSwitches = 4'000'000;
constexpr size_t kMostIds = 1'000'000;
constexpr size_t kMostLosses = 1000;   // told one by one of a CPU
constexpr size_t kMostRawBytes = 512;  // kept of a thread's newest sample

// A file may say any number.
void AddTo(uint64_t* sum, uint64_t more) { *sum += std::min(more, UINT64_MAX - *sum); }

bool IsNewer(const PerfInstant& instant, TimeNs time) { return time >= 0 && time >= instant.time; }

bool Take(PerfInstant* instant, const PerfRecord& record) {
  if (!IsNewer(*instant, record.time)) return false;
  *instant = {record.time, record.cpu};
  return true;
}

}  // namespace

PerfActivity::EventKind PerfActivity::KindOf(const PerfEvent& event) {
  constexpr std::string_view kEnter = "syscalls:sys_enter_";
  constexpr std::string_view kLeave = "syscalls:sys_exit_";
  EventKind kind;
  if (event.format.empty()) return kind;
  kind.format = TracepointFormat::Parse(event.format);
  if (!kind.format) return kind;
  const std::string name = event.system + ":" + kind.format->name();
  if (name == "sched:sched_switch") kind.kind = Kind::kSwitch;
  if (name == "sched:sched_waking" || name == "sched:sched_wakeup" ||
      name == "sched:sched_wakeup_new")
    kind.kind = Kind::kWakeup;
  if (name == "raw_syscalls:sys_enter") kind.kind = Kind::kEnter;
  if (name == "raw_syscalls:sys_exit") kind.kind = Kind::kLeave;
  if (name.starts_with(kEnter)) {
    kind.kind = Kind::kEnterNamed;
    kind.call = name.substr(kEnter.size());
  }
  if (name.starts_with(kLeave)) kind.kind = Kind::kLeaveNamed;
  FindPlaces(&kind);
  return kind;
}

// Once, and not by their names in each record.
void PerfActivity::FindPlaces(EventKind* kind) {
  const TracepointFormat& format = *kind->format;
  kind->from = format.PlaceOf("prev_pid");
  kind->from_name = format.PlaceOf("prev_comm");
  kind->from_state = format.PlaceOf("prev_state");
  kind->to = format.PlaceOf("next_pid");
  kind->to_name = format.PlaceOf("next_comm");
  kind->woken = format.PlaceOf("pid");
  kind->number = format.PlaceOf(kind->kind == Kind::kEnter ? "id" : "__syscall_nr");
  for (size_t i = 0; i < kind->arguments.size(); ++i)
    kind->arguments[i] = format.PlaceOf(fmt::format("args[{}]", i));
}

PerfActivity::PerfActivity(const std::vector<PerfEvent>& events)
    : events_(events), samples_of_(events.size(), 0) {
  for (const PerfEvent& event : events) {
    if (event.attr.write_backward != 0) overwrites_ = true;
    kinds_.push_back(KindOf(event));
    if (kinds_.back().kind == Kind::kSwitch) has_sched_switch_ = true;
    if (event.attr.context_switch != 0 || has_sched_switch_) reports_switches_ = true;
    if (event.attr.type == PERF_TYPE_TRACEPOINT && !kinds_.back().format) lacks_formats_ = true;
    if (kinds_.back().kind == Kind::kLeave || kinds_.back().kind == Kind::kLeaveNamed)
      has_returns_ = true;
  }
}

PerfThreadActivity* PerfActivity::Thread(int tid) {
  if (tid <= 0) return nullptr;
  PerfThreadActivity*& recent = recent_threads_[static_cast<size_t>(tid) % recent_threads_.size()];
  if (recent == nullptr || recent->tid != tid) recent = FindThread(tid);
  return recent;
}

// Null: there are too many.
PerfThreadActivity* PerfActivity::FindThread(int tid) {
  const auto known = threads_.find(tid);
  if (known != threads_.end()) return &known->second;
  if (threads_.size() == kMostThreads) {
    ++left_out_;
    return nullptr;
  }
  PerfThreadActivity& thread = threads_[tid];
  thread.tid = tid;
  return &thread;
}

void PerfActivity::Add(const PerfRecord& record) {
  ++records_;
  if (record.type == PERF_RECORD_SAMPLE)
    return AddSample(record, record.time < 0 ? Thread(record.tid) : AddTimes(record));
  if (record.type == kPerfThreadMap) AddThreadMap(record.body);
  if (record.type == kPerfStat || record.type == kPerfStatRound) counts_ = true;
  if (record.type >= kPerfToolRecordsBegin) return;
  if (const auto lost = ParsePerfLost(record)) AddLoss(record, *lost);
  if (const auto lost = ParsePerfLostInAll(record)) AddTo(&totals_[CpuOfId(record.id)], *lost);
  if (record.time >= 0) AddTimes(record);
  AddSideBand(record);
}

// A number of entries: each a thread, -1 for everybody, and a name of 16 bytes.
void PerfActivity::AddThreadMap(std::string_view body) {
  constexpr size_t kEntryBytes = 24;
  if (!body.empty()) body.remove_prefix(std::min<size_t>(body.size(), sizeof(uint64_t)));
  for (; body.size() >= kEntryBytes; body.remove_prefix(kEntryBytes)) {
    int64_t tid;
    std::memcpy(&tid, body.data(), sizeof tid);
    if (tid == -1) whole_machine_ = true;
    if (tid > 0 && tid <= INT32_MAX && thread_map_.size() < kMostThreads)
      thread_map_.push_back(static_cast<int>(tid));
  }
}

bool PerfActivity::IsOfOverwrittenRing(const PerfRecord& record) const {
  return record.event < events_.size() && events_[record.event].attr.write_backward != 0;
}

bool PerfActivity::IsInRing(const PerfRecord& record) const {
  const bool is_event = record.type == PERF_RECORD_SAMPLE || record.type == PERF_RECORD_SWITCH ||
                        record.type == PERF_RECORD_SWITCH_CPU_WIDE;
  return is_event && (!overwrites_ || IsOfOverwrittenRing(record));
}

void PerfHeldEvents::Add(TimeNs time, uint64_t of_bytes) {
  ++records;
  bytes += of_bytes;
  from = from < 0 ? time : std::min(from, time);
  to = std::max(to, time);
}

// Null: there are too many.
PerfCpuActivity* PerfActivity::Cpu(int number) {
  const bool is_small = number >= 0 && static_cast<size_t>(number) < few_cpus_.size();
  if (is_small && few_cpus_[static_cast<size_t>(number)] != nullptr)
    return few_cpus_[static_cast<size_t>(number)];
  if (cpus_.size() == kMostCpus && cpus_.count(number) == 0) return nullptr;
  PerfCpuActivity& cpu = cpus_[number];
  cpu.cpu = number;
  if (is_small) few_cpus_[static_cast<size_t>(number)] = &cpu;
  return &cpu;
}

// The CPU's and the thread's, which it returns, of a record that has a time.
PerfThreadActivity* PerfActivity::AddTimes(const PerfRecord& record) {
  first_ = first_ < 0 ? record.time : std::min(first_, record.time);
  last_ = std::max(last_, record.time);
  if (PerfCpuActivity* const cpu = Cpu(record.cpu)) {
    ++cpu->records;
    if (IsInRing(record))
      cpu->held.Add(record.time, record.body.size() + sizeof(perf_event_header));
    cpu->first = cpu->first < 0 ? record.time : std::min(cpu->first, record.time);
    if (record.time >= cpu->last) cpu->last_tid = record.tid;
    cpu->last = std::max(cpu->last, record.time);
  }
  PerfThreadActivity* thread = Thread(record.tid);
  if (thread == nullptr) return nullptr;
  ++thread->records;
  if (record.pid >= 0) thread->pid = record.pid;
  const bool leaves =
      record.type == PERF_RECORD_SWITCH || record.type == PERF_RECORD_SWITCH_CPU_WIDE;
  if (!leaves || (record.misc & PERF_RECORD_MISC_SWITCH_OUT) == 0) Take(&thread->ran, record);
  return thread;
}

void PerfActivity::AddLoss(const PerfRecord& record, uint64_t lost) {
  if (overwrites_ && !IsOfOverwrittenRing(record)) return AddTo(&side_band_lost_, lost);
  if (record.type == PERF_RECORD_LOST) AddTo(&told_losses_[record.cpu], lost);
  AddTo(&lost_records_, lost);
  AddLoss(record.cpu, record.time, lost);
}

void PerfActivity::AddLoss(int number, TimeNs time, uint64_t lost) {
  PerfCpuActivity* const known = Cpu(number);
  if (known == nullptr) return;
  PerfCpuActivity& cpu = *known;
  AddTo(&cpu.lost_records, lost);
  const TimeNs until = std::max(time, cpu.last);
  if (cpu.losses.size() < kMostLosses) {
    cpu.losses.push_back({{cpu.last < 0 ? until : std::min(cpu.last, until), until}, lost});
    return;
  }
  cpu.losses.back().time.to = std::max(cpu.losses.back().time.to, until);
  AddTo(&cpu.losses.back().records, lost);
}

int PerfActivity::CpuOfId(uint64_t id) const {
  const auto known = cpu_of_id_.find(id);
  return known == cpu_of_id_.end() ? -1 : known->second;
}

// Each id is an event's on one CPU, where rings are the CPUs'.
void PerfActivity::NoteId(const PerfRecord& record) {
  if (record.id == 0 || record.cpu < 0) return;
  RecentId& recent = recent_ids_[record.id % recent_ids_.size()];
  if (recent.id == record.id && recent.cpu == record.cpu) return;
  recent = {record.id, record.cpu};
  const auto known = cpu_of_id_.find(record.id);
  if (known == cpu_of_id_.end() && cpu_of_id_.size() < kMostIds)
    cpu_of_id_.emplace(record.id, record.cpu);
  else if (known != cpu_of_id_.end() && known->second != record.cpu)
    known->second = -1;
}

// perf tells at the end how much each event lost, ever (Linux 6.0 and newer): LOST records told of
// it already, but for what was lost behind the last record that found room.
void PerfActivity::Finish() {
  uint64_t total = 0, told = 0;
  for (const auto& [cpu, lost] : totals_) AddTo(&total, lost);
  for (const auto& [cpu, lost] : told_losses_) AddTo(&told, lost);
  uint64_t left = total - std::min(total, told);
  AddTo(&lost_records_, left);
  for (const auto& [number, lost] : totals_) {
    const uint64_t more = std::min(left, lost - std::min(lost, told_losses_[number]));
    if (number < 0 || more == 0) continue;
    AddLoss(number, last_, more);
    left -= more;
  }
  if (left > 0) AddLossOfUnknownCpu(left);
}

// Of a single ring it is that one's; else perhaps any's.
void PerfActivity::AddLossOfUnknownCpu(uint64_t lost) {
  std::vector<int> rings;
  for (const auto& [number, cpu] : cpus_) {
    if (cpu.held.records > 0) rings.push_back(number);
  }
  for (const int number : rings) AddLoss(number, last_, rings.size() == 1 ? lost : 0);
}

// 0: nobody left, or came.
void PerfActivity::NoteSwitch(const PerfRecord& record, int left, int came) {
  for (int* const tid : {&left, &came}) {
    const bool fits = switch_count_ < kMostSwitches;
    if (*tid > 0) ++(fits ? switch_count_ : more_switches_);
    if (!fits) *tid = 0;
  }
  if (record.cpu >= 0) {
    if (left > 0 || came > 0) switches_[record.cpu].push_back({record.time, left, came});
    return;
  }
  if (left > 0) switches_[-int64_t{left}].push_back({record.time, left, 0});
  if (came > 0) switches_[-int64_t{came}].push_back({record.time, 0, came});
}

// False: it cannot be told of.
bool PerfActivity::Come(int tid, const PerfRecord& record) {
  PerfThreadActivity* thread = Thread(tid);
  if (thread == nullptr || record.time < 0) return false;
  Take(&thread->came, record);
  Take(&thread->ran, record);
  return true;
}

// False: it cannot be told of.
bool PerfActivity::Leave(int tid, const PerfRecord& record, int64_t state, bool preempted) {
  PerfThreadActivity* thread = Thread(tid);
  if (thread == nullptr || record.time < 0) return false;
  if (!Take(&thread->switched_out, record)) return true;
  thread->state_when_out = state;
  thread->preempted = preempted;
  return true;
}

void PerfActivity::AddSchedSwitch(const PerfRecord& record, const EventKind& kind) {
  constexpr int64_t kReportMax = 0x100;  // TASK_REPORT_MAX: it was preempted
  const auto from = static_cast<int>(kind.from.Number(record.raw).value_or(0));
  const auto to = static_cast<int>(kind.to.Number(record.raw).value_or(0));
  const int64_t state = kind.from_state.Number(record.raw).value_or(-1);
  const bool preempted = state >= 0 && (state == 0 || (state & kReportMax) != 0);
  const bool left = Leave(from, record, state < 0 ? -1 : state & (kReportMax - 1), preempted);
  Name(from, record.pid, kind.from_name, record.raw);
  const bool came = Come(to, record);
  Name(to, -1, kind.to_name, record.raw);
  NoteSwitch(record, left ? from : 0, came ? to : 0);
}

PerfCall PerfActivity::CallOf(const PerfThreadActivity& thread) const {
  PerfCall call;
  if (!thread.entered.happened() || thread.entered_event >= kinds_.size()) return call;
  const EventKind& kind = kinds_[thread.entered_event];
  call.name = kind.call;
  call.number = kind.number.Number(thread.entered_raw).value_or(-1);
  call.has_arguments = kind.kind == Kind::kEnter;
  for (size_t i = 0; i < call.arguments.size() && call.has_arguments; ++i) {
    const auto argument = kind.arguments[i].Number(thread.entered_raw);
    if (!argument) call.has_arguments = false;
    call.arguments[i] = static_cast<uint64_t>(argument.value_or(0));
  }
  return call;
}

// `thread` runs; null: there are too many.
void PerfActivity::AddSample(const PerfRecord& record, PerfThreadActivity* thread) {
  ++samples_;
  NoteId(record);
  if (record.event >= kinds_.size()) return;
  ++samples_of_[record.event];
  const std::string_view raw = record.raw.substr(0, kMostRawBytes);
  if (thread != nullptr && record.time >= thread->last_sample) {
    thread->last_sample = record.time;
    thread->last_event = record.event;
    thread->last_raw = raw;
  }
  const EventKind& kind = kinds_[record.event];
  switch (kind.kind) {
    case Kind::kOther:
      break;
    case Kind::kSwitch:
      AddSchedSwitch(record, kind);
      break;
    case Kind::kEnter:
    case Kind::kEnterNamed:
      if (thread == nullptr || !Take(&thread->entered, record)) break;
      thread->entered_event = record.event;
      thread->entered_raw = raw;
      break;
    case Kind::kLeave:
    case Kind::kLeaveNamed:
      if (thread != nullptr) Take(&thread->left, record);
      break;
    case Kind::kWakeup: {
      const auto tid = kind.woken.Number(record.raw);
      PerfThreadActivity* woken = tid ? Thread(static_cast<int>(*tid)) : nullptr;
      if (woken != nullptr) Take(&woken->woken, record);
      break;
    }
  }
}

// What the scheduler calls it; a COMM record, the thread's own word, is as good or newer.
void PerfActivity::Name(int tid, int pid, const EventKind::Place& name, std::string_view raw) {
  PerfThreadActivity* thread = Thread(tid);
  if (thread == nullptr) return;
  if (pid >= 0 && thread->pid < 0) thread->pid = pid;
  if (thread->name.empty()) thread->name = name.Text(raw).value_or("");
}

void PerfActivity::AddComm(const PerfComm& comm) {
  PerfThreadActivity* thread = Thread(comm.tid);
  if (thread == nullptr) return;
  if (comm.pid >= 0 && thread->pid < 0) thread->pid = comm.pid;
  if (!comm.name.empty()) thread->name = comm.name;
}

// Where there is sched_switch, it says the same and why; these come a little later. But of some
// processes it says only who leaves, and whose record it is comes to the CPU behind one that is not
// recorded.
void PerfActivity::AddSwitchRecord(const PerfRecord& record, const PerfSwitch& change) {
  if (has_sched_switch_) {
    if (!change.out && !whole_machine_ && record.time >= 0 && record.tid > 0)
      NoteSwitch(record, 0, record.tid);
    return;
  }
  const bool left = change.out && Leave(record.tid, record, -1, change.preempted);
  const int comes = change.out ? change.other_tid : record.tid;
  const bool came = Come(comes, record);
  NoteSwitch(record, left ? record.tid : 0, came ? comes : 0);
}

void PerfActivity::AddSideBand(const PerfRecord& record) {
  if (const auto comm = ParsePerfComm(record)) AddComm(*comm);
  if (const auto change = ParsePerfSwitch(record)) {
    AddSwitchRecord(record, *change);
    return;
  }
  const auto task = ParsePerfTask(record);
  if (!task) return;
  PerfThreadActivity* thread = Thread(task->tid);
  if (thread == nullptr) return;
  if (task->pid >= 0) thread->pid = task->pid;
  if (record.type == PERF_RECORD_EXIT) {
    Take(&thread->ended, record);
    return;
  }
  thread->parent = task->parent_pid;
  const auto parent = threads_.find(task->parent_tid);
  if (parent != threads_.end() && thread->name.empty()) thread->name = parent->second.name;
}

bool PerfActivity::IsInSystemCall(const PerfThreadActivity& thread) const {
  if (!thread.entered.happened() || thread.entered.time <= thread.left.time ||
      thread.ended.happened())
    return false;
  if (has_returns_) return true;
  return !thread.IsRunning() && !thread.preempted && thread.switched_out.time > thread.entered.time;
}

std::string PerfActivity::Describe(const PerfThreadActivity& thread) const {
  if (thread.last_event >= kinds_.size() || !kinds_[thread.last_event].format ||
      thread.last_raw.empty())
    return {};
  return kinds_[thread.last_event].format->Describe(thread.last_raw);
}

}  // namespace hangscope
