// What is known about hung programs without instrumentation: processes and threads of Linux as they
// were at one look, and what is concluded. Plain types between those who look (probe), judge
// (verdict) and show (export).
#ifndef HANGSCOPE_MODEL_PROCESS_H
#define HANGSCOPE_MODEL_PROCESS_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "model/finding.h"

namespace hangscope {

enum class ThreadState {
  kRunning,    // on a CPU, or wants one
  kSleeping,   // blocked; a signal would wake it
  kDiskSleep,  // blocked in the kernel; no signal would
  kStopped,    // by a signal
  kTraced,     // by a debugger
  kZombie,     // ended, and nobody collected it
  kDead,
  kUnknown,
};

struct StackFrame {
  uint64_t pc = 0;
  std::string function;  // demangled; empty: unknown
  std::string source;    // "server.c:88"; empty: unknown
  std::string module;    // "libc.so.6"; empty: none
};

// What a thread sleeps on, as far as its system call's arguments, its memory and its stack tell.
enum class WaitKind {
  kNone,   // it does not wait, or nobody knows for what
  kFutex,  // a futex that is nothing known
  kMutex,
  kRwLock,
  kCondition,
  kSemaphore,
  kBarrier,
  kJoin,      // the end of a thread
  kChild,     // the end of a child process
  kRead,      // from a file
  kWrite,     // to a file
  kPoll,      // poll, select, epoll: any of several files
  kAccept,    // a connection
  kTime,      // for time to pass, only
  kSignal,    // sigwait, pause
  kFileLock,  // flock, fcntl
  kOther,     // another system call
};

constexpr std::string_view WaitKindName(WaitKind kind) {
  switch (kind) {
    case WaitKind::kNone:
      return "none";
    case WaitKind::kFutex:
      return "futex";
    case WaitKind::kMutex:
      return "mutex";
    case WaitKind::kRwLock:
      return "rwlock";
    case WaitKind::kCondition:
      return "condition";
    case WaitKind::kSemaphore:
      return "semaphore";
    case WaitKind::kBarrier:
      return "barrier";
    case WaitKind::kJoin:
      return "join";
    case WaitKind::kChild:
      return "child";
    case WaitKind::kRead:
      return "read";
    case WaitKind::kWrite:
      return "write";
    case WaitKind::kPoll:
      return "poll";
    case WaitKind::kAccept:
      return "accept";
    case WaitKind::kTime:
      return "time";
    case WaitKind::kSignal:
      return "signal";
    case WaitKind::kFileLock:
      return "file lock";
    case WaitKind::kOther:
      return "other";
  }
  return "unknown";
}

enum class FileKind {
  kUnknown,
  kFile,
  kPipe,
  kSocket,
  kTerminal,
  kEvent,
  kTimer,
  kSignals,
  kEpoll,
  kProcess,
  kDevice
};

// A descriptor that a thread waits on.
struct WaitFile {
  int fd = -1;
  FileKind kind = FileKind::kUnknown;
  // "pipe:[4711]", "/dev/pts/3", "unix '/run/x.sock'", "tcp 127.0.0.1:80"
  std::string name;
  bool listening = false;  // a socket that takes connections
  bool outside = false;    // what it waits for comes from another machine, a device, a person
  bool wants_read = true;
  // Who has the other end: process ids with the descriptors by which they could end this wait
  // (writers of a pipe that is read, the peer of a socket). Those whose descriptors could not be
  // looked at make `others_unknown`.
  std::vector<std::pair<int, int>> others;
  bool others_unknown = false;
  // Why it is unknown: processes of other users might have it open, too. Else it is known, or
  // nobody can tell.
  bool others_hidden = false;
};

// A name in the file system by which others may open its ends, now or later.
inline bool IsNamedPipe(const WaitFile& file) {
  return file.kind == FileKind::kPipe && !file.name.empty() && !file.name.starts_with("pipe:[") &&
         !file.name.ends_with(" (deleted)");
}

struct ThreadWait {
  WaitKind kind = WaitKind::kNone;
  uint64_t address = 0;  // of futexes: the word; in the process's memory
  std::string variable;  // its name, where symbols tell: "lock_a", "queue+16"
  // of futexes: other processes may have it mapped, and `file`/`file_offset` tell where
  bool shared = false;
  // "/dev/shm/x+0x40": the same word for whoever maps it; empty: private
  std::string shared_name;
  // of mutexes and the like: the thread that holds it, as the memory says
  std::optional<int> owner;
  bool owner_died = false;    // there is no such thread any more
  std::optional<int> thread;  // of kJoin: which
  std::vector<int> children;  // of kChild: the processes it would take
  std::vector<WaitFile> files;
  bool has_timeout = false;       // it ends by itself
  std::optional<TimeNs> timeout;  // how long it waits at most, where known
};

struct ThreadFacts {
  int pid = 0;
  int tid = 0;
  std::string name;
  ThreadState state = ThreadState::kUnknown;
  // monotonic: when it last ran (blocked since), or wants to run since
  std::optional<TimeNs> since;
  int system_call = -1;          // its number; -1: in none
  std::string system_call_name;  // "futex"
  TimeNs cpu_time = 0;
  uint64_t voluntary_switches = 0;
  uint64_t involuntary_switches = 0;
  int cpu = -1;                   // that it ran on last
  std::vector<StackFrame> stack;  // innermost first
  bool stack_incomplete = false;
  std::string stack_warning;  // why there is none, or no more; a sentence; empty: nothing
  ThreadWait wait;
  // Of a thread that runs: what its steps showed; see SpinFacts.
  struct Spin {
    uint64_t steps = 0;  // that were looked at
    // after so many it was in exactly the same state again; 0: it was not
    uint64_t period = 0;
    bool writes_memory = false;  // inside that period
    bool calls_kernel = false;
    bool reads_clock = false;
    std::vector<uint64_t> polls;  // addresses that it reads, and no others, where they are known
    std::string polled_variable;
    uint64_t begin = 0;  // lowest and highest address of the loop
    uint64_t end = 0;
  };
  std::optional<Spin> spin;
};

struct ProcessFacts {
  int pid = 0;
  int parent = 0;
  std::string name;                           // comm
  std::string command;                        // of cmdline; may be empty
  ThreadState state = ThreadState::kUnknown;  // of its main thread
  std::vector<ThreadFacts> threads;
  bool handles_signals = false;  // it has handlers, timers: something may wake it
  // what could not be looked at, and how to grant it; a sentence each
  std::vector<std::string> warnings;
};

// All of one look. The asked process first; then those that its waits led to.
struct SystemSample {
  TimeNs begin = 0;  // monotonic
  TimeNs end = 0;
  std::vector<ProcessFacts> processes;
  TimeNs longest_stop = 0;  // how long the longest-stopped thread was held; 0: nobody was
  bool whole_process_stopped = false;
};

struct ProcessFinding : Finding {
  FindingKind kind = FindingKind::kHeld;
  // kDeadlock: the cycle, each waits for the next, the last for the first; else who
  std::vector<int> threads;
  std::vector<int> partners;  // threads or processes that would have to act
  std::vector<int> victims;   // threads that wait for these, directly or not
};

}  // namespace hangscope

#endif
