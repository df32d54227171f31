// Which events perf_event_open is asked for: from the names that perf takes to their attributes.
#ifndef HANGSCOPE_CPU_PERF_EVENTS_H
#define HANGSCOPE_CPU_PERF_EVENTS_H

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "model/perf_event.h"

namespace hangscope {

// Where the kernel says what there is; tests have folders of their own.
struct PerfSources {
  std::string pmus = "/sys/bus/event_source/devices";
  // The first that is mounted counts.
  std::vector<std::string> tracefs = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
};

// An event to be opened. The attributes say what is recorded and not how: clock, rings and
// inheritance are the recorder's.
struct PerfEventSpec {
  PerfEvent event;
  std::string path = {};  // of a uprobe's binary: config1 is to point to it when it is opened
  bool tracer = false;    // hardware that writes into an AUX ring
};

// One thread.
class PerfEventFinder {
 public:
  explicit PerfEventFinder(FileSystem& files, PerfSources sources = {});

  // The events that `name` means, as perf takes names:
  //
  //   page-faults, cs, migrations:u             counted by the kernel; one record each
  //   sched:sched_stat_wait, raw_syscalls:*     tracepoints
  //   mem:0x7ffe1000/8:rw                       who reads, writes or executes there
  //   send@/usr/bin/server, send@...:return     a function of a program is entered, or left
  //                                             (uprobes); "probe:" may stand before it, "+0x1c"
  //                                             behind the function
  //   cs_etm/@tmc_etr0/u, intel_pt//            a PMU's (cpu/perf_pmu.h)
  //
  // Fails where there is none such here, or it cannot be read; the sentence says what to do.
  Result<std::vector<PerfEventSpec>> Find(const std::string& name) const;

 private:
  using Specs = Result<std::vector<PerfEventSpec>>;

  Specs Tracepoints(const std::string& system, const std::string& pattern) const;
  Result<PerfEventSpec> Tracepoint(const std::string& folder, const std::string& system,
                                   const std::string& name) const;
  Specs Uprobes(const std::string& name) const;
  Status NoSuch(const std::string& name) const;
  Result<std::string> EventsFolder() const;

  FileSystem& files_;
  PerfSources sources_;
};

}  // namespace hangscope

#endif
