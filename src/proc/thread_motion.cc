#include "proc/thread_motion.h"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <utility>

namespace hangscope {
namespace {

// Of a processor, between two samples: to stop at a signal, be let go, and enter the same call.
constexpr TimeNs kMostForAnAttach = 20 * kMillisecond;

bool IsHeld(ThreadState state) {
  return state == ThreadState::kStopped || state == ThreadState::kTraced;
}

// After a stop the kernel may go on with a call as restart_syscall.
bool IsSameWait(const TaskSystemCall& before, const TaskSystemCall& now) {
  const bool is_restarted =
      before.number == SYS_restart_syscall || now.number == SYS_restart_syscall;
  return before.pc == now.pc && before.stack_pointer == now.stack_pointer &&
         before.arguments == now.arguments && (before.number == now.number || is_restarted);
}

bool RanLong(const std::string& before, const std::string& now) {
  const auto ran_before = ParseTaskRunTime(before);
  const auto ran = ParseTaskRunTime(now);
  return ran_before && ran && ran->ran - ran_before->ran > kMostForAnAttach;
}

}  // namespace

std::string ThreadMotion::Folder(int process, int thread) const {
  return fmt::format("{}/task/{}/", process, thread);
}

ThreadState ThreadMotion::StateOf(int process, int thread) const {
  const auto text = proc_.Read(Folder(process, thread) + "stat");
  const auto stat = text ? ParseTaskStat(*text) : std::nullopt;
  return stat ? stat->state : ThreadState::kUnknown;
}

std::optional<TaskSystemCall> ThreadMotion::ReadWait(int process, int thread) const {
  const auto text = proc_.Read(Folder(process, thread) + "syscall");
  const auto call = text ? ParseTaskSystemCall(*text) : std::nullopt;
  return call && !call->running && call->number >= 0 ? call : std::nullopt;
}

void ThreadMotion::KeepWaits(bool keep) {
  if (keep == keeps_waits_) return;
  keeps_waits_ = keep;
  for (auto& [thread, seen] : seen_) {
    const bool stands_still = StillSince(thread) < sampled_;
    seen.wait = keep && stands_still ? ReadWait(seen.process, thread) : std::nullopt;
    seen.hand = Hand::kNone;
  }
}

void ThreadMotion::Sample(TimeNs now, const std::vector<int>& processes) {
  std::map<int, Seen> all;
  std::map<int, TimeNs> still_since;
  for (const int process : processes) {
    for (const int thread : proc_.Threads(process)) {
      const std::string folder = Folder(process, thread);
      auto text = proc_.Read(folder + "schedstat");
      if (!text)
        text = proc_.Read(folder + "stat");  // a kernel without statistics of its scheduler
      if (!text) continue;                   // it has ended since the list was read
      Seen& seen = all[thread];
      seen.process = process;
      seen.run_time = std::move(*text);
      const auto before = seen_.find(thread);
      const uint64_t disturbances = disturbances_;
      const bool stands_still = before != seen_.end() && StandsStill(thread, before->second, &seen);
      still_since[thread] = stands_still ? StillSince(thread) : now;
      if (stands_still)
        seen.held = before->second.held + (disturbances_ != disturbances ? now - sampled_ : 0);
    }
  }
  seen_ = std::move(all);
  still_since_ = std::move(still_since);
  sampled_ = now;
  may_attach_ = false;
}

bool ThreadMotion::StandsStill(int thread, const Seen& before, Seen* now) {
  const bool has_run = before.run_time != now->run_time;
  if (has_run && !before.wait) return false;
  const ThreadState state = StateOf(now->process, thread);
  if (!before.wait) {
    if (state == ThreadState::kRunning) return false;
    if (!keeps_waits_) return true;
    now->wait = IsHeld(state) ? std::nullopt : ReadWait(now->process, thread);
    return !IsHeld(state);  // it may have run on
  }
  now->wait = before.wait;
  if (IsHeld(state)) {
    now->hand = Hand::kHolds;
    ++disturbances_;
    return true;
  }
  if (!has_run && state != ThreadState::kRunning) return true;
  const bool was_touched = may_attach_ || before.hand != Hand::kNone;
  bool keeps = was_touched && !RanLong(before.run_time, now->run_time);
  if (keeps && state == ThreadState::kRunning) {
    keeps = before.hand != Hand::kLetGo;
    now->hand = Hand::kLetGo;
  } else if (keeps) {
    const auto wait = ReadWait(now->process, thread);
    keeps = wait && IsSameWait(*before.wait, *wait);
  }
  if (keeps) {
    ++disturbances_;
  } else {
    now->wait.reset();
    now->hand = Hand::kNone;
  }
  return keeps;
}

bool ThreadMotion::IsDisturbed() const {
  return std::any_of(seen_.begin(), seen_.end(),
                     [](const auto& thread) { return thread.second.hand != Hand::kNone; });
}

void ThreadMotion::Interrupted(TimeNs now) {
  for (auto& [thread, since] : still_since_) since = std::min(now, since + (now - sampled_));
}

std::set<int> ThreadMotion::StillFor(TimeNs time) const {
  std::set<int> still;
  for (const auto& [thread, since] : still_since_) {
    if (StillTime(thread, sampled_) >= time) still.insert(thread);
  }
  return still;
}

TimeNs ThreadMotion::StillTime(int thread, TimeNs now) const {
  const auto seen = seen_.find(thread);
  return seen == seen_.end() ? 0 : now - StillSince(thread) - seen->second.held;
}

TimeNs ThreadMotion::StillSince(int thread) const {
  const auto at = still_since_.find(thread);
  return at == still_since_.end() ? sampled_ : at->second;
}

}  // namespace hangscope
