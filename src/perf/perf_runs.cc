#include "perf/perf_runs.h"

#include <algorithm>
#include <list>
#include <utility>

namespace hangscope {
namespace {

// Every how many runs the end of one is looked at, to find out which are the newest.
constexpr size_t kRunsOfSample = 64;

// The lists of all CPUs, each in the order of time.
class OrderedSwitches {
 public:
  explicit OrderedSwitches(const std::map<int64_t, PerfSwitches>& switches) {
    const auto by_time = [](const PerfSwitchAt& a, const PerfSwitchAt& b) {
      return a.time < b.time;
    };
    for (const auto& [where, of_cpu] : switches) {
      const PerfSwitches* ordered = &of_cpu;
      if (!std::is_sorted(of_cpu.begin(), of_cpu.end(), by_time)) {
        PerfSwitches& mine = sorted_.emplace_back(of_cpu);
        std::stable_sort(mine.begin(), mine.end(), by_time);
        ordered = &mine;
      }
      lists_.emplace_back(where, ordered);
      most_runs_ += ordered->size();
    }
  }

  size_t size() const { return lists_.size(); }
  size_t most_runs() const { return most_runs_; }  // that there can be

  // `use` gets a TaskRun.
  template <typename Use>
  void ForEachRun(TimeNs until, const Use& use) const {
    for (const auto& [where, switches] : lists_) {
      const int64_t cpu = std::max<int64_t>(where, -1);
      PerfSwitchAt running;
      for (const PerfSwitchAt& change : *switches) {
        const bool ends = change.came > 0 || change.left == running.came;
        if (ends && running.came > 0) use(TaskRun{running.came, cpu, {running.time, change.time}});
        if (ends) running = change;
      }
      if (running.came > 0) use(TaskRun{running.came, cpu, {running.time, until}});
    }
  }

 private:
  std::vector<std::pair<int64_t, const PerfSwitches*>> lists_;
  std::list<PerfSwitches> sorted_;
  size_t most_runs_ = 0;
};

}  // namespace

PerfRuns FindRuns(const std::map<int64_t, PerfSwitches>& switches, TimeNs until, size_t most,
                  const std::function<bool(int tid)>& is_wanted) {
  const OrderedSwitches ordered(switches);
  const auto for_each_wanted = [&](const auto& use) {
    ordered.ForEachRun(until, [&](const TaskRun& run) {
      if (is_wanted(static_cast<int>(run.task))) use(run);
    });
  };
  size_t count = ordered.most_runs();
  std::vector<TimeNs> ends;
  if (count > most) {
    count = 0;
    for_each_wanted([&](const TaskRun& run) {
      if (count++ % kRunsOfSample == 0) ends.push_back(run.time.to);
    });
  }
  PerfRuns found;
  found.left_out = count > most;
  // As many runs lie behind one of the samples in each list as behind the next, but for the first
  // and the last: behind so many samples there are `most` at least, and few more.
  const size_t samples = most / kRunsOfSample + 2 * ordered.size() + 1;
  TimeNs since = -1;
  if (found.left_out && samples < ends.size()) {
    const auto oldest = ends.end() - static_cast<ptrdiff_t>(samples);
    std::nth_element(ends.begin(), oldest, ends.end());
    since = *oldest;
  }
  found.runs.reserve(std::min(count, most + 4 * kRunsOfSample * (ordered.size() + 1)));
  for_each_wanted([&](const TaskRun& run) {
    if (run.time.to >= since) found.runs.push_back(run);
  });
  if (!found.left_out) return found;
  const auto newest = found.runs.end() - static_cast<ptrdiff_t>(most);
  std::nth_element(found.runs.begin(), newest, found.runs.end(),
                   [](const TaskRun& a, const TaskRun& b) { return a.time.to < b.time.to; });
  found.runs.erase(found.runs.begin(), newest);
  return found;
}

}  // namespace hangscope
