#include "proc/thread_stop.h"

#include <elf.h>
#include <errno.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include "proc/terminal_stops.h"

namespace hangscope {
namespace {

#if defined(__aarch64__)
// This kernel decides about going on before it stops a thread, so nothing can be changed any more.
void LetCallGoOn(int) {}
#else
// What the kernel leaves in the result's register of a call that it will restart (linux/errno.h).
constexpr int64_t kRestartFirst = -516;
constexpr int64_t kRestartLast = -512;

bool IsRestart(int64_t result) {
  return result >= kRestartFirst && result <= kRestartLast && result != -515;
}

// Of the calls that end with EINTR whatever interrupted them, those that have done nothing yet
// where they say so.
bool MayBeMadeAgain(int64_t number) {
  switch (number) {
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_rt_sigtimedwait:
    case SYS_io_getevents:
    case SYS_io_uring_enter:
      return true;
    default:
      return false;
  }
}

// A thread that ran when it was asked to stop may have gone to sleep in one of these before it did.
// The result that the kernel left is exchanged for the one that says: go on, unless a handler of a
// signal runs; then EINTR. So the program sees what it would have seen; a timeout begins anew.
void LetCallGoOn(int tid) {
  constexpr int64_t kGoOnWithoutHandler = -514;  // -ERESTARTNOHAND
  user_regs_struct raw = {};
  iovec part = {&raw, sizeof raw};
  if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &part) != 0 || part.iov_len != sizeof raw) return;
  if (static_cast<int64_t>(raw.rax) != -EINTR ||
      !MayBeMadeAgain(static_cast<int64_t>(raw.orig_rax)))
    return;
  raw.rax = static_cast<unsigned long long>(kGoOnWithoutHandler);
  ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &part);
}
#endif

constexpr TimeNs kLongestWaitForEnd = 100 * kMillisecond;
constexpr TimeNs kStopsAtOnce = 300'000;

std::string WhyNotStopped(int tid, int error) {
  return fmt::format("thread {} cannot be stopped for its registers: {}", tid, ErrorText(error));
}

}  // namespace

#if defined(__aarch64__)
StoppedRegisters UnderstandRegisters(const user_regs_struct& raw, const ReadMemory& read) {
  constexpr uint32_t kSupervisorCall = 0xd4000001;  // svc #0
  StoppedRegisters stopped;
  for (size_t i = 0; i < 31; ++i) stopped.registers.values[i] = raw.regs[i];
  stopped.registers.values[ThreadRegisters::kStackPointer] = raw.sp;
  stopped.registers.pc = raw.pc;
  // This kernel takes the thread back to the instruction before it stops it, with its first
  // argument in x0 again, and x8 has the number.
  uint32_t code = 0;
  if (read(raw.pc, &code, sizeof code) && code == kSupervisorCall) {
    stopped.interrupted_call = static_cast<int>(raw.regs[8]);
    stopped.registers.pc += sizeof code;
  }
  return stopped;
}
#else
StoppedRegisters UnderstandRegisters(const user_regs_struct& raw, const ReadMemory&) {
  StoppedRegisters stopped;
  const std::array<uint64_t, 16> values = {raw.rax, raw.rdx, raw.rcx, raw.rbx, raw.rsi, raw.rdi,
                                           raw.rbp, raw.rsp, raw.r8,  raw.r9,  raw.r10, raw.r11,
                                           raw.r12, raw.r13, raw.r14, raw.r15};
  std::copy(values.begin(), values.end(), stopped.registers.values.begin());
  stopped.registers.pc = raw.rip;
  if (IsRestart(static_cast<int64_t>(raw.rax)))
    stopped.interrupted_call = static_cast<int>(raw.orig_rax);
  return stopped;
}
#endif

SuspensionPutOff::SuspensionPutOff() {
  const sigset_t stops = TerminalStops();
  pthread_sigmask(SIG_BLOCK, &stops, &before_);
}

SuspensionPutOff::~SuspensionPutOff() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

namespace {

struct UsualTurns {
  int holds = 0;
  bool was_changed = false;
  int policy = SCHED_OTHER;
  sched_param parameters = {};
};
thread_local UsualTurns usual_turns;

}  // namespace

PromptWhileHolding::PromptWhileHolding() {
  UsualTurns& usual = usual_turns;
  if (usual.holds++ > 0) return;
  const sched_param first = {1};
  usual.policy = sched_getscheduler(0);
  usual.was_changed = usual.policy == SCHED_OTHER && sched_getparam(0, &usual.parameters) == 0 &&
                      sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) == 0;
}

