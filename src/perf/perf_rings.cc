#include "perf/perf_rings.h"

#include <algorithm>
#include <map>

#include "perf/perf_runs.h"

namespace hangscope {
namespace {

constexpr size_t kMostRuns = 1'000'000;  // the newest are what a window is about

}  // namespace

PerfRingsReader::PerfRingsReader(PerfFile& file, std::string tracer)
    : file_(file),
      traces_(file, tracer),
      sinks_(
          [this](size_t trace, uint64_t begin, uint64_t bytes) {
            return file_.ReadAux(file_.aux()[trace], begin, bytes).value_or("");
          },
          std::move(tracer)) {}

void PerfRingsReader::AddOther(const PerfRecord& record) {
  traces_.Add(record, newest_);
  ids_.Add(record);
}

void PerfRingsReader::Finish(const PerfActivity& activity, TimeNs until) {
  newest_ = std::max(newest_, until);
  traces_.Finish(until);
  ids_.Finish(file_.facts().auxtrace_info);
  sinks_.Read(ids_, traces_.CpusWithStarts(), ids_.NamesOneSink(file_.events()), &traces_.rings());
  // Of those who share a sink only the last to stop has a record of its trace.
  if (sinks_.any()) traces_.TraceAllThatCame();
  overwrites_ = activity.overwrites();
  AddRuns(activity);
  for (const PerfAuxRing& ring : aux()) {
    if (!sinks_.Has(ring.cpu) && !ring.sampled)
      input_.rings.push_back(traces_.HistoryOf(ring, activity.whole_machine()));
  }
  sinks_.AddTo(activity.whole_machine(), newest_, &traces_.rings(), &input_);
  if (!HasWholeTraces() || file_.facts().rings) AddEventRings(activity);
  for (const auto& [tid, thread] : activity.threads()) {
    if (!thread.name.empty()) input_.task_names.emplace_back(tid, thread.name);
  }
}

// Pieces of traces in samples say nothing of what a window covers.
bool PerfRingsReader::HasWholeTraces() const {
  return std::any_of(aux().begin(), aux().end(),
                     [](const PerfAuxRing& ring) { return !ring.sampled; });
}

// One span: what is missing inside is told by LOST records. What was in the ring before it was
// overwritten, where the file says so, or may have been, where it is written backwards. `told`:
// what hangscope's own file says of it; null: nothing.
RingHistory PerfRingsReader::EventHistoryOf(int number, const PerfCpuActivity& cpu,
                                            const RecordedRing* told) const {
  RingHistory history;
  history.ring = {number < 0 ? RingKind::kStream : RingKind::kCpu, std::max(number, 0), "events"};
  history.of_unknown_cpus = number < 0;
  history.recorded_until = newest_;
  TimeSpan time = {cpu.held.from, cpu.held.to};
  bool had_more = overwrites_;
  if (told != nullptr) {
    history.recorded_until = std::max(told->until, newest_);
    history.recording_since = told->recording_since;
    time = {told->complete_since, std::max(told->complete_since, cpu.held.to)};
    had_more = told->complete_since > told->recording_since;
  }
  const uint64_t before = had_more ? 1 : 0;
  history.head = before + cpu.held.bytes;
  if (time.from >= 0) history.held.push_back({time, before, history.head, {}});
  for (const PerfCpuActivity::Loss& loss : cpu.losses) {
    const AmountUnit unit = loss.records == 0 ? AmountUnit::kUnknown : AmountUnit::kRecords;
    history.losses.push_back({loss.time, GapReason::kNoRoom, loss.records, unit, {}});
  }
  return history;
}

void PerfRingsReader::AddEventRings(const PerfActivity& activity) {
  std::map<int, PerfCpuActivity> cpus = activity.cpus();
  std::map<int, const RecordedRing*> told;
  if (file_.facts().rings) {
    for (const RecordedRing& ring : file_.facts().rings->rings) told[ring.cpu] = &ring;
  }
  // Nothing is left of some.
  for (const auto& [number, ring] : told) cpus.try_emplace(number);
  for (const auto& [number, cpu] : cpus) {
    const auto ring = told.find(number);
    if (cpu.held.records == 0 && cpu.losses.empty() && ring == told.end()) continue;
    input_.rings.push_back(
        EventHistoryOf(number, cpu, ring == told.end() ? nullptr : ring->second));
  }
}

bool PerfRingsReader::IsWanted(int tid, const PerfActivity& activity) const {
  if (activity.whole_machine()) return true;
  if (HasWholeTraces()) return traces_.traced().count(tid) != 0;
  const auto thread = activity.threads().find(tid);
  return thread != activity.threads().end() && thread->second.records > 0;
}

// Of traces of some threads, only theirs; of others only those that were recorded: who else came,
// or left, when they made way is of no account.
void PerfRingsReader::AddRuns(const PerfActivity& activity) {
  PerfRuns found = FindRuns(activity.switches(), newest_, kMostRuns,
                            [&](int tid) { return IsWanted(tid, activity); });
  input_.runs = std::move(found.runs);
  if (!found.left_out && activity.reports_switches() && activity.more_switches() == 0 &&
      activity.lost_records() == 0 && !overwrites_ && activity.first() >= 0)
    input_.runs_known_since = activity.first();
  if (!activity.switches().empty()) return;
  for (const PerfAuxRing& ring : aux()) {
    for (const PerfAuxSpan& span : ring.spans) {
      if (span.tid > 0 && span.time.from < span.time.to)
        input_.runs.push_back({span.tid, ring.cpu, span.time});
    }
  }
}

}  // namespace hangscope
