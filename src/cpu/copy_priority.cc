#include "cpu/copy_priority.h"

namespace hangscope {

// The least of them: what the machine itself needs in time goes before it.
CopyPriority::CopyPriority() : policy_(sched_getscheduler(0)) {
  const sched_param least{sched_get_priority_min(SCHED_FIFO)};
  const bool ordinary = policy_ == SCHED_OTHER || policy_ == SCHED_BATCH || policy_ == SCHED_IDLE;
  raised_ = ordinary && sched_setscheduler(0, SCHED_FIFO, &least) == 0;
}

CopyPriority::~CopyPriority() {
  const sched_param none{0};
  if (raised_) sched_setscheduler(0, policy_, &none);
}

}  // namespace hangscope
