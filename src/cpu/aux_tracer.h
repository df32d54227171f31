// Records what a hardware tracer (cs_etm, intel_pt, arm_spe) writes about a program: into an area
// of memory a CPU that overwrites itself, until a snapshot is taken.
//
// The area belongs to an event of the tracer's PMU on that CPU; of our own thread, so that it
// outlives the program's, and never switched on. The events of the program's threads write into it,
// with inheritance: the kernel switches the tracer with them. Where everybody is recorded, one
// event a CPU does both, as the kernel does not mix the two. Beside the area is a small ring with a
// record of each piece that was written: whose, when, and what was lost (PERF_RECORD_AUX); Tick
// empties it.
//
// Several CPUs' tracers may share a sink (perf/traces/shared_sinks.h): then the area of the one
// that stopped last has all of it. The records of switches beside the areas say who was traced
// when.
//
// A tracer is to be stopped before its area is read. A snapshot stops this one on all CPUs, and
// tells for how long; no other ring is paused.
#ifndef HANGSCOPE_CPU_AUX_TRACER_H
#define HANGSCOPE_CPU_AUX_TRACER_H

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/status.h"
#include "cpu/aux_ring.h"
#include "cpu/cpu_recorder.h"
#include "cpu/perf_events.h"
#include "cpu/perf_permission.h"
#include "cpu/tracer_info.h"
#include "cpu/tracer_port.h"

namespace hangscope {

struct AuxTracerOptions {
  std::string pmus = PerfSources().pmus;
  std::vector<int> cpus;  // that are online
  // of each CPU's area; a power of two of pages. Less where no more may be locked
  uint64_t trace_bytes = 4u << 20;
  bool whole_machine = false;
  std::string filter = {};    // which code is traced (cpu/address_filter.h); empty: all
  PerfPermission permission;  // of whoever opens it: for the sentences
};

// One thread.
class AuxTracer {
 public:
  // Opens the tracer on all CPUs that have it, and maps its areas; nothing is traced yet. `spec`: a
  // tracer's, as PerfEventFinder gives it. Fails with a sentence where nothing can be traced; what
  // is restricted goes to `warnings`. `files` is not used later; `port` and `clock` must outlive
  // it.
  static Result<std::unique_ptr<AuxTracer>> Open(FileSystem& files, TracerPort& port, Clock& clock,
                                                 const PerfEventSpec& spec,
                                                 const AuxTracerOptions& options,
                                                 std::vector<std::string>* warnings);

  // Traces a thread and all that it will make; -1, where the whole machine is recorded: everybody.
  // kNotFound: it has ended. Else it is not traced, and the sentence says why.
  Status Attach(pid_t tid);
  // Nobody is traced any more.
  void DetachAll();
  // A few times a second.
  void Tick();
  // Appends the areas and what tells of them to `capture`, whose other events are complete. Stops
  // the tracer meanwhile.
  void Take(CpuCapture* capture);

  const PerfEvent& event() const { return event_; }
  TracerKind kind() const { return kind_; }

 private:
  struct CpuTrace {
    int cpu = 0;
    std::unique_ptr<TracerEvent> owner;
    std::unique_ptr<AuxReader> reader;
    TimeNs since = 0;  // when the tracer began to write what the next record tells
    TimeNs drained = 0;
    std::deque<AuxRun> runs;  // the newest
    std::optional<AuxRun> running;
    TimeNs runs_known_since = 0;

    void Comes(int64_t task, TimeNs time);
    void Leaves(TimeNs time);
  };

  AuxTracer(TracerPort& port, Clock& clock, const AuxTracerOptions& options, TracerKind kind,
            TracerInfo info)
      : port_(port), clock_(clock), options_(options), kind_(kind), info_(std::move(info)) {}

  Status OpenCpus(const std::vector<int>& cpus, std::vector<std::string>* warnings);
  Status MapCpus(std::vector<std::string>* warnings);
  int Map(uint64_t trace_bytes);
  Status AttachAll();
  Status TakeFilter(FileSystem& files, const std::string& folder);
  Status WhyUnfiltered(int error) const;
  void Drain(CpuTrace* trace);
  void HandleRecord(std::string_view record, CpuTrace* trace);
  bool Switch(bool on);
  ReportedSwitches SwitchesIn(const CpuCapture& capture) const;
  void AppendRecords(const CpuTrace& trace, const std::vector<AuxSpan>& spans,
                     CpuCapture* capture) const;

  TracerPort& port_;
  Clock& clock_;
  const AuxTracerOptions options_;
  const TracerKind kind_;
  TracerInfo info_;
  PerfEvent event_;
  std::string filter_;  // as the kernel takes it; empty: none
  std::vector<CpuTrace> traces_;
  std::vector<std::unique_ptr<TracerEvent>> threads_;  // closed before the owners of their rings
  std::map<pid_t, pid_t> process_of_;                  // of threads that were traced
  // records to be passed on as they are; bounded
  std::string kept_;
  uint64_t kept_lost_ = 0;
  TimeNs stopped_ = 0;  // since when; 0: it is not
};

// StartCpuRecorder, with `sources` and `port` for the kernel's tracers; `port` must outlive it. For
// tests.
Result<std::unique_ptr<CpuRecorder>> StartTracingCpuRecorder(Clock& clock, pid_t pid,
                                                             const CpuRecorderOptions& options,
                                                             const PerfSources& sources,
                                                             TracerPort& port);

}  // namespace hangscope

#endif
