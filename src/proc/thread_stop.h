// Holds a thread for a moment, by ptrace, to read its registers. No signal is sent that the program
// could notice; if this process is killed meanwhile, the kernel lets the thread go.
#ifndef HANGSCOPE_PROC_THREAD_STOP_H
#define HANGSCOPE_PROC_THREAD_STOP_H

#include <signal.h>
#include <sys/user.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "proc/proc_text.h"
#include "proc/process_memory.h"
#include "proc/step_trace.h"
#include "proc/thread_image.h"

namespace hangscope {

// A thread that runs stops within a time slice.
constexpr TimeNs kLongestWaitForStop = 50 * kMillisecond;

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

struct StoppedRegisters {
  ThreadRegisters registers;
  // The system call that the kernel will go on with once the thread goes on; -1: none. The pc is
  // behind it, as /proc/PID/syscall tells it of a thread that nobody has stopped.
  int interrupted_call = -1;
};
// Of what ptrace gives. `read` reads the thread's code.
StoppedRegisters UnderstandRegisters(const user_regs_struct& raw, const ReadMemory& read);

struct StepLimits {
  TimeNs until = 0;  // monotonic
  size_t most = 0;   // steps
  // Asked when `until` is over, and when what it said is: until when more steps are worth while. A
  // time that is over ends the steps. May be empty.
  std::function<TimeNs(const StepTrace&)> longer;
};

class ThreadStop {
 public:
  // Stops it; waits up to `limit` for that (a thread in uninterruptible sleep does not stop). Only
  // one tracer may have a thread, so this fails under a debugger; and where ptrace is not
  // permitted.
  static Result<std::unique_ptr<ThreadStop>> Stop(Clock& clock, int tid, TimeNs limit);
  // Lets it go. Waits for a step that was begun, however long that takes; not for a system call.
  ~ThreadStop();
  ThreadStop(const ThreadStop&) = delete;
  ThreadStop& operator=(const ThreadStop&) = delete;

  Result<ThreadRegisters> Registers() const;
  // The system call that the stop has interrupted and that will go on afterwards; -1: none.
  int interrupted_call() const { return interrupted_call_; }
  TimeNs since() const { return since_; }

  // Lets it carry out one instruction after another, until its state comes back, or for as long as
  // `limits` allow. Stops before what must not be carried out in steps. System calls are carried
  // out that UseOf allows; where one sleeps, the steps end and it is left to sleep: this object
  // cannot let it go then, but the end of the thread that traces it does. A signal that comes ends
  // the steps, and is delivered. Carries out nothing where WhyNotToStep says why.
  //
  // Whoever calls this must not be killed before this object ends: the kernel would leave the trap
  // flag on, of which the target would die. See process/step_helper.h.
  StepTrace Step(const StepLimits& limits, const ReadMemory& read, StepMemory& memory);
  // Lets it go on with the system call that the stop has interrupted, and stops it at its end.
  // False: that did not come before `until`, and it is left in there as by Step.
  bool FinishCall(TimeNs until);
  // As many steps more as the trace's period, from the state that it ended in: whether it is in
  // that state again, its floating point and vector registers included.
  bool StepsBackInto(const StepTrace& trace, TimeNs until, const ReadMemory& read,
                     StepMemory& memory);

  // What the instruction at a pc is, as far as stepping has to know.
  enum class StepKind { kPlain, kKernel, kNever };

 private:
  ThreadStop(Clock& clock, int tid, TimeNs since) : clock_(clock), tid_(tid), since_(since) {}
  bool ReadState(StepState* state) const;
  bool StepOnce(TimeNs until);
  bool GoThroughCall(const std::function<bool(TimeNs since)>& may_wait);
  bool StepThroughCall(TimeNs until);
  bool StepOn(StepKind kind, TimeNs until, const ReadMemory& read, StepMemory& memory,
              StepState* state, std::vector<StepCall>* calls);
  int SignalOf(int status) const;
  void DropPendingTrap();
  std::string VectorRegisters() const;

  Clock& clock_;
  int tid_;
  int signal_ = 0;            // that came meanwhile
  bool is_stopped_ = true;    // as far as is known
  bool is_stepping_ = false;  // a step was begun, and its trap has not been seen
  bool is_in_call_ = false;   // it was let into a system call, and has not come back
  TimeNs since_;              // monotonic: when it was asked to stop
  mutable int interrupted_call_ = -1;
};

// The kernel forces the SIGTRAP of each step upon the thread: where that is blocked or ignored, it
// is neither afterwards, for good, and a handler for it is gone. The end of a sentence that says
// which; null where steps change nothing.
const char* WhyNotToStep(const TaskStatus& status);

// Whether a stop leaves a thread that sleeps in system call `number` undisturbed: the kernel goes
// on with it. Of others (epoll_wait, sigtimedwait, semop, ...) the program would see EINTR;
// signal(7) lists them.
bool StopIsHarmlessIn(int number);

}  // namespace hangscope

#endif
