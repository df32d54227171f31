// The clock, behind an interface so that tests move time themselves.
#ifndef HANGSCOPE_BASE_CLOCK_H
#define HANGSCOPE_BASE_CLOCK_H

#include <cstdint>

namespace hangscope {

// Nanoseconds. Monotonic times only ever grow and are what durations, stamps
// and verdicts use; wall times may jump and are only shown to people.
using TimeNs = int64_t;

constexpr TimeNs kMillisecond = 1'000'000;
constexpr TimeNs kSecond = 1'000'000'000;

constexpr double Seconds(TimeNs ns) { return static_cast<double>(ns) / 1e9; }

// Any thread may call.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimeNs Monotonic() = 0;
  virtual TimeNs Wall() = 0;  // since the Unix epoch
  virtual void Sleep(TimeNs time) = 0;
};

class SystemClock final : public Clock {
 public:
  TimeNs Monotonic() override;
  TimeNs Wall() override;
  void Sleep(TimeNs time) override;
};

// Of a processor, that the calling thread has had.
TimeNs ThreadCpuTime();

}  // namespace hangscope

#endif
