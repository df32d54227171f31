// What is known about hung programs without instrumentation: processes and threads of Linux as they
// were at one look, and what is concluded. Plain types between those who look (probe), judge
// (verdict) and show (export).
#ifndef HANGSCOPE_MODEL_PROCESS_H
#define HANGSCOPE_MODEL_PROCESS_H

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
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
  kFrozen,     // by its control group
  kZombie,     // ended, and nobody collected it
  kDead,
  kUnknown,
};

constexpr std::string_view ThreadStateName(ThreadState state) {
  switch (state) {
    case ThreadState::kRunning:
      return "running";
    case ThreadState::kSleeping:
      return "sleeping";
    case ThreadState::kDiskSleep:
      return "disk sleep";
    case ThreadState::kStopped:
      return "stopped";
    case ThreadState::kTraced:
      return "traced";
    case ThreadState::kFrozen:
      return "frozen";
    case ThreadState::kZombie:
      return "zombie";
    case ThreadState::kDead:
      return "dead";
    case ThreadState::kUnknown:
      break;
  }
  return "unknown";
}

// What a frame's code is written in: machine code of any language, or code that a runtime
// evaluates.
enum class FrameLanguage { kNative, kPython, kJava, kJavaScript, kRuby, kShell };

constexpr std::string_view FrameLanguageName(FrameLanguage language) {
  switch (language) {
    case FrameLanguage::kPython:
      return "python";
    case FrameLanguage::kJava:
      return "java";
    case FrameLanguage::kJavaScript:
      return "javascript";
    case FrameLanguage::kRuby:
      return "ruby";
    case FrameLanguage::kShell:
      return "shell";
    case FrameLanguage::kNative:
      break;
  }
  return "native";
}

struct StackFrame {
  uint64_t pc = 0;       // of native code
  std::string function;  // demangled; empty: unknown
  std::string source;    // "server.c:88"; empty: unknown
  // "libc.so.6"; of Python, JavaScript and Ruby the whole path of the file, of Java the class;
  // empty: none
  std::string module;
  FrameLanguage language = FrameLanguage::kNative;
  // Of a library that the system or a compiler has, or compiled in from a header of one.
  bool of_system = false;
};

inline bool HasFunction(const std::vector<StackFrame>& stack, std::string_view function) {
  return std::any_of(stack.begin(), stack.end(),
                     [&](const StackFrame& frame) { return frame.function == function; });
}

// What a thread sleeps on, as far as its system call's arguments, its memory and its stack tell.
enum class WaitKind {
  kNone,   // it does not wait, or nobody knows for what
  kFutex,  // a futex that is nothing known
  kMutex,
  kRwLock,
  kCondition,
  kSemaphore,
  kBarrier,
  kJoin,        // the end of a thread
  kChild,       // the end of a child process
  kRead,        // from a file
  kWrite,       // to a file
  kPoll,        // poll, select, epoll: any of several files
  kAccept,      // a connection
  kConnect,     // connect(): a place in a listener's backlog, or the other end's answer
  kTime,        // for time to pass, only
  kSignal,      // sigwait, pause
  kFileLock,    // flock, fcntl
  kOpen,        // somebody to open the other end of a named pipe
  kServerLock,  // a lock of a database server, which others of its processes have
  kRanks,       // what other ranks of its MPI job send: it runs, and polls for that
  // what a filter of seccomp asks for each such call, to allow or to answer it
  kSupervisor,
  kOther,  // another system call
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
    case WaitKind::kConnect:
      return "connect";
    case WaitKind::kTime:
      return "time";
    case WaitKind::kSignal:
      return "signal";
    case WaitKind::kFileLock:
      return "file lock";
    case WaitKind::kOpen:
      return "open";
    case WaitKind::kServerLock:
      return "server lock";
    case WaitKind::kRanks:
      return "ranks";
    case WaitKind::kSupervisor:
      return "supervisor";
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
  kQueue,       // of messages: POSIX, System V
  kSemaphore,   // System V
  kRing,        // io_uring
  kNotify,      // inotify
  kFault,       // a page that userfaultfd leaves to a process of this machine
  kMount,       // a file system that a process of this machine serves (FUSE)
  kServerLock,  // of WaitKind::kServerLock
  kDevice
};

