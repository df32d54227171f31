#include "trace/scope_standings.h"

#include <fmt/format.h>

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

class Standings {
 public:
  Standings(LiveScope& view, const ScopeTimes& times)
      : view_(view), times_(times), subjects_(view.watcher().subjects()) {}

  std::vector<TraceStanding> All() {
    FindPartners();
    std::vector<TraceStanding> all;
    for (size_t i = 0; i < subjects_.size(); ++i) {
      if (subjects_[i].activity != Activity::kUnused) all.push_back(One(i));
    }
    return all;
  }

 private:
  TraceWho WhoIs(size_t at) const {
    const SubjectState& subject = subjects_[at];
    if (subject.subject.kind == SubjectId::Kind::kTask) return {true, subject.task};
    return {false, subject.subject.index};
  }

  // Whom each wait is for, by the rules of the verdicts.
  void FindPartners() {
    const std::vector<TaskSample>& tasks = view_.sample().tasks;
    const size_t cores = view_.sample().cores.size();
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
    if (auto claims = view_.Claims(); claims.ok()) FindSuppliers(*claims, &nodes_);
  }

  TraceStanding One(size_t at) {
    const SubjectState& subject = subjects_[at];
    const bool is_core = subject.subject.kind == SubjectId::Kind::kCore;
    TraceStanding standing;
    standing.who = WhoIs(at);
    standing.activity = subject.activity;
    const uint32_t core = is_core ? subject.subject.index : 0;
    if (subject.wait) {
      standing.since = times_.Of(core, subject.wait->since);
      standing.waits_for = view_.names().WaitedFor(subject.wait->kind, subject.wait->resource);
      for (const WaitEdge& edge : nodes_[at].suppliers) standing.by.push_back(WhoIs(edge.to));
    }
    if (is_core) standing.place = PlaceOf(subject.sample, view_.names());
    if (subject.activity == Activity::kHalted) AddFault(core, &standing);
    return standing;
  }

  void AddFault(uint32_t core, TraceStanding* standing) {
    const auto detail = view_.Detail(core);
    if (!detail.ok()) return;
    standing->fault = view_.names().Fault(detail->fault);
    if (detail->fault.time != 0) standing->since = times_.Of(core, detail->fault.time);
  }

  LiveScope& view_;
  const ScopeTimes& times_;
  const std::vector<SubjectState>& subjects_;
  std::vector<WaitNode> nodes_;
};

}  // namespace

std::vector<TraceStanding> StandingsOf(LiveScope& view, const ScopeTimes& times) {
  return Standings(view, times).All();
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
