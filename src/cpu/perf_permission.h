// Who may record what, and what a refusal of perf_event_open means: in a sentence that names the
// setting and the command that changes it.
#ifndef HANGSCOPE_CPU_PERF_PERMISSION_H
#define HANGSCOPE_CPU_PERF_PERMISSION_H

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/perf_event.h"

namespace hangscope {

struct PerfPermission {
  int paranoid = 2;         // kernel.perf_event_paranoid
  bool privileged = false;  // CAP_PERFMON or CAP_SYS_ADMIN: paranoid does not matter
  bool root = false;        // by its user, whatever capabilities that has here

  // Whether it may see what happens inside the kernel; else only the program's own side.
  bool kernel() const { return privileged || paranoid <= 1; }
  // Whether it may see the values of tracepoints.
  bool tracepoints() const { return privileged || paranoid < 0; }
};

// Of this process.
PerfPermission ReadPerfPermission();

// Why perf_event_open refused `event` with `error`, an errno value.
std::string WhyRefused(const PerfEvent& event, int error, const PerfPermission& permission);
// What the permission keeps from being recorded, and the commands that grant it.
std::string WhyForbidden(const PerfPermission& permission);

// Which events are not recorded, or less of them, by reason: a sentence for each reason and not for
// each event.
class Refusals {
 public:
  void Add(const std::string& event, const std::string& reason) {
    events_[reason].push_back(event);
  }
  // "'a', 'b' SEVERAL: REASON"; with a single event, ONE.
  std::vector<std::string> Sentences(std::string_view one, std::string_view several) const;

 private:
  std::map<std::string, std::vector<std::string>> events_;
};

}  // namespace hangscope

#endif
