// What /proc says of one thread, and whether it has moved since.
#ifndef HANGSCOPE_PROC_THREAD_READER_H
#define HANGSCOPE_PROC_THREAD_READER_H

#include <map>
#include <optional>

#include "proc/proc_folder.h"

namespace hangscope {

struct RawThread {
  int pid = 0;
  int tid = 0;
  TaskStat stat;
  TaskStatus status;
  // nothing: it may not be looked at, or the kernel does not say
  std::optional<TaskSystemCall> call;
  int call_error = 0;              // why
  std::optional<TimeNs> last_ran;  // in the clock of the CPU `stat.cpu`
  TaskRunTime run_time;

  bool IsBlocked() const {
    return call && !call->running &&
           (stat.state == ThreadState::kSleeping || stat.state == ThreadState::kDiskSleep);
  }
};

// Nothing where there is no such thread any more.
std::optional<RawThread> ReadThread(const ProcFolder& proc, int pid, int tid);

// Whether a thread that was blocked has been so all the time since `before` was read.
bool StoodStill(const ProcFolder& proc, const RawThread& before);

// The scheduler stamps what runs with a clock of each CPU's own, which leaves out what other
// machines or interrupts took of it. This compares that with the monotonic one, by running on the
// CPU for an instant; what was left out since the stamp makes a wait look that much shorter, never
// longer.
class SchedulerClock {
 public:
  SchedulerClock(Clock& clock, const ProcFolder& proc) : clock_(clock), proc_(proc) {}
  // The calling thread has to be allowed to run on `cpu`; else nothing.
  std::optional<TimeNs> Monotonic(int cpu, TimeNs stamp);

 private:
  std::optional<TimeNs> Compare(int cpu);

  Clock& clock_;
  const ProcFolder& proc_;
  std::map<int, std::optional<TimeNs>> behind_;  // by CPU: what is to be added to its stamps
};

}  // namespace hangscope

#endif
