#include "proc/held_up_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>

namespace hangscope {
namespace {

constexpr size_t kMostThreads = 128;
constexpr size_t kMostSteps = 4096;

}  // namespace

void HeldUpTime::Sample(TimeNs now) {
  const std::vector<int> threads = proc_.Threads(process_);
  std::map<int, TaskRunTime> times;
  TimeNs leader = 0;
  TimeNs others = 0;
  if (threads.size() <= kMostThreads) {
    for (const int thread : threads) {
      const auto text = proc_.Read(fmt::format("{}/task/{}/schedstat", process_, thread));
      const auto time = text ? ParseTaskRunTime(*text) : std::nullopt;
      if (!time) continue;
      times[thread] = *time;
      const auto before = threads_.find(thread);
      if (before == threads_.end()) continue;
      TimeNs& most = thread == process_ ? leader : others;
      most = std::max(most, HeldUp(thread, now - sampled_, before->second, *time));
    }
  }
  // A guest's timers are the leader's work: while that waits, a hart that runs does not get on.
  const TimeNs held_up = std::min(leader + others, now - sampled_);
  is_known_ = !times.empty();
  threads_ = std::move(times);
  sampled_ = now;
  if (held_up == 0) return;
  steps_.push_back({now, (steps_.empty() ? 0 : steps_.back().total) + held_up});
  if (steps_.size() > kMostSteps) steps_.pop_front();
}

// The kernel adds what a thread waited for a processor once it has one.
TimeNs HeldUpTime::HeldUp(int thread, TimeNs elapsed, const TaskRunTime& before,
                          const TaskRunTime& now) const {
  if (now.wanted != before.wanted || now.ran != before.ran)
    return std::clamp<TimeNs>(now.wanted - before.wanted, 0, elapsed);
  const auto text = proc_.Read(fmt::format("{}/task/{}/stat", process_, thread));
  const auto stat = text ? ParseTaskStat(*text) : std::nullopt;
  const bool is_held =
      stat && (stat->state == ThreadState::kRunning || stat->state == ThreadState::kStopped ||
               stat->state == ThreadState::kTraced);
  return is_held ? elapsed : 0;
}

std::optional<HeldUpTime::Given> HeldUpTime::Since(TimeNs since) const {
  if (!is_known_) return std::nullopt;
  const auto after = std::upper_bound(steps_.begin(), steps_.end(), since,
                                      [](TimeNs time, const Step& step) { return time < step.at; });
  const TimeNs before = after == steps_.begin() ? 0 : std::prev(after)->total;
  const TimeNs held_up = steps_.empty() ? 0 : steps_.back().total - before;
  return Given{std::max<TimeNs>(sampled_ - since - held_up, 0), held_up};
}

}  // namespace hangscope
