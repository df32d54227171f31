#include "stats/event_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "hangscope/abi/kernel_events.h"
#include "hangscope/abi/scope.h"

namespace hangscope {
namespace {

enum KernelEventId : uint32_t {
  kBeforeKernelEvents = HANGSCOPE_FIRST_KERNEL_ID - 1,
#define HANGSCOPE_KERNEL_EVENT_ID(name, ...) kId_##name,
  HANGSCOPE_KERNEL_EVENTS(HANGSCOPE_KERNEL_EVENT_ID)
#undef HANGSCOPE_KERNEL_EVENT_ID
};
static_assert(kId_task_switch == HANGSCOPE_ID_TASK_SWITCH);

constexpr uint32_t kFirstUserId = 64;  // abi/kernel_events.h

bool IsTask(uint32_t number) { return number != 0 && number != HANGSCOPE_NO_TASK; }

void Measure(Lengths* lengths, const Lengths::One& one) {
  ++lengths->measured;
  if (!lengths->longest || one.length > lengths->longest->length) lengths->longest = one;
}

// `one`: it lasted at least so long.
void Cut(Lengths* lengths, const std::optional<Lengths::One>& one) {
  ++lengths->cut;
  if (one && (!lengths->longest_cut || one->length > lengths->longest_cut->length))
    lengths->longest_cut = one;
}

class StatsMaker {
 public:
  explicit StatsMaker(const EventStatsInput& input) : input_(input) {
    for (const ScopeCore& core : input.cores) {
      Core& mine = cores_[core.index];
      mine.numbers.core = core.index;
      mine.numbers.name = core.name;
      mine.numbers.classes = core.classes;
    }
  }

  EventStats Make() {
    Prepare();
    for (const EventOrLoss& item : input_.items) {
      if (const auto* loss = std::get_if<EventLoss>(&item))
        See(*loss);
      else
        See(std::get<ScopeEvent>(item));
    }
    Finish();
    return std::move(stats_);
  }

 private:
  struct OpenInterrupt {
    uint32_t number = 0;
    uint64_t at = 0;
    bool doubtful = false;
    std::optional<uint32_t> task;
  };
  struct Core {
    CoreNumbers numbers;
    bool any = false;              // an event was seen
    bool lost = false;             // since the last one
    bool doubtful = false;         // the last one's time
    uint64_t whole_since = 0;      // nothing is missing since
    std::optional<uint32_t> runs;  // after the last event; 0: nobody
    std::vector<OpenInterrupt> interrupts;
  };
  enum class WaitKind { kNone, kSemaphore, kMutex, kDelay };
  struct Woken {
    uint64_t at = 0;
    bool doubtful = false;
    uint32_t core = 0;
  };
  struct Task {
    uint32_t number = 0;
    std::optional<uint32_t> priority;
    uint64_t ran = 0, switches = 0, wakes = 0;
    std::vector<Lengths::One> latencies;
    WaitKind wait = WaitKind::kNone;
    bool left = false;  // it was switched away since it began to wait
    uint32_t object = 0;
    uint64_t since = 0;
    std::optional<uint32_t> holder;
    std::map<uint32_t, Lengths::One> inverted;  // in this wait, by who ran
    bool suspended = false;
    std::optional<Woken> woken;
    bool said_something = false;  // an event of its own, but for interrupts
  };
  struct Hold {
    uint32_t task = 0;
    uint64_t at = 0;
    uint32_t core = 0;
    bool doubtful = false;
    bool again = false;  // locked more than once: where the first lock ends is not known
  };
  struct HandedOver {
    uint64_t at = 0;
    bool doubtful = false;
    std::set<uint32_t> to;  // one of them
  };

  Task& TaskOf(uint32_t number) {
    Task& task = tasks_[number];
    task.number = number;
    return task;
  }

  // What happened where records are missing is not known, nor on which core it mattered.
  bool Follows() const { return follows_ && blind_.empty(); }

