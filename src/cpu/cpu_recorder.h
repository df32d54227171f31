// Records what the kernel does with a program, on every CPU, into overwrite rings; behind an
// interface so that sessions are tested without a kernel.
#ifndef HANGSCOPE_CPU_CPU_RECORDER_H
#define HANGSCOPE_CPU_CPU_RECORDER_H

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "model/perf_event.h"

namespace hangscope {

// What the rings of a CPU take of the memory that may be locked, where each is to hold `ring_bytes`
// of events.
uint64_t LockedBytesOfCpu(uint64_t ring_bytes);

struct CpuRecorderOptions {
  uint64_t ring_bytes = 4u << 20;  // a CPU; rounded up to a power of two of pages
  bool whole_machine = false;      // every process, not only the program's
  bool call_stacks = false;
  // besides the usual ones: "sched:sched_stat_wait", "page-faults", "probe:func@binary",
  // "cs_etm/@sink/"
  std::vector<std::string> events;
  std::string filter = {};  // of the hardware tracer among them (cpu/address_filter.h)
};

// All rings at one trigger.
struct CpuCapture {
  TimeNs time = 0;             // monotonic: when the first head was read
  TimeNs took = 0;             // until the last ring was copied
  bool whole_machine = false;  // of every process
  std::vector<PerfEvent> events;
  std::vector<PerfRing> rings;
  std::vector<AuxRing> aux;
  // Names, forks, exits and mappings since the beginning, as records, not in the order of time;
  // bounded, what does not fit is counted.
  std::string side_band;
  uint64_t side_band_lost = 0;
  // When the recording began, and how many of them are not in it.
  uint64_t threads_at_start = 0;
  uint64_t threads_not_recorded = 0;
};

// One thread.
class CpuRecorder {
 public:
  virtual ~CpuRecorder() = default;
  // To be called a few times a second: takes in new threads and the side band.
  virtual void Tick() = 0;
  // Reads all rings while they go on, but for those that would be overwritten before their turn
  // comes.
  virtual Result<CpuCapture> Take() = 0;
  // What could not be recorded and why, a sentence each with what to do; they do not change.
  virtual const std::vector<std::string>& warnings() const = 0;
};

// Records `pid`, its threads, the processes below it and all that they will fork; not this process,
// which may be one of them. `pid` is alive; it may not have called exec yet. docs/cpu-recording.md
// has the events. Fails only where nothing at all can be recorded.
Result<std::unique_ptr<CpuRecorder>> StartCpuRecorder(Clock& clock, pid_t pid,
                                                      const CpuRecorderOptions& options);

}  // namespace hangscope

#endif
