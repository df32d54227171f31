#include "proc/thread_reader.h"

#include <fmt/format.h>
#include <sched.h>

#include <cerrno>

namespace hangscope {

std::optional<RawThread> ReadThread(const ProcFolder& proc, int pid, int tid) {
  const std::string folder = fmt::format("{}/task/{}/", pid, tid);
  // Its switches are counted before anything else is read, so that a change in between shows later.
  const auto status = proc.ReadRecord(folder + "status");
  const auto stat = proc.ReadRecord(folder + "stat");
  if (!status || !stat) return std::nullopt;
  const auto parsed_status = ParseTaskStatus(*status);
  auto parsed_stat = ParseTaskStat(*stat);
  if (!parsed_status || !parsed_stat) return std::nullopt;
  RawThread thread;
  thread.pid = pid;
  thread.tid = tid;
  thread.stat = std::move(*parsed_stat);
  thread.status = *parsed_status;
  if (const auto call = proc.ReadRecord(folder + "syscall", &thread.call_error)) {
    thread.call = ParseTaskSystemCall(*call);
    if (!thread.call) thread.call_error = EPROTO;
  }
  if (const auto sched = proc.ReadRecord(folder + "sched")) thread.last_ran = ParseLastRan(*sched);
  if (const auto times = proc.ReadRecord(folder + "schedstat"))
    thread.run_time = ParseTaskRunTime(*times).value_or(TaskRunTime());
  return thread;
}

bool StoodStill(const ProcFolder& proc, const RawThread& before) {
  const std::string folder = fmt::format("{}/task/{}/", before.pid, before.tid);
  const auto call = proc.ReadRecord(folder + "syscall");
  const auto status = proc.ReadRecord(folder + "status");
  if (!call || !status) return false;
  const auto now = ParseTaskSystemCall(*call);
  const auto counts = ParseTaskStatus(*status);
  return now && counts && before.call && *now == *before.call &&
         counts->voluntary_switches == before.status.voluntary_switches &&
         counts->involuntary_switches == before.status.involuntary_switches;
}

std::optional<TimeNs> SchedulerClock::Monotonic(int cpu, TimeNs stamp) {
  if (cpu < 0 || cpu >= CPU_SETSIZE) return std::nullopt;
  if (behind_.count(cpu) == 0) behind_[cpu] = Compare(cpu);
  const std::optional<TimeNs> behind = behind_[cpu];
  return behind ? std::optional<TimeNs>(stamp + *behind) : std::nullopt;
}

std::optional<TimeNs> SchedulerClock::Compare(int cpu) {
  cpu_set_t before;
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(static_cast<size_t>(cpu), &only);
  if (sched_getaffinity(0, sizeof before, &before) != 0 ||
      sched_setaffinity(0, sizeof only, &only) != 0)
    return std::nullopt;
  // Giving up the CPU makes the kernel stamp this thread.
  sched_yield();
  const TimeNs now = clock_.Monotonic();
  const auto text = proc_.Read("thread-self/sched");
  sched_setaffinity(0, sizeof before, &before);
  const auto stamp = text ? ParseLastRan(*text) : std::nullopt;
  return stamp ? std::optional<TimeNs>(now - *stamp) : std::nullopt;
}

}  // namespace hangscope
