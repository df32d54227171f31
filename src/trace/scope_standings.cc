#include "trace/scope_standings.h"

#include <fmt/format.h>

#include <algorithm>

#include "verdict/wait_graph.h"

namespace hangscope {
namespace {

// "CRBW, reserve back, dataflow.c:88".
std::string PlaceOf(const CoreSample& sample, const WatchNames& names) {
  if (sample.waypoint == 0) return {};
  const std::string characters = WatchNames::Waypoint(sample.waypoint);
  if (characters.find_first_not_of(' ') == std::string::npos) return {};
  const std::string place = names.WaypointPlace(sample.waypoint);
  return characters + (place.empty() ? "" : ", " + place);
}

// What standings are made from.
class StandingSource {
 public:
  virtual ~StandingSource() = default;
  virtual const WatchScene& scene() const = 0;
  virtual const ScopeSample& sample() const = 0;
  virtual WatchSource& source() = 0;
  virtual TraceWho WhoIs(const SubjectState& subject) const = 0;
  // Of the clock that the subject's memory counts with.
  virtual TimeNs TimeOf(const SubjectState& subject, uint64_t count) const = 0;
  virtual TimeNs WaitsSince(const SubjectState& subject) const = 0;
};

class ScopeStandings final : public StandingSource {
 public:
  ScopeStandings(LiveScope& view, const ScopeTimes& times)
      : view_(view), times_(times), scene_(view.Scene(0)) {}
  const WatchScene& scene() const override { return scene_; }
  const ScopeSample& sample() const override { return view_.sample(); }
  WatchSource& source() override { return view_; }
  TraceWho WhoIs(const SubjectState& subject) const override {
    if (subject.subject.kind == SubjectId::Kind::kTask) return {true, subject.task};
    return {false, subject.subject.index};
  }
  TimeNs TimeOf(const SubjectState& subject, uint64_t count) const override {
    const bool is_core = subject.subject.kind == SubjectId::Kind::kCore;
    return times_.Of(is_core ? subject.subject.index : 0, count);
  }
  TimeNs WaitsSince(const SubjectState& subject) const override {
    return TimeOf(subject, subject.wait->since);
  }

 private:
  LiveScope& view_;
  const ScopeTimes& times_;
  const WatchScene scene_;
};

class DeviceStandings final : public StandingSource {
 public:
  DeviceStandings(LiveDevice& device, int64_t task_shift)
      : device_(device), task_shift_(task_shift), scene_(device.Scene(0)) {
    for (LiveDevice::Memory& memory : device.Memories()) scopes_.push_back(memory.scope);
  }
  const WatchScene& scene() const override { return scene_; }
  const ScopeSample& sample() const override { return device_.sample(); }
  WatchSource& source() override { return device_.source(); }
  TraceWho WhoIs(const SubjectState& subject) const override {
    if (subject.subject.kind == SubjectId::Kind::kCore) return {false, subject.subject.index};
    const auto [scope, local] = device_.HomeOf(subject.subject);
    const auto memory = std::find(scopes_.begin(), scopes_.end(), scope) - scopes_.begin();
    return {true, task_shift_ * memory + scene_.NumberOf(subject)};
  }
  TimeNs TimeOf(const SubjectState& subject, uint64_t count) const override {
    const auto [scope, local] = device_.HomeOf(subject.subject);
    return scope == nullptr ? 0 : ScopeTimes(scope->layout(), {}).Of(local.index, count);
  }
  // The device's own are made of all clocks together.
  TimeNs WaitsSince(const SubjectState& subject) const override {
    const auto [scope, local] = device_.HomeOf(subject.subject);
    if (scope == nullptr) return 0;
    const ScopeSample& sample = scope->sample();
    if (local.kind == SubjectId::Kind::kTask)
      return TimeOf(subject, sample.tasks.at(local.index).record.since);
    const auto& wait = sample.cores.at(local.index).wait;
    return TimeOf(subject, wait ? wait->since : 0);
  }

