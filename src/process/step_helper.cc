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
#include <span>
#include <string>
#include <type_traits>

#include "proc/thread_stop.h"

namespace hangscope {
namespace {

constexpr size_t kMostSteps = 8192;
constexpr TimeNs kLongestWaitForHelper = kSecond;  // besides its steps; the machine may be busy
constexpr size_t kMostReads = 512;

// What the helper sends, followed by `reads` ranges. Both ends are the same program.
struct Report {
  uint64_t steps;
  uint64_t period;
  uint64_t stack_pointer;
  int64_t held;
  uint64_t begin;
  uint64_t end;
  uint64_t reads;
  bool changes_memory;
  bool understood;
  bool calls_kernel;
  bool yields;
  bool reads_clock;
};
static_assert(std::is_trivially_copyable_v<Report> &&
              std::is_trivially_copyable_v<LoopAccess::Range>);

std::string BytesOf(const std::vector<LoopAccess::Range>& ranges, const ReadMemory& read) {
  constexpr uint64_t kMostBytes = 64;  // of an instruction
  std::string bytes;
  for (const LoopAccess::Range& range : ranges) {
    std::string piece(std::min(range.bytes, kMostBytes), '\0');
    if (read(range.address, piece.data(), piece.size())) bytes += piece;
  }
  return bytes;
}

SteppedLoop StepHere(Clock& clock, int tid, TimeNs time, const ReadMemory& read) {
  SteppedLoop loop;
  const TimeNs begin = clock.Monotonic();
  {
    auto stop = ThreadStop::Stop(clock, tid, kLongestWaitForStop);
    auto registers = stop.ok() ? (*stop)->Registers() : Result<ThreadRegisters>(stop.status());
    if (!registers.ok() || (*stop)->interrupted_call() >= 0) return loop;
    const TimeNs until = clock.Monotonic() + time;
    const StepTrace trace = (*stop)->Step(until, kMostSteps, read);
    if (trace.states.size() < 2) return loop;
    loop.steps = trace.states.size() - 1;
    loop.stack_pointer = trace.states.back().general[ThreadRegisters::kStackPointer];
    const size_t looked_at = trace.period > 0 ? trace.period : loop.steps;
    loop.access =
        ExamineSteps(std::span(trace.states).subspan(loop.steps - looked_at, looked_at), read);
    loop.access.calls_kernel = loop.access.calls_kernel || trace.wants_kernel;
    loop.changes_memory = !loop.access.understood || !loop.access.writes.empty();
    // The same again, with an eye on what it writes: a lock that is tried again and again is the
    // same after as before.
    const std::string before = BytesOf(loop.access.writes, read);
    if (trace.period > 0 &&
        (*stop)->StepsBackInto(trace.states.back(), trace.period, until + time, read)) {
      loop.period = trace.period;
      if (loop.access.understood) loop.changes_memory = BytesOf(loop.access.writes, read) != before;
    }
  }
  loop.held = clock.Monotonic() - begin;
  return loop;
}

void Send(int fd, const SteppedLoop& loop) {
  const LoopAccess& access = loop.access;
  const Report report = {loop.steps,
                         loop.period,
                         loop.stack_pointer,
                         loop.held,
                         access.begin,
                         access.end,
                         std::min(access.reads.size(), kMostReads),
                         loop.changes_memory,
                         access.understood,
                         access.calls_kernel,
                         access.yields,
                         access.reads_clock};
  std::string bytes(reinterpret_cast<const char*>(&report), sizeof report);
  bytes.append(reinterpret_cast<const char*>(access.reads.data()),
               report.reads * sizeof(LoopAccess::Range));
  // It fits into the pipe; and where nobody listens any more, nobody misses it.
  if (write(fd, bytes.data(), bytes.size()) < 0) return;
}

// Never returns. No signal but SIGKILL may end it while a thread has its trap flag on: nor may one
// that was meant for the group, or for all of this name.
[[noreturn]] void BeHelper(Clock& clock, int fd, int tid, TimeNs time, const ReadMemory& read) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  (void)setpgid(0, 0);
  prctl(PR_SET_NAME, "stepper");
  Send(fd, StepHere(clock, tid, time, read));
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

Result<SteppedLoop> Understand(const std::string& bytes, int tid) {
  const Status warning = Status::Io(fmt::format(
      "whether thread {} goes in circles was not seen: nothing came of its steps", tid));
  Report report = {};
  if (bytes.size() < sizeof report) return warning;
  std::memcpy(&report, bytes.data(), sizeof report);
  if (report.reads > kMostReads ||
      bytes.size() != sizeof report + report.reads * sizeof(LoopAccess::Range) || report.steps == 0)
    return warning;
  SteppedLoop loop;
  loop.steps = report.steps;
  loop.period = report.period;
  loop.stack_pointer = report.stack_pointer;
  loop.held = report.held;
  loop.changes_memory = report.changes_memory;
  loop.access.begin = report.begin;
  loop.access.end = report.end;
  loop.access.understood = report.understood;
  loop.access.calls_kernel = report.calls_kernel;
  loop.access.yields = report.yields;
  loop.access.reads_clock = report.reads_clock;
  loop.access.reads.resize(report.reads);
  // A loop that nothing was understood of has none, and memcpy takes no null, not even of no bytes.
  if (report.reads > 0)
    std::memcpy(loop.access.reads.data(), bytes.data() + sizeof report,
                report.reads * sizeof(LoopAccess::Range));
  return loop;
}

}  // namespace

Result<SteppedLoop> StepInHelper(Clock& clock, int tid, TimeNs time, const ReadMemory& read) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::FromErrno(errno, "make", "a pipe");
  const pid_t helper = fork();
  if (helper == 0) BeHelper(clock, ends[1], tid, time, read);
  close(ends[1]);
  if (helper < 0) {
    close(ends[0]);
    return Status::FromErrno(errno, "start", "the process that steps");
  }
  const std::string bytes =
      ReadUntil(clock, ends[0], clock.Monotonic() + 2 * time + kLongestWaitForHelper);
  close(ends[0]);
  // It is never killed: it may have a thread in its hands. One that is late is left to init.
  for (int tries = 0; tries < 100 && waitpid(helper, nullptr, WNOHANG) == 0; ++tries)
    clock.Sleep(kMillisecond);
  return Understand(bytes, tid);
}

}  // namespace hangscope
