// What this machine lets this user record, and what would grant the rest: asked of the kernel where
// it can be tried, and explained from /proc and /sys.
#ifndef HANGSCOPE_TOOLS_DIAGNOSE_H
#define HANGSCOPE_TOOLS_DIAGNOSE_H

#include <linux/perf_event.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "model/doctor.h"

namespace hangscope {

// The machine as this process may see it; tests have one of their own.
class Machine {
 public:
  virtual ~Machine() = default;
  // A small file; nothing where it is absent or may not be read.
  virtual std::optional<std::string> Read(const std::string& path) = 0;
  virtual bool Exists(const std::string& path) = 0;
  // Opens the event and closes it again; an errno, 0: it works.
  virtual int TryEvent(const perf_event_attr& attr, pid_t pid, int cpu) = 0;
  virtual bool HasProgram(const std::string& name) = 0;
  // In hexadecimal; empty: it has none.
  virtual std::string LibcBuildId() = 0;
  virtual int cpus() = 0;
};

// This one.
Machine& RealMachine();

DoctorReport Diagnose(Machine& machine);

}  // namespace hangscope

#endif