  void Prepare() {
    std::set<uint32_t> with_events;
    std::set<uint32_t> seen;
    for (const EventOrLoss& item : input_.items) {
      if (const auto* loss = std::get_if<EventLoss>(&item)) {
        // From its ring's begin on: events of other cores come first in the order of time.
        if (loss->age == 0 && seen.insert(loss->core).second) blind_.insert(loss->core);
        continue;
      }
      const ScopeEvent& event = std::get<ScopeEvent>(item);
      if (event.age != 0) continue;
      with_events.insert(event.core);
      seen.insert(event.core);
    }
    // A ring of which nothing is left may miss anything, and for ever.
    follows_ = input_.clocks_compare || with_events.size() <= 1;
    stats_.clocks_are_apart = !follows_;
  }

  void See(const EventLoss& loss) {
    if (loss.age != 0) return;
    Core& core = cores_[loss.core];
    (core.any ? core.numbers.lost : core.numbers.overwritten) += loss.end - loss.begin;
    core.lost = true;
    core.runs.reset();
    for (const OpenInterrupt& open : core.interrupts) CutInterrupt(core, open);
    core.interrupts.clear();
    Forget();
    blind_.insert(loss.core);
  }

  void See(const ScopeEvent& event) {
    if (event.age != 0) {
      ++stats_.earlier;
      return;
    }
    // Where a core was and what it waited for says nothing of tasks.
    if (event.id >= HANGSCOPE_FIRST_HISTORY_ID && event.id < HANGSCOPE_FIRST_KERNEL_ID) return;
    if (event.ambiguous) ++stats_.doubtful;
    Core& core = cores_[event.core];
    PassTime(&core, event);
    now_ = std::max(now_, event.time);
    if (blind_.erase(event.core) > 0) whole_since_ = event.time;
    if (!any_) whole_since_ = event.time;
    any_ = true;
    if (event.id >= HANGSCOPE_FIRST_KERNEL_ID && event.id <= kId_exception)
      Act(&core, event);
    else if (event.id >= kFirstUserId)
      SaySomething(core, event);
    core.runs = event.id == kId_task_switch ? std::optional(event.parameters[1]) : event.task;
    core.doubtful = event.ambiguous;
    core.lost = false;
    core.any = true;
    core.numbers.to = std::max(core.numbers.to, event.time);
  }

  // The time between two records of a core is known to be a task's where both say so.
  void PassTime(Core* core, const ScopeEvent& event) {
    if (!core->any) {
      core->numbers.from = core->whole_since = event.time;
      return;
    }
    if (core->lost) core->whole_since = event.time;
    const uint64_t before = core->numbers.to;
    if (event.time <= before) return;
    const uint64_t length = event.time - before;
    const bool known = !core->doubtful && !event.ambiguous && core->runs && event.task &&
                       *core->runs == *event.task;
    if (!known) {
      core->numbers.unknown += length;
      return;
    }
    if (!IsTask(*core->runs)) {
      core->numbers.nobody += length;
      return;
    }
    TaskOf(*core->runs).ran += length;
    ran_on_[core->numbers.core][*core->runs] += length;
    AddInversions(core->numbers.core, *core->runs, before, event.time);
  }

  void Act(Core* core, const ScopeEvent& event) {
    const uint32_t first = event.parameters[0], second = event.parameters[1];
    const uint32_t parameters = event.parameter_count;
    switch (event.id) {
      case kId_task_create:
        TaskOf(first).priority = second;
        return;
      case kId_task_switch:
        return Switch(*core, event);
      case kId_isr_enter:
        core->interrupts.push_back({first, event.time, event.ambiguous, event.task});
        return;
      case kId_isr_exit:
        return LeaveInterrupt(core, event);
      case kId_exception:
        return;
    }
    SaySomething(*core, event);
    if (!Follows()) return;
    switch (event.id) {
      case kId_task_destroy:
        EndWait(&TaskOf(first));
        TaskOf(first).suspended = false;
        TaskOf(first).woken.reset();
        return;
      case kId_task_suspend:
        TaskOf(first).suspended = true;
        active_.insert(first);
        TaskOf(first).woken.reset();
        return;
      case kId_task_resume:
        return Resume(first, event);
      case kId_task_delay:
        return BeginWait(event, WaitKind::kDelay);
      case kId_semaphore_wait:
        if (parameters > 1 && static_cast<int32_t>(second) < 0)
          BeginWait(event, WaitKind::kSemaphore);
        return;
      case kId_semaphore_post:
        return Post(event);
      case kId_mutex_lock:
        if (parameters > 1) Lock(event);
        return;
      case kId_mutex_unlock:
        return Unlock(event);
      default:
        return;
    }
  }