 private:
  LiveDevice& device_;
  const int64_t task_shift_;
  const WatchScene scene_;
  std::vector<LiveScope*> scopes_;
};

class Standings {
 public:
  explicit Standings(StandingSource& source)
      : source_(source), scene_(source.scene()), subjects_(*scene_.subjects) {}

  std::vector<TraceStanding> All() {
    FindPartners();
    std::vector<TraceStanding> all;
    for (size_t i = 0; i < subjects_.size(); ++i) {
      if (subjects_[i].activity != Activity::kUnused) all.push_back(One(i));
    }
    return all;
  }

 private:
  // Whom each wait is for, by the rules of the verdicts.
  void FindPartners() {
    const std::vector<TaskSample>& tasks = source_.sample().tasks;
    const size_t cores = source_.sample().cores.size();
    nodes_.resize(subjects_.size());
    for (size_t i = 0; i < subjects_.size(); ++i) {
      if (!subjects_[i].wait) continue;
      nodes_[i] = {WaitRole::kWaits, subjects_[i].wait->resource, subjects_[i].wait->kind, {}, {}};
      if (i < cores || i - cores >= tasks.size() || !tasks[i - cores].record.holder) continue;
      for (size_t other = cores; other < subjects_.size(); ++other) {
        const bool is_it = subjects_[other].activity != Activity::kUnused &&
                           subjects_[other].task == *tasks[i - cores].record.holder;
        if (is_it) nodes_[i].holder = static_cast<uint32_t>(other);
      }
    }
    if (auto claims = source_.source().Claims(); claims.ok()) FindSuppliers(*claims, &nodes_);
  }

  TraceStanding One(size_t at) {
    const SubjectState& subject = subjects_[at];
    const bool is_core = subject.subject.kind == SubjectId::Kind::kCore;
    TraceStanding standing;
    standing.who = source_.WhoIs(subject);
    standing.activity = subject.activity;
    if (subject.wait) {
      standing.since = source_.WaitsSince(subject);
      standing.waits_for = scene_.WaitedForBy(subject);
      for (const WaitEdge& edge : nodes_[at].suppliers)
        standing.by.push_back(source_.WhoIs(subjects_[edge.to]));
    }
    if (is_core)
      standing.place =
          PlaceOf(subject.sample, scene_.NamesOf(subject.subject, subject.sample.waypoint));
    if (is_core && subject.activity == Activity::kHalted) AddFault(subject, &standing);
    return standing;
  }

  void AddFault(const SubjectState& subject, TraceStanding* standing) {
    const auto detail = source_.source().Detail(subject.subject.index);
    if (!detail.ok()) return;
    standing->fault = scene_.NamesOf(subject.subject, detail->fault).Fault(detail->fault);
    if (detail->fault.time != 0) standing->since = source_.TimeOf(subject, detail->fault.time);
  }

  StandingSource& source_;
  const WatchScene& scene_;
  const std::vector<SubjectState>& subjects_;
  std::vector<WaitNode> nodes_;
};

}  // namespace

std::vector<TraceStanding> StandingsOf(LiveScope& view, const ScopeTimes& times) {
  ScopeStandings source(view, times);
  return Standings(source).All();
}

std::vector<TraceStanding> StandingsOf(LiveDevice& device, int64_t task_shift) {
  DeviceStandings source(device, task_shift);
  return Standings(source).All();
}

std::vector<TraceStanding> StandingsOf(const std::vector<TaskWait>& tasks, const WatchNames& names,
                                       const ScopeTimes& times) {
  std::vector<TraceStanding> all;
  for (const TaskWait& task : tasks) {
    TraceStanding standing;
    standing.who = {true, task.task};
    if (task.state == TaskState::kWaiting) {
      const bool by_design = task.kind == ResourceKind::kTime ||
                             task.kind == ResourceKind::kSuspended ||
                             task.kind == ResourceKind::kOutside;
      standing.activity = by_design ? Activity::kIdle : Activity::kWaiting;
      standing.since = times.Of(0, task.since);
      standing.waits_for = names.WaitedFor(task.kind, task.resource);
      if (task.holder) standing.by.push_back({true, *task.holder});
    }
    all.push_back(std::move(standing));
  }
  return all;
}

}  // namespace hangscope
