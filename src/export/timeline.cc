#include "export/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "export/timeline_rows.h"
#include "export/timeline_words.h"
#include "export/trace_facts.h"

namespace hangscope {
namespace {

// with a row of their own: numbers may be damaged, and each costs memory
constexpr size_t kMostTasks = 1 << 16;

}  // namespace

class TimelineBuilder::Impl {
 public:
  explicit Impl(TimelineSink& sink) : pen_(sink) {}

  Status Begin(const TraceHead& head);
  Status Write(const TraceEvent& event);
  Status Write(const TraceLoss& loss);
  Status End(const TraceEnd& end);
  std::vector<std::string> notes() const;
  std::vector<std::string> warnings() const;

 private:
  // Of the head's window: known before it is reached.
  struct Missing {
    size_t core = 0;
    TimeSpan time;
    SliceState state = SliceState::kGap;
    GapReason reason = GapReason::kOverwritten;
    TimelineGap gap;
    bool has_amount = false;
    bool told = false;
  };
  // Something of the window begins or ends.
  struct Turn {
    TimeNs time = 0;
    size_t order = 0;
    bool ends = false;
    size_t what = 0;  // of missing_; at an end, of cores_

    auto Rank() const { return std::tuple(time, !ends, order); }
    // the earliest is the greatest
    bool operator<(const Turn& other) const { return Rank() > other.Rank(); }
  };

  void PlanWindow(const Window& window);
  void Plan(Missing missing);
  Missing* FindMissing(const TraceLoss& loss);  // null: the window does not know of it
  void AdvanceTo(TimeNs time);
  void BeginMissing(Missing& missing);
  void Lose(size_t core, const TimeSpan& time, const TimelineGap& gap);
  void Forget(size_t core, TimeNs time);

  // What begins or ends with an event.
  struct Sort {
    SliceState state;
    bool function;
    bool of_task;  // else of the core
    std::optional<uint64_t> key;
  };

  void Switch(const TraceEvent& event, const TraceEventKind& kind);
  void StopRunning(TaskRow& task, const TraceEvent& event);
  void Wake(const TraceEvent& event, const TraceEventKind& kind);
  Sort SortOf(const TraceEvent& event, const TraceEventKind& kind);
  bool Enter(const TraceEvent& event, const TraceEventKind& kind);
  bool Leave(const TraceEvent& event, const TraceEventKind& kind);
  void Count(const TraceEvent& event, const TraceEventKind& kind);
  void BeAt(const TraceEvent& event);
  // Makes sure that the picture shows it on the core.
  void SeeRunning(size_t core, TimeNs time, int64_t task);
  void StopElsewhere(TaskRow& task, size_t core, TimeNs time);
  // Whoever does what happens on the core: somewhere with a slice at `time`.
  TimelineLane& Doer(const TraceEvent& event, const TraceEventKind& kind, TimeNs time);

  bool IsDrawn(const TraceStanding& standing);
  void Stand(const TraceStanding& standing, TimeNs end);
  void DrawClaims(const TraceStanding& standing, TimeNs end);
  CoreRow* CoreOf(const TraceWho& who);  // null: it is none, or has none
  TimelineLane& LaneOf(const TraceWho& who);

  TaskRow* TaskOf(int64_t number);  // null: too many
  std::string NameOf(int64_t task) const;
  SliceState StateOfKind(size_t kind);

  TimelinePen pen_;
  const TraceHead* head_ = nullptr;
  bool threads_ = false;       // tasks are called so
  std::deque<CoreRow> cores_;  // as TraceHead::tracks
  std::unordered_map<int64_t, TaskRow> tasks_;
  std::map<TraceWho, TimelineLane> others_;  // who stands somehow at the end and was never seen
  // by core and kind; of those that many cores count, by what the kinds and the events say
  std::map<std::tuple<size_t, size_t, std::string, std::string>, TimelineLane> counters_;
  std::map<size_t, TimelineLane> states_;  // by core
  std::vector<std::optional<SliceState>> kind_states_;

  std::vector<Missing> missing_;
  std::vector<std::deque<size_t>> gaps_;  // by core: of missing_, as the window has them, by time
  std::priority_queue<Turn> turns_;
  size_t turns_made_ = 0;

