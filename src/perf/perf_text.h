// A perf.data as people and programs read it: hangscope why perf.data.
#ifndef HANGSCOPE_PERF_PERF_TEXT_H
#define HANGSCOPE_PERF_PERF_TEXT_H

#include <string>
#include <vector>

#include "hwtrace/instruction_trace.h"
#include "model/picture.h"
#include "model/window.h"
#include "perf/perf_activity.h"
#include "perf/perf_analysis.h"
#include "perf/perf_file.h"
#include "perf/perf_rings.h"
#include "perf/traces/span_decoder.h"

namespace hangscope {

// What the decoder found in one span of a trace.
struct PerfSpanTrace {
  size_t ring = 0;  // of PerfScene::aux
  size_t span = 0;
  TraceSummary summary;
};

// One of the last branches.
struct PerfBranch {
  size_t ring = 0;
  TraceBranch branch;
  // "function+0x10 file.c:3"; empty: the flow was entered here, or nothing is known
  std::string from;
  std::string to;
  TimeBounds time;
  bool order_known = true;  // of all branches of other traces: which came first
};

// What a text about a file is made from. All of it outlives this.
struct PerfScene {
  std::string path;
  const PerfFile* file = nullptr;
  const PerfActivity* activity = nullptr;
  const PerfAnalysis* analysis = nullptr;
  const std::vector<PerfAuxRing>* aux = nullptr;
  const Window* window = nullptr;
  bool to_trigger = false;  // that is known; else the window ends with the newest record
  const std::vector<PerfSpanTrace>* traces = nullptr;
  std::string trace_trouble;                          // why there are none; empty: nothing
  const std::vector<PerfBranch>* branches = nullptr;  // the oldest first
};

// Verdict, window, what is missing, spans of traces, who did what last, damage: on one screen of
// `lines`, more only where branches were asked for.
std::string PerfText(const PerfScene& scene, size_t lines);
// What the verdict rests on, all of it, as JSON Lines (docs/json.md).
std::string PerfJson(const PerfScene& scene, TimeNs wall);

// What these rings say to the judge of all sources.
Sightings ToldSightings(const PerfScene& scene);

// "truncated, partial"; empty: none.
std::string PerfAuxFlagsText(uint64_t flags);
// "CPU 7 cs_etm", "thread 311 intel_pt".
std::string PerfRingText(const RingName& ring);
// What a thread is in: "futex(0x7f01, 0x80, ...)"; empty: in no system call, as far as anything
// tells.
std::string PerfCallText(const PerfThreadActivity& thread, const PerfScene& scene);
std::string_view PerfThreadStateName(PerfThreadState state);

}  // namespace hangscope

#endif
