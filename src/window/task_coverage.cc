#include "window/task_coverage.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

namespace hangscope {
namespace {

// What the rings of one CPU, or of one thread, know together.
struct Known {
  Spans spans;                     // covered or idle
  std::vector<TimeSpan> unbroken;  // the same, where nothing is lost at an instant inside
  std::vector<TimeNs> instants;    // at which one of the rings lost something; ascending

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
    std::sort(instants.begin(), instants.end());
  }

  bool HasAllOf(TimeSpan span) const {
    const auto last = std::lower_bound(spans.begin(), spans.end(), span.to,
                                       [](const TimeSpan& s, TimeNs to) { return s.to < to; });
    return last != spans.end() && last->from <= span.from;
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
  TaskCoverer(const WindowInput& input, const std::vector<RingTimeline>& timelines, TimeSpan window,
              bool wants_runs)
      : input_(input), window_(window), wants_runs_(wants_runs) {
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
    std::sort(tasks.begin(), tasks.end(),
              [](const TaskCoverage& a, const TaskCoverage& b) { return a.task < b.task; });
    return tasks;
  }

 private:
  void AddTime(int64_t task, TimeSpan time) {
    const TimeSpan inside = Clip(time, window_);
    if (inside.from < inside.to) Ran(&tasks_[task], inside);
  }

  void AddRun(const TaskRun& run) {
    const TimeSpan inside = Clip(run.time, window_);
    if (inside.from >= inside.to) return;
    TaskCoverage& task = tasks_[run.task];
    Ran(&task, inside);
    const Rings rings = RingsOf(run);
    AddMissing(rings, inside, &task);
    for (const Known* ring : rings) {
      const auto& instants = ring->instants;
      auto instant = std::lower_bound(instants.begin(), instants.end(), inside.from);
      for (; instant != instants.end() && *instant < inside.to; ++instant) {
        const bool held = std::any_of(rings.begin(), rings.end(), [&](const Known* r) {
          return StrictlyInside(r->unbroken, *instant);
        });
        if (!held) instants_[run.task].push_back(*instant);
      }
    }
  }

  void Ran(TaskCoverage* task, TimeSpan time) const {
    if (wants_runs_) task->ran.push_back(time);
  }

  using Rings = std::array<const Known*, 2>;  // of its CPU and of its thread; some know nothing

  // Most runs are known as a whole.
  static void AddMissing(const Rings& rings, TimeSpan inside, TaskCoverage* task) {
    if (std::any_of(rings.begin(), rings.end(),
                    [&](const Known* ring) { return ring->HasAllOf(inside); }))
      return;
    Spans missing = {inside};
    for (const Known* ring : rings) missing = Subtract(missing, Intersect(ring->spans, inside));
    task->breaks.insert(task->breaks.end(), missing.begin(), missing.end());
  }

  Rings RingsOf(const TaskRun& run) const {
    static const Known kNothing;
    const auto cpu = of_cpu_.find(run.cpu);
    const auto thread = of_thread_.find(run.task);
    return {cpu == of_cpu_.end() ? &kNothing : &cpu->second,
            thread == of_thread_.end() ? &kNothing : &thread->second};
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
  const bool wants_runs_;
  std::map<int64_t, Known> of_cpu_;
  std::map<int64_t, Known> of_thread_;
  std::unordered_map<int64_t, TaskCoverage> tasks_;
  std::unordered_map<int64_t, std::vector<TimeNs>> instants_;
};

}  // namespace

std::vector<TaskCoverage> CoverTasks(const WindowInput& input,
                                     const std::vector<RingTimeline>& timelines, TimeSpan window,
                                     bool wants_runs) {
  return TaskCoverer(input, timelines, window, wants_runs).Cover(timelines);
}

}  // namespace hangscope
