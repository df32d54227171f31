#include "snapshot/trace_histories.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "model/perf_format.h"
#include "perf/perf_record.h"
#include "perf/traces/shared_sinks.h"
#include "perf/traces/trace_ids.h"

namespace hangscope {
namespace {

constexpr char kTraceRing[] = "trace";

RingName NameOf(const AuxRing& ring) {
  return ring.cpu >= 0 ? RingName{RingKind::kCpu, ring.cpu, kTraceRing}
                       : RingName{RingKind::kThread, ring.tid, kTraceRing};
}

void AddLosses(const AuxRing& ring, RingHistory* history) {
  for (const AuxLoss& loss : ring.losses)
    history->losses.push_back({loss.time, loss.reason, 0, AmountUnit::kUnknown, {}});
}

void AddBlindTime(const AuxRing& ring, RingHistory* history) {
  if (ring.blind.to > ring.blind.from)
    history->losses.push_back({ring.blind, GapReason::kBlind, 0, AmountUnit::kUnknown, {}});
}

// What no record tells of was written at some time: nothing is claimed of it.
RingHistory HistoryOf(const AuxRing& ring) {
  RingHistory history;
  history.ring = NameOf(ring);
  history.capacity_bytes = ring.capacity_bytes;
  history.head = ring.head;
  history.recorded_until = ring.taken;
  history.always_on = false;
  const uint64_t begin = ring.head - std::min<uint64_t>(ring.head, ring.bytes.size());
  for (const AuxSpan& span : ring.spans)
    history.held.push_back({span.time, span.begin_offset, span.end_offset, span.task});
  if (ring.spans.empty() && !ring.bytes.empty())
    history.held.push_back({{ring.taken, ring.taken}, begin, ring.head, {}});
  AddLosses(ring, &history);
  AddBlindTime(ring, &history);
  return history;
}

// As a file has it.
PerfAuxRing FileRingOf(const AuxRing& ring, size_t number) {
  PerfAuxRing file;
  file.name = NameOf(ring);
  file.cpu = ring.cpu;
  const uint64_t held_from = ring.head - std::min<uint64_t>(ring.head, ring.bytes.size());
  file.pieces.push_back({number, held_from, ring.head, ring.taken});
  for (const AuxSpan& of : ring.spans) {
    PerfAuxSpan span;
    span.begin_offset = of.begin_offset;
    span.end_offset = of.end_offset;
    span.time = of.time;
    span.flags = of.flags;
    span.tid = static_cast<int>(of.task.value_or(-1));
    span.held_bytes = of.end_offset - std::clamp(held_from, of.begin_offset, of.end_offset);
    file.bytes_told += of.end_offset - of.begin_offset;
    file.spans.push_back(span);
  }
  return file;
}

// AUXTRACE_INFO, and what the kernel said.
TraceIds IdsOf(const CpuCapture& capture) {
  const PerfRecordParser parser(capture.events);
  TraceIds ids;
  std::string info;
  std::string_view records = capture.side_band;
  for (size_t bytes = 0; (bytes = PerfRecordBytes(records)) != 0; records.remove_prefix(bytes)) {
    const auto record = parser.Parse(records.substr(0, bytes));
    if (!record) break;
    if (record->type == kPerfAuxtraceInfo) info = record->body;
    ids.Add(*record);
  }
  ids.Finish(info);
  return ids;
}

// Who was traced when, as the tracer itself says.
WindowInput RunsOf(const std::vector<AuxRing>& rings) {
  WindowInput input;
  TimeNs known_since = 0;
  bool known = true;
  for (const AuxRing& ring : rings) {
    for (const AuxRun& run : ring.runs) input.runs.push_back({run.task, ring.cpu, run.time});
    known = known && ring.runs_known_since != 0;
    known_since = std::max(known_since, ring.runs_known_since);
  }
  if (known) input.runs_known_since = known_since;
  return input;
}

}  // namespace

void AddTraceRings(const CpuCapture& capture, WindowInput* input) {
  std::vector<PerfAuxRing> rings;
  std::set<int> came;
  TimeNs taken = 0;
  for (const AuxRing& ring : capture.aux) {
    if (!ring.runs.empty()) came.insert(ring.cpu);
    rings.push_back(FileRingOf(ring, rings.size()));
    taken = std::max(taken, ring.taken);
  }
  SharedSinks sinks([&](size_t trace, uint64_t begin,
                        uint64_t bytes) { return capture.aux[trace].bytes.substr(begin, bytes); },
                    kTraceRing);
  if (!rings.empty()) {
    const TraceIds ids = IdsOf(capture);
    sinks.Read(ids, came, ids.NamesOneSink(capture.events), &rings);
  }
  for (const AuxRing& ring : capture.aux) {
    if (!sinks.Has(ring.cpu)) input->rings.push_back(HistoryOf(ring));
  }
  if (!sinks.any()) return;
  WindowInput shared = RunsOf(capture.aux);
  sinks.AddTo(false, taken, &rings, &shared);
  // Which of its drains a carrier lost the record of concerns all.
  for (RingHistory& history : shared.rings) {
    for (const AuxRing& ring : capture.aux) {
      if (sinks.Has(ring.cpu)) AddLosses(ring, &history);
    }
    // All are stopped at once.
    AddBlindTime(capture.aux.front(), &history);
    history.sink = *history.sink + input->sinks.size();
    input->rings.push_back(std::move(history));
  }
  input->sinks.insert(input->sinks.end(), shared.sinks.begin(), shared.sinks.end());
}

}  // namespace hangscope
