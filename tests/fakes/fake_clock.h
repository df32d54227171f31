#ifndef HANGSCOPE_TESTS_FAKES_FAKE_CLOCK_H
#define HANGSCOPE_TESTS_FAKES_FAKE_CLOCK_H

#include "base/clock.h"

namespace hangscope {

// Time stands still until a test moves it.
class FakeClock final : public Clock {
 public:
  TimeNs Monotonic() override { return now_; }
  TimeNs Wall() override { return wall_offset_ + now_; }
  void Sleep(TimeNs time) override { now_ += time; }
  void Advance(TimeNs by) { now_ += by; }
  void JumpWall(TimeNs by) { wall_offset_ += by; }

 private:
  TimeNs now_ = 1000 * kSecond;
  TimeNs wall_offset_ = 1'700'000'000 * kSecond;
};

}  // namespace hangscope

#endif
