// The priority of a thread that copies rings which overwrite themselves: as long as it waits for a
// CPU, what it wants to copy is lost.
#ifndef HANGSCOPE_CPU_COPY_PRIORITY_H
#define HANGSCOPE_CPU_COPY_PRIORITY_H

#include <sched.h>

namespace hangscope {

// As long as it lives, the thread that made it goes before all that have no real-time priority,
// where it may: as root, with CAP_SYS_NICE, or with a limit for it (ulimit -r). Else nothing
// changes.
class CopyPriority {
 public:
  CopyPriority();
  ~CopyPriority();
  // Whether it does not wait for a CPU that others have.
  bool goes_first() const { return raised_ || policy_ == SCHED_FIFO || policy_ == SCHED_RR; }
  CopyPriority(const CopyPriority&) = delete;
  CopyPriority& operator=(const CopyPriority&) = delete;

 private:
  int policy_ = SCHED_OTHER;  // before
  bool raised_ = false;
};

}  // namespace hangscope

#endif
