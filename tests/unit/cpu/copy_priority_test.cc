#include "cpu/copy_priority.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace hangscope {
namespace {

constexpr const char* kMayNot =
    "real-time priority wants root, CAP_SYS_NICE or a limit for it (ulimit -r)";

// In a thread of its own: what it may not give back ends with it.
template <typename Test>
void InAThread(Test test) {
  std::thread(test).join();
}

TEST(CopyPriority, IsRealTimeForAsLongAsItLives) {
  InAThread([] {
    const sched_param least{sched_get_priority_min(SCHED_FIFO)};
    if (sched_setscheduler(0, SCHED_FIFO, &least) != 0) GTEST_SKIP() << kMayNot;
    const sched_param none{0};
    ASSERT_EQ(sched_setscheduler(0, SCHED_BATCH, &none), 0);
    {
      const CopyPriority priority;
      EXPECT_EQ(sched_getscheduler(0), SCHED_FIFO);
    }
    EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
  });
}

TEST(CopyPriority, LeavesAThreadAloneThatHasRealTimePriority) {
  InAThread([] {
    const sched_param own{sched_get_priority_min(SCHED_RR) + 1};
    if (sched_setscheduler(0, SCHED_RR, &own) != 0) GTEST_SKIP() << kMayNot;
    const CopyPriority priority;
    sched_param now{};
    sched_getparam(0, &now);
    EXPECT_EQ(sched_getscheduler(0), SCHED_RR);
    EXPECT_EQ(now.sched_priority, own.sched_priority);
  });
}

}  // namespace
}  // namespace hangscope
