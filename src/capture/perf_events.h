// Which events perf_event_open is asked for: from the names that perf takes to their attributes.
#ifndef HANGSCOPE_CAPTURE_PERF_EVENTS_H
#define HANGSCOPE_CAPTURE_PERF_EVENTS_H

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

// An event to be opened. The attributes say what is recorded and not how: clock, rings and inheritance are
// the recorder's.
struct PerfEventSpec {
  PerfEvent event;
  std::string path = {};  // of a uprobe's binary: config1 is to point to it when it is opened
};

// One thread.
class PerfEventFinder {
 public:
  explicit PerfEventFinder(FileSystem& files, PerfSources sources = {});

  // The events that `name` means: several for "raw_syscalls:*". Fails where there is none such here, or it
  // cannot be read.
  Result<std::vector<PerfEventSpec>> Find(const std::string& name) const;

 private:
  Result<std::vector<PerfEventSpec>> Tracepoints(const std::string& system, const std::string& pattern) const;
  Result<PerfEventSpec> Tracepoint(const std::string& folder, const std::string& system, const std::string& name) const;
  Result<std::string> EventsFolder() const;

  FileSystem& files_;
  PerfSources sources_;
};

}  // namespace hangscope

#endif
