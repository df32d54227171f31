// The ends of threads and processes. Linux takes a task's events away when it ends, before it tells
// its parent and leaves the CPU for the last time, so that of each task SIGCHLD, its parent's
// wake-up and the last switch are missing. Two more events a CPU, of everybody, bring all but the
// wake-up back: filters of the kernel's let only tasks that are ending through. What they record of
// other programs is left out of files.
#ifndef HANGSCOPE_CPU_TASK_ENDS_H
#define HANGSCOPE_CPU_TASK_ENDS_H

#include <sys/types.h>

#include <string_view>
#include <vector>

#include "base/clock.h"
#include "model/perf_event.h"

namespace hangscope {

// The tracepoints whose last records are missing, and the filters for them.
struct FilteredEvent {
  const char* name;
  const char* filter;
};
constexpr FilteredEvent kEventsOfEnds[] = {
    // EXIT_DEAD and EXIT_ZOMBIE, as the tracepoint has them
    {"sched:sched_switch", "prev_state & 48"},
    // SIGCHLD with CLD_EXITED, CLD_KILLED or CLD_DUMPED
    {"signal:signal_generate", "sig == 17 && code >= 1 && code <= 3"},
};

// From its end on a task's own events record nothing.
struct TaskEnd {
  pid_t process = 0;
  pid_t thread = 0;
  TimeNs time = 0;
  int cpu = 0;
};

// Of the tasks that are recorded.
class TaskEnds {
 public:
  // Of side-band records.
  explicit TaskEnds(std::string_view side_band);

  // By thread, then by time: the kernel gives numbers anew.
  const std::vector<TaskEnd>& all() const { return ends_; }
  // The last end of `thread` up to `time`; null: it had none.
  const TaskEnd* Last(pid_t thread, TimeNs time) const;
  // The same, where `thread` may have left the CPU for the last time at `time`.
  const TaskEnd* Before(pid_t thread, TimeNs time) const;

 private:
  std::vector<TaskEnd> ends_;
};

// Whether the last records of tasks are missing from the rings that `events` write into.
bool MissesEnds(const std::vector<PerfEvent>& events);

// When a task leaves the CPU for the last time its numbers may be given away already, and samples
// say -1. Those of tasks in `ends` get theirs again.
void NameEndedTasks(const std::vector<PerfEvent>& events, const TaskEnds& ends, PerfRing* ring);

// Takes out what the events of ends recorded of other tasks. Then offsets in `ring` mean nothing
// any more.
void DropEndsOfOthers(const std::vector<PerfEvent>& events, const TaskEnds& ends, PerfRing* ring);

}  // namespace hangscope

#endif