PromptWhileHolding::~PromptWhileHolding() {
  UsualTurns& usual = usual_turns;
  if (--usual.holds == 0 && usual.was_changed)
    sched_setscheduler(0, usual.policy, &usual.parameters);
}

bool PromptWhileHolding::IsSo() { return usual_turns.holds > 0 && usual_turns.was_changed; }

void ThreadStop::Pause() {
  constexpr TimeNs kShort = 5'000;
  if (PromptWhileHolding::IsSo())
    clock_.Sleep(kShort);
  else
    sched_yield();
}

Result<std::unique_ptr<ThreadStop>> ThreadStop::Stop(Clock& clock, int tid, TimeNs limit,
                                                     const std::function<void()>& while_waiting) {
  const PromptWhileHolding is_prompt;
  if (ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0)
    return Status::Io(WhyNotStopped(tid, errno));
  const TimeNs since = clock.Monotonic();
  // From here on, ending it detaches.
  std::unique_ptr<ThreadStop> stop(new ThreadStop(clock, tid, since));
  if (ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) != 0)
    return Status::Io(WhyNotStopped(tid, errno));
  for (;;) {
    const TimeNs now = clock.Monotonic();
    int status = 0;
    const pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
    if (got < 0) return Status::Io(WhyNotStopped(tid, errno));
    if (got == tid && WIFSTOPPED(status)) {
      if (status >> 16 == PTRACE_EVENT_STOP) {
        stop->held_since_ = now;
        LetCallGoOn(tid);
        return stop;
      }
      // A signal of its own came first: it is delivered, and the stop that was asked for comes
      // next.
      ptrace(PTRACE_CONT, tid, nullptr, WSTOPSIG(status));
      continue;
    }
    if (got == tid) return Status::NotFound(fmt::format("thread {} has just ended", tid));
    if (while_waiting) while_waiting();
    if (now - since > limit) return Status::Busy(WhyNotStopped(tid, ETIMEDOUT));
    // As a rule it stands at once; who sleeps here meanwhile finds it standing for longer.
    if (now - since < kStopsAtOnce)
      stop->Pause();
    else
      clock.Sleep(10'000);
  }
}

// What is to be delivered: nothing of our own making.
int ThreadStop::SignalOf(int status) {
  return status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status) & 0x7f;
}

void ThreadStop::Released() { longest_hold_ = longest_hold(); }

ThreadStop::~ThreadStop() {
  if (is_in_call_) return;
  if (ptrace(PTRACE_DETACH, tid_, nullptr, signal_) == 0 || errno != ESRCH) return;
  // It runs: the kernel lets go of what is stopped, and of all when this thread ends.
  ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr);
  const TimeNs until = clock_.Monotonic() + kLongestWaitForEnd;
  int status = 0;
  while (clock_.Monotonic() < until) {
    const pid_t got = waitpid(tid_, &status, __WALL | WNOHANG);
    if (got < 0 || (got == tid_ && !WIFSTOPPED(status))) return;
    // Where it stands before a call, or behind one, that is none of its signals.
    const bool is_at_call = got == tid_ && WSTOPSIG(status) == (SIGTRAP | 0x80);
    if (got == tid_ && ptrace(PTRACE_DETACH, tid_, nullptr, is_at_call ? 0 : SignalOf(status)) == 0)
      return;
    clock_.Sleep(10'000);
  }
}

Result<ThreadRegisters> ThreadStop::Registers() const {
  user_regs_struct raw = {};
  iovec part = {&raw, sizeof raw};
  if (ptrace(PTRACE_GETREGSET, tid_, NT_PRSTATUS, &part) != 0)
    return Status::Io(WhyNotStopped(tid_, errno));
  if (part.iov_len != sizeof raw)
    return Status::Io(fmt::format("thread {} belongs to a 32-bit program", tid_));
  const StoppedRegisters stopped =
      UnderstandRegisters(raw, [this](uint64_t address, void* to, size_t bytes) {
        errno = 0;
        const long word = ptrace(PTRACE_PEEKTEXT, tid_, address, nullptr);
        if (errno != 0 || bytes > sizeof word) return false;
        std::memcpy(to, &word, bytes);
        return true;
      });
  interrupted_call_ = stopped.interrupted_call;
  return stopped.registers;
}

bool StopIsHarmlessIn(int number) {
  switch (number) {
    case SYS_futex:
    case SYS_clock_nanosleep:
    case SYS_nanosleep:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_flock:
    case SYS_rt_sigsuspend:
#if defined(__x86_64__)
    case SYS_poll:
    case SYS_select:
    case SYS_pause:
#endif
      return true;
    default:
      return false;
  }
}

}  // namespace hangscope