  uint64_t no_begin_ = 0, no_end_ = 0, on_two_cores_ = 0, contradictions_ = 0, too_many_tasks_ = 0,
           no_such_track_ = 0, too_deep_ = 0, repeated_ = 0;
};

Status TimelineBuilder::Impl::Begin(const TraceHead& head) {
  head_ = &head;
  threads_ = head.tasks_are_threads;
  for (size_t i = 0; i < head.tracks.size(); ++i) {
    const TraceTrack& track = head.tracks[i];
    threads_ |= track.ring.kind == RingKind::kCpu || track.ring.kind == RingKind::kThread;
    const TimelineTrackId id =
        pen_.Define({.row = TimelineRow::kCore, .name = track.name, .trace_track = i, .task = {}});
    cores_.emplace_back(pen_, id, track.name);
  }
  gaps_.resize(cores_.size());
  if (head.window) PlanWindow(*head.window);
  return pen_.status();
}

void TimelineBuilder::Impl::PlanWindow(const Window& window) {
  // A CPU's other rings, such as its hardware trace's, have no row of their own.
  const auto cores_of = [&](const RingName& ring) {
    std::vector<size_t> cores = TracksOf(*head_, ring);
    for (size_t i = 0; i < head_->tracks.size() && cores.empty() && ring.kind != RingKind::kStream;
         ++i) {
      const RingName& own = head_->tracks[i].ring;
      if (own.kind == ring.kind && own.number == ring.number) cores.push_back(i);
    }
    return cores;
  };
  std::vector<std::vector<size_t>> cores;
  for (const RingCoverage& ring : window.rings) {
    cores.push_back(cores_of(ring.ring));
    for (const StaleSpan& stale : ring.stale) {
      for (const size_t core : cores.back())
        Plan({core,
              stale.time,
              SliceState::kStale,
              {},
              {"stale", fmt::format("older than the window by {} ns", stale.age)}});
    }
  }
  for (const Gap& gap : window.gaps) {
    if (gap.ring >= cores.size()) continue;
    TimelineGap drawn = GapOf(gap.reason, gap.amount, gap.unit);
    if (gap.task) (drawn.amount.empty() ? drawn.why : drawn.amount) += ", of " + NameOf(*gap.task);
    for (const size_t core : cores[gap.ring]) {
      gaps_[core].push_back(missing_.size());
      Plan({core, gap.time, SliceState::kGap, gap.reason, drawn, gap.amount > 0});
    }
  }
}

void TimelineBuilder::Impl::Plan(Missing missing) {
  turns_.push({missing.time.from, turns_made_++, false, missing_.size()});
  missing_.push_back(std::move(missing));
}

void TimelineBuilder::Impl::AdvanceTo(TimeNs time) {
  while (!turns_.empty() && turns_.top().time <= time) {
    const Turn turn = turns_.top();
    turns_.pop();
    if (turn.ends) {
      cores_[turn.what].Uncover(turn.time);
    } else {
      BeginMissing(missing_[turn.what]);
    }
  }
}

void TimelineBuilder::Impl::BeginMissing(Missing& missing) {
  if (std::exchange(missing.told, true)) return;
  if (missing.state == SliceState::kGap) return Lose(missing.core, missing.time, missing.gap);
  CoreRow& core = cores_[missing.core];
  core.lane.Gap(missing.time, missing.gap);
  const TimeNs from = core.lane.last();
  if (missing.time.to <= from) return;
  core.Cover(from, missing.time.to, {SliceState::kStale, "stale", {{"why", missing.gap.Text()}}});
  turns_.push({missing.time.to, turns_made_++, true, missing.core});
}

void TimelineBuilder::Impl::Lose(size_t index, const TimeSpan& time, const TimelineGap& gap) {
  CoreRow& core = cores_[index];
  Forget(index, time.from);
  core.lane.Gap(time, gap);
  const TimeNs from = core.lane.last();
  if (time.to <= from) return;
  core.Cover(from, time.to, {SliceState::kGap, "gap", {{"why", gap.Text()}}});
  turns_.push({time.to, turns_made_++, true, index});
}

void TimelineBuilder::Impl::Forget(size_t index, TimeNs time) {
  CoreRow& core = cores_[index];
  if (core.running != nullptr) core.running->Forget(core.running->lane.Drawn(time));
  core.Forget(core.lane.Drawn(time));
  if (const auto state = states_.find(index); state != states_.end())
    state->second.EndTo(0, state->second.Drawn(time));
}

// Losses of a core come in the order of time: what lies before one is not looked at again.
TimelineBuilder::Impl::Missing* TimelineBuilder::Impl::FindMissing(const TraceLoss& loss) {
  std::deque<size_t>& gaps = gaps_[loss.track];
  while (!gaps.empty() && missing_[gaps.front()].time.to < loss.time.from) gaps.pop_front();
  for (const size_t index : gaps) {
    Missing& missing = missing_[index];
    if (missing.time.from > loss.time.to) break;
    if (missing.reason == loss.reason && loss.time.from <= missing.time.to) return &missing;
  }
  return nullptr;
}

Status TimelineBuilder::Impl::Write(const TraceLoss& loss) {
  if (loss.track >= cores_.size()) {
    ++no_such_track_;
    return pen_.status();
  }
  AdvanceTo(loss.time.from);
  Missing* const known = FindMissing(loss);
  if (known != nullptr && known->told) {  // it is one gap
    if (!known->has_amount && loss.amount > 0)
      cores_[loss.track].lane.Gap(loss.time, GapOf(loss.reason, loss.amount, loss.unit));
    return pen_.status();
  }
  if (known != nullptr) known->told = true;
  Lose(loss.track, loss.time, GapOf(loss.reason, loss.amount, loss.unit));
  return pen_.status();
}

Status TimelineBuilder::Impl::Write(const TraceEvent& event) {
  if (event.track >= cores_.size() || event.kind >= head_->kinds.size()) {
    ++no_such_track_;
    return pen_.status();
  }
  AdvanceTo(event.time);
  const TraceEventKind& kind = head_->kinds[event.kind];
  if (kind.meaning != TraceMeaning::kSwitch && event.task)
    SeeRunning(event.track, event.time, *event.task);
  CoreRow& core = cores_[event.track];
  switch (kind.meaning) {
    case TraceMeaning::kSwitch:
      Switch(event, kind);
      break;
    case TraceMeaning::kWake:
      Wake(event, kind);
      break;
    case TraceMeaning::kCounter:
      if (kind.also_event) core.lane.Instant(event.time, event, kind);
      Count(event, kind);
      break;
    case TraceMeaning::kState:
      BeAt(event);
      break;
    case TraceMeaning::kPlain:
      core.lane.Instant(event.time, event, kind);
      break;
    case TraceMeaning::kEnter:
    case TraceMeaning::kFunctionEnter:
      if (!Enter(event, kind)) core.lane.Instant(event.time, event, kind);
      break;
    case TraceMeaning::kLeave:
    case TraceMeaning::kFunctionLeave:
      if (!Leave(event, kind)) core.lane.Instant(event.time, event, kind);
      break;
  }
  return pen_.status();
}

void TimelineBuilder::Impl::SeeRunning(size_t index, TimeNs time, int64_t number) {
  CoreRow& core = cores_[index];
  if (core.running != nullptr && core.running->number == number) return;
  TaskRow* const task = TaskOf(number);
  if (task == nullptr) return;
  if (core.running != nullptr) {  // a switch is not in the trace
    ++contradictions_;
    core.running->Forget(time);
  }
  StopElsewhere(*task, index, time);
  core.Run(time, task, {});
  task->Run(time, index, core.name);
}

void TimelineBuilder::Impl::StopElsewhere(TaskRow& task, size_t index, TimeNs time) {
  if (task.state != TaskRow::State::kRunning || task.core == index) return;
  ++on_two_cores_;
  cores_[task.core].Run(time, nullptr, {});
}

void TimelineBuilder::Impl::Switch(const TraceEvent& event, const TraceEventKind& kind) {
  CoreRow& core = cores_[event.track];
  TaskRow* const ran = core.running;
  TaskRow* const from = event.from ? TaskOf(*event.from) : nullptr;
  TaskRow* const to = event.to && event.to_recorded ? TaskOf(*event.to) : nullptr;
  if (ran == nullptr && from == nullptr && to == nullptr)
    core.lane.Instant(event.time, event, kind);
  if (to != nullptr && to == ran && from != to) {  // perf tells some switches twice
    ++repeated_;
    return core.lane.Instant(event.time, event, kind);
  }
  if (to != nullptr) StopElsewhere(*to, event.track, event.time);
  if (event.to && !event.to_recorded)
    core.RunUnrecorded(event.time, ArgumentsOf(event, kind));
  else
    core.Run(event.time, to, ArgumentsOf(event, kind));
  if (ran != nullptr && ran != from) {
    if (event.from) ++contradictions_;
    ran->Forget(event.time);
  }
  if (from != nullptr && from != to) StopRunning(*from, event);
  if (to != nullptr) to->Run(event.time, event.track, core.name);
}

void TimelineBuilder::Impl::StopRunning(TaskRow& task, const TraceEvent& event) {
  StopElsewhere(task, event.track, event.time);
  if (event.from_waits) {
    task.Wait(event.time, event.what);
  } else {
    task.BeReady(event.time);
  }
}

TimelineLane& TimelineBuilder::Impl::Doer(const TraceEvent& event, const TraceEventKind& kind,
                                          TimeNs time) {
  CoreRow& core = cores_[event.track];
  if (core.running != nullptr && event.task == core.running->number) return core.running->lane;
  if (core.lane.open() == 0) {  // nobody runs, as in an interrupt: an arrow has to begin in a slice
    core.lane.Begin(time, {SliceState::kOther, kind.name});
    core.lane.End(time);
  }
  return core.lane;
}

void TimelineBuilder::Impl::Wake(const TraceEvent& event, const TraceEventKind& kind) {
  CoreRow& core = cores_[event.track];
  core.lane.Instant(event.time, event, kind);
  TaskRow* const task = event.to ? TaskOf(*event.to) : nullptr;
  if (task == nullptr || task->state == TaskRow::State::kRunning ||
      task->state == TaskRow::State::kReady)
    return;
  const TimeNs time = std::max(core.lane.Drawn(event.time), task->lane.Drawn(event.time));
  TimelineLane& doer = Doer(event, kind, time);
  task->BeReady(time);
  doer.Flow(task->lane, time, "wakes " + task->name, true);
}

TimelineBuilder::Impl::Sort TimelineBuilder::Impl::SortOf(const TraceEvent& event,
                                                          const TraceEventKind& kind) {
  const TaskRow* const running = cores_[event.track].running;
  const SliceState state = StateOfKind(event.kind);
  const bool of_task = running != nullptr && event.task == running->number &&
                       state != SliceState::kInterrupt && !kind.of_track;
  std::optional<uint64_t> key;
  if (kind.of_track) key = event.values.empty() ? 0 : event.values[0].bits;
  return {state, state == SliceState::kFunction, of_task, key};
}

bool TimelineBuilder::Impl::Enter(const TraceEvent& event, const TraceEventKind& kind) {
  CoreRow& core = cores_[event.track];
  const auto [state, function, of_task, key] = SortOf(event, kind);
  // A core waits for one thing at a time: the end of the wait before is not in the trace.
  const NestedSlice* const before =
      key && state == SliceState::kWaiting ? core.nested.FindOpen(state) : nullptr;
  if (before != nullptr) {
    ++no_end_;
    (void)core.nested.LeaveKey(core.lane, event.time, state, *before->key, &no_end_);
  }
  NestedSlice nested{{state, event.what.empty() ? kind.name : event.what, ArgumentsOf(event, kind)},
                     function,
                     of_task,
                     key};
  const bool drawn =
      of_task && !function
          ? core.running->calls.Enter(core.running->lane, event.time, std::move(nested))
          : core.nested.Enter(core.lane, event.time, std::move(nested));
  if (!drawn) ++too_deep_;
  return drawn;
}

bool TimelineBuilder::Impl::Leave(const TraceEvent& event, const TraceEventKind& kind) {
  CoreRow& core = cores_[event.track];
  const auto [state, function, of_task, key] = SortOf(event, kind);
  const NestedSlices::Left left =
      key ? core.nested.LeaveKey(core.lane, event.time, state, *key, &no_end_)
      : of_task && !function
          ? core.running->calls.Leave(core.running->lane, event.time, function, of_task, &no_end_)
          : core.nested.Leave(core.lane, event.time, function, of_task, &no_end_);
  if (left == NestedSlices::Left::kNone) ++no_begin_;
  return left == NestedSlices::Left::kIt;
}

void TimelineBuilder::Impl::Count(const TraceEvent& event, const TraceEventKind& kind) {
  const bool of_many = !event.what.empty();
  const auto key =
      std::tuple(of_many ? 0 : event.track, of_many ? 0 : event.kind, kind.counter, event.what);
  auto at = counters_.find(key);
  if (at == counters_.end()) {
    const TimelineTrackId id = pen_.Define({.parent = cores_[event.track].lane.id(),
                                            .row = TimelineRow::kCounter,
                                            .name = of_many                ? event.what
                                                    : kind.counter.empty() ? kind.name
                                                                           : kind.counter,
                                            .trace_track = event.track,
                                            .task = {}});
    at = counters_.emplace(key, TimelineLane(pen_, id)).first;
  }
  at->second.Count(event.time, event.count);
}

void TimelineBuilder::Impl::BeAt(const TraceEvent& event) {
  auto at = states_.find(event.track);
  if (at == states_.end()) {
    const TimelineTrackId id = pen_.Define({.parent = cores_[event.track].lane.id(),
                                            .row = TimelineRow::kState,
                                            .name = "waypoints",
                                            .trace_track = event.track,
                                            .task = {}});
    at = states_.emplace(event.track, TimelineLane(pen_, id)).first;
  }
  TimelineLane& lane = at->second;
  lane.EndTo(0, lane.Drawn(event.time));
  if (event.what.empty()) return;
  TimelineSlice slice{SliceState::kOther, event.what};
  if (!event.where.empty()) slice.arguments.emplace_back("where", event.where);
  lane.Begin(event.time, slice);
}

TaskRow* TimelineBuilder::Impl::TaskOf(int64_t number) {
  const auto at = tasks_.find(number);
  if (at != tasks_.end()) return &at->second;
  if (tasks_.size() >= kMostTasks) {
    ++too_many_tasks_;
    return nullptr;
  }
  std::string name = NameOf(number);
  const TimelineTrackId id =
      pen_.Define({.row = TimelineRow::kTask, .name = name, .trace_track = {}, .task = number});
  return &tasks_.try_emplace(number, pen_, id, number, std::move(name)).first->second;
}

std::string TimelineBuilder::Impl::NameOf(int64_t task) const {
  const auto name = head_->tasks.find(task);
  return fmt::format("{} {}{}{}", threads_ ? "thread" : "task", task,
                     name == head_->tasks.end() || name->second.empty() ? "" : " ",
                     name == head_->tasks.end() ? "" : name->second);
}

SliceState TimelineBuilder::Impl::StateOfKind(size_t kind) {
  if (kind >= kind_states_.size()) kind_states_.resize(kind + 1);
  if (!kind_states_[kind]) kind_states_[kind] = SliceStateOf(head_->kinds[kind]);
  return *kind_states_[kind];
}

CoreRow* TimelineBuilder::Impl::CoreOf(const TraceWho& who) {
  if (who.is_task) return nullptr;
  for (const RingKind kind : {RingKind::kCore, RingKind::kStream, RingKind::kCpu}) {
    for (size_t i = 0; i < cores_.size(); ++i) {
      const RingName& ring = head_->tracks[i].ring;
      if (ring.kind == kind && ring.number == who.number) return &cores_[i];
    }
  }
  return nullptr;
}

TimelineLane& TimelineBuilder::Impl::LaneOf(const TraceWho& who) {
  if (who.is_task) {
    if (TaskRow* const task = TaskOf(who.number)) return task->lane;
  } else if (CoreRow* const core = CoreOf(who)) {
    return core->lane;
  }
  const auto at = others_.find(who);
  if (at != others_.end()) return at->second;
  const TimelineRow row = who.is_task ? TimelineRow::kTask : TimelineRow::kCore;
  const TimelineTrackId id =
      pen_.Define({.row = row,
                   .name = who.is_task ? NameOf(who.number) : fmt::format("core {}", who.number),
                   .trace_track = {},
                   .task = who.is_task ? std::optional(who.number) : std::nullopt});
  return others_.emplace(who, TimelineLane(pen_, id)).first->second;
}

// The record of the wait's begin opened its slice.
bool TimelineBuilder::Impl::IsDrawn(const TraceStanding& standing) {
  CoreRow* const core = standing.waits_for.empty() ? nullptr : CoreOf(standing.who);
  const NestedSlice* const wait =
      core == nullptr ? nullptr : core->nested.FindOpen(SliceState::kWaiting);
  return wait != nullptr && wait->slice.name == WaitingFor(standing.waits_for);
}

void TimelineBuilder::Impl::Stand(const TraceStanding& standing, TimeNs end) {
  std::optional<TimelineSlice> slice = StandingSlice(standing);
  if (!slice || IsDrawn(standing)) return;
  TimelineLane& lane = LaneOf(standing.who);
  if (slice->state == SliceState::kRunning && (lane.open() > 0 || !standing.since)) return;
  // Where only the look at the end found it so, it is drawn as far back as nothing else is known: a
  // slice without a length is not seen.
  const bool known = standing.since && *standing.since < end;
  // It ended behind all that is drawn: until then it was there.
  if (standing.activity == Activity::kEnded && standing.since && !known) return;
  if (!known) slice->arguments.emplace_back("since", "not known");
  lane.Begin(lane.Drawn(known ? *standing.since : std::min(head_->time.from, end)), *slice);
}

// From whoever holds what `standing` waits for.
void TimelineBuilder::Impl::DrawClaims(const TraceStanding& standing, TimeNs end) {
  for (const TraceWho& who : standing.by) {
    TimelineLane& from = LaneOf(who);
    TimelineLane& to = LaneOf(standing.who);
    const std::string name =
        standing.waits_for.empty() ? "waited for" : "waited for: " + standing.waits_for;
    for (TimelineLane* lane : {&from, &to}) {
      if (lane->open() == 0)
        lane->Begin(lane->Drawn(end), {SliceState::kOther, lane == &from ? name : "waits"});
    }
    from.Flow(to, end, name, false);
  }
}

Status TimelineBuilder::Impl::End(const TraceEnd& end) {
  AdvanceTo(end.time);
  for (const TraceStanding& standing : end.standings) Stand(standing, end.time);
  for (const TraceStanding& standing : end.standings) DrawClaims(standing, end.time);
  for (CoreRow& core : cores_) core.lane.EndTo(0, core.lane.Drawn(end.time));
  for (auto& [core, lane] : states_) lane.EndTo(0, lane.Drawn(end.time));
  for (auto& [number, task] : tasks_) task.lane.EndTo(0, task.lane.Drawn(end.time));
  for (auto& [who, lane] : others_) lane.EndTo(0, lane.Drawn(end.time));
  return pen_.status();
}

namespace {

void AddCounted(uint64_t count, std::string_view one, std::string_view many,
                std::vector<std::string>* sentences) {
  if (count > 0) sentences->push_back(fmt::format("{} {}", count, count == 1 ? one : many));
}

}  // namespace

std::vector<std::string> TimelineBuilder::Impl::notes() const {
  std::vector<std::string> notes;
  AddCounted(no_begin_, "end of something whose begin is not in the trace is drawn as an event",
             "ends of something whose begin is not in the trace are drawn as events", &notes);
  AddCounted(no_end_, "slice without an end is drawn to the end of the one around it",
             "slices without an end are drawn to the end of the one around them", &notes);
  AddCounted(contradictions_, "switch is not in the trace: another task ran than had come",
             "switches are not in the trace: another task ran than had come", &notes);
  AddCounted(repeated_, "switch says what is known already, and is drawn as an event",
             "switches say what is known already, and are drawn as events", &notes);
  return notes;
}

std::vector<std::string> TimelineBuilder::Impl::warnings() const {
  std::vector<std::string> warnings;
  AddCounted(on_two_cores_, "time a task ran on two cores at once: it is drawn on the newer only",
             "times a task ran on two cores at once: it is drawn on the newer only", &warnings);
  AddCounted(too_deep_, "slice is nested too deeply and drawn as an event",
             "slices are nested too deeply and drawn as events", &warnings);
  AddCounted(
      too_many_tasks_, "event of a task beyond the first 65536 is not drawn in a row of its own",
      "events of tasks beyond the first 65536 are not drawn in rows of their own", &warnings);
  AddCounted(no_such_track_, "event of no track or kind is left out",
             "events of no track or kind are left out", &warnings);
  AddCounted(pen_.late, "time lies before the one before it, and is drawn there",
             "times lie before the ones before them, and are drawn there", &warnings);
  return warnings;
}

TimelineBuilder::TimelineBuilder(TimelineSink& sink) : impl_(std::make_unique<Impl>(sink)) {}
TimelineBuilder::~TimelineBuilder() = default;
Status TimelineBuilder::Begin(const TraceHead& head) { return impl_->Begin(head); }
Status TimelineBuilder::Write(const TraceEvent& event) { return impl_->Write(event); }
Status TimelineBuilder::Write(const TraceLoss& loss) { return impl_->Write(loss); }
Status TimelineBuilder::End(const TraceEnd& end) { return impl_->End(end); }
std::vector<std::string> TimelineBuilder::notes() const { return impl_->notes(); }
std::vector<std::string> TimelineBuilder::warnings() const { return impl_->warnings(); }

}  // namespace hangscope