constexpr std::string_view FileKindName(FileKind kind) {
  switch (kind) {
    case FileKind::kFile:
      return "file";
    case FileKind::kPipe:
      return "pipe";
    case FileKind::kSocket:
      return "socket";
    case FileKind::kTerminal:
      return "terminal";
    case FileKind::kEvent:
      return "event";
    case FileKind::kTimer:
      return "timer";
    case FileKind::kSignals:
      return "signals";
    case FileKind::kEpoll:
      return "epoll";
    case FileKind::kProcess:
      return "process";
    case FileKind::kQueue:
      return "queue";
    case FileKind::kSemaphore:
      return "semaphore";
    case FileKind::kRing:
      return "ring";
    case FileKind::kNotify:
      return "notify";
    case FileKind::kFault:
      return "fault";
    case FileKind::kMount:
      return "mount";
    case FileKind::kServerLock:
      return "server lock";
    case FileKind::kDevice:
      return "device";
    case FileKind::kUnknown:
      break;
  }
  return "unknown";
}

// A descriptor that a thread waits on.
struct WaitFile {
  int fd = -1;
  FileKind kind = FileKind::kUnknown;
  // "pipe:[4711]", "/dev/pts/3", "unix '/run/x.sock'", "tcp 127.0.0.1:80"
  std::string name;
  bool listening = false;  // a socket that takes connections
  // of kConnect: `name` is that of the socket which listens, and those who hold it are `others`. Of
  // a unix socket its backlog is full then; of tcp so many connections wait there to be accepted
  bool backlog = false;
  uint32_t queued = 0;
  bool outside = false;  // what it waits for comes from another machine, a device, a person
  bool wants_read = true;
  uint64_t signals = 0;  // of kSignals: which ones it tells of
  // of kTimer: nobody has armed it; of kEpoll: it watches no file; of kNotify: it watches none that
  // is still there; of kRing: it was given nothing to do. `others` could change that.
  bool is_idle = false;
  // of kSocket: nobody has accepted the connection, and `others` are those who could
  bool unaccepted = false;
  // Of kSocket: bytes have come to the other end, and nobody there has ever read any.
  bool unread = false;
  // Who has the other end: process ids with the descriptors by which they could end this wait
  // (writers of a pipe that is read, the peer of a socket). Those whose descriptors could not be
  // looked at make `others_unknown`.
  std::vector<std::pair<int, int>> others;
  bool others_unknown = false;
  // Why it is unknown: processes of other users might have it open, too. Else it is known, or
  // nobody can tell.
  bool others_hidden = false;
  // There are such, and none that could have inherited it: only one that it was sent to.
  bool others_unsent = false;
  // Of kQueue and kSemaphore: whoever knows its name, key or number may use it, too. Those of
  // System V have no descriptor, and `others` is who used it last.
  bool is_public = false;
  bool others_unsure = false;  // of those: `others` may never do what this wait is for
  // Of kServerLock: `others` do not have it, but want it, too, and come first.
  bool others_queue = false;
};

// Nobody has it open: whoever knows its number may use it.
inline bool IsOfSystemV(const WaitFile& file) {
  return file.kind == FileKind::kSemaphore || (file.kind == FileKind::kQueue && file.fd < 0);
}

// A name in the file system by which others may open its ends, now or later.
inline bool IsNamedPipe(const WaitFile& file) {
  return file.kind == FileKind::kPipe && !file.name.empty() && !file.name.starts_with("pipe:[") &&
         !file.name.ends_with(" (deleted)");
}

