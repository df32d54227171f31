#include "proc/thread_motion.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hangscope {
namespace {

bool WantsToRun(const ProcFolder& proc, const std::string& folder) {
  const auto text = proc.Read(folder + "stat");
  const auto stat = text ? ParseTaskStat(*text) : std::nullopt;
  return stat && stat->state == ThreadState::kRunning;
}

}  // namespace

void ThreadMotion::Sample(TimeNs now, const std::vector<int>& processes) {
  std::map<int, std::string> run_time;
  std::map<int, TimeNs> still_since;
  for (const int process : processes) {
    for (const int thread : proc_.Threads(process)) {
      const std::string folder = fmt::format("{}/task/{}/", process, thread);
      auto text = proc_.Read(folder + "schedstat");
      if (!text)
        text = proc_.Read(folder + "stat");  // a kernel without statistics of its scheduler
      if (!text) continue;                   // it has ended since the list was read
      const auto before = run_time_.find(thread);
      const bool is_same = before != run_time_.end() && before->second == *text;
      still_since[thread] = is_same && !WantsToRun(proc_, folder) ? StillSince(thread) : now;
      run_time[thread] = std::move(*text);
    }
  }
  run_time_ = std::move(run_time);
  still_since_ = std::move(still_since);
  sampled_ = now;
}

void ThreadMotion::Interrupted(TimeNs now) {
  for (auto& [thread, since] : still_since_) since = std::min(now, since + (now - sampled_));
}

std::set<int> ThreadMotion::StillFor(TimeNs time) const {
  std::set<int> still;
  for (const auto& [thread, since] : still_since_) {
    if (sampled_ - since >= time) still.insert(thread);
  }
  return still;
}

TimeNs ThreadMotion::StillSince(int thread) const {
  const auto at = still_since_.find(thread);
  return at == still_since_.end() ? sampled_ : at->second;
}

}  // namespace hangscope
