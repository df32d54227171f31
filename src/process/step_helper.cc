#include "process/step_helper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>

#include "proc/proc_folder.h"
#include "proc/thread_stop.h"

namespace hangscope {
namespace {

constexpr size_t kMostStepsInAll = 100'000;
constexpr size_t kFewSteps = 64;          // so few tell nothing: the machine is busy
constexpr size_t kMostStepsTwice = 2000;  // a longer circle is gone around once where that will do
constexpr TimeNs kLongestWaitForHelper = kSecond;  // besides its steps; the machine may be busy
constexpr size_t kMostSentReads = 65536;
constexpr size_t kMostSentCalls = 64;
constexpr size_t kMostSentFlickers = 256;

// What the helper sends, followed by `reads` ranges, `calls` calls, `flickers` addresses. Both ends
// are the same program.
struct Report {
  uint64_t steps;
  uint64_t period;
  uint64_t stack_pointer;
  int64_t held;
  uint64_t begin;
  uint64_t end;
  uint64_t reads;
  uint64_t calls;
  uint64_t flickers;
  bool flickers_cut;
  bool changes_memory;
  bool understood;
  bool calls_kernel;
  bool yields;
  bool reads_clock;
};
static_assert(std::is_trivially_copyable_v<Report> &&
              std::is_trivially_copyable_v<LoopAccess::Range> &&
              std::is_trivially_copyable_v<SteppedLoop::Call>);

// Of those made at or after step `begin`. False: they are too many.
bool CollectCalls(const StepTrace& trace, size_t begin, std::vector<SteppedLoop::Call>* calls) {
  for (size_t i = 0; i < trace.calls.size(); ++i) {
    if (trace.call_steps[i] < begin) continue;
    const auto known = std::find_if(calls->begin(), calls->end(),
                                    [&](const auto& each) { return each.call == trace.calls[i]; });
    if (known != calls->end())
      ++known->times;
    else if (calls->size() < kMostSentCalls)
      calls->push_back({trace.calls[i], 1});
    else
      return false;
  }
  return true;
}

// In the newer half of the steps it has been nowhere where it was not in the older one.
bool IsInALoop(const StepTrace& trace) {
  const size_t half = trace.states.size() / 2;
  std::unordered_set<uint64_t> older;
  for (size_t i = 0; i < half; ++i) older.insert(trace.states[i].pc);
  return std::all_of(trace.states.begin() + static_cast<long>(half), trace.states.end(),
                     [&](const StepState& state) { return older.count(state.pc) != 0; });
}

// A poll that was to come back at once is begun again after a stop, and so is a sleep, which is not
// to be cut into pieces. Null: it sleeps, or does not stop.
std::unique_ptr<ThreadStop> StopBetweenCalls(Clock& clock, int tid) {
  constexpr int kTries = 30;
  const ProcFolder proc("/proc");
  for (int tries = 0; tries < kTries; ++tries) {
    auto stop = ThreadStop::Stop(clock, tid, kLongestWaitForStop);
    if (!stop.ok() || !(*stop)->Registers().ok()) return nullptr;
    if ((*stop)->interrupted_call() < 0) return std::move(*stop);
    stop->reset();
    clock.Sleep(kMillisecond / 5);
    const auto stat = proc.Stat(tid);
    if (!stat || stat->state != ThreadState::kRunning) return nullptr;
  }
  return nullptr;
}

SteppedLoop StepHeld(Clock& clock, ThreadStop& stop, const ReadMemory& read, TimeNs usual,
                     TimeNs end) {
  SteppedLoop loop;
  LoopMemory memory(read);
  const TimeNs start = clock.Monotonic();
  end = std::max(end, start + usual);
  StepLimits limits;
  limits.until = start + usual;
  limits.most = kMostStepsInAll;
  // Where vectors count, the circle is gone around twice, and must close in half of the time.
  limits.longer = [&](const StepTrace& trace) {
    const bool may_come_back = memory.is_understood() && !memory.Counts() &&
                               (trace.states.size() < kFewSteps || IsInALoop(trace));
    return !may_come_back ? 0 : memory.uses_vectors() ? start + (end - start) / 2 : end;
  };
  const StepTrace trace = stop.Step(limits, read, memory);
  if (trace.states.size() < 2) return loop;
  loop.steps = trace.states.size() - 1;
  loop.stack_pointer = trace.states.back().general[ThreadRegisters::kStackPointer];
  const size_t looked_at = trace.period > 0 ? trace.period : loop.steps;
  const size_t first = loop.steps - looked_at;
  loop.access = ExamineSteps(std::span(trace.states).subspan(first, looked_at), read);
  // What it may have changed before it came into the circle counts as part of that, too.
  loop.flickers = memory.TakeChanged();
  // The same again, with an eye on what the registers that are no part of a state hold, and on
  // whether the calls find the same.
  const bool is_proven = trace.period > kMostStepsTwice && memory.is_understood() &&
                         !loop.access.uses_vectors && trace.calls.empty();
  const TimeNs until = std::max(end, clock.Monotonic() + usual);
  if (trace.period > 0 && (is_proven || stop.StepsBackInto(trace, until, read, memory))) {
    loop.period = trace.period;
    loop.changes_memory = !memory.is_understood();
    if (!is_proven) loop.flickers = memory.TakeChanged();
  }
  const bool all_calls = CollectCalls(trace, first, &loop.calls);
  loop.access.calls_kernel = loop.access.calls_kernel || trace.wants_kernel || !all_calls;
  if (loop.period == 0)
    loop.changes_memory = !loop.access.understood || !loop.access.writes.empty();
  return loop;
}

// Empty where one of them does not stop.
std::vector<SteppedLoop> StepHere(Clock& clock, const std::vector<SteppedThread>& threads,
                                  const StepTimes& times) {
  std::vector<SteppedLoop> loops;
  const TimeNs begin = clock.Monotonic();
  {
    std::vector<std::unique_ptr<ThreadStop>> stops;
    for (const SteppedThread& thread : threads) {
      stops.push_back(StopBetweenCalls(clock, thread.tid));
      if (stops.back() == nullptr) return {};
    }
    const TimeNs end = clock.Monotonic() + std::max(times.longest, times.usual);
    for (size_t i = 0; i < threads.size(); ++i)
      loops.push_back(StepHeld(clock, *stops[i], threads[i].read, times.usual, end));
  }
  for (SteppedLoop& loop : loops) loop.held = clock.Monotonic() - begin;
  return loops;
}

template <typename T>
void Append(const std::vector<T>& list, size_t count, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(list.data()), count * sizeof(T));
}

void Send(int fd, const SteppedLoop& loop) {
  const LoopAccess& access = loop.access;
  const Report report = {loop.steps,
                         loop.period,
                         loop.stack_pointer,
                         loop.held,
                         access.begin,
                         access.end,
                         std::min(access.reads.size(), kMostSentReads),
                         loop.calls.size(),
                         std::min(loop.flickers.size(), kMostSentFlickers),
                         loop.flickers.size() > kMostSentFlickers,
                         loop.changes_memory,
                         access.understood,
                         access.calls_kernel,
                         access.yields,
                         access.reads_clock};
  std::string bytes(reinterpret_cast<const char*>(&report), sizeof report);
  Append(access.reads, report.reads, &bytes);
  Append(loop.calls, report.calls, &bytes);
  Append(loop.flickers, report.flickers, &bytes);
  // Where nobody listens any more, nobody misses it.
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t now = write(fd, bytes.data() + sent, bytes.size() - sent);
    if (now <= 0) return;
    sent += static_cast<size_t>(now);
  }
}