struct ThreadWait {
  WaitKind kind = WaitKind::kNone;
  uint64_t address = 0;  // of futexes: the word; in the process's memory
  std::string variable;  // its name, where symbols tell: "lock_a", "queue+16"
  // what it is to a program whose language has other objects than its system: "lock", "Queue",
  // "Future"; empty: what `kind` says
  std::string object_type;
  // of futexes: other processes may have it mapped, and `file`/`file_offset` tell where
  bool shared = false;
  // "/dev/shm/x+0x40": the same word for whoever maps it; empty: private
  std::string shared_name;
  // the processes that have it in their memory, where nobody else can come to it: it is of a file
  // that was removed, or of none; empty: not known
  std::vector<int> sharers;
  bool is_public = false;  // `sharers` have it, and whoever knows its name may come to it
  // of mutexes and the like: the thread that holds it, as the memory says
  std::optional<int> owner;
  bool owner_died = false;  // there is no such thread any more
  // fork() copied the lock while `owner`, a thread of another process, held it there
  bool owner_copied = false;
  // the lock does not record its holder; in the code of the function where `owner` stands every way
  // leads through taking it, and through nothing that gives it back
  bool owner_by_code = false;
  std::optional<int> thread;  // of kJoin: which
  // Of kChild: the processes it would take. Of other waits: those whose end interrupts it with
  // SIGCHLD, which is handled, or makes one of its files ready.
  std::vector<int> children;
  uint64_t signals = 0;  // of kSignal: those that end it, as far as the call and the handlers tell
  // of kSignal: each that could end it, or the process, is blocked or ignored, but SIGKILL
  bool no_signal_comes = false;
  std::vector<WaitFile> files;
  // A runtime wakes it now and then to look whether the lock is free: it waits on all the same.
  bool rechecks = false;
  // Other threads, or tasks of its loop, may end it by its language's means, whoever has that.
  bool may_be_interrupted = false;
  bool has_timeout = false;  // it ends by itself
  // Of kPoll: for the answer to a call over D-Bus that has come to its own process, which has not
  // answered it.
  bool of_own_call = false;
  std::optional<TimeNs> timeout;  // how long it waits at most, where known
  // A server ends it after so long in all, as the setting of this name has it; nothing: never.
  std::optional<TimeNs> given_up_after;
  std::string given_up_by;
  // Of kServerLock: the server looks for circles of such waits after so long, and ends one of them.
  std::optional<TimeNs> circle_ends_after;
};

// What an event loop, or the scheduler of Go, runs in turns: it has no thread of its own while it
// waits.
struct TaskFacts {
  std::string name;               // "Task-2"
  std::vector<StackFrame> stack;  // innermost first
  std::string waits_for;          // "Lock index_lock"; empty: for nothing, or nobody knows for what
  std::string holder;             // the task that has it: "Task-3"; empty: none, or not known
  // Those of its thread, by index, each of which it waits for; empty: none, or not known.
  std::vector<size_t> tasks;
  bool has_timeout = false;  // a time limit around it ends the wait
  // Of Go: any thread of the process may run it, whatever the one does that it is shown with.
  bool is_goroutine = false;
  // Of Go: nobody who may go on can come to what it waits for, over any pointers. Those of `tasks`
  // can, and are stranded, too.
  bool is_stranded = false;
  std::string known_to;  // of a stranded one: who these are, "goroutine 18"; empty: nobody
  // Of a stranded one: what it would do is waited for, as it is the program's main one, answers a
  // request or runs a test.
  bool is_awaited = false;
};

