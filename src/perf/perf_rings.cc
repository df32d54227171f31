#include "perf/perf_rings.h"

#include <algorithm>
#include <map>

namespace hangscope {
namespace {

constexpr size_t kMostRuns = 1'000'000;  // the newest are what a window is about

bool IsWriteBackward(const std::vector<PerfEvent>& events) {
  return std::any_of(events.begin(), events.end(),
                     [](const PerfEvent& event) { return event.attr.write_backward != 0; });
}

bool ReportsSwitches(const std::vector<PerfEvent>& events) {
  return std::any_of(events.begin(), events.end(), [](const PerfEvent& event) {
    return event.attr.context_switch != 0 || event.name == "sched:sched_switch";
  });
}

}  // namespace

PerfRingsReader::PerfRingsReader(const PerfFile& file, std::string tracer)
    : file_(file), traces_(file, std::move(tracer)) {}

void PerfRingsReader::Add(const PerfRecord& record) {
  newest_ = std::max(newest_, record.time);
  traces_.Add(record);
}

void PerfRingsReader::Finish(const PerfActivity& activity, TimeNs until) {
  newest_ = std::max(newest_, until);
  traces_.Finish(until);
  input_.rings = traces_.Histories(activity.whole_machine());
  if (aux().empty()) AddEventRings(activity);
  AddRuns(activity);
  for (const auto& [tid, thread] : activity.threads()) {
    if (!thread.name.empty()) input_.task_names.emplace_back(tid, thread.name);
  }
}

// One span each: what is missing inside is told by LOST records. A ring that is written backwards
// had more before, as far as anybody knows.
void PerfRingsReader::AddEventRings(const PerfActivity& activity) {
  const uint64_t before = IsWriteBackward(file_.events()) ? 1 : 0;
  for (const auto& [number, cpu] : activity.cpus()) {
    if (cpu.last < 0) continue;
    RingHistory history;
    history.ring = {number < 0 ? RingKind::kStream : RingKind::kCpu, std::max(number, 0), "events"};
    history.head = before + cpu.bytes;
    history.recorded_until = newest_;
    history.held.push_back({{cpu.first, cpu.last}, before, before + cpu.bytes, {}});
    for (const PerfCpuActivity::Loss& loss : cpu.losses) {
      history.losses.push_back(
          {loss.time, GapReason::kNoRoom, loss.records, AmountUnit::kRecords, {}});
    }
    input_.rings.push_back(std::move(history));
  }
}

// By CPU: from coming to leaving. Of traces of some threads, only theirs.
void PerfRingsReader::AddRuns(const PerfActivity& activity) {
  std::vector<PerfSwitchAt> switches = activity.switches();
  std::stable_sort(switches.begin(), switches.end(),
                   [](const PerfSwitchAt& a, const PerfSwitchAt& b) { return a.time < b.time; });
  const bool all = aux().empty() || activity.whole_machine();
  std::map<int, PerfSwitchAt> running;
  const auto end = [&](const PerfSwitchAt& came, TimeNs time) {
    if (all || traces_.traced().count(came.tid) != 0)
      input_.runs.push_back({came.tid, came.cpu, {came.time, time}});
  };
  for (const PerfSwitchAt& change : switches) {
    const auto now = running.find(change.cpu);
    if (now != running.end() && (!change.out || now->second.tid == change.tid)) {
      end(now->second, change.time);
      running.erase(now);
    }
    if (!change.out) running[change.cpu] = change;
  }
  for (const auto& [cpu, came] : running) end(came, newest_);
  if (input_.runs.size() > kMostRuns)
    input_.runs.erase(input_.runs.begin(), input_.runs.end() - kMostRuns);
  else if (ReportsSwitches(file_.events()) && activity.more_switches() == 0 &&
           activity.lost_records() == 0 && !IsWriteBackward(file_.events()) &&
           activity.first() >= 0)
    input_.runs_known_since = activity.first();
  if (!switches.empty()) return;
  for (const PerfAuxRing& ring : aux()) {
    for (const PerfAuxSpan& span : ring.spans) {
      if (span.tid > 0 && span.time.from < span.time.to)
        input_.runs.push_back({span.tid, ring.cpu, span.time});
    }
  }
}

}  // namespace hangscope
