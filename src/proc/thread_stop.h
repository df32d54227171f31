// Holds a thread for a moment, by ptrace, to read its registers. No signal is sent that the program
// could notice; if this process is killed meanwhile, the kernel lets the thread go.
#ifndef HANGSCOPE_PROC_THREAD_STOP_H
#define HANGSCOPE_PROC_THREAD_STOP_H

#include <signal.h>
#include <sys/user.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "proc/proc_text.h"
#include "proc/process_memory.h"
#include "proc/steps/thread_moment.h"
#include "proc/thread_image.h"

namespace hangscope {

// A thread that runs stops within a time slice; one that waits for its turn on a busy machine runs
// on until that comes.
constexpr TimeNs kLongestWaitForStop = 250 * kMillisecond;

// As long as one exists, Ctrl-Z and its like do not stop this process, which would leave threads
// that it has stopped as they are until fg. They do so at its end. Of a process of several threads
// this is true where the others were started by the one that made it, or block those signals, too.
class SuspensionPutOff {
 public:
  SuspensionPutOff();
  ~SuspensionPutOff();
  SuspensionPutOff(const SuspensionPutOff&) = delete;
  SuspensionPutOff& operator=(const SuspensionPutOff&) = delete;

 private:
  sigset_t before_;
};

// As long as one exists, the thread that made it goes before all usual ones, where that is
// permitted (to root, as a rule): whom it holds is not held while others have their turns.
class PromptWhileHolding {
 public:
  PromptWhileHolding();
  ~PromptWhileHolding();
  PromptWhileHolding(const PromptWhileHolding&) = delete;
  PromptWhileHolding& operator=(const PromptWhileHolding&) = delete;
  // Who is prompt must sleep while it waits: whom it waits for may need this CPU.
  static bool IsSo();
};

struct StoppedRegisters {
  ThreadRegisters registers;
  // The system call that the kernel will go on with once the thread goes on; -1: none. The pc is
  // behind it, as /proc/PID/syscall tells it of a thread that nobody has stopped.
  int interrupted_call = -1;
};
// Of what ptrace gives. `read` reads the thread's code.
StoppedRegisters UnderstandRegisters(const user_regs_struct& raw, const ReadMemory& read);

class ThreadStop {
 public:
  // Stops it; waits up to `limit` for that (a thread in uninterruptible sleep does not stop). Only
  // one tracer may have a thread, so this fails under a debugger; and where ptrace is not
  // permitted. `while_waiting` is called again and again until it stands.
  static Result<std::unique_ptr<ThreadStop>> Stop(Clock& clock, int tid, TimeNs limit,
                                                  const std::function<void()>& while_waiting = {});
  // Lets it go. Does not wait for a system call that it was let into.
  ~ThreadStop();
  ThreadStop(const ThreadStop&) = delete;
  ThreadStop& operator=(const ThreadStop&) = delete;

  Result<ThreadRegisters> Registers() const;
  // The system call that the stop has interrupted and that will go on afterwards; -1: none.
  int interrupted_call() const { return interrupted_call_; }

  // What it is now, with those of `pages` that can be read; all of them are in memory, or it would
  // stand until they are fetched.
  bool CopyMoment(const std::vector<uint64_t>& pages, ThreadMoment* moment) const;
  // Lets it go on, and notes which system calls it makes and what they tell: at most so many, and
  // none that UseOf does not allow, which it is let go before. One that sleeps is left to sleep.
  void NoteCalls(size_t most, TimeNs until, const ReadMemory& read, ThreadMoment* moment);
  // Lets it go on with the system call that the stop has interrupted, and stops it at its end.
  // False: that did not come before `until`, and it is left in there: this object cannot let it go
  // then without disturbing it, but the end of the thread that traces it does.
  bool FinishCall(TimeNs until);
  // For how long it has stood still at a time, so far.
  TimeNs longest_hold() const {
    return std::max(longest_hold_, is_stopped_ ? clock_.Monotonic() - held_since_ : 0);
  }

 private:
  ThreadStop(Clock& clock, int tid, TimeNs since) : clock_(clock), tid_(tid), held_since_(since) {}
  bool CopyRegisters(ThreadMoment* moment) const;
  StepRange KernelWords() const;
  bool GoToCall(const std::function<bool(TimeNs since)>& may_wait);
  void Pause();
  static int SignalOf(int status);
  void Released();

  const PromptWhileHolding is_prompt_;
  Clock& clock_;
  int tid_;
  int signal_ = 0;           // that came meanwhile
  bool is_stopped_ = true;   // as far as is known
  bool is_in_call_ = false;  // it was let into a system call, and has not come back
  TimeNs held_since_;        // monotonic; at first, when it was asked to stop
  TimeNs longest_hold_ = 0;
  mutable int interrupted_call_ = -1;
};

// Whether a stop leaves a thread that sleeps in system call `number` undisturbed: the kernel goes
// on with it. Of others (epoll_wait, sigtimedwait, semop, ...) the program would see EINTR;
// signal(7) lists them.
bool StopIsHarmlessIn(int number);

}  // namespace hangscope

#endif