struct ThreadFacts {
  int pid = 0;
  int tid = 0;
  std::string name;
  std::string host;  // where it runs; empty: on this machine
  // When it was seen last, where that was in another look than the one it stands in; else 0.
  TimeNs seen_until = 0;
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
  std::string stack_warning;    // why there is none, or no more; a sentence; empty: nothing
  std::string kernel_function;  // where no signal wakes it: that it sleeps in there; empty: unknown
  std::vector<std::string> kernel_stack;  // of the same, innermost first; empty: unknown
  ThreadWait wait;
  // It has woken from a wait for a set time, and is in one at the same place again.
  bool naps_again = false;
  // It sleeps for a set time, or for what comes from outside, and none of the code that it can come
  // to after that wakes anybody, as far as threads wait for conditions, semaphores, barriers and
  // words of memory.
  bool wakes_nobody = false;
  bool uses_no_files = false;  // nor does any of it read, write or close a file that others have
  // else, of such a thread: the only descriptors by which it does; nothing: not known
  std::optional<std::set<int>> uses_descriptors;
  bool opens_files = false;  // and others, by their names
  // It serves the runtime of its program, as a collector of garbage does: nothing that the program
  // waits for comes from it.
  bool of_runtime = false;
  // It stands ready for work, in a pool or as a daemon: that it waits alone is no sign of a hang.
  bool stands_by = false;
  uint64_t stack_pointer = 0;  // of one that sleeps; 0: not known
  // Of the event loop that it runs, those that have not ended; of the main thread of a program of
  // Go, all goroutines.
  std::vector<TaskFacts> tasks;
  // Of a thread that runs: what its steps showed; see SpinFacts.
  struct Spin {
    uint64_t steps = 0;  // that were looked at
    // after so many it was in exactly the same state again; 0: it was not
    uint64_t period = 0;
    bool writes_memory = false;  // it leaves memory other than it was before that period
    // it comes to a system call that changes something, or sleeps, or is not understood
    bool calls_kernel = false;
    bool reads_clock = false;
    // It was in the same state only as far as that decides on its way: a counter, or the time, that
    // it keeps beside that, went on. `polls` are what decides then.
    bool in_part = false;
    // It sleeps for a time in each period, and looks again: `period` is what it does in between.
    bool naps = false;
    // A system call of the period, which has the same result each time and changes nothing.
    struct Call {
      std::string name;        // "epoll_wait"
      int64_t result = 0;      // below 0: an errno value, negative
      ThreadWait wait;         // what it asks for, as of a thread that sleeps in it; kNone: nothing
      std::vector<int> ready;  // descriptors of which it says that they are ready
    };
    std::vector<Call> calls;
    // Processes that could get it out in another way: by their end, of which a handler hears, or as
    // they could read what it does not.
    std::vector<int> others;
    std::vector<uint64_t> polls;  // addresses that it reads, and no others, where they are known
    bool polls_cut = false;       // there are more
    std::string polled_variable;
    // memory that other processes may have, too, or of a file that they may write
    bool polls_shared = false;
    std::vector<int> sharers;    // who has that, too
    bool sharers_known = false;  // all who have it
    // Processes that may write to memory of this one alone, from outside: they have it open, or run
    // a program that does such a thing. They are among `others` unless only the latter is known of
    // who has started this one.
    std::vector<int> writers;
    // Copies of this process that fork() made, or of which it is one: they know where its variables
    // are.
    std::vector<int> relatives;
    // Words outside of its stack that it changes and changes back in that period: who polls them
    // may get out by that.
    std::vector<uint64_t> flickers;
    bool flickers_cut = false;  // there are more
    // It was so while all others that spin were held, each of them in such a circle or not. Else
    // each may have been in its circle at another time, as those are that take turns.
    bool held_with_others = false;
    bool of_anonymous_code = false;  // it was made at run time, and is of no file
    uint64_t begin = 0;              // lowest and highest address of the loop
    uint64_t end = 0;
  };
  std::optional<Spin> spin;
};

// Of a process that is part of an MPI job: which, and who else is.
struct RankFacts {
  int rank = -1;
  std::vector<std::pair<int, int>> others;  // rank and process
  // There are more, on other hosts or not to be seen, or messages may come in other ways than
  // through memory that they share.
  bool others_unknown = false;
  uint64_t passed = 0;  // of that memory; as long as it is the same, no message has passed
};

