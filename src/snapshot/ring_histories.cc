#include "snapshot/ring_histories.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "cpu/task_ends.h"
#include "model/perf_format.h"
#include "perf/perf_record.h"
#include "perf/perf_side_band.h"
#include "snapshot/trace_histories.h"

namespace hangscope {
namespace {

// A held span has about so many bytes: the newest N bytes of a ring are found to this many.
constexpr uint64_t kSpanBytes = 4096;
// A stream's stamps are looked up at so many places.
constexpr uint64_t kStreamSpans = 64;

// Who runs on the CPUs, as records say it one after the other.
class RunsReader {
 public:
  RunsReader(const std::vector<PerfEvent>& events, const TaskEnds& ends, WindowInput* input)
      : ends_(ends), input_(*input) {
    for (const PerfEvent& event : events) {
      formats_.push_back(event.name == "sched:sched_switch" ? TracepointFormat::Parse(event.format)
                                                            : std::nullopt);
    }
  }

  void Begin(int64_t ring, TimeNs) {
    ring_ = ring;
    running_.reset();
  }
  void Add(const PerfRecord& record) {
    if (record.time < 0 || record.tid <= 0) return;
    if (const auto comes_or_goes = ParsePerfSwitch(record)) {
      if (comes_or_goes->out)
        Leaves(record.tid, record.time);
      else
        Comes(record.tid, record.time);
    } else if (record.type == PERF_RECORD_SAMPLE && record.event < formats_.size() &&
               formats_[record.event]) {
      AddSwitch(record, *formats_[record.event]);
    } else if (record.type == PERF_RECORD_SAMPLE) {
      Comes(record.tid, record.time);
    }
  }
  void End(TimeNs taken) { EndRun(taken); }

 private:
  // The task that leaves recorded it; the one that comes records on its own, if it is recorded at
  // all.
  void AddSwitch(const PerfRecord& record, const TracepointFormat& format) {
    if (const auto from = format.Number(record.raw, "prev_pid"); from && *from > 0)
      Leaves(*from, record.time);
  }
  void Comes(int64_t task, TimeNs time) {
    if (running_ && running_->task == task) return;
    EndRun(time);
    running_ = TaskRun{task, ring_, {time, time}};
  }
  // Nothing says that it left before `time`, unless it ended.
  void EndRun(TimeNs time) {
    if (!running_) return;
    const TaskEnd* const end = ends_.Last(static_cast<pid_t>(running_->task), time);
    const bool ended = end != nullptr && end->time >= running_->time.from;
    Leaves(running_->task, ended ? std::min(time, end->time + 1) : time);
  }
  void Leaves(int64_t task, TimeNs time) {
    if (!running_ || running_->task != task) return;
    running_->time.to = std::max(time, running_->time.from);
    input_.runs.push_back(*running_);
    running_.reset();
  }

  const TaskEnds& ends_;
  WindowInput& input_;
  std::vector<std::optional<TracepointFormat>> formats_;  // of switches, by event
  int64_t ring_ = 0;
  std::optional<TaskRun> running_;
};

// Cuts a ring's records into spans that touch.
class SpansBuilder {
 public:
  SpansBuilder(uint64_t begin_offset, RingHistory* history)
      : history_(*history), at_(begin_offset) {}

  void Add(TimeNs time, uint64_t bytes) {
    if (!open_) {
      const TimeNs least = history_.held.empty() ? 0 : history_.held.back().time.to;
      open_ = HeldSpan{{std::max(time, least), std::max(time, least)}, at_, at_, {}};
    }
    at_ += bytes;
    // interrupts may nest records: their order is not quite that of time
    open_->time.to = std::max(open_->time.to, time);
    open_->end_offset = at_;
    if (open_->end_offset - open_->begin_offset >= kSpanBytes) Close();
  }
  // Bytes that cannot be read: missing between two spans.
  void Skip(uint64_t bytes) {
    Close();
    at_ += bytes;
  }
  void Close() {
    if (open_) history_.held.push_back(*open_);
    open_.reset();
  }