  // A task that goes on after it said that it waits did not wait.
  void SaySomething(const Core& core, const ScopeEvent& event) {
    if (!event.task || !IsTask(*event.task) || !core.interrupts.empty()) return;
    Task& task = TaskOf(*event.task);
    task.said_something = true;
    if (task.wait != WaitKind::kNone && !task.left) EndWait(&task);
  }

  // Interrupts.

  void CutInterrupt(const Core& core, const OpenInterrupt& open) {
    std::optional<Lengths::One> least;
    if (!open.doubtful && !core.doubtful && core.numbers.to >= open.at)
      least = {core.numbers.to - open.at, open.at, core.numbers.core, open.task};
    Cut(&interrupts_[open.number], least);
  }

  void LeaveInterrupt(Core* core, const ScopeEvent& event) {
    const uint32_t number = event.parameters[0];
    auto& open = core->interrupts;
    const auto match = std::find_if(open.rbegin(), open.rend(), [&](const OpenInterrupt& each) {
      return each.number == number;
    });
    if (match == open.rend()) {  // it began before the records do
      const bool known = !event.ambiguous && event.time >= core->whole_since;
      Cut(&interrupts_[number],
          known ? std::optional(Lengths::One{event.time - core->whole_since, core->whole_since,
                                             event.core, std::nullopt})
                : std::nullopt);
      return;
    }
    while (open.back().number != number) {  // its exit is not there
      Cut(&interrupts_[open.back().number], std::nullopt);
      open.pop_back();
    }
    const OpenInterrupt mine = open.back();
    open.pop_back();
    if (mine.doubtful || event.ambiguous || event.time < mine.at)
      Cut(&interrupts_[number], std::nullopt);
    else
      Measure(&interrupts_[number], {event.time - mine.at, mine.at, event.core, mine.task});
  }

  // Waits and wake-ups.

  void BeginWait(const ScopeEvent& event, WaitKind kind) {
    if (!event.task || !IsTask(*event.task)) return;
    Task& task = TaskOf(*event.task);
    EndWait(&task);
    task.wait = kind;
    task.left = false;
    task.object = event.parameters[0];
    task.since = event.time;
    task.holder.reset();
    active_.insert(task.number);
  }

  void EndWait(Task* task) {
    for (const auto& [runner, one] : task->inverted) {
      Inversion& sum = inversions_[{task->object, task->number, *task->holder, runner}];
      ++sum.waits;
      sum.total += one.length;
      if (one.length > sum.longest.length) sum.longest = one;
    }
    task->inverted.clear();
    task->wait = WaitKind::kNone;
  }

  bool Runs(uint32_t task) const {
    return std::any_of(cores_.begin(), cores_.end(),
                       [&](const auto& core) { return core.second.runs == task; });
  }

  void Wake(uint32_t number, const ScopeEvent& event) {
    Task& task = TaskOf(number);
    EndWait(&task);
    if (task.suspended || Runs(number) || task.woken) return;
    task.woken = {event.time, event.ambiguous, event.core};
    active_.insert(number);
  }

  void Resume(uint32_t number, const ScopeEvent& event) {
    if (!IsTask(number)) return;
    Task& task = TaskOf(number);
    task.suspended = false;
    if (task.wait == WaitKind::kNone) Wake(number, event);
  }

  std::vector<uint32_t> WaitersFor(WaitKind kind, uint32_t object) const {
    std::vector<uint32_t> waiters;
    for (const uint32_t number : active_) {
      const Task& task = tasks_.at(number);
      if (task.wait == kind && task.object == object) waiters.push_back(number);
    }
    return waiters;
  }

  // Which of several waiters is woken is not recorded: then none of them has a known moment, until
  // all that were woken so have run.
  void WakeOneOf(const std::vector<uint32_t>& waiters, WaitKind kind, const ScopeEvent& event) {
    if (waiters.empty()) return;
    uint64_t& unknown = unknown_wakes_[{kind, event.parameters[0]}];
    if (waiters.size() == 1 && unknown == 0)
      Wake(waiters[0], event);
    else
      unknown = std::min<uint64_t>(unknown + 1, waiters.size());
  }