// What a process of a database server does for a client, as its memory says.
struct SessionFacts {
  std::string server;  // "PostgreSQL"
  std::string user, database, application;
  std::string state;      // "idle in transaction"; empty: not known
  std::string statement;  // the one that it runs, or ran last
};

struct ProcessFacts {
  int pid = 0;
  int parent = 0;
  std::string name;                           // comm
  std::string host;                           // as of its threads
  std::string command;                        // of cmdline; may be empty
  ThreadState state = ThreadState::kUnknown;  // of its main thread
  std::vector<ThreadFacts> threads;
  std::vector<int> shares_memory_with;  // processes that are no threads of its (clone, vfork)
  // bit N-1: it has a handler for signal N, and not all of its threads block that
  uint64_t caught_signals = 0;
  uint64_t runtime_signals = 0;        // of these, those that its runtime handles for itself
  bool is_32_bit = false;              // its system calls have other numbers
  bool has_unread_java = false;        // its machine of Java must be asked for its threads
  bool is_hidden = false;              // what its threads wait for may not be seen
  int stop_signal = 0;                 // of one that is stopped: by which; 0: not known
  bool stopped_in_background = false;  // and it is in the background of its terminal
  std::optional<RankFacts> rank;       // nothing: it is none, or nobody looked
  std::optional<SessionFacts> session;
  int tracer = 0;  // the process that traces it; 0: none
  std::string tracer_name;
  std::string frozen_by;  // the file of its control group that has it frozen; empty: not known
  // what could not be looked at, and how to grant it; a sentence each
  std::vector<std::string> warnings;
};

// The end of a connection whose other end is on another machine, or in another network namespace.
struct RemoteEnd {
  std::string local, remote;                 // "10.0.0.1:80"
  std::vector<std::pair<int, int>> holders;  // processes and their descriptors
  bool others_unknown = false;               // there may be others who have it open

  bool operator==(const RemoteEnd&) const = default;
};

// All of one look. The asked processes first; then those that their waits led to.
struct SystemSample {
  TimeNs begin = 0;  // monotonic
  TimeNs end = 0;
  std::vector<ProcessFacts> processes;
  std::vector<int> asked;       // whom the question is about; empty: the first process alone
  bool asked_machines = false;  // of Java: they halted their threads to say where they are
  bool asked_are_all = true;    // false: there are more whom it is about than could be looked at
  std::string host, boot;       // where it was made: the host's name, the kernel's boot id
  std::vector<RemoteEnd> remote_ends;  // of the processes in it
  std::vector<int> leads;              // processes that could end a spin, and were not looked at
  TimeNs longest_stop = 0;  // how long the longest-stopped thread was held; 0: nobody was
  bool whole_process_stopped = false;
};

// How those stand whom the question was about, and whom they started, apart from what the findings
// tell.
struct ProcessStanding {
  std::vector<int> moving;   // threads that ran between the looks or want to run, but for tickers
  std::vector<int> tickers;  // asleep for a set time, or woken and asleep so again
  std::vector<int> serving;  // threads of runtimes for themselves, whatever they do
  // Who waits for what is shown to come from outside: "4711 nginx waits for a connection to tcp
  // 0.0.0.0:80".
  std::vector<std::string> outside;
  std::vector<std::string>
      unknown;                      // who stands still, and why it is not known what could end that
  std::vector<std::string> halted;  // by a signal, a debugger
  bool complete = false;            // each of the processes could be looked into
  std::string hidden;               // why not, of the first that could not; empty: all could
};

struct ProcessFinding : SourceFinding {
  std::vector<int> threads;   // whom it is about: of a deadlock in the order of the waits
  std::vector<int> partners;  // threads or processes that would have to act
  std::vector<int> victims;   // threads that wait for these, directly or not
  // About goroutines, which wait whatever the threads do: these only show them.
  bool of_goroutines = false;
};

}  // namespace hangscope

#endif
