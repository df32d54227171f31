// `hangscope why`: one verdict on a target that hangs, or is dead, or is neither.
#ifndef HANGSCOPE_WHY_WHY_H
#define HANGSCOPE_WHY_WHY_H

#include <cstddef>
#include <string>

#include "base/clock.h"
#include "base/file_system.h"
#include "scope/scope_view.h"

namespace hangscope {

// Of a terminal: what a text for people keeps to.
constexpr size_t kScreenLines = 23;

struct WhyOptions {
  ScopeSource source;
  TimeNs stall = kSecond;  // how long what may be alive is looked at
  bool json = false;
};

struct WhyReport {
  std::string text;     // or JSON Lines
  bool is_bad = false;  // a hang or a fault
};

// Takes `stall` and a little more where the target may be alive; no time where it is not. Fails
// where it cannot be read.
Result<WhyReport> AskWhy(FileSystem& files, Clock& clock, const WhyOptions& options);

}  // namespace hangscope

#endif
