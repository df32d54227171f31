// What this machine lets this user record: the result of `hangscope doctor`.
#ifndef HANGSCOPE_MODEL_DOCTOR_H
#define HANGSCOPE_MODEL_DOCTOR_H

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace hangscope {

enum class CheckState {
  kWorks,
  kMissing,   // something that can be granted
  kOptional,  // likewise, and most do without
  kAbsent,    // the machine has none
};

constexpr std::string_view CheckStateName(CheckState state) {
  switch (state) {
    case CheckState::kWorks:
      return "works";
    case CheckState::kMissing:
      return "missing";
    case CheckState::kOptional:
      return "optional";
    case CheckState::kAbsent:
      return "absent";
  }
  return "unknown";
}

struct DoctorCheck {
  std::string name;  // for programs: "kernel-events"
  std::string what;  // for people: "run --cpu: switches, wake-ups, system calls"
  CheckState state = CheckState::kWorks;
  std::string why = {};                    // what was found; where it works, with what
  std::vector<std::string> commands = {};  // any of them grants it
};

struct DoctorReport {
  std::vector<DoctorCheck> checks;

  bool all_work() const {
    return std::none_of(checks.begin(), checks.end(), [](const DoctorCheck& check) {
      return check.state == CheckState::kMissing;
    });
  }
};

}  // namespace hangscope

#endif
