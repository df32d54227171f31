#include "export/timeline_rows.h"

#include <algorithm>
#include <utility>

namespace hangscope {

TimelineTrackId TimelinePen::Define(TimelineTrack track) {
  track.id = ++tracks_;
  Emit([&](TimelineSink& sink) { return sink.Define(track); });
  return track.id;
}

TimeNs TimelineLane::Advance(TimeNs time) {
  if (told_ && time < last_) ++pen_->late;
  last_ = Drawn(time);
  told_ = true;
  return last_;
}

void TimelineLane::Begin(TimeNs time, const TimelineSlice& slice) {
  const TimeNs at = Advance(time);
  ++open_;
  pen_->Emit([&](TimelineSink& sink) {
    return sink.Begin(id_, at, slice.state, slice.name, slice.arguments);
  });
}

void TimelineLane::End(TimeNs time) {
  const TimeNs at = Advance(time);
  --open_;
  pen_->Emit([&](TimelineSink& sink) { return sink.End(id_, at); });
}

void TimelineLane::EndTo(size_t depth, TimeNs time) {
  while (open_ > depth) End(time);
}

void TimelineLane::Instant(TimeNs time, const TraceEvent& event, const TraceEventKind& kind) {
  const TimeNs at = Advance(time);
  pen_->Emit([&](TimelineSink& sink) { return sink.Instant(id_, at, event, kind); });
}

void TimelineLane::Count(TimeNs time, uint64_t value) {
  const TimeNs at = Advance(time);
  pen_->Emit([&](TimelineSink& sink) { return sink.Count(id_, at, value); });
}

void TimelineLane::Gap(const TimeSpan& time, const TimelineGap& gap) {
  const TimeNs from = Advance(Drawn(time.from));
  pen_->Emit([&](TimelineSink& sink) {
    return sink.Gap(id_, {from, std::max(from, time.to)}, gap);
  });
}

void TimelineLane::Flow(TimelineLane& to, TimeNs time, const std::string& name, bool wakes) {
  const TimeNs at = std::max(Drawn(time), to.Drawn(time));
  Advance(at);
  to.Advance(at);
  pen_->Emit([&](TimelineSink& sink) {
    return sink.Flow(pen_->NewFlow(), id_, at, to.id_, at, name, wakes);
  });
}

bool NestedSlices::Enter(TimelineLane& lane, TimeNs time, NestedSlice nested) {
  if (nested_.size() >= kMost) {
    ++too_deep_;
    return false;
  }
  lane.Begin(time, nested.slice);
  nested_.push_back(std::move(nested));
  return true;
}

NestedSlices::Left NestedSlices::Leave(TimelineLane& lane, TimeNs time, bool function, bool of_task,
                                       uint64_t* unended) {
  if (too_deep_ > 0) {
    --too_deep_;
    return Left::kTooDeep;
  }
  const auto is_it = [&](const NestedSlice& nested) {
    return nested.function == function && nested.of_task == of_task && !nested.key;
  };
  size_t at = nested_.size();
  while (at > 0 && !is_it(nested_[at - 1])) --at;
  return at == 0 ? Left::kNone : LeaveAt(at, lane, time, of_task, unended);
}

// One that is drawn goes before one that is too deep to be.
NestedSlices::Left NestedSlices::LeaveKey(TimelineLane& lane, TimeNs time, SliceState state,
                                          uint64_t key, uint64_t* unended) {
  size_t at = nested_.size();
  while (at > 0 && (nested_[at - 1].key != key || nested_[at - 1].slice.state != state)) --at;
  if (at > 0) return LeaveAt(at, lane, time, false, unended);
  if (too_deep_ == 0) return Left::kNone;
  --too_deep_;
  return Left::kTooDeep;
}

const NestedSlice* NestedSlices::FindOpen(SliceState state) const {
  const auto at = std::find_if(nested_.rbegin(), nested_.rend(), [&](const NestedSlice& nested) {
    return nested.key && nested.slice.state == state;
  });
  return at == nested_.rend() ? nullptr : &*at;
}

// `at`: behind it.
NestedSlices::Left NestedSlices::LeaveAt(size_t at, TimelineLane& lane, TimeNs time, bool of_task,
                                         uint64_t* unended) {
  const size_t below = lane.open() - nested_.size();
  lane.EndTo(below + at - 1, time);
  std::vector<NestedSlice> inside(
      std::make_move_iterator(nested_.begin() + static_cast<ptrdiff_t>(at)),
      std::make_move_iterator(nested_.end()));
  nested_.resize(at - 1);
  for (NestedSlice& other : inside) {
    if (other.of_task == of_task) {
      ++*unended;
      continue;
    }
    lane.Begin(time, other.slice);
    nested_.push_back(std::move(other));
  }
  return Left::kIt;
}

void NestedSlices::Close(TimelineLane& lane, TimeNs time) const {
  lane.EndTo(lane.open() - nested_.size(), time);
}

void NestedSlices::Reopen(TimelineLane& lane, TimeNs time) {
  for (NestedSlice& nested : nested_) {
    TimelineArguments& arguments = nested.slice.arguments;
    if (arguments.empty() || arguments.back().first != "continued")
      arguments.emplace_back("continued", "true");
    lane.Begin(time, nested.slice);
  }
}

std::vector<NestedSlice> NestedSlices::ReleaseOfTask() {
  const auto of_row = std::stable_partition(
      nested_.begin(), nested_.end(), [](const NestedSlice& nested) { return nested.of_task; });
  std::vector<NestedSlice> taken(std::make_move_iterator(nested_.begin()),
                                 std::make_move_iterator(of_row));
  nested_.erase(nested_.begin(), of_row);
  return taken;
}

void NestedSlices::PutOfTask(std::vector<NestedSlice> nested) {
  nested_.insert(nested_.begin(), std::make_move_iterator(nested.begin()),
                 std::make_move_iterator(nested.end()));
}

void NestedSlices::Clear() {
  nested_.clear();
  too_deep_ = 0;
}

void TaskRow::Close(TimeNs time) { lane.EndTo(0, time); }

void TaskRow::Run(TimeNs time, size_t core_index, const std::string& core_name) {
  Close(time);
  lane.Begin(time, {SliceState::kRunning, "running", {{"on", core_name}}});
  state = State::kRunning;
  core = core_index;
  calls.Reopen(lane, time);
}

void TaskRow::Wait(TimeNs time, const std::string& what) {
  Close(time);
  std::string text = "waiting";
  if (!what.empty()) {
    text += " in " + what;
  } else if (calls.innermost() != nullptr) {
    text += " in " + calls.innermost()->name;
  }
  lane.Begin(time, {SliceState::kWaiting, std::move(text)});
  state = State::kWaiting;
}

void TaskRow::BeReady(TimeNs time) {
  Close(time);
  lane.Begin(time, {SliceState::kReady, "ready"});
  state = State::kReady;
}

void TaskRow::Forget(TimeNs time) {
  Close(time);
  calls.Clear();
  functions.clear();
  state = State::kUnknown;
}

void CoreRow::Close(TimeNs time) { lane.EndTo(cover_ ? 1 : 0, time); }

void CoreRow::Reopen(TimeNs time) {
  if (running != nullptr) lane.Begin(time, {SliceState::kRunning, running->name, run_arguments_});
  if (unrecorded_) lane.Begin(time, {SliceState::kGap, "not recorded", run_arguments_});
  nested.Reopen(lane, time);
}

void CoreRow::Run(TimeNs time, TaskRow* task, TimelineArguments arguments) {
  Close(time);
  std::vector<NestedSlice> left = nested.ReleaseOfTask();
  if (running != nullptr) running->functions = std::move(left);
  running = task;
  unrecorded_ = false;
  run_arguments_ = std::move(arguments);
  if (task != nullptr) nested.PutOfTask(std::exchange(task->functions, {}));
  Reopen(time);
}

void CoreRow::RunUnrecorded(TimeNs time, TimelineArguments arguments) {
  Run(time, nullptr, std::move(arguments));
  Close(time);
  unrecorded_ = true;
  Reopen(time);
}

void CoreRow::Forget(TimeNs time) {
  Close(time);
  running = nullptr;
  unrecorded_ = false;
  nested.Clear();
}

void CoreRow::Cover(TimeNs time, TimeNs to, const TimelineSlice& slice) {
  if (cover_ == SliceState::kStale && slice.state != SliceState::kStale) {
    Close(time);
    lane.Begin(time, slice);
    lane.End(std::max(time, std::min(to, cover_to_)));
    Reopen(lane.last());
    return;
  }
  cover_to_ = cover_ ? std::max(cover_to_, to) : to;
  if (cover_) return;
  lane.EndTo(0, time);
  lane.Begin(time, slice);
  cover_ = slice.state;
  Reopen(time);
}

bool CoreRow::Uncover(TimeNs time) {
  if (!cover_ || cover_to_ > time) return false;
  lane.EndTo(0, time);
  cover_.reset();
  Reopen(time);
  return true;
}

}  // namespace hangscope
