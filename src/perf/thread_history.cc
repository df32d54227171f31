#include "perf/thread_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "base/utf8.h"
#include "model/perf_format.h"
#include "perf/perf_record.h"
#include "perf/perf_side_band.h"
#include "perf/tracepoint_format.h"

namespace hangscope {
namespace {

constexpr size_t kMostTold = 6;           // threads of a finding
constexpr size_t kMostStepsOfThread = 4;  // of each of these
constexpr size_t kMostSteps = 16;
constexpr size_t kMostBytesOfCpus = 64u << 20;  // of records of all CPUs that are read
constexpr std::string_view kWaking = "sched:sched_waking";

// Seconds, to where an order can be seen.
std::string Exactly(TimeNs time) {
  if (time < kMillisecond) return fmt::format("{:.3f} ms", static_cast<double>(time) / 1e6);
  if (time < kSecond) return fmt::format("{:.1f} ms", static_cast<double>(time) / 1e6);
  return fmt::format("{:.3f} s", static_cast<double>(time) / 1e9);
}

// Whom the record's own thread woke; nothing: an interrupt did, while that thread ran, or the
// tracepoint's numbers are those of another namespace.
std::optional<int64_t> WokenBy(const TracepointFormat& format, const PerfRecord& record) {
  constexpr int64_t kInterrupt = 0x08 | 0x10 | 0x40;  // TRACE_FLAG_HARDIRQ, _SOFTIRQ, _NMI
  const auto flags = format.Number(record.raw, "common_flags");
  if (!flags || (*flags & kInterrupt) != 0) return std::nullopt;
  if (format.Number(record.raw, "common_pid") != record.tid) return std::nullopt;
  return format.Number(record.raw, "pid");
}

// The last whole records that are no more than `most` bytes.
std::string_view NewestOf(std::string_view records, size_t most) {
  while (records.size() > most) {
    const size_t bytes = PerfRecordBytes(records);
    if (bytes == 0 || bytes > records.size()) return {};
    records.remove_prefix(bytes);
  }
  return records;
}

// `use` gets each record of the ring that can be read.
template <typename Use>
void ForEachRecord(const PerfRecordParser& parser, std::string_view records, Use use) {
  while (!records.empty()) {
    const size_t bytes = PerfRecordBytes(records);
    const auto record = bytes == 0 || bytes > records.size()
                            ? std::nullopt
                            : parser.Parse(records.substr(0, bytes));
    if (!record) break;
    records.remove_prefix(bytes);
    use(*record);
  }
}

}  // namespace

ThreadHistory::ThreadHistory(const HistoryCapture& capture) : now_(capture.time) {
  const PerfRecordParser parser(capture.events);
  std::vector<std::optional<TracepointFormat>> formats;
  for (const PerfEvent& event : capture.events)
    formats.push_back(TracepointFormat::Parse(event.format));
  for (const ThreadRing& ring : capture.threads) {
    // A number that was given anew is the newer thread's.
    Thread& thread = threads_[ring.thread] = Thread();
    thread.name = ring.name.empty() ? fmt::format("{}", ring.thread)
                                    : fmt::format("{} {}", ring.thread, Printable(ring.name));
    thread.recorded_since = ring.ring.recording_since;
    thread.paused_since = ring.paused_since;
    ForEachRecord(parser, ring.ring.records, [&](const PerfRecord& record) {
      if (record.time < 0 || record.time > now_) return;
      if (const auto change = ParsePerfSwitch(record))
        thread.Switch({record.time, change->out, change->preempted});
      else if (record.type == PERF_RECORD_SAMPLE && record.event < formats.size() &&
               formats[record.event])
        Wakes(&thread, ring.thread, record.time, WokenBy(*formats[record.event], record));
    });
  }
  SortWakes();
}

// A CPU's ring has the records of all threads that ran there.
ThreadHistory::ThreadHistory(const CpuCapture& capture) : now_(capture.time) {
  const PerfRecordParser parser(capture.events);
  std::vector<std::optional<TracepointFormat>> wakings(capture.events.size());
  for (size_t i = 0; i < capture.events.size(); ++i) {
    if (capture.events[i].name == kWaking)
      wakings[i] = TracepointFormat::Parse(capture.events[i].format);
  }
  struct Record {
    TimeNs time = 0;
    int tid = 0;
    std::optional<PerfSwitch> change;
    std::optional<int64_t> woken;
  };
  std::vector<Record> records;
  TimeNs recorded_since = 0;  // by all of them
  for (const PerfRing& ring : capture.rings) {
    const std::string_view newest = NewestOf(ring.records, kMostBytesOfCpus / capture.rings.size());
    const bool is_whole = !ring.lost_before && newest.size() == ring.records.size();
    TimeNs since = is_whole ? ring.recording_since : now_;
    ForEachRecord(parser, newest, [&](const PerfRecord& record) {
      if (record.time < 0 || record.time > now_ || record.tid <= 0) return;
      since = std::min(since, record.time);
      Record kept{record.time, record.tid, ParsePerfSwitch(record), {}};
      if (record.type == PERF_RECORD_SAMPLE && record.event < wakings.size() &&
          wakings[record.event])
        kept.woken = WokenBy(*wakings[record.event], record);
      if (kept.change || kept.woken) records.push_back(kept);
    });
    recorded_since = std::max(recorded_since, since);
  }
  std::stable_sort(records.begin(), records.end(),
                   [](const Record& a, const Record& b) { return a.time < b.time; });
  for (const Record& record : records) {
    Thread& thread = threads_[record.tid];
    if (record.change) thread.Switch({record.time, record.change->out, record.change->preempted});
    if (record.woken) Wakes(&thread, record.tid, record.time, record.woken);
  }
  NameThreads(parser, capture.side_band);
  for (auto& [tid, thread] : threads_) thread.recorded_since = recorded_since;
  SortWakes();
}

void ThreadHistory::NameThreads(const PerfRecordParser& parser, std::string_view side_band) {
  std::map<int, std::pair<TimeNs, std::string>> names;  // the newest
  ForEachRecord(parser, side_band, [&](const PerfRecord& record) {
    const auto comm = ParsePerfComm(record);
    if (!comm) return;
    auto& [time, name] = names[comm->tid];
    if (!name.empty() && record.time < time) return;
    time = record.time;
    name = comm->name;
  });
  for (auto& [tid, thread] : threads_) {
    const auto known = names.find(tid);
    thread.name = known == names.end() ? fmt::format("{}", tid)
                                       : fmt::format("{} {}", tid, Printable(known->second.second));
  }
}

void ThreadHistory::Thread::Switch(const Change& change) {
  running = !change.out;
  if (change.out) steps.push_back({change.time, came, change.preempted});
  came = change.out ? 0 : change.time;
}

void ThreadHistory::Wakes(Thread* thread, int tid, TimeNs time, std::optional<int64_t> whom) {
  if (!whom) return;
  thread->steps.push_back({time, 0, false, static_cast<int>(*whom)});
  wakes_[static_cast<int>(*whom)].push_back({time, tid});
}

void ThreadHistory::SortWakes() {
  for (auto& [whom, wakes] : wakes_) {
    std::sort(wakes.begin(), wakes.end(),
              [](const Wake& a, const Wake& b) { return a.time < b.time; });
  }
}

const ThreadHistory::Step* ThreadHistory::Thread::LastRun() const {
  const auto last = std::find_if(steps.rbegin(), steps.rend(),
                                 [](const Step& step) { return !step.whom.has_value(); });
  return last == steps.rend() ? nullptr : &*last;
}

const ThreadHistory::Thread* ThreadHistory::Find(const FindingSubject& subject) const {
  const auto found = subject.thread == 0 ? threads_.end() : threads_.find(subject.thread);
  return found == threads_.end() ? nullptr : &found->second;
}

// For good, as far as was recorded until now.
bool ThreadHistory::HasStopped(const Thread& thread) const {
  const Step* const last = thread.LastRun();
  return last != nullptr && !thread.running && !last->preempted;
}

const ThreadHistory::Wake* ThreadHistory::LastWake(int thread) const {
  const auto found = wakes_.find(thread);
  return found == wakes_.end() ? nullptr : &found->second.back();
}

std::string ThreadHistory::Ago(TimeNs time) const {
  return Exactly(std::max<TimeNs>(0, now_ - time)) + " ago";
}

// To the microsecond, so that the order shows.
std::string ThreadHistory::StepText(TimeNs time, const std::string& what) const {
  return fmt::format("{:.6f} s ago  {}", static_cast<double>(now_ - time) / 1e9, what);
}

std::string ThreadHistory::NameOf(int thread) const {
  const auto found = threads_.find(thread);
  return found == threads_.end() ? fmt::format("{}", thread) : found->second.name;
}

// Empty: nothing is proved.
std::string ThreadHistory::LastRunLine(int tid, const Thread& thread) const {
  const Step* const last = thread.LastRun();
  if (thread.paused_since != 0) {
    return fmt::format("{}  is not recorded since {}: it switched too often", thread.name,
                       Ago(thread.paused_since));
  }
  if (thread.running || last == nullptr) return {};
  std::string text = fmt::format("{}  ran last {}", thread.name, Ago(last->time));
  if (last->came == 0) return text;
  text += fmt::format(" for {}", Exactly(last->time - last->came));
  if (last->preempted) text += ", and then wanted to go on";
  const Wake* const wake = LastWake(tid);
  if (wake == nullptr) return text;
  // Behind the run before, as far as that is known: else it is what that one came of.
  TimeNs before = thread.recorded_since;
  for (const Step& step : thread.steps) {
    if (!step.whom && step.time < last->came) before = std::max(before, step.time);
  }
  if (wake->time > last->time)
    return text + fmt::format("; {} woke it {}, and it did not run yet", NameOf(wake->by),
                              Ago(wake->time));
  if (wake->time > before && wake->time <= last->came)
    return text + ", woken by " + NameOf(wake->by);
  // Others may have woken it since that nobody recorded: a timer, a short-lived process.
  return text + fmt::format("; {} woke it {}", NameOf(wake->by), Ago(wake->time));
}

void ThreadHistory::AddSteps(int tid, const Thread& thread,
                             std::vector<std::pair<TimeNs, std::string>>* steps) const {
  const size_t first = thread.steps.size() - std::min(thread.steps.size(), kMostStepsOfThread);
  for (size_t i = first; i < thread.steps.size(); ++i) {
    const Step& step = thread.steps[i];
    std::string text = thread.name;
    if (step.whom)
      text += " wakes " + NameOf(*step.whom);
    else if (step.came == 0)
      text += " leaves the CPU";
    else
      text += fmt::format(" leaves the CPU after {}", Exactly(step.time - step.came));
    if (step.preempted) text += ", preempted";
    steps->emplace_back(step.time, StepText(step.time, text));
  }
  // By others; what one of the told did is among its own steps.
  if (const Wake* const wake = LastWake(tid))
    steps->emplace_back(wake->time,
                        StepText(wake->time, NameOf(wake->by) + " wakes " + thread.name));
}

// Empty: not proved of all.
std::string ThreadHistory::FirstToStop(const Finding& finding) const {
  if (finding.subjects.size() < 2) return {};
  const FindingSubject* first = nullptr;
  TimeNs stopped = 0;
  for (const FindingSubject& subject : finding.subjects) {
    const Thread* const thread = Find(subject);
    if (thread == nullptr || !HasStopped(*thread)) return {};
    const TimeNs left = thread->LastRun()->time;
    if (first == nullptr || left < stopped) {
      first = &subject;
      stopped = left;
    }
  }
  return first->name;
}

void ThreadHistory::AddTo(Finding* finding) const {
  if (!finding->history.empty()) return;
  std::vector<std::pair<TimeNs, std::string>> steps;
  std::vector<std::string> lines;
  for (const FindingSubject& subject : finding->subjects) {
    const Thread* const thread = Find(subject);
    if (thread == nullptr || lines.size() == kMostTold) continue;
    if (std::string line = LastRunLine(subject.thread, *thread); !line.empty())
      lines.push_back(std::move(line));
    AddSteps(subject.thread, *thread, &steps);
  }
  if (finding->first.empty()) {
    finding->first = FirstToStop(*finding);
    if (!finding->first.empty()) lines.insert(lines.begin(), "first to stop: " + finding->first);
  }
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  for (size_t i = steps.size() - std::min(steps.size(), kMostSteps); i < steps.size(); ++i)
    finding->history.push_back(std::move(steps[i].second));
  finding->lines.insert(finding->lines.end(), lines.begin(), lines.end());
}

}  // namespace hangscope
