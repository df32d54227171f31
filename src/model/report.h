// What a report page shows of a hang: plain types between those who read recordings
// (report/read_report.h) and the JSON of the page (report/report_data.h). docs/report-data.md says
// what each field means.
#ifndef HANGSCOPE_MODEL_REPORT_H
#define HANGSCOPE_MODEL_REPORT_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "model/finding.h"
#include "model/number_table.h"
#include "model/trace.h"
#include "model/window.h"

namespace hangscope {

// Nanoseconds from the report's end, negative before it; nothing: not known.
using ReportTime = std::optional<TimeNs>;

struct ReportPlace {
  std::string function, source, module, pc, text;
};

struct ReportTrigger {
  ReportTime time;
  std::string text;
};

struct ReportGap {
  TimeSpan time;
  std::string why;
  std::string amount;  // "12 records"; empty: not known
};

// Columns: all of one length.
struct ReportSpans {
  std::vector<double> from, to;
  std::vector<uint8_t> state, depth;
  std::vector<uint32_t> text;
};

struct ReportEvents {
  std::vector<double> time;
  std::vector<uint32_t> kind, text;
  uint64_t omitted = 0;  // older ones
};

// A number that changes: columns, as above.
struct ReportCounter {
  std::string name;
  std::vector<double> time, value;  // this value from this time on
  uint64_t omitted = 0;             // older changes
};

// From who ends a wait, or should, to who waits. Columns, by `to_time`.
struct ReportFlows {
  std::vector<double> to_time, from_time;
  std::vector<uint32_t> to_track, from_track, text;
  uint64_t omitted = 0;  // older ones
};

struct ReportTrack {
  std::string kind;  // "core", "task", "cpu", "thread", "stream"
  std::string name;
  std::optional<size_t> parent;
  std::string state;  // empty: not known
  std::string what;
  ReportTime since;
  std::string place;
  bool first = false;
  std::vector<TimeSpan> covered, idle, stale;
  std::vector<ReportGap> gaps;
  ReportSpans spans;
  ReportEvents events;
  std::vector<ReportCounter> counters = {};
};

struct ReportEventKind {
  std::string name, category;
};

struct ReportWayStep : ReportPlace {
  std::vector<std::string> callers;  // the innermost first
};

struct ReportLoop {
  std::optional<size_t> track;
  std::string name;
  uint64_t rounds = 0;
  bool at_least = false;
  std::string basis;
  uint64_t interrupts = 0;
  std::optional<double> for_s;
  std::optional<uint64_t> since_cycle;  // of simulated time
  std::vector<ReportWayStep> way;       // how the core got there, the oldest first
  std::vector<ReportPlace> places;
};

struct ReportNode {
  size_t id = 0;
  std::string name, state, place, waits_for;
  ReportTime since;
  bool first = false;
  // what the system calls it: "thread 4711 worker"; empty: nothing else
  std::string also = {};
  std::optional<TraceWho> who = {};  // not in the page: which track is its
  int thread = 0;                    // likewise: which thread it is; 0: none, or not known
};

struct ReportEdge {
  size_t from = 0;
  size_t to = 0;
  std::string label;
  bool wakes = false;  // else: waits
};

struct ReportGraph {
  std::vector<ReportNode> nodes;
  std::vector<ReportEdge> edges;
  std::vector<size_t> cycle;  // of ids
};

struct ReportFinding : Finding {
  std::string kind;  // its name: a recording may have one that this hangscope does not know

  // A manifest keeps no more of a finding than kind, confidence, summary and lines. Confidence and
  // lines change from one look to the next; the summary names what the finding is about.
  bool IsSameAs(const ReportFinding& other) const { return summary == other.summary; }
};

struct ReportExcerpt {
  std::string file;
  uint32_t line = 0;
  uint32_t first = 0;  // number of lines[0]
  std::vector<std::string> lines;
};

struct ReportFault {
  std::string who, text, place;
  ReportTime time;
  std::optional<ReportExcerpt> source;
};

struct ReportThread {
  std::string id, name, state, wait;
  std::string process;      // "4711 make: make -j2"; may be empty
  bool in_finding = false;  // a finding is about it, or it would have to act
  ReportTime since;
  std::vector<ReportPlace> frames;
};

struct ReportStack {
  std::string who;
  uint32_t bytes = 0;
  std::optional<uint32_t> lowest, free;
};

struct ReportBus {
  std::string who, text;
  ReportTime time;
};

struct ReportKernel {
  std::string who, name, launch;
};

struct ReportDebugValue {
  uint32_t order = 0;
  std::string core;
  std::string value;
};

struct ReportDebugRing {
  std::string who;
  std::vector<ReportDebugValue> values;  // the newest first
};

struct ReportNumbers : NumberTable {
  std::string memory;  // of a device; empty: there is one only
};

struct ReportLine {
  uint64_t offset = 0;
  ReportTime time;
  std::string core;  // as the line says; resolved to a track by its name
  std::string text;
};

struct ReportStream {
  std::string name;
  uint64_t bytes = 0;
  std::vector<ReportLine> lines;
  std::vector<std::pair<size_t, std::string>> lost;  // in front of which line
};

struct ReportLastOutput {
  std::string stream;
  std::vector<std::string> lines;  // the oldest first
  bool unfinished = false;         // the last of them has no end
  std::optional<double> age_s;     // of the last of them, before the verdict
};

struct ReportStep {
  ReportTime time;
  std::string text, place;
};

struct ReportDivergentCore {
  std::string name, verdict, note;
  uint64_t matched = 0;
  std::vector<ReportStep> common, healthy, hung;
};

struct ReportDivergence {
  std::string healthy;  // name
  std::vector<ReportDivergentCore> cores;
};

struct ReportWindow {
  TimeSpan time;
  std::string policy, limited_by;
};

struct Report {
  std::string title, headline, state, confidence;
  bool hang = false;
  std::vector<std::string> evidence, doubts, lost, warnings;
  std::vector<std::string> notes;  // of how it is drawn; nothing is wrong
  std::vector<ReportLastOutput> last_output;
  bool counts_clock = false;
  std::optional<ReportWindow> window;
  std::optional<ReportTrigger> trigger;
  std::vector<std::pair<std::string, std::string>> run;
  std::vector<std::string> strings;
  std::vector<ReportTrack> tracks;
  ReportFlows flows;
  std::vector<ReportEventKind> kinds;
  std::vector<ReportLoop> loops;
  ReportGraph graph;
  std::vector<ReportFinding> findings;
  std::vector<ReportFault> faults;
  std::vector<ReportThread> threads;
  std::vector<ReportStack> stacks;
  std::vector<ReportBus> bus;
  std::vector<ReportKernel> kernels;
  std::vector<ReportDebugRing> debug;
  std::vector<ShownWord> words;
  bool words_are_of_findings = false;  // as they were when these were told; else as the rest is
  std::vector<ReportNumbers> numbers;
  std::vector<ReportStream> streams;
  std::optional<ReportDivergence> divergence;
};

}  // namespace hangscope

#endif
