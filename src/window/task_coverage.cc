#include "window/task_coverage.h"

#include <algorithm>
#include <map>

namespace hangscope {
namespace {

// What the rings of one CPU, or of one thread, know together.
struct Known {
  Spans spans;                     // covered or idle
  std::vector<TimeSpan> unbroken;  // the same, where nothing is lost at an instant inside
  std::vector<TimeNs> instants;    // at which one of the rings lost something

  void Add(const RingTimeline& timeline) {
    std::vector<TimeNs> lost;
    for (const RingLoss& loss : timeline.losses) {
      if (loss.time.from == loss.time.to) lost.push_back(loss.time.from);
    }
    std::vector<TimeSpan> known = SplitAt(timeline.idle, lost);
    known.insert(known.end(), timeline.covered.begin(), timeline.covered.end());
    unbroken.insert(unbroken.end(), known.begin(), known.end());
    spans = Union(spans, MakeSpans(std::move(known)));
    instants.insert(instants.end(), lost.begin(), lost.end());
  }
};

bool StrictlyInside(const std::vector<TimeSpan>& spans, TimeNs instant) {
  return std::any_of(spans.begin(), spans.end(), [&](const TimeSpan& span) {
    return span.from < instant && instant < span.to;
  });
}

constexpr int64_t kUnknownCpu = -1;  // of TaskRun::cpu

class TaskCoverer {
 public:
  TaskCoverer(const WindowInput& input, const std::vector<RingTimeline>& timelines, TimeSpan window)
      : input_(input), window_(window) {
    for (size_t i = 0; i < timelines.size(); ++i) {
      const RingName& ring = input.rings[i].ring;
      if (input.rings[i].of_unknown_cpus) of_cpu_[kUnknownCpu].Add(timelines[i]);
      if (ring.kind == RingKind::kThread) of_thread_[ring.number].Add(timelines[i]);
      if (ring.kind == RingKind::kCpu) of_cpu_[ring.number].Add(timelines[i]);
    }
  }

  std::vector<TaskCoverage> Cover(const std::vector<RingTimeline>& timelines) {
    for (const TaskRun& run : input_.runs) AddRun(run);
    for (const RingTimeline& timeline : timelines) {
      for (const RingPiece& piece : timeline.pieces) {
        if (piece.task) AddTime(*piece.task, piece.time);
      }
    }
    for (const EndOfTask& end : input_.ends) {
      const auto found = tasks_.find(end.task);
      if (found != tasks_.end() && end.time >= window_.from && end.time <= window_.to)
        found->second.ended = true;
    }
    for (const auto& [task, name] : input_.task_names) {
      const auto found = tasks_.find(task);
      if (found != tasks_.end()) found->second.name = name;
    }
    std::vector<TaskCoverage> tasks;
    for (auto& [number, task] : tasks_) tasks.push_back(Judge(number, std::move(task)));
    return tasks;
  }

 private:
  void AddTime(int64_t task, TimeSpan time) {
    const TimeSpan inside = Clip(time, window_);
    if (inside.from < inside.to) tasks_[task].ran.push_back(inside);
  }

  void AddRun(const TaskRun& run) {
    const TimeSpan inside = Clip(run.time, window_);
    if (inside.from >= inside.to) return;
    AddTime(run.task, inside);
    TaskCoverage& task = tasks_[run.task];
    Spans missing = {inside};
    const std::vector<const Known*> rings = RingsOf(run);
    for (const Known* ring : rings) missing = Subtract(missing, Intersect(ring->spans, inside));
    task.breaks.insert(task.breaks.end(), missing.begin(), missing.end());
    for (const Known* ring : rings) {
      for (const TimeNs instant : ring->instants) {
        if (instant < inside.from || instant >= inside.to) continue;
        const bool held = std::any_of(rings.begin(), rings.end(), [&](const Known* r) {
          return StrictlyInside(r->unbroken, instant);
        });
        if (!held) instants_[run.task].push_back(instant);
      }
    }
  }

  std::vector<const Known*> RingsOf(const TaskRun& run) const {
    std::vector<const Known*> rings;
    if (const auto found = of_cpu_.find(run.cpu); found != of_cpu_.end())
      rings.push_back(&found->second);
    if (const auto found = of_thread_.find(run.task); found != of_thread_.end())
      rings.push_back(&found->second);
    return rings;
  }

  TaskCoverage Judge(int64_t number, TaskCoverage task) {
    task.task = number;
    task.ran = MakeSpans(std::move(task.ran));
    task.breaks = MakeSpans(std::move(task.breaks));
    AddInstants(task.breaks, instants_[number]);
    task.continuous = RunsAreKnown() && task.breaks.empty();
    return task;
  }

  static void AddInstants(std::vector<TimeSpan>& breaks, std::vector<TimeNs> instants) {
    std::sort(instants.begin(), instants.end());
    instants.erase(std::unique(instants.begin(), instants.end()), instants.end());
    const std::vector<TimeSpan> spans = breaks;
    for (const TimeNs instant : instants) {
      const bool told = std::any_of(spans.begin(), spans.end(), [&](const TimeSpan& s) {
        return s.from <= instant && instant <= s.to;
      });
      if (!told) breaks.push_back({instant, instant});
    }
    std::sort(breaks.begin(), breaks.end(),
              [](const TimeSpan& a, const TimeSpan& b) { return a.from < b.from; });
  }

  bool RunsAreKnown() const {
    if (input_.runs_known_since) return *input_.runs_known_since <= window_.from;
    return !input_.runs.empty();
  }

  const WindowInput& input_;
  const TimeSpan window_;
  std::map<int64_t, Known> of_cpu_;
  std::map<int64_t, Known> of_thread_;
  std::map<int64_t, TaskCoverage> tasks_;
  std::map<int64_t, std::vector<TimeNs>> instants_;
};

}  // namespace

std::vector<TaskCoverage> CoverTasks(const WindowInput& input,
                                     const std::vector<RingTimeline>& timelines, TimeSpan window) {
  return TaskCoverer(input, timelines, window).Cover(timelines);
}

}  // namespace hangscope
