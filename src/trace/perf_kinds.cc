#include "trace/perf_kinds.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <set>

#include "process/system_call.h"

namespace hangscope {
namespace {

constexpr size_t kMostThreads = 200'000;
constexpr size_t kMostCalls = 4096;
constexpr std::string_view kNamedCall = "syscalls:sys_enter_";
constexpr std::string_view kNamedReturn = "syscalls:sys_exit_";

std::string OwnArchitecture() {
  utsname names{};
  return uname(&names) == 0 ? names.machine : "";
}

bool Has(const PerfFile& file, std::string_view name) {
  return std::any_of(file.events().begin(), file.events().end(), [&](const PerfEvent& event) {
    return !event.format.empty() && event.name == name;
  });
}

TraceMeaning MeaningOf(int role) {
  constexpr TraceMeaning kMeanings[] = {
      TraceMeaning::kPlain, TraceMeaning::kSwitch, TraceMeaning::kWake,
      TraceMeaning::kEnter, TraceMeaning::kLeave,  TraceMeaning::kEnter,
      TraceMeaning::kLeave, TraceMeaning::kEnter,  TraceMeaning::kLeave};
  return kMeanings[role];
}

}  // namespace

PerfKinds::PerfKinds(const PerfFile& file) {
  same_machine_ =
      file.facts().architecture.empty() || file.facts().architecture == OwnArchitecture();
  has_sched_switch_ = Has(file, "sched:sched_switch");
  has_waking_ = Has(file, "sched:sched_waking");
  has_raw_calls_ = Has(file, "raw_syscalls:sys_enter");
  std::set<std::string> known;
  for (const PerfEvent& event : file.events()) {
    TraceEventKind kind;
    events_.push_back(DescribeEvent(event, &kind));
    // One event may be recorded several times, for several threads, and once more for their ends.
    const auto twin = std::find(kinds_.begin(), kinds_.end(), kind);
    events_.back().kind = static_cast<size_t>(twin - kinds_.begin());
    if (twin != kinds_.end()) continue;
    const std::string name = kind.name;
    for (int number = 2; known.count(kind.name) != 0; ++number)
      kind.name = fmt::format("{} ({})", name, number);
    known.insert(kind.name);
    kinds_.push_back(std::move(kind));
  }
  TraceEventKind change{"perf:switch", "perf", "", {}, TraceMeaning::kSwitch, {}};
  kinds_.push_back(std::move(change));
}

PerfKinds::Role PerfKinds::RoleOf(const std::string& name, std::string* what) const {
  if (name == "sched:sched_switch") return Role::kSwitch;
  if (name == "sched:sched_waking" || name == "sched:sched_wakeup_new") return Role::kWake;
  // Says the same again, later, where the other is recorded, too.
  if (name == "sched:sched_wakeup") return has_waking_ ? Role::kOther : Role::kWake;
  if (name == "raw_syscalls:sys_enter") return Role::kCall;
  if (name == "raw_syscalls:sys_exit") return Role::kReturn;
  if (!has_raw_calls_ && name.starts_with(kNamedCall)) {
    *what = name.substr(kNamedCall.size());
    return Role::kNamedCall;
  }
  if (!has_raw_calls_ && name.starts_with(kNamedReturn)) return Role::kNamedReturn;
  *what = "interrupt";
  if (name == "irq:irq_handler_entry") return Role::kEnter;
  if (name == "irq:irq_handler_exit") return Role::kLeave;
  *what = "softirq";
  if (name == "irq:softirq_entry") return Role::kEnter;
  if (name == "irq:softirq_exit") return Role::kLeave;
  return Role::kOther;
}

PerfKinds::Event PerfKinds::DescribeEvent(const PerfEvent& event, TraceEventKind* kind) const {
  Event described;
  kind->name = event.name;
  kind->category = event.system.empty() ? "perf" : event.system;
  if (!event.format.empty()) described.format = TracepointFormat::Parse(event.format);
  if (described.format) {
    described.role = RoleOf(event.system + ":" + described.format->name(), &described.what);
    kind->fields = described.format->TraceFields();
    kind->meaning = MeaningOf(static_cast<int>(described.role));
    FindPlaces(&described);
    return described;
  }
  described.has_ip = (event.attr.sample_type & PERF_SAMPLE_IP) != 0;
  described.has_address = (event.attr.sample_type & PERF_SAMPLE_ADDR) != 0;
  if (described.has_ip) kind->fields.push_back({"ip", TraceFieldType::kPointer, 64});
  if (described.has_address) kind->fields.push_back({"address", TraceFieldType::kPointer, 64});
  return described;
}

void PerfKinds::FindPlaces(Event* event) {
  const auto place = [&](std::string_view field) { return event->format->PlaceOf(field); };
  switch (event->role) {
    case Role::kSwitch:
      event->names = {{place("prev_pid"), place("prev_comm")},
                      {place("next_pid"), place("next_comm")}};
      event->from = place("prev_pid");
      event->to = place("next_pid");
      event->state = place("prev_state");
      break;
    case Role::kWake:
      event->names = {{place("pid"), place("comm")}};
      event->to = place("pid");
      break;
    case Role::kCall:
      event->number = place("id");
      break;
    case Role::kEnter:
      event->number = place("vec");
      event->name = place("name");
      break;
    default:
      break;
  }
}

PerfKinds::Thread* PerfKinds::ThreadOf(int tid) {
  if (tid <= 0) return nullptr;
  Recent& recent = recent_[static_cast<size_t>(tid) % kRecent];
  if (recent.tid == tid) return recent.thread;
  const auto known = threads_.find(tid);
  if (known == threads_.end() && threads_.size() == kMostThreads) return nullptr;
  recent = {tid, known != threads_.end() ? &known->second : &threads_[tid]};
  return recent.thread;
}

void PerfKinds::Switched(int tid, TimeNs time, bool waits) {
  Thread* const thread = ThreadOf(tid);
  if (thread == nullptr) return;
  thread->waits = waits;
  thread->since = time;
}

void PerfKinds::Ended(int tid, TimeNs time) {
  Thread* const thread = ThreadOf(tid);
  if (thread == nullptr) return;
  thread->recorded = true;
  thread->ended = true;
  thread->since = time;
}

void PerfKinds::FillSwitch(const Event& event, const PerfRecord& record, TraceEvent* filled) {
  constexpr int64_t kReportMax = 0x100;   // TASK_REPORT_MAX: it was preempted
  constexpr int64_t kDead = 0x10 | 0x20;  // "X" and "Z" of its print fmt; 0x80 is "I", idle
  const int64_t from = event.from.Number(record.raw).value_or(0);
  const int64_t to = event.to.Number(record.raw).value_or(0);
  const int64_t state = event.state.Number(record.raw).value_or(0);
  if (from > 0) {
    filled->from = from;
    filled->from_waits = (state & (kReportMax - 1)) != 0 && (state & kReportMax) == 0;
    Switched(static_cast<int>(from), record.time, filled->from_waits);
    if (Thread* thread = ThreadOf(static_cast<int>(from));
        thread != nullptr && filled->from_waits) {
      filled->what = (state & kDead) != 0 ? "exit" : thread->call;
      if ((state & kDead) != 0) Ended(static_cast<int>(from), record.time);
    }
  }
  if (to <= 0) return;
  filled->to = to;
  Switched(static_cast<int>(to), record.time, false);
}

void PerfKinds::FillWake(const Event& event, const PerfRecord& record, TraceEvent* filled) {
  const int64_t woken = event.to.Number(record.raw).value_or(0);
  if (woken <= 0) return;
  filled->to = woken;
  Switched(static_cast<int>(woken), record.time, false);
}

const std::string& PerfKinds::CallName(const Event& event, const PerfRecord& record) {
  if (event.role == Role::kNamedCall) return event.what;
  const int64_t number = event.number.Number(record.raw).value_or(-1);
  const auto known = call_names_.find(number);
  if (known != call_names_.end()) return known->second;
  unusual_call_ = same_machine_ ? SystemCallName(static_cast<int>(number))
                                : fmt::format("system call {}", number);
  return call_names_.size() < kMostCalls ? call_names_.emplace(number, unusual_call_).first->second
                                         : unusual_call_;
}

bool PerfKinds::Fill(const PerfRecord& record, TraceEvent* filled) {
  if (record.event >= events_.size()) return false;
  const Event& event = events_[record.event];
  filled->kind = event.kind;
  if (record.tid > 0) filled->task = record.tid;
  Thread* const thread = ThreadOf(record.tid);
  if (thread != nullptr) thread->recorded = true;
  if (event.format) {
    event.format->TraceValues(record.raw, &filled->values);
  } else {
    filled->values.clear();
    if (event.has_ip) filled->values.push_back({record.ip, {}, true});
    if (event.has_address) filled->values.push_back({record.address, {}, true});
  }
  switch (event.role) {
    case Role::kOther:
    case Role::kLeave:
      break;
    case Role::kSwitch:
      FillSwitch(event, record, filled);
      break;
    case Role::kWake:
      FillWake(event, record, filled);
      break;
    case Role::kCall:
    case Role::kNamedCall:
      filled->what = CallName(event, record);
      if (thread != nullptr) thread->call = filled->what;
      break;
    case Role::kReturn:
    case Role::kNamedReturn:
      if (thread != nullptr) thread->call.clear();
      break;
    case Role::kEnter: {
      const auto name = event.name.Text(record.raw);
      const auto number = event.number.Number(record.raw);
      filled->what = event.what;
      if (name)
        filled->what.append(" ").append(*name);
      else if (number)
        filled->what += fmt::format(" {}", *number);
      break;
    }
  }
  return true;
}

}  // namespace hangscope
