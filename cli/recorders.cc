#include "recorders.h"

#include "control/control_folder.h"
#include "options.h"

namespace hangscope::cli {
namespace {

constexpr TimeNs kPatience = 2 * kSecond;

}  // namespace

std::vector<LiveRecorder> FindLiveRecorders() {
  LiveRecorders recorders = FindRecorders(ControlFolder(), kPatience);
  if (!recorders.warning.empty()) PrintNote("warning: " + recorders.warning);
  return recorders.found;
}

std::vector<RecorderStatus> StatusesOf(const std::vector<LiveRecorder>& recorders) {
  std::vector<RecorderStatus> statuses;
  for (const LiveRecorder& recorder : recorders) statuses.push_back(recorder.status);
  return statuses;
}

}  // namespace hangscope::cli
