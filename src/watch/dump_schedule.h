// When hangscope watch writes a dump into its log: at the beginning, after findings, as often as it
// was asked for, and at the end. The longer dumps take, the more seldom they come. One thread.
#ifndef HANGSCOPE_WATCH_DUMP_SCHEDULE_H
#define HANGSCOPE_WATCH_DUMP_SCHEDULE_H

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "base/units.h"

namespace hangscope {

class DumpSchedule {
 public:
  // `every`: 0: only for a reason.
  explicit DumpSchedule(TimeNs every) : every_(every) {}

  void NoteFinding() { found_ = true; }
  // Why a dump is due now, after so many polls; empty: none is.
  std::string WhyNow(TimeNs now, uint64_t polls) const {
    if (polls_ == 0) return "at the beginning";
    if (polls_ == polls) return "";
    if (found_ && now >= next_of_finding_) return "after a finding";
    return every_ > 0 && now >= next_ ? "every " + FormatElapsed(every_) : "";
  }
  // One was written after so many polls, at least one.
  void Wrote(TimeNs begin, TimeNs end, uint64_t polls) {
    const TimeNs rest = kShare * (end - begin);
    if (polls_ != 0 && found_) next_of_finding_ = end + std::max(kBetweenFindings, rest);
    next_ = end + std::max(every_, rest);
    found_ = false;
    polls_ = polls;
  }
  bool HasWrittenAfter(uint64_t polls) const { return polls_ == polls; }

 private:
  static constexpr TimeNs kBetweenFindings = 10 * kSecond;
  static constexpr TimeNs kShare = 100;  // dumps take 1 % of the time at most

  const TimeNs every_;
  bool found_ = false;  // since the latest
  uint64_t polls_ = 0;  // at the latest; 0: there was none
  TimeNs next_ = 0;
  TimeNs next_of_finding_ = 0;
};

}  // namespace hangscope

#endif