  void Post(const ScopeEvent& event) {
    const std::vector<uint32_t> waiters = WaitersFor(WaitKind::kSemaphore, event.parameters[0]);
    const bool had_waiters =
        event.parameter_count < 2 || static_cast<int32_t>(event.parameters[1]) <= 0;
    if (had_waiters) return WakeOneOf(waiters, WaitKind::kSemaphore, event);
    // It says that none waits any more: they gave up.
    for (const uint32_t waiter : waiters) EndWait(&TaskOf(waiter));
  }

  void Switch(const Core& core, const ScopeEvent& event) {
    const uint32_t previous = event.parameters[0], next = event.parameters[1];
    switches_to_nobody_ |= next == 0 || next == HANGSCOPE_NO_TASK;
    switching_cores_.insert(event.core);
    if (IsTask(previous)) TaskOf(previous).left = true;
    if (!IsTask(next)) return;
    Task& task = TaskOf(next);
    ++task.switches;
    if (core.lost || !Follows()) return;
    const bool slept = task.woken || task.suspended || (task.wait != WaitKind::kNone && task.left);
    if (task.wait != WaitKind::kNone) {
      uint64_t& unknown = unknown_wakes_[{task.wait, task.object}];
      unknown -= std::min<uint64_t>(unknown, 1);
    }
    EndWait(&task);
    task.suspended = false;
    if (slept) ++task.wakes;
    active_.erase(next);
    const std::optional<Woken> woken = std::exchange(task.woken, std::nullopt);
    if (woken && !woken->doubtful && !event.ambiguous && event.time >= woken->at)
      task.latencies.push_back({event.time - woken->at, woken->at, woken->core, next});
  }

  // Mutexes.

  void Lock(const ScopeEvent& event) {
    const uint32_t mutex = event.parameters[0], holder = event.parameters[1];
    if (!event.task || !IsTask(*event.task)) return ForgetHold(mutex);
    const auto hold = holds_.find(mutex);
    if (hold != holds_.end() && hold->second.task != holder) ForgetHold(mutex);
    if (*event.task != holder) {
      if (!IsTask(holder)) return;
      ++stats_.contended;
      BeginWait(event, WaitKind::kMutex);
      TaskOf(*event.task).holder = holder;
      if (!PriorityOf(*event.task) || !PriorityOf(holder)) ++stats_.not_judged;
      return;
    }
    handed_over_.erase(mutex);
    for (const uint32_t waiter : WaitersFor(WaitKind::kMutex, mutex))
      SetHolder(&TaskOf(waiter), holder);
    const auto [at, is_new] =
        holds_.try_emplace(mutex, Hold{holder, event.time, event.core, event.ambiguous, false});
    if (!is_new) at->second.again = true;
  }

  void Unlock(const ScopeEvent& event) {
    const uint32_t mutex = event.parameters[0];
    EndHold(event);
    const std::vector<uint32_t> waiters = WaitersFor(WaitKind::kMutex, mutex);
    if (!waiters.empty())
      handed_over_[mutex] = {event.time, event.ambiguous, {waiters.begin(), waiters.end()}};
    for (const uint32_t waiter : waiters) SetHolder(&TaskOf(waiter), std::nullopt);
    WakeOneOf(waiters, WaitKind::kMutex, event);
  }

  void EndHold(const ScopeEvent& event) {
    const uint32_t mutex = event.parameters[0];
    Lengths& held = mutexes_[mutex];
    const auto given = handed_over_.find(mutex);
    auto hold = holds_.find(mutex);
    // It was the waiter's when the one before let go of it: no record says more.
    if (hold == holds_.end() && given != handed_over_.end() && event.task &&
        given->second.to.contains(*event.task))
      hold = holds_
                 .emplace(mutex, Hold{*event.task, given->second.at, event.core,
                                      given->second.doubtful, false})
                 .first;
    handed_over_.erase(mutex);
    if (hold == holds_.end()) {
      const bool known = !event.ambiguous && event.time >= whole_since_;
      return Cut(&held, known ? std::optional(Lengths::One{event.time - whole_since_, whole_since_,
                                                           event.core, event.task})
                              : std::nullopt);
    }
    const Hold mine = hold->second;
    holds_.erase(hold);
    const bool same = event.task == mine.task;
    if (!same || mine.doubtful || event.ambiguous || mine.again || event.time < mine.at)
      return Cut(&held, std::nullopt);
    Measure(&held, {event.time - mine.at, mine.at, mine.core, mine.task});
  }

