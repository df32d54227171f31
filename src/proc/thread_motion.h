// Since when each thread of some processes stands still: read often, for next to nothing, without
// touching anybody. What a thread waits for is not known here; that is for ProcessInspector.
#ifndef HANGSCOPE_PROC_THREAD_MOTION_H
#define HANGSCOPE_PROC_THREAD_MOTION_H

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "proc/proc_folder.h"

namespace hangscope {

// One thread.
class ThreadMotion {
 public:
  explicit ThreadMotion(const ProcFolder& proc) : proc_(proc) {}

  // To be called a few times in the stall time. A thread has moved if the scheduler ran it, or
  // would have if it had had a processor, since the sample before: /proc/PID/task/TID/schedstat and
  // stat.
  void Sample(TimeNs now, const std::vector<int>& processes);
  // Time passed in which nobody could run, or nobody looked: it counts for nobody's stillness.
  void Interrupted(TimeNs now);

  // Threads that have stood still for `time` or longer, as of the latest sample.
  std::set<int> StillFor(TimeNs time) const;
  // Since when a thread stands still, monotonic; as of the latest sample for one that runs or is
  // not known.
  TimeNs StillSince(int thread) const;
  TimeNs sampled() const { return sampled_; }  // when the latest sample began, monotonic
  // All that live.
  const std::map<int, TimeNs>& still_since() const { return still_since_; }

 private:
  const ProcFolder& proc_;
  TimeNs sampled_ = 0;
  std::map<int, std::string> run_time_;  // by thread, as the kernel says it
  std::map<int, TimeNs> still_since_;
};

}  // namespace hangscope

#endif
