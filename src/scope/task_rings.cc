#include "scope/task_rings.h"

#include <algorithm>
#include <variant>

#include "hangscope/abi/kernel_events.h"

namespace hangscope {
namespace {

constexpr uint32_t kTaskDelay = HANGSCOPE_FIRST_KERNEL_ID + 5;  // parameters: ticks

}  // namespace

TaskRings::TaskRings(const ScopeReader& scope) : scope_(scope) {
  for (uint32_t core = 0; core < scope.layout().core_count; ++core)
    rings_.emplace_back(scope, core);
}

Result<TaskNews> TaskRings::Poll() {
  TaskNews news;
  for (EventReader& ring : rings_) {
    if (Status status = ring.Poll(false); !status.ok()) return status;
    while (auto item = ring.Next()) {
      if (const auto* event = std::get_if<ScopeEvent>(&*item))
        Take(*event, &news);
      else
        news.lost = true;
    }
  }
  // What a ring has lost may well have been switches.
  tells_switches_ = tells_switches_ || news.lost;
  news.tells_switches = tells_switches_;
  for (const auto& [task, sleep] : sleeps_) {
    if (longest_tick_ns_ > 0)
      news.sleeps[task] = static_cast<TimeNs>(longest_tick_ns_ * sleep.ticks);
  }
  return news;
}

// A sleep of n ticks takes n - 1 of them at least, so that what one tick takes is never too short
// here.
void TaskRings::Take(const ScopeEvent& event, TaskNews* news) {
  if (event.age != 0) return;  // of an earlier start
  const auto now_ns = scope_.layout().Nanoseconds(event.time);
  const bool dated = now_ns && !event.ambiguous;
  if (event.id == kTaskDelay && event.task) {
    if (dated) sleeps_[*event.task] = {*now_ns, event.parameters[0]};
    return;
  }
  if (event.id != HANGSCOPE_ID_TASK_SWITCH) return;
  tells_switches_ = true;
  const uint32_t task = event.parameters[1];
  news->switched_in.insert(task);
  const auto slept = sleeps_.find(task);
  if (slept == sleeps_.end()) return;
  const Sleep sleep = slept->second;
  sleeps_.erase(slept);
  if (!dated || sleep.ticks < 2 || *now_ns <= sleep.since_ns) return;
  const double tick = static_cast<double>(*now_ns - sleep.since_ns) / (sleep.ticks - 1);
  longest_tick_ns_ = std::max(longest_tick_ns_, tick);
}

}  // namespace hangscope
