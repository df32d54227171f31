// The rings behind a perf.data: which spans of which ring the file has, and the input for a window
// over them.
#ifndef HANGSCOPE_PERF_PERF_RINGS_H
#define HANGSCOPE_PERF_PERF_RINGS_H

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "perf/perf_activity.h"
#include "perf/perf_file.h"
#include "perf/traces/shared_sinks.h"
#include "perf/traces/trace_ids.h"
#include "perf/traces/trace_rings.h"
#include "window/find_window.h"

namespace hangscope {

// Takes a file's records in their order.
class PerfRingsReader {
 public:
  // `tracer`: "cs_etm", names the rings. `file` must outlive it.
  PerfRingsReader(PerfFile& file, std::string tracer);
  void Add(const PerfRecord& record) {
    newest_ = std::max(newest_, record.time);
    // A sample tells nothing but the time, and may have a piece of a trace.
    if (record.type != PERF_RECORD_SAMPLE || record.aux_trace != PerfRecord::kNoTrace)
      AddOther(record);
  }
  // To be called once, after all records.
  // `until`: to when it was recorded, where that is known to be later than the newest record.
  void Finish(const PerfActivity& activity, TimeNs until);

  const std::vector<PerfAuxRing>& aux() const { return traces_.rings(); }
  // AUXTRACE_INFO to decode the ring of a CPU with, after Finish; -1: a thread's.
  std::string AuxTraceInfoFor(int cpu) const { return ids_.InfoFor(cpu); }
  // Over the rings of traces, if there are any, and over those of events where there is none, or
  // the file says how they were overwritten. docs/perf-data.md has the rules.
  const WindowInput& input() const { return input_; }

 private:
  void AddEventRings(const PerfActivity& activity);
  RingHistory EventHistoryOf(int number, const PerfCpuActivity& cpu,
                             const RecordedRing* told) const;
  bool IsWanted(int tid, const PerfActivity& activity) const;
  bool HasWholeTraces() const;
  void AddOther(const PerfRecord& record);
  void AddRuns(const PerfActivity& activity);

  PerfFile& file_;
  TraceRingsReader traces_;
  TraceIds ids_;
  SharedSinks sinks_;
  TimeNs newest_ = -1;
  bool overwrites_ = false;
  WindowInput input_;
};

}  // namespace hangscope

#endif