  // What ended it is not there.
  void ForgetHold(uint32_t mutex) {
    handed_over_.erase(mutex);
    if (holds_.erase(mutex) > 0) Cut(&mutexes_[mutex], std::nullopt);
  }

  // Priority inversion.

  void SetHolder(Task* task, std::optional<uint32_t> holder) {
    if (task->holder == holder) return;
    const WaitKind kind = task->wait;  // the wait goes on
    EndWait(task);
    task->wait = kind;
    task->holder = holder;
  }

  std::optional<uint32_t> PriorityOf(uint32_t number) const {
    const auto task = tasks_.find(number);
    return task == tasks_.end() ? std::nullopt : task->second.priority;
  }

  void AddInversions(uint32_t core, uint32_t runner, uint64_t from, uint64_t to) {
    if (!Follows()) return;
    const auto runs = PriorityOf(runner);
    if (!runs) return;
    for (const uint32_t number : active_) {
      Task& task = tasks_.at(number);
      if (task.wait != WaitKind::kMutex || !task.left || !task.holder || number == runner ||
          *task.holder == runner)
        continue;
      const auto holder = PriorityOf(*task.holder);
      if (!holder || !task.priority || !(*holder < *runs && *runs < *task.priority)) continue;
      // On another core the holder may go on all the same.
      const bool may_run = std::any_of(cores_.begin(), cores_.end(), [&](const auto& other) {
        return other.first != core && other.second.any &&
               (!other.second.runs || *other.second.runs == *task.holder);
      });
      if (may_run) continue;
      const uint64_t begin = std::max(from, task.since);
      if (begin >= to) continue;
      Lengths::One& one = task.inverted[runner];
      if (one.length == 0) one = {0, begin, core, number};
      one.length += to - begin;
    }
  }

  // Something is missing: what it would have said of waits and mutexes may be anything.
  void Forget() {
    for (const uint32_t number : active_) {
      Task& task = tasks_.at(number);
      EndWait(&task);
      task.suspended = false;
      task.woken.reset();
    }
    active_.clear();
    CutHolds();
    handed_over_.clear();
    unknown_wakes_.clear();
  }

  void CutHolds() {
    for (const auto& [mutex, hold] : holds_) {
      std::optional<Lengths::One> least;
      if (!hold.doubtful && now_ >= hold.at)
        least = {now_ - hold.at, hold.at, hold.core, hold.task};
      Cut(&mutexes_[mutex], least);
    }
    holds_.clear();
  }

  void FindIdle() {
    IdleTasks& idle = stats_.idle;
    std::vector<std::pair<uint32_t, const Task*>> ran;
    bool all_known = true;
    for (const auto& [number, task] : tasks_) {
      if (task.ran == 0 && task.switches == 0) continue;
      ran.emplace_back(number, &task);
      all_known &= task.priority.has_value();
      std::string name = input_.name_of ? input_.name_of(number) : "";
      for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      if (name.starts_with("idle")) idle.tasks.push_back(number);
    }
    if (!idle.tasks.empty()) {
      idle.why = "by name";
    } else if (switches_to_nobody_) {
      idle.nobody = true;
      idle.why = "the kernel switches to no task";
    } else if (ran.empty()) {
      idle.why = "no switch is in the rings";
    } else if (switching_cores_.size() > 1) {
      idle.why = "no task is called idle, and several cores switch tasks";
    } else if (!all_known || ran.size() < 2) {
      idle.why = ran.size() < 2 ? "only one task ran"
                                : "no task is called idle, and the rings do not hold the "
                                  "task_create of each task that ran";
    } else {
      FindLeastUrgent(ran);
    }
  }

