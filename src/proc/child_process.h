// The observed program as a child process, behind an interface with a fake.
#ifndef HANGSCOPE_PROC_CHILD_PROCESS_H
#define HANGSCOPE_PROC_CHILD_PROCESS_H

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "proc/crash_listener.h"
#include "proc/inherited_signals.h"
#include "proc/proc_text.h"

namespace hangscope {

struct ChildExit {
  int status = 0;  // if it ended by itself
  int signal = 0;  // if a signal killed it; else 0
};

// What the processes of the child do right now.
struct ChildActivity {
  bool known = true;         // false: /proc does not show them, and the rest says nothing
  int processes = 0;         // alive, the child's descendants included
  std::vector<int> ids;      // theirs
  TimeNs cpu_time = 0;       // of all there ever were; never falls
  bool timed_sleep = false;  // one of their threads sleeps for a set time
  bool stopped = false;      // by a signal, a debugger or a freezer
  bool runnable = false;     // one of their threads runs, or would if it were given a processor
  std::string waits_in;      // the system call that the innermost one waits in; may be empty
  // Once the program has ended: who still holds what it wrote to, "sleep (process 42)"; may be
  // empty.
  std::vector<std::string> holds_output;
};

// Where a signal for the child comes from.
enum class SignalSource {
  kProcess,  // sent to hangscope alone, as far as is known
  kTerminal  // sent by the kernel, to hangscope's whole process group
};

// One thread at a time.
class ChildProcess {
 public:
  virtual ~ChildProcess() = default;
  virtual pid_t pid() const = 0;
  // Collects whoever ended; the child's own end once it did. Does not wait.
  virtual std::optional<ChildExit> Poll() = 0;
  // To its whole process group; once it has ended, to all that descends from this process. Not to
  // those whom the terminal has sent it already. With SIGHUP and SIGTERM comes SIGCONT, as from a
  // shell: a stopped process ends only once it goes on.
  virtual void Signal(int signal_number, SignalSource source = SignalSource::kProcess) = 0;
  // To every process that descends from this one, in the group or not.
  virtual void SignalDescendants(int signal_number) = 0;
  virtual ChildActivity Activity() = 0;
  // Whether one of `processes`, all that the child has, waits for its standard input, and that is
  // no pipe that one of them writes. Reads every descriptor of them all once one of them waits so.
  virtual bool WaitsForInput(const std::vector<int>& processes) = 0;
  // Where the streams of the ChildOptions are read, in their order. The caller of
  // Start owns and closes them. A stream on a terminal may end with EIO.
  virtual const std::vector<int>& stream_fds() const = 0;
  // Crashes of processes that descend from this one, but for the child itself, as far as the kernel
  // tells of them; `crash_fd` can be read when there is one, -1: it never tells.
  virtual int crash_fd() const { return -1; }
  virtual std::vector<ProcessCrash> DrainCrashes() { return {}; }
  // Our terminal has another size: so has the child's, if it has one of its own.
  virtual void FollowTerminalSize() = 0;
};

// What the child writes and hangscope reads.
struct CapturedStream {
  std::string name;  // "stdout", "fd3"
  int child_fd = 1;  // the child's descriptor
  // Not a pipe but a pseudo terminal, which then is the child's stderr, too, and
  // its stdin if it would have had a terminal. Of one stream at most.
  bool pty = false;
};

struct ChildOptions {
  std::vector<std::string> command;  // program and arguments; no shell
  std::vector<CapturedStream> streams;
  // Called once the streams can be read and nothing has been started yet, with what
  // stream_fds will be; may be empty.
  std::function<void(const std::vector<int>& stream_fds)> before_start;
  // Called with the child while it waits, before it becomes the program: what is attached to it
  // then misses nothing of the program. May be empty. If hangscope dies meanwhile, the child goes
  // on.
  std::function<void(pid_t child)> before_exec;
  // Which descendants of ours are not the child's, nor are theirs; may be empty.
  std::function<bool(pid_t)> is_ours;
  InheritedSignals signals;
};

// All processes that descend from `root`, parents before children; without those for which
// `leave_out` is true, if it is not empty, and what descends from them.
std::vector<TaskStat> Descendants(pid_t root, const std::function<bool(pid_t)>& leave_out);

// Whether `program` can be found (along PATH, as execvp does) and executed: what
// can be known before anything is touched for its sake.
Status CheckProgram(const std::string& program);

// Starts the command and makes this process the reaper of its orphans. If a stream is a pseudo
// terminal, and standard input and output are ours, what is typed goes on to the child's. Else the
// child is in this process group where there is a terminal at all, so that it is in the foreground
// exactly when it would be without us; this thread blocks SIGTSTP, SIGTTIN and SIGTTOU then until
// the child's end, others must have been started later or block them, too, and this process stops
// when the child does. Without a terminal the child has a group of its own. The code of the failed
// Status: NotFound (127) or Io (126).
Result<std::unique_ptr<ChildProcess>> StartChild(const ChildOptions& options);

}  // namespace hangscope

#endif
