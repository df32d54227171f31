#include "base/clock.h"

#include <ctime>

namespace hangscope {
namespace {

TimeNs Now(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

}  // namespace

TimeNs SystemClock::Monotonic() { return Now(CLOCK_MONOTONIC); }
TimeNs SystemClock::Wall() { return Now(CLOCK_REALTIME); }

TimeNs ThreadCpuTime() { return Now(CLOCK_THREAD_CPUTIME_ID); }

void SystemClock::Sleep(TimeNs time) {
  const timespec length = {time / kSecond, time % kSecond};
  nanosleep(&length, nullptr);
}

}  // namespace hangscope