// Never returns. No signal but SIGKILL may end it while a thread has its trap flag on: nor may one
// that was meant for the group, or for all of this name.
[[noreturn]] void BeHelper(Clock& clock, int fd, const std::vector<SteppedThread>& threads,
                           const StepTimes& times) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  (void)setpgid(0, 0);
  prctl(PR_SET_NAME, "stepper");
  for (const SteppedLoop& loop : StepHere(clock, threads, times)) Send(fd, loop);
  _exit(0);
}

std::string ReadUntil(Clock& clock, int fd, TimeNs end) {
  std::string bytes;
  char buffer[4096];
  for (;;) {
    pollfd file = {fd, POLLIN, 0};
    const TimeNs left = end - clock.Monotonic();
    if (left <= 0) return {};
    const int ready = poll(&file, 1, static_cast<int>(left / kMillisecond) + 1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return {};
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got <= 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(got));
  }
}

// What is left of `bytes` begins with `count` of them. memcpy takes no null, not even of no bytes.
template <typename T>
void TakeFrom(std::string_view* bytes, uint64_t count, std::vector<T>* list) {
  list->resize(count);
  if (count > 0) std::memcpy(list->data(), bytes->data(), count * sizeof(T));
  bytes->remove_prefix(count * sizeof(T));
}

