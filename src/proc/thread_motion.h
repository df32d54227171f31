// Since when each thread of some processes stands still: read often, for next to nothing, without
// touching anybody. What a thread waits for is not known here; that is for ProcessInspector.
#ifndef HANGSCOPE_PROC_THREAD_MOTION_H
#define HANGSCOPE_PROC_THREAD_MOTION_H

#include <cstdint>
#include <map>
#include <optional>
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
  // From now on the system call of each sleeping thread is kept in mind: a thread that leaves it
  // only because another program attaches to it (a debugger, a tracer) or stops it, and is in the
  // same call again, at the same place and with the same arguments, has not moved. False: forgets
  // them.
  void KeepWaits(bool keep);
  bool keeps_waits() const { return keeps_waits_; }
  // Between the latest sample and the next one another program may attach to any of the threads.
  void NoteAttach() { may_attach_ = true; }
  // At the latest sample a thread was stopped, or had just been let go, and its wait is kept.
  bool IsDisturbed() const;
  // How often that was so, or a thread was found in its wait again.
  uint64_t disturbances() const { return disturbances_; }
  // Time passed in which nobody could run, or nobody looked: it counts for nobody's stillness.
  void Interrupted(TimeNs now);

  // Threads that have stood still for `time` or longer, as of the latest sample (StillTime).
  std::set<int> StillFor(TimeNs time) const;
  // For how long a thread has stood still by itself, at `now`: while another program held it, it
  // could not move. 0 of one that is not known.
  TimeNs StillTime(int thread, TimeNs now) const;
  // Since when a thread stands still, monotonic; as of the latest sample for one that runs or is
  // not known.
  TimeNs StillSince(int thread) const;
  TimeNs sampled() const { return sampled_; }  // when the latest sample began, monotonic
  // All that live.
  const std::map<int, TimeNs>& still_since() const { return still_since_; }

 private:
  enum class Hand { kNone, kHolds, kLetGo };  // of another program, on a thread
  struct Seen {
    int process = 0;
    std::string run_time;                // as the kernel says it
    std::optional<TaskSystemCall> wait;  // that is kept in mind
    Hand hand = Hand::kNone;
    TimeNs held = 0;  // since it stands still: between samples of which one was in another's hand
  };

  std::string Folder(int process, int thread) const;
  ThreadState StateOf(int process, int thread) const;
  std::optional<TaskSystemCall> ReadWait(int process, int thread) const;
  bool StandsStill(int thread, const Seen& before, Seen* now);

  const ProcFolder& proc_;
  TimeNs sampled_ = 0;
  std::map<int, Seen> seen_;  // by thread
  std::map<int, TimeNs> still_since_;
  bool keeps_waits_ = false;
  bool may_attach_ = false;
  uint64_t disturbances_ = 0;
};

}  // namespace hangscope

#endif