 private:
  RingHistory& history_;
  uint64_t at_;
  std::optional<HeldSpan> open_;
};

// A record of no time happened with the one before it.
TimeNs TimeOf(const PerfRecord& record, TimeNs before) {
  return record.time >= 0 ? record.time : before;
}

RingHistory ReadRing(const PerfRing& ring, const PerfRecordParser& parser, RunsReader* runs) {
  RingHistory history;
  history.ring = NameOfRing(ring);
  history.capacity_bytes = ring.capacity_bytes;
  history.head = ring.head;
  history.discarded_bytes = ring.discarded_bytes;
  history.recording_since = ring.recording_since;
  history.recorded_until = ring.taken;
  SpansBuilder spans(ring.head - std::min<uint64_t>(ring.head, ring.records.size()), &history);
  runs->Begin(history.ring.number, ring.taken);
  TimeNs time = ring.recording_since;
  for (std::string_view rest = ring.records; !rest.empty();) {
    const size_t bytes = PerfRecordBytes(rest);
    const auto record = bytes == 0 ? std::nullopt : parser.Parse(rest.substr(0, bytes));
    if (!record) {
      // Where the next one begins is not known any more.
      history.losses.push_back(
          {{time, ring.taken}, GapReason::kUnreadable, rest.size(), AmountUnit::kBytes, {}});
      spans.Skip(rest.size());
      break;
    }
    time = TimeOf(*record, time);
    if (const auto lost = ParsePerfLost(*record)) {
      history.losses.push_back({{time, time}, GapReason::kNoRoom, *lost, AmountUnit::kRecords, {}});
    }
    runs->Add(*record);
    spans.Add(time, bytes);
    rest.remove_prefix(bytes);
  }
  spans.Close();
  runs->End(ring.taken);
  return history;
}

void AddLosses(const PerfRing& ring, const RingMark* before, TimeNs last_time,
               RingHistory* history) {
  const uint64_t told = before == nullptr ? 0 : before->lost_records;
  if (ring.lost_records > told) {
    history->losses.push_back({{std::max(last_time, ring.recording_since), ring.taken},
                               GapReason::kNoRoom,
                               ring.lost_records - told,
                               AmountUnit::kRecords,
                               {}});
  }
  for (const TimeSpan& blind : ring.blind)
    history->losses.push_back({blind, GapReason::kBlind, 0, AmountUnit::kUnknown, {}});
}

// How many of its last records are missing of a task: the switch, as an event and as a tracepoint.
// What a process sends its parent depends on the parent; 0: nobody knows.
uint64_t MissingOf(const TaskEnd& end, const std::vector<PerfEvent>& events) {
  uint64_t switches = 0;
  bool signals = false;
  for (const PerfEvent& event : events) {
    if (event.attr.context_switch != 0 || event.name == "sched:sched_switch") ++switches;
    signals = signals || event.name == "signal:signal_generate";
  }
  return end.thread == end.process && signals ? 0 : switches;
}

// Of the part of a ring that is held.
void AddEnds(const CpuCapture& capture, const TaskEnds& ends, WindowInput* input) {
  const bool misses = MissesEnds(capture.events);
  for (const TaskEnd& end : ends.all()) {
    input->ends.push_back({end.thread, end.time});
    if (!misses) continue;
    const RingName name{RingKind::kCpu, end.cpu, "events"};
    for (RingHistory& ring : input->rings) {
      if (ring.ring != name || ring.held.empty() || end.time < ring.held.front().time.from ||
          end.time > ring.recorded_until)
        continue;
      const uint64_t missing = MissingOf(end, capture.events);
      ring.losses.push_back({{end.time, end.time},
                             GapReason::kLastEvents,
                             missing,
                             missing == 0 ? AmountUnit::kUnknown : AmountUnit::kRecords,
                             end.thread});
    }
  }
}

void AddNames(const CpuCapture& capture, const PerfRecordParser& parser, WindowInput* input) {
  std::map<int64_t, std::string> names;
  const auto read = [&](std::string_view records) {
    for (size_t bytes = 0; (bytes = PerfRecordBytes(records)) != 0; records.remove_prefix(bytes)) {
      const auto record = parser.Parse(records.substr(0, bytes));
      if (!record) return;
      if (const auto comm = ParsePerfComm(*record)) names[comm->tid] = comm->name;
    }
  };
  read(capture.side_band);
  input->task_names.assign(names.begin(), names.end());
}

}  // namespace

const RingMark* FindMark(const std::vector<RingMark>& marks, const RingName& ring) {
  const auto found = std::find_if(marks.begin(), marks.end(),
                                  [&](const RingMark& mark) { return mark.ring == ring; });
  return found == marks.end() ? nullptr : &*found;
}

RingName NameOfRing(const PerfRing& ring) {
  return {ring.cpu >= 0 ? RingKind::kCpu : RingKind::kThread, ring.cpu >= 0 ? ring.cpu : ring.tid,
          "events"};
}

void AddCpuRings(const CpuCapture& capture, const std::vector<RingMark>& before, TimeNs last_time,
                 WindowInput* input) {
  const PerfRecordParser parser(capture.events);
  const TaskEnds ends(capture.side_band);
  RunsReader runs(capture.events, ends, input);
  for (const PerfRing& ring : capture.rings) {
    RingHistory history = ReadRing(ring, parser, &runs);
    AddLosses(ring, FindMark(before, history.ring), last_time, &history);
    input->rings.push_back(std::move(history));
  }
  AddEnds(capture, ends, input);
  AddTraceRings(capture, input);
  AddNames(capture, parser, input);
}

RingHistory StreamHistory(BlockReader& reader, size_t number, const StreamWindow& window) {
  RingHistory history;
  history.ring = {RingKind::kStream, static_cast<int64_t>(number), window.name};
  history.head = window.end_offset;
  history.recorded_until = window.end_time;
  TimeNs time = window.begin_time;
  const auto advance = [&](uint64_t offset) {
    return time = std::clamp(reader.TimeOf(offset).value_or(time), time,
                             std::max(time, window.end_time));
  };
  const auto add = [&](uint64_t begin, uint64_t end) {
    const uint64_t step =
        std::max<uint64_t>(1, (window.end_offset - window.begin_offset) / kStreamSpans);
    for (uint64_t at = begin; at < end; at = std::min(end, at + step)) {
      const TimeNs from = advance(at);
      const uint64_t next = std::min(end, at + step);
      history.held.push_back({{from, advance(next - 1)}, at, next, {}});
    }
  };
  uint64_t at = window.begin_offset;
  for (const Loss& loss : window.losses) {
    add(at, loss.begin);
    const TimeNs from = time;
    history.losses.push_back(
        {{from, advance(loss.end)},
         loss.reason == LossReason::kNotWritten ? GapReason::kNoRoom : GapReason::kUnreadable,
         loss.bytes(),
         AmountUnit::kBytes,
         {}});
    at = loss.end;
  }
  add(at, window.end_offset);
  return history;
}

}  // namespace hangscope