// Takes what is of one thread from the front of `bytes`. False: that cannot be.
bool TakeLoop(std::string_view* bytes, SteppedLoop* loop) {
  Report report = {};
  if (bytes->size() < sizeof report) return false;
  std::memcpy(&report, bytes->data(), sizeof report);
  bytes->remove_prefix(sizeof report);
  if (report.reads > kMostSentReads || report.calls > kMostSentCalls ||
      report.flickers > kMostSentFlickers ||
      bytes->size() < report.reads * sizeof(LoopAccess::Range) +
                          report.calls * sizeof(SteppedLoop::Call) +
                          report.flickers * sizeof(uint64_t) ||
      report.steps == 0)
    return false;
  loop->steps = report.steps;
  loop->period = report.period;
  loop->stack_pointer = report.stack_pointer;
  loop->held = report.held;
  loop->changes_memory = report.changes_memory;
  loop->flickers_cut = report.flickers_cut;
  loop->access.begin = report.begin;
  loop->access.end = report.end;
  loop->access.understood = report.understood;
  loop->access.calls_kernel = report.calls_kernel;
  loop->access.yields = report.yields;
  loop->access.reads_clock = report.reads_clock;
  TakeFrom(bytes, report.reads, &loop->access.reads);
  TakeFrom(bytes, report.calls, &loop->calls);
  TakeFrom(bytes, report.flickers, &loop->flickers);
  return true;
}

Result<std::vector<SteppedLoop>> Understand(std::string_view bytes,
                                            const std::vector<SteppedThread>& threads) {
  std::vector<SteppedLoop> loops;
  for (const SteppedThread& thread : threads) {
    if (!TakeLoop(&bytes, &loops.emplace_back()))
      return Status::Io(fmt::format(
          "whether thread {} goes in circles was not seen: nothing came of its steps", thread.tid));
  }
  return loops;
}

}  // namespace

Result<std::vector<SteppedLoop>> StepInHelper(Clock& clock,
                                              const std::vector<SteppedThread>& threads,
                                              const StepTimes& times) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::FromErrno(errno, "make", "a pipe");
  const pid_t helper = fork();
  if (helper == 0) BeHelper(clock, ends[1], threads, times);
  close(ends[1]);
  if (helper < 0) {
    close(ends[0]);
    return Status::FromErrno(errno, "start", "the process that steps");
  }
  const auto count = static_cast<TimeNs>(threads.size());
  const TimeNs longest = std::max(2 * times.usual * count, times.longest) + kLongestWaitForHelper;
  const std::string bytes = ReadUntil(clock, ends[0], clock.Monotonic() + longest);
  close(ends[0]);
  // It is never killed: it may have a thread in its hands. One that is late is left to init.
  for (int tries = 0; tries < 100 && waitpid(helper, nullptr, WNOHANG) == 0; ++tries)
    clock.Sleep(kMillisecond);
  return Understand(bytes, threads);
}

}  // namespace hangscope
