#include "scope/watcher.h"

#include <algorithm>
#include <utility>

#include "scope/judgement.h"

namespace hangscope {
namespace {

// Asking for a core's events is a read of its own: so many times in each stall.
constexpr int kEventLooksPerStall = 8;
// While findings stand, so often is enough: a target that hangs altogether is to cost little, too.
constexpr int kJudgementsPerStall = 50;

// Nobody in the program is expected to end it.
bool IsByDesign(ResourceKind kind) {
  return kind == ResourceKind::kTime || kind == ResourceKind::kOutside ||
         kind == ResourceKind::kSuspended;
}

// What the core itself writes; what others ask of it is no sign of life.
bool IsSame(const CoreSample& a, const CoreSample& b) {
  return a.waypoint == b.waypoint && a.heartbeat == b.heartbeat &&
         a.wait_sequence == b.wait_sequence && a.kernel == b.kernel && a.launch == b.launch &&
         a.paused == b.paused && a.fault == b.fault && a.stack_free == b.stack_free;
}

bool IsSameWait(const WaitState& a, const WaitState& b) {
  return a.sequence == b.sequence && a.resource == b.resource && a.kind == b.kind;
}

std::optional<WaitState> WaitOf(const TaskSample& task) {
  const TaskWait& record = task.record;
  if (!task.in_use || (record.sequence & 1) != 0 || record.state != TaskState::kWaiting)
    return std::nullopt;
  return WaitState{record.sequence, record.resource, record.kind, record.since};
}

bool IsReady(const TaskSample& task) {
  return task.in_use && !task.corrupt && (task.record.sequence & 1) == 0 &&
         task.record.state == TaskState::kReady;
}

bool IsWork(Activity activity) {
  return activity == Activity::kRunning || activity == Activity::kSilent;
}

}  // namespace

void Watcher::See(const ScopeSample& sample, TimeNs now, WatchSource& source) {
  Judge(sample, now, source, false);
}

// Nothing grows older once the target is dead.
void Watcher::SeeDead(const ScopeSample& sample, TimeNs now, WatchSource& source) {
  if (!died_) died_ = now;
  Judge(sample, *died_, source, true);
}

std::vector<ScopeFinding> Watcher::DrainFindings() { return std::exchange(fresh_, {}); }

void Watcher::Judge(const ScopeSample& sample, TimeNs now, WatchSource& source, bool dead) {
  Judgement look{sample, now, source, dead, looks_ == 0};
  if (options_.shared_clock && options_.clock_hz != 0) look.target_time = sample.target_time;
  cores_ = static_cast<uint32_t>(sample.cores.size());
  const size_t count = sample.cores.size() + sample.tasks.size();
  subjects_.resize(count);
  histories_.resize(count);
  for (uint32_t core = 0; core < cores_; ++core) FollowCore(look, core);
  AskForNews(look, false);
  for (uint32_t task = 0; task < sample.tasks.size(); ++task) FollowTask(look, task);
  FollowStillCores(look);
  ++looks_;
  looked_ = now;
  if (options_.only_follows) return;
  const bool news = standing_.empty() || sample.corruptions.size() != corruptions_;
  corruptions_ = sample.corruptions.size();
  if (!dead && !news && now - judged_ < options_.stall / kJudgementsPerStall) return;
  judged_ = now;
  BuildGraph(look);
  FindAll(look);
  Publish(look);
}

// A change, when it came, and how long the core had worked without one.
void Watcher::FollowCore(Judgement& look, uint32_t core) {
  SubjectState& subject = subjects_[core];
  History& history = histories_[core];
  const CoreSample& sample = look.sample.cores[core];
  subject.subject = {SubjectId::Kind::kCore, core};
  if (sample.corrupt || sample.unread) {
    FollowWait(look, core, std::nullopt);
    subject.sample = sample;
    history.seen = false;  // what comes after it is compared with nothing
    SetActivity(look, core, sample.unread ? Activity::kUnread : Activity::kCorrupt, look.now);
    return;
  }
  // A heartbeat that falls is another owner's: a thread that was given the mailbox of one that
  // ended.
  const bool another = sample.heartbeat - subject.sample.heartbeat > UINT32_MAX / 2;
  if (!history.seen || another) {
    history = History{};
    history.seen = true;
    history.changed = look.now;
    history.changed_at_least = true;
  } else if (!IsSame(sample, subject.sample)) {
    if (!history.changed_at_least && IsWork(subject.activity))
      history.longest_gap = std::max(history.longest_gap, look.now - history.changed);
    history.changed = look.now;
    history.changed_at_least = false;
    subject.moved = look.now;
    ++history.changes;
    history.rounds += sample.heartbeat - subject.sample.heartbeat;
    history.moved_after_fault =
        sample.fault != FaultType::kNone && subject.sample.fault == sample.fault;
    history.emitted.reset();
  }
  if (sample.fault == FaultType::kNone) history.fault.reset();
  FollowWait(look, core, sample.wait);
  subject.sample = sample;
  FollowRing(look, core);
  FollowEvents(look, core);
  const Activity activity = CoreActivity(look, core);
  SetActivity(look, core, activity, activity == Activity::kSilent ? history.changed : look.now);
}

// One wait is what two looks find with the same number; before that it is a suspicion.
void Watcher::FollowWait(const Judgement& look, uint32_t index,
                         const std::optional<WaitState>& wait) {
  SubjectState& subject = subjects_[index];
  History& history = histories_[index];
  if (subject.wait && wait && IsSameWait(*subject.wait, *wait)) {
    ++history.wait_looks;
    return;
  }
  if (subject.wait) {
    ++history.waits_ended;
    // Woken for a lock that another had taken again by then, it waits anew, and went no round.
    const bool lost_it = wait && wait->kind == ResourceKind::kExclusive &&
                         wait->kind == subject.wait->kind &&
                         wait->resource == subject.wait->resource;
    if (!lost_it) ++history.rounds;
    history.longest_wait = std::max(history.longest_wait, look.now - subject.since);
    if (subject.wait->kind == ResourceKind::kTime)
      history.longest_sleep = std::max(history.longest_sleep, look.now - subject.since);
  }
  subject.wait = wait;
  history.wait_looks = wait ? 1 : 0;
  if (wait) subject.activity = Activity::kUnused;  // one wait after another: the second begins anew
}

// What a ring says of itself comes with each look at a target with tasks.
void Watcher::FollowRing(const Judgement& look, uint32_t core) {
  if (core >= look.sample.rings.size()) return;
  History& history = histories_[core];
  const RingLook& ring = look.sample.rings[core];
  if (history.ring && history.ring->emitted != ring.emitted) subjects_[core].moved = look.now;
  if (history.ring != ring) {
    history.ring_since = look.now;
    history.ring_looks = 0;
  }
  ++history.ring_looks;
  history.ring = ring;
}

// Who records events is alive, whatever the mailbox says. Asked only of cores that seem to stand
// still.
void Watcher::FollowEvents(Judgement& look, uint32_t core) {
  History& history = histories_[core];
  const CoreSample& sample = subjects_[core].sample;
  const bool works =
      sample.in_use && !sample.wait && sample.fault == FaultType::kNone &&
      (sample.launch == LaunchState::kNone || sample.launch == LaunchState::kRunning);
  const TimeNs often = options_.stall / kEventLooksPerStall;
  if (!works || look.now - history.changed < options_.stall / 4) return;
  if (history.emitted && look.now - history.emitted_looked < often) return;
  const auto emitted = look.source.Emitted(core);
  if (!emitted.ok()) return;
  history.emitted_looked = look.now;
  const bool first = !history.emitted;
  if (!first && *history.emitted == emitted.value()) return;
  history.emitted = emitted.value();
  history.emitted_since = look.now;
  if (first) return;
  if (!history.changed_at_least)
    history.longest_gap = std::max(history.longest_gap, look.now - history.changed);
  history.changed = look.now;
  history.changed_at_least = false;
  ++history.changes;
  subjects_[core].moved = look.now;
}

Activity Watcher::CoreActivity(const Judgement& look, uint32_t core) const {
  const CoreSample& sample = subjects_[core].sample;
  const History& history = histories_[core];
  if (!sample.in_use) return Activity::kUnused;
  if (sample.fault != FaultType::kNone && !history.moved_after_fault) return Activity::kHalted;
  if (sample.paused != PausedState::kNot) return Activity::kPaused;
  if (sample.launch == LaunchState::kDone || sample.launch == LaunchState::kEnded)
    return Activity::kEnded;
  if (sample.launch == LaunchState::kIdle) return Activity::kIdle;
  if (sample.wait) return IsByDesign(sample.wait->kind) ? Activity::kIdle : Activity::kWaiting;
  // Where an OS runs tasks, they are who stands still; the core does what they let it.
  const bool runs_tasks =
      core < look.sample.running_tasks.size() && look.sample.running_tasks[core] != 0;
  if (runs_tasks || !LastsForStall(look, history.changed)) return Activity::kRunning;
  if (history.emitted && !LastsForStall(look, history.emitted_since)) return Activity::kRunning;
  return Activity::kSilent;
}

void Watcher::FollowTask(Judgement& look, uint32_t index) {
  const uint32_t at = cores_ + index;
  SubjectState& subject = subjects_[at];
  History& history = histories_[at];
  const TaskSample& sample = look.sample.tasks[index];
  subject.subject = {SubjectId::Kind::kTask, index};
  if (sample.corrupt || sample.unread) {
    FollowWait(look, at, std::nullopt);
    history.seen = false;
    SetActivity(look, at, sample.unread ? Activity::kUnread : Activity::kCorrupt, look.now);
    return;
  }
  if (subject.task != sample.record.task || !history.seen) history = History{};
  subject.task = sample.record.task;
  const auto& running = look.sample.running_tasks;
  subject.has_core = std::find(running.begin(), running.end(), subject.task) != running.end();
  const bool changed = !history.seen || sample.record.sequence != history.sequence;
  if (changed) {
    if (history.seen && !history.changed_at_least && IsWork(subject.activity)) {
      history.longest_gap = std::max(history.longest_gap, look.now - history.changed);
    }
    history.changes += history.seen;
    if (history.seen) subject.moved = look.now;
    history.changed = look.now;
    history.changed_at_least = !history.seen;
  }
  history.seen = true;
  history.sequence = sample.record.sequence;
  // beyond the change that made it
  history.waited_once = history.waited_once || sample.record.sequence > 2;
  const std::optional<WaitState> wait = WaitOf(sample);
  FollowWait(look, at, wait);
  FollowReady(look, index, changed);
  // A record that was used once keeps what its task held and provided: that never comes any more.
  if (!sample.in_use)
    SetActivity(look, at, sample.record.sequence == 0 ? Activity::kUnused : Activity::kEnded,
                look.now);
  else if (!wait)
    SetActivity(look, at, Activity::kRunning, look.now);
  else
    SetActivity(look, at, IsByDesign(wait->kind) ? Activity::kIdle : Activity::kWaiting, look.now);
}

// A ready task that no look sees running may have run between two of them: its ring knows. That is
// a read of its own, and so is what the ring knows of sleeps.
void Watcher::AskForNews(Judgement& look, bool sleeps) {
  news_.switched_in.clear();
  if (options_.is_device) return;
  const auto& running = look.sample.running_tasks;
  const auto missed = [&](const TaskSample& task) {
    return IsReady(task) &&
           std::find(running.begin(), running.end(), task.record.task) == running.end();
  };
  const auto& tasks = look.sample.tasks;
  if (look.dead || (!sleeps && std::none_of(tasks.begin(), tasks.end(), missed))) return;
  if (!look.first && look.now - news_asked_ < options_.stall / kEventLooksPerStall) return;
  news_asked_ = look.now;
  auto news = look.source.News();
  news_ = news.ok() ? std::move(*news) : TaskNews{};
}

// Of the time since then, what the target could use: it is no hang of its own that it had no
// processor.
TimeNs Watcher::GivenSince(const Judgement& look, TimeNs since) const {
  const auto given = look.dead ? std::nullopt : look.source.Given(since);
  return given ? given->time : look.now - since;
}

// Most have not lasted so long by any clock.
bool Watcher::LastsForStall(const Judgement& look, TimeNs since) const {
  return look.now - since >= options_.stall && GivenSince(look, since) >= options_.stall;
}

// Since the look before, on none of the cores that count them.
bool Watcher::CountedNoTick(const Judgement& look) const {
  bool any = false;
  for (uint32_t core = 0; core < std::min<size_t>(cores_, look.sample.rings.size()); ++core) {
    if (look.sample.rings[core].ticks == 0) continue;
    if (histories_[core].ring_since == look.now) return false;
    any = true;
  }
  return any;
}

// How long a task has been ready without running at any look, and who ran instead.
void Watcher::FollowReady(const Judgement& look, uint32_t index, bool changed) {
  History& history = histories_[cores_ + index];
  const TaskSample& sample = look.sample.tasks[index];
  const auto& running = look.sample.running_tasks;
  const bool ready = IsReady(sample);
  const bool runs =
      std::find(running.begin(), running.end(), sample.record.task) != running.end() ||
      news_.switched_in.contains(sample.record.task);
  if (!ready || runs || changed) {
    history.ready_looks = 0;
    history.no_tick = 0;
    history.news_lost = false;
    history.ran_instead.clear();
    history.not_run_since = look.now;
  }
  if (!ready || runs) return;
  ++history.ready_looks;
  if (history.ready_looks > 1 && CountedNoTick(look)) history.no_tick += look.now - looked_;
  history.news_lost = history.news_lost || news_.lost;
  for (const uint32_t task : running) {
    if (task != 0) history.ran_instead.insert(task);
  }
  history.ran_instead.insert(news_.switched_in.begin(), news_.switched_in.end());
}

void Watcher::SetActivity(const Judgement& look, uint32_t index, Activity activity, TimeNs since) {
  SubjectState& subject = subjects_[index];
  if (subject.activity == activity && !look.first) return;
  subject.activity = activity;
  subject.since = since;
  subject.since_at_least =
      look.first || (activity == Activity::kSilent && histories_[index].changed_at_least);
  // The target's clock knows better when a wait began.
  if (!subject.wait || !look.target_time || *look.target_time < subject.wait->since) return;
  const double age_ns = static_cast<double>(*look.target_time - subject.wait->since) /
                        static_cast<double>(options_.clock_hz) * 1e9;
  const double most = static_cast<double>(std::max<TimeNs>(look.now, 0));
  subject.since = look.now - static_cast<TimeNs>(std::min(age_ns, most));
  subject.since_at_least = false;
}

}  // namespace hangscope