  void FindLeastUrgent(const std::vector<std::pair<uint32_t, const Task*>>& ran) {
    IdleTasks& idle = stats_.idle;
    const auto less = [](const auto& a, const auto& b) {
      return *a.second->priority < *b.second->priority;
    };
    const auto least = std::min_element(ran.begin(), ran.end(), less);
    const uint32_t priority = *least->second->priority;
    const auto equals = std::count_if(ran.begin(), ran.end(), [&](const auto& each) {
      return *each.second->priority == priority;
    });
    if (equals > 1) {
      idle.why = fmt::format("{} tasks have the lowest priority, {}", equals, priority);
    } else if (least->second->said_something) {
      idle.why = fmt::format("task {} has the lowest priority, {}, and records events of its own",
                             least->first, priority);
    } else {
      idle.tasks = {least->first};
      idle.why =
          fmt::format("it alone has the lowest priority, {}, and records nothing itself", priority);
    }
  }

  void Finish() {
    for (auto& [number, task] : tasks_) {
      if (task.woken && !task.woken->doubtful && now_ >= task.woken->at)
        not_run_[number] = {now_ - task.woken->at, task.woken->at, task.woken->core, number};
      EndWait(&task);
    }
    CutHolds();
    FindIdle();
    for (auto& [index, core] : cores_) {
      for (const OpenInterrupt& open : core.interrupts) CutInterrupt(core, open);
      if (!core.any) continue;
      if (stats_.idle.known()) core.numbers.idle = core.numbers.nobody;
      for (const uint32_t task : stats_.idle.tasks) core.numbers.idle += ran_on_[index][task];
      stats_.cores.push_back(core.numbers);
    }
    for (auto& [number, lengths] : interrupts_) stats_.interrupts.push_back({number, lengths});
    for (auto& [number, lengths] : mutexes_) {
      if (lengths.seen() > 0) stats_.mutexes.push_back({number, lengths});
    }
    for (auto& [key, sum] : inversions_) {
      std::tie(sum.mutex, sum.waiter, sum.holder, sum.runner) = key;
      stats_.inversions.push_back(sum);
    }
    for (auto& [number, task] : tasks_) AddTask(number, &task);
    std::stable_sort(stats_.tasks.begin(), stats_.tasks.end(),
                     [](const TaskNumbers& a, const TaskNumbers& b) { return a.ran > b.ran; });
  }

  void AddTask(uint32_t number, Task* task) {
    if (!IsTask(number)) return;
    const auto waits = not_run_.find(number);
    if (task->ran == 0 && task->switches == 0 && waits == not_run_.end()) return;
    TaskNumbers mine;
    mine.task = number;
    mine.priority = task->priority;
    mine.ran = task->ran;
    mine.switches = task->switches;
    mine.wakes = task->wakes;
    mine.measured = task->latencies.size();
    if (waits != not_run_.end()) mine.not_run = waits->second;
    if (!task->latencies.empty()) {
      auto& all = task->latencies;
      std::stable_sort(all.begin(), all.end(),
                       [](const auto& a, const auto& b) { return a.length < b.length; });
      mine.shortest = all.front().length;
      mine.median = all[(all.size() - 1) / 2].length;
      mine.longest = all.back();
    }
    stats_.tasks.push_back(mine);
  }

  const EventStatsInput& input_;
  EventStats stats_;
  std::map<uint32_t, Core> cores_;
  std::map<uint32_t, Task> tasks_;
  std::map<uint32_t, std::map<uint32_t, uint64_t>> ran_on_;  // by core and task
  std::map<uint32_t, Lengths::One> not_run_;
  std::map<uint32_t, Lengths> interrupts_, mutexes_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>, Inversion> inversions_;
  std::map<uint32_t, Hold> holds_;
  std::map<uint32_t, HandedOver> handed_over_;
  // posts and unlocks whose waiter is not known and has not run since, by object
  std::map<std::pair<WaitKind, uint32_t>, uint64_t> unknown_wakes_;
  std::set<uint32_t> active_;  // tasks that wait, are suspended or were woken
  std::set<uint32_t> blind_;   // cores of which something is missing until their next event
  std::set<uint32_t> switching_cores_;
  bool follows_ = false;
  bool switches_to_nobody_ = false;
  bool any_ = false;
  uint64_t now_ = 0;
  uint64_t whole_since_ = 0;  // of all cores
};

}  // namespace

EventStats ComputeEventStats(const EventStatsInput& input) { return StatsMaker(input).Make(); }

}  // namespace hangscope
