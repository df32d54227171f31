// How long a process could have gone on and was not let: it wanted a processor and was given none,
// or somebody had stopped it. What a guest does not do in that time says nothing about the guest.
#ifndef HANGSCOPE_PROC_HELD_UP_TIME_H
#define HANGSCOPE_PROC_HELD_UP_TIME_H

#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "proc/proc_folder.h"

namespace hangscope {

// One thread.
class HeldUpTime {
 public:
  HeldUpTime(ProcFolder proc, int process) : proc_(std::move(proc)), process_(process) {}

  // To be called a few times in the times that are asked for: reads /proc/PID/task/TID/schedstat of
  // each thread.
  void Sample(TimeNs now);
  TimeNs sampled() const { return sampled_; }  // 0: not yet
  // Of the time from `since` to the latest sample. What was not given from the sample before
  // `since` on counts, too: of the leader, and of the other thread that waited longest. Nothing:
  // not known, as of a process with very many threads.
  struct Given {
    TimeNs time = 0;  // for the same `since` it never falls
    TimeNs held_up = 0;
  };
  std::optional<Given> Since(TimeNs since) const;

 private:
  struct Step {
    TimeNs at = 0;
    TimeNs total = 0;
  };
  TimeNs HeldUp(int thread, TimeNs elapsed, const TaskRunTime& before,
                const TaskRunTime& now) const;

  ProcFolder proc_;
  int process_;
  TimeNs sampled_ = 0;
  bool is_known_ = false;
  std::map<int, TaskRunTime> threads_;
  std::deque<Step> steps_;  // where the total grew
};

}  // namespace hangscope

#endif
