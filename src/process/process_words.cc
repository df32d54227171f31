#include "process/process_words.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <iterator>
#include <set>
#include <string_view>

#include "base/status.h"
#include "base/units.h"
#include "base/utf8.h"
#include "process/signal_sets.h"
#include "runtime/python/python_reader.h"
#include "verdict/text.h"

namespace hangscope {
namespace {

constexpr size_t kMostName = 60;
constexpr size_t kMostOthers = 3;
constexpr size_t kMostLines = 16;  // of a finding

// "SIGTERM", "SIGRTMIN+1"
std::string SignalName(int number) {
  if (number >= SIGRTMIN) return fmt::format("SIGRTMIN+{}", number - SIGRTMIN);
  const char* const name = sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

std::string Short(const std::string& name) { return Printable(name, kMostName); }

// "mutex lock_b", "mutex at 0x7ffe1234".
std::string Variable(const char* kind, const ThreadWait& wait) {
  const std::string what = wait.object_type.empty() ? kind : Short(wait.object_type);
  if (!wait.variable.empty()) return fmt::format("{} {}", what, Short(wait.variable));
  if (!wait.shared_name.empty()) return fmt::format("{} {}", what, Short(wait.shared_name));
  return wait.address == 0 ? what : fmt::format("{} at {:#x}", what, wait.address);
}

// What a library waits for by means that say nothing to its caller: by a function of its that the
// thread is in.
struct LibraryObject {
  std::string_view function;           // a part of its name
  std::string_view text;               // "std::barrier"
  bool has_address = true;             // the word that is waited for is the object's
  std::string_view all;                // of several
  std::string_view end = "signal it";  // "nobody is left to ..."
};
// One that waits by means of another stands before it.
constexpr LibraryObject kLibraryObjects[] = {
    {"std::barrier", "std::barrier", true, "std::barriers", "come to it"},
    {"std::latch", "std::latch", true, "std::latches", "count it down"},
    {"std::counting_semaphore", "std::counting_semaphore", true, "std::counting_semaphores"},
    {"std::future", "std::future", true, "std::futures", "set it"},
    {"std::__future_base", "std::future", true, "std::futures", "set it"},
    {"std::__basic_future", "std::future", true, "std::futures", "set it"},
    {"std::__atomic_futex_unsigned", "std::future", true, "std::futures", "set it"},
    {"std::call_once", "std::call_once", true, "std::once_flags"},
    {"__cxa_guard_acquire", "static variable", true, "static variables"},
    {"v8::internal::FutexEmulation::Wait", "Atomics.notify", false, "calls of Atomics.notify",
     "call it"},
    {"std::sync::mpsc::SyncSender", "room in a channel", false, "channels", "make it"},
    {"std::sync::mpsc::Receiver", "a message of a channel", false, "channels", "send it"},
    {"std::sync::mpmc", "a channel", false, "channels", "use it"},
    {"barrier::Barrier::wait", "std::sync::Barrier", true, "std::sync::Barriers", "come to it"},
    {"condvar::Condvar::wait", "Condvar", true, "Condvars", "notify it"},
    {"mutex::Mutex<T>::lock", "Mutex", true, "Mutexes"},
    {"futex::Mutex::lock_contended", "Mutex", true, "Mutexes"},
    {"futex_mutex::Mutex::lock_contended", "Mutex", true, "Mutexes"},
    {"rwlock::RwLock<T>::", "RwLock", true, "RwLocks"},
    {"std::thread::park", "unpark()", false, "calls of unpark()", "call it"},
    {"std::thread::functions::park", "unpark()", false, "calls of unpark()", "call it"},
    {"g_async_queue_pop", "an item of a GAsyncQueue", false, "GAsyncQueues", "push it"},
    {"g_mutex_lock", "GMutex", true, "GMutexes"},
    {"concurrent_bounded_queue<...>::pop", "an item of a tbb::concurrent_bounded_queue", false,
     "tbb::concurrent_bounded_queues", "push it"},
    {"concurrent_bounded_queue<...>::push", "room in a tbb::concurrent_bounded_queue", false,
     "tbb::concurrent_bounded_queues", "make it"},
    {"GOMP_barrier", "OpenMP barrier", true, "OpenMP barriers", "come to it"},
    {"gomp_team_barrier_wait", "OpenMP barrier", true, "OpenMP barriers", "come to it"},
    {"GOMP_critical", "OpenMP critical section", true, "OpenMP critical sections"},
    {"omp_set_lock", "OpenMP lock", true, "OpenMP locks"},
    {"omp_set_nest_lock", "OpenMP lock", true, "OpenMP locks"},
};

bool IsOfLibraries(const StackFrame& frame);

// Null: it waits in no such function, for all that the frames above the program's tell.
const LibraryObject* LibraryObjectOf(const ThreadFacts& thread) {
  const bool may = thread.wait.kind == WaitKind::kFutex || thread.wait.kind == WaitKind::kBarrier ||
                   thread.wait.kind == WaitKind::kCondition;
  if (!may) return nullptr;
  const auto own = std::find_if(
      thread.stack.begin(), thread.stack.end(),
      [](const StackFrame& frame) { return !frame.function.empty() && !IsOfLibraries(frame); });
  for (const LibraryObject& object : kLibraryObjects) {
    if (std::any_of(thread.stack.begin(), own, [&](const StackFrame& frame) {
          return frame.function.find(object.function) != std::string::npos;
        }))
      return &object;
  }
  return nullptr;
}

// It waits for a lock of malloc's in one of its functions.
bool IsInMalloc(const ThreadFacts& thread) {
  constexpr std::string_view kOfMalloc[] = {
      "malloc",       "calloc",         "realloc",       "free",        "cfree",
      "memalign",     "posix_memalign", "aligned_alloc", "_int_malloc", "_int_free",
      "_int_realloc", "_int_memalign",  "arena_get2"};
  const std::vector<StackFrame>& stack = thread.stack;
  return stack.size() > 1 && stack[0].function.find("lll_lock_wait") != std::string::npos &&
         stack[1].module.starts_with("libc.so") &&
         std::find(std::begin(kOfMalloc), std::end(kOfMalloc), stack[1].function) !=
             std::end(kOfMalloc);
}

// "futex word_a", "std::future at 0x55d1c0a0".
std::string WordText(const char* kind, const ThreadFacts& thread) {
  if (IsInMalloc(thread)) {
    const std::string& variable = thread.wait.variable;
    const bool is_arena = variable.empty() || variable.starts_with("main_arena");
    return Variable(is_arena ? "malloc's arena lock" : "malloc's lock", thread.wait);
  }
  const LibraryObject* const object = LibraryObjectOf(thread);
  if (object == nullptr) return Variable(kind, thread.wait);
  if (!object->has_address) return std::string(object->text);
  // The library's own pool of waiters has a name that says nothing.
  ThreadWait wait = thread.wait;
  if (wait.variable.starts_with("std::__detail")) wait.variable.clear();
  return Variable(std::string(object->text).c_str(), wait);
}

std::string HeldBy(const ThreadFacts& thread) {
  const ThreadWait& wait = thread.wait;
  if (wait.owner_died)
    return wait.owner ? fmt::format(", held by {}, which ended", IdOnHost(*wait.owner))
                      : ", whose holder ended";
  if (!wait.owner) return "";
  if (wait.owner_copied)
    return fmt::format(", held by {} when fork() copied it", IdOnHost(*wait.owner));
  return *wait.owner == thread.tid ? ", which it holds itself"
                                   : fmt::format(", held by {}", IdOnHost(*wait.owner));
}

std::string OnHost(const std::string& host) { return host.empty() ? "" : " on " + Short(host); }

std::string Processes(const std::set<int>& pids, int own, const SystemSample& look) {
  std::string text;
  size_t shown = 0;
  for (const int pid : pids) {
    if (shown++ == kMostOthers)
      return text + fmt::format(" and {} more", pids.size() - kMostOthers);
    const ProcessFacts* const process = FindProcess(look, pid);
    const std::string name =
        process == nullptr || process->name.empty() ? "" : " " + Short(process->name);
    text += (text.empty() ? "" : ", ") +
            (pid == own ? std::string("itself")
                        : fmt::format("{}{}{}", IdOnHost(pid), name,
                                      process == nullptr ? "" : OnHost(process->host)));
  }
  return text;
}

const char* FileKindText(FileKind kind) {
  switch (kind) {
    case FileKind::kPipe:
      return "a pipe";
    case FileKind::kSocket:
      return "a socket";
    case FileKind::kTerminal:
      return "a terminal";
    case FileKind::kEvent:
      return "an eventfd";
    case FileKind::kTimer:
      return "a timer";
    case FileKind::kSignals:
      return "signals";
    case FileKind::kEpoll:
      return "an epoll";
    case FileKind::kProcess:
      return "the end of a process";
    case FileKind::kQueue:
      return "a message queue";
    case FileKind::kSemaphore:
      return "a semaphore";
    case FileKind::kRing:
      return "completions of an io_uring";
    case FileKind::kNotify:
      return "an inotify";
    case FileKind::kFault:
      return "a page";
    case FileKind::kMount:
      return "a mount";
    case FileKind::kServerLock:
      return "a lock";
    case FileKind::kDevice:
      return "a device";
    default:
      return "a file";
  }
}

// Whose name says more than what kind it is.
bool HasName(const WaitFile& file) {
  switch (file.kind) {
    case FileKind::kPipe:
      return IsNamedPipe(file);
    case FileKind::kEvent:
    case FileKind::kTimer:
    case FileKind::kSignals:
    case FileKind::kEpoll:
    case FileKind::kProcess:
    case FileKind::kRing:
    case FileKind::kNotify:
    case FileKind::kFault:
      return false;
    default:
      return !file.name.empty();
  }
}

std::set<int> HoldersOf(const WaitFile& file) {
  std::set<int> pids;
  for (const auto& [pid, fd] : file.others) pids.insert(pid);
  return pids;
}

// ", held by 4713 server"; ", which it holds itself through fd 9".
std::string HeldBy(const WaitFile& file, int own, const SystemSample& look) {
  const std::set<int> pids = HoldersOf(file);
  if (pids.empty()) return "";
  if (pids == std::set<int>{own} && !file.others_unknown)
    return ", which it holds itself" +
           (file.others[0].second < 0 ? "" : fmt::format(" through fd {}", file.others[0].second));
  return ", held by " + Processes(pids, own, look) +
         (file.others_unknown ? " and perhaps others" : "");
}

// "the end of process 4713 server (fd 3)"
std::string EndText(const WaitFile& file, int own, const SystemSample& look) {
  const std::set<int> pids = HoldersOf(file);
  const std::string end = pids.empty() ? "the end of a process"
                          : pids == std::set<int>{own}
                              ? "the end of its own process"
                              : "the end of process " + Processes(pids, 0, look);
  return file.fd < 0 ? end : fmt::format("{} (fd {})", end, file.fd);
}

// "System V semaphore 1 of set 3, last taken by 4713 server"; "..., private to 4712 client, 4713
// server"
std::string SystemVText(const WaitFile& file, const SystemSample& look) {
  if (file.others.empty()) return Short(file.name);
  if (!file.is_public)
    return fmt::format("{}, private to {}", Short(file.name), Processes(HoldersOf(file), 0, look));
  const char* const did = file.kind == FileKind::kSemaphore ? "last taken"
                          : file.wants_read                 ? "last sent"
                                                            : "last received";
  return fmt::format("{}, {} by {}", Short(file.name), did, Processes(HoldersOf(file), 0, look));
}

// "SIGUSR1", "SIGUSR1 or SIGTERM", "one of 5 signals"
std::string SignalNames(uint64_t signals) {
  constexpr int kMost = 3;
  std::string text;
  for (int number = 1; number <= 64; ++number) {
    if ((signals & SignalBit(number)) != 0)
      text += (text.empty() ? "" : " or ") + SignalName(number);
  }
  return std::popcount(signals) <= kMost ? text
                                         : fmt::format("one of {} signals", std::popcount(signals));
}

const char* IdleText(FileKind kind) {
  return kind == FileKind::kTimer  ? " that is not armed"
         : kind == FileKind::kRing ? " that was given nothing to do"
                                   : " that watches no file";
}

// "a pipe (fd 3) that only 4713 server writes".
std::string FileText(const WaitFile& file, int own, const SystemSample& look) {
  if (file.kind == FileKind::kProcess) return EndText(file, own, look);
  if (IsOfSystemV(file)) return SystemVText(file, look);
  if (file.kind == FileKind::kMount) {
    const std::string server =
        file.others.empty() ? "" : ", served by " + Processes(HoldersOf(file), own, look);
    return file.name.empty()
               ? "an answer of a file system that a process serves"
               : fmt::format("an answer of the file system {}{}", Short(file.name), server);
  }
  if (file.kind == FileKind::kFault)
    return file.others.empty() ? "a page that a userfaultfd keeps back"
                               : "a page that a userfaultfd keeps back, of " +
                                     Processes(HoldersOf(file), own, look);
  std::string text = file.kind == FileKind::kSignals && file.signals != 0
                         ? SignalNames(file.signals)
                     : HasName(file) ? Short(file.name)
                                     : FileKindText(file.kind);
  if (file.kind == FileKind::kQueue && HasName(file)) text = "queue " + text;
  if (file.is_idle) text += IdleText(file.kind);
  if (file.fd >= 0) text += fmt::format(" (fd {})", file.fd);
  if (file.unaccepted)
    return file.others.empty() ? text + ", not accepted yet"
                               : fmt::format("{}, not accepted yet by {}{}", text,
                                             Processes(HoldersOf(file), own, look),
                                             file.others_unknown ? " or others" : "");
  const std::set<int> pids = file.is_idle ? std::set<int>() : HoldersOf(file);
  if (pids.empty()) return text;
  const char* const used = !file.wants_read                ? "read"
                           : file.kind == FileKind::kQueue ? "sent"
                                                           : "written";
  return fmt::format("{} {} by {}{}{}", text, used, Processes(pids, own, look),
                     file.others_unknown ? " and perhaps others" : "",
                     file.unread ? ", which has not read the request" : "");
}

// Of one that connects.
std::string ConnectText(const WaitFile& file, int own, const SystemSample& look) {
  const std::string name = HasName(file) ? Short(file.name) : FileKindText(file.kind);
  if (!file.backlog) return fmt::format("an answer to connect() on {} (fd {})", name, file.fd);
  const std::string who = name + HeldBy(file, own, look);
  return file.queued == 0 ? "a free place in the backlog of " + who
                          : fmt::format("an answer from {}, where {} connection{} not accepted yet",
                                        who, file.queued, file.queued == 1 ? " is" : "s are");
}

// "somebody to open commands.fifo for writing, as the code of 4713 server does later"
std::string OpenText(const ThreadWait& wait, const SystemSample& look) {
  if (wait.files.empty()) return "somebody to open a named pipe for writing";
  const WaitFile& file = wait.files[0];
  const std::string who = file.others.empty() ? ""
                                              : fmt::format(", as the code of {} does later",
                                                            Processes(HoldersOf(file), 0, look));
  return fmt::format("somebody to open {} for {}{}", Short(file.name),
                     file.wants_read ? "writing" : "reading", who);
}

// "the lock of database app.db (fd 3), held by 547 sqlite3"
std::string DatabaseText(const WaitFile& file, int own, const SystemSample& look) {
  const std::set<int> pids = HoldersOf(file);
  return fmt::format("the lock of database {} (fd {}), held by {}", Short(file.name), file.fd,
                     pids == std::set<int>{own} ? "another connection of its process"
                                                : Processes(pids, own, look));
}

// "the lock of transaction 735 (ShareLock), held by 4712 postgres"
std::string ServerLockText(const ThreadFacts& thread, const SystemSample& look) {
  const std::vector<WaitFile>& files = thread.wait.files;
  if (files.empty()) return "a lock of its server";
  constexpr size_t kMostOfLock = 120;
  std::string text = "the " + Printable(files[0].name, kMostOfLock);
  if (files[0].outside) text += ", held by a prepared transaction";
  const std::set<int> pids = HoldersOf(files[0]);
  if (pids.empty()) return text;
  return fmt::format("{}, {} {}{}", text,
                     files[0].others_queue ? "which is given first to"
                     : files[0].outside    ? "and by"
                                           : "held by",
                     Processes(pids, thread.pid, look),
                     files[0].others_unknown ? " and perhaps others" : "");
}

// Of a process that serves a client of a database: "its client 4711 shop, idle in transaction
// (fd 9)"; empty: it is none, or does not wait for that.
std::string ClientText(const ThreadFacts& thread, const SystemSample& look) {
  const ProcessFacts* const process = FindProcess(look, thread.pid);
  const std::vector<WaitFile>& files = thread.wait.files;
  const bool talks = thread.wait.kind == WaitKind::kRead || thread.wait.kind == WaitKind::kWrite;
  if (process == nullptr || !process->session || !talks || files.size() != 1 ||
      files[0].kind != FileKind::kSocket)
    return "";
  const std::set<int> pids = HoldersOf(files[0]);
  const std::string& state = process->session->state;
  const std::string who = pids.empty() ? "at " + Short(files[0].name)
                                       : Processes(pids, thread.pid, look) +
                                             (files[0].others_unknown ? " or others" : "");
  return fmt::format("{}its client {}{} (fd {})",
                     thread.wait.kind == WaitKind::kWrite ? "room for an answer to " : "", who,
                     state.empty() ? "" : ", " + state, files[0].fd);
}

// "rank 1, in MPI_Recv"; "other ranks, in MPI_Barrier"
std::string RanksText(const ThreadFacts& thread, const SystemSample& look) {
  const ProcessFacts* const process = FindProcess(look, thread.pid);
  const bool is_one = process != nullptr && process->rank && process->rank->others.size() == 1 &&
                      !process->rank->others_unknown;
  return fmt::format(
      "{}, in {}", is_one ? fmt::format("rank {}", process->rank->others[0].first) : "other ranks",
      Short(thread.wait.object_type));
}

std::string LockText(const WaitFile& file, int own, const SystemSample& look) {
  return fmt::format("the lock of {} (fd {}){}",
                     HasName(file) ? Short(file.name) : FileKindText(file.kind), file.fd,
                     HeldBy(file, own, look));
}

std::string ChildText(const ThreadWait& wait, const SystemSample& look) {
  if (wait.children.size() != 1)
    return fmt::format("the end of one of {} children", wait.children.size());
  return "the end of child " + Processes({wait.children[0]}, 0, look);
}

std::string WhatComesFrom(FileKind kind) {
  switch (kind) {
    case FileKind::kEvent:
    case FileKind::kTimer:
    case FileKind::kSemaphore:
    case FileKind::kSignals:
    case FileKind::kRing:
    case FileKind::kNotify:
    case FileKind::kFault:
    case FileKind::kMount:
    case FileKind::kServerLock:
      return "";
    case FileKind::kQueue:
      return "a message from ";
    default:
      return "data from ";
  }
}

std::string FilesText(const ThreadFacts& thread, const SystemSample& look) {
  const ThreadWait& wait = thread.wait;
  if (wait.files.empty()) return wait.kind == WaitKind::kAccept ? "a connection" : "files";
  // Of several the one that tells that the outside may end it.
  const auto outside = std::find_if(wait.files.begin(), wait.files.end(), [](const WaitFile& file) {
    return file.outside || file.listening;
  });
  const WaitFile& shown = outside == wait.files.end() ? wait.files[0] : *outside;
  const std::string first = FileText(shown, thread.pid, look);
  if (wait.files.size() > 1)
    return fmt::format("any of {} files, one is {}", wait.files.size(), first);
  switch (wait.kind) {
    case WaitKind::kWrite:
      return "room in " + first;
    case WaitKind::kAccept:
      return "a connection to " + first;
    case WaitKind::kPoll:
      return (wait.files[0].listening ? "a connection to " : "") + first;
    default:
      return WhatComesFrom(shown.kind) + first;
  }
}

// Ruby waits for children over a file: its handler of SIGCHLD writes it.
bool IsRubysWaitForChild(const ThreadFacts& thread) {
  return !thread.wait.children.empty() && HasFunction(thread.stack, "rb_waitpid");
}

// "a pipe written by itself" of "a pipe (fd 3) written by itself".
std::string WithoutNumber(const WaitFile& file, int own, const SystemSample& look) {
  WaitFile bare = file;
  bare.fd = -1;
  return FileText(bare, own, look);
}

std::string NumberedText(const WaitFile& file, int own, const SystemSample& look) {
  return fmt::format("fd {} ({})", file.fd, WithoutNumber(file, own, look));
}

// What a call that asks about several files has found.
std::string PollText(const ThreadFacts::Spin::Call& call, int own, const SystemSample& look) {
  const std::vector<WaitFile>& files = call.wait.files;
  const auto find = [&](int fd) {
    return std::find_if(files.begin(), files.end(),
                        [&](const WaitFile& file) { return file.fd == fd; });
  };
  if (!call.ready.empty()) {
    const auto ready = find(call.ready[0]);
    const std::string what = ready == files.end() ? fmt::format("fd {}", call.ready[0])
                                                  : NumberedText(*ready, own, look);
    if (ready != files.end() && IsHungUp(call, *ready)) return what + " has no other end any more";
    return what +
           (ready != files.end() && !ready->wants_read ? " is ready" : " is ready and is not read");
  }
  if (call.result > 0) return "something is ready all the time";
  if (call.result < 0) return ErrorText(static_cast<int>(-call.result));
  if (files.empty()) return "nothing is ready";
  return files.size() == 1 ? NumberedText(files[0], own, look) + " is not ready"
                           : fmt::format("none of {} files is ready", files.size());
}

std::string SpinCallText(const ThreadFacts::Spin::Call& call, int own, const SystemSample& look) {
  const ThreadWait& wait = call.wait;
  const std::string name = Printable(call.name);
  if (wait.kind == WaitKind::kPoll) return name + ": " + PollText(call, own, look);
  if (wait.kind == WaitKind::kChild)
    return name + ": " +
           (call.result < 0 || wait.children.empty()
                ? "there is no such child"
                : fmt::format("{} has not come", ChildText(wait, look)));
  if (wait.files.empty()) return name;
  if (wait.kind == WaitKind::kFileLock) return name + " for " + LockText(wait.files[0], own, look);
  if (wait.files[0].kind == FileKind::kProcess && wait.files[0].fd < 0) {
    const std::string end = EndText(wait.files[0], own, look);
    return call.result < 0 ? fmt::format("{}: {}", name, ErrorText(static_cast<int>(-call.result)))
                           : fmt::format("{}: {} has not come", name, end);
  }
  const std::string of = name + " of " + NumberedText(wait.files[0], own, look);
  const bool has_none = call.result == -EAGAIN || (call.name == "ioctl" && call.result == 0);
  if (has_none)
    return of + (wait.kind == WaitKind::kWrite ? ", which takes no more" : ", which has nothing");
  if (call.result < 0) return fmt::format("{}: {}", of, ErrorText(static_cast<int>(-call.result)));
  return of + (wait.kind == WaitKind::kRead ? ", which is at its end" : "");
}

std::string SpinText(const ThreadFacts::Spin& spin, int own, const SystemSample& look) {
  const auto asks = std::find_if(spin.calls.begin(), spin.calls.end(), [](const auto& call) {
    return call.wait.kind != WaitKind::kNone;
  });
  if (asks != spin.calls.end()) return "spins through " + SpinCallText(*asks, own, look);
  const std::string through =
      spin.calls.empty() ? "" : " through " + Printable(spin.calls.front().name);
  if (!spin.polled_variable.empty())
    return fmt::format("spins{} for {}{}", through,
                       spin.polled_variable.starts_with("on the stack") ? "a word " : "",
                       Short(spin.polled_variable));
  if (spin.polls.size() == 1)
    return fmt::format("spins{} for the word at {:#x}", through, spin.polls[0]);
  return spin.polls.empty() ? "spins" + through
                            : fmt::format("spins{} while {}{} words stay the same", through,
                                          spin.polls_cut ? "more than " : "", spin.polls.size());
}

// Of what every program of C or C++ has: it is how one waits there, and starts. In a static program
// only the names tell, of which C leaves those with two underscores to its library, and POSIX those
// of threads.
bool IsOfLanguage(const StackFrame& frame) {
  for (const char* module : {"libc.so", "libc-", "libpthread", "ld-linux", "ld-musl", "libstdc++",
                             "libgcc", "libc++", "[vdso]", "linux-vdso"}) {
    if (frame.module.starts_with(module)) return true;
  }
  for (const char* prefix : {"std::", "__", "pthread_"}) {
    if (frame.function.starts_with(prefix)) return true;
  }
  return false;
}

bool IsOfLibraries(const StackFrame& frame) {
  if (frame.language == FrameLanguage::kPython) return IsPythonLibrary(frame.module);
  return frame.of_system || (frame.language == FrameLanguage::kNative && IsOfLanguage(frame));
}

bool HasPlace(const StackFrame& frame) { return !frame.function.empty() || !frame.source.empty(); }

// A program that is little more than a call of a library, as perl and ruby are.
bool IsShell(const StackFrame& frame) {
  return frame.source.empty() && (frame.function == "main" || frame.function == "_start");
}

std::string FormatNap(TimeNs time) {
  return time < kSecond ? fmt::format("{:.3g} ms", Seconds(time) * 1e3) : FormatElapsed(time);
}

// "naps 5 ms in take_gil, again and again".
std::string NapText(const ThreadFacts& thread, const SystemSample& look) {
  const ThreadWait& wait = thread.wait;
  const bool has_name = wait.kind != WaitKind::kTime && wait.kind != WaitKind::kNone;
  if (has_name && wait.kind != WaitKind::kCondition)
    return fmt::format("waits for {}, again and again", WaitedFor(thread, look));
  const auto own = std::find_if(
      thread.stack.begin(), thread.stack.end(),
      [](const StackFrame& frame) { return !IsOfLibraries(frame) && !frame.function.empty(); });
  return fmt::format("naps{}{}, again and again",
                     wait.timeout ? " " + FormatNap(*wait.timeout) : "",
                     own == thread.stack.end() ? "" : " in " + Short(own->function));
}

// "naps 2 ms and looks again for ready_flag".
std::string NapAndLookText(const ThreadFacts& thread, const SystemSample& look) {
  constexpr std::string_view kSpins = "spins";
  const ThreadWait& wait = thread.wait;
  const bool is_for_lock = wait.kind == WaitKind::kMutex || wait.kind == WaitKind::kRwLock ||
                           wait.kind == WaitKind::kSemaphore;
  if (is_for_lock || (thread.spin->polls.empty() && thread.spin->calls.empty()))
    return NapText(thread, look);
  return fmt::format(
      "naps{} and looks again{}",
      wait.timeout && wait.kind == WaitKind::kTime ? " " + FormatNap(*wait.timeout) : "",
      SpinText(*thread.spin, thread.pid, look).substr(kSpins.size()));
}

std::vector<std::string> CallersOf(const ThreadFacts& thread) {
  std::vector<std::string> callers;
  for (const StackFrame* frame : CallingFrames(thread, kMostCallers))
    callers.push_back(FrameText(frame));
  return callers;
}

FindingSubject ToldThread(const ThreadFacts& thread, const SystemSample& look) {
  FindingSubject told{ThreadLabel(thread)};
  told.process = thread.pid;
  told.thread = thread.tid;
  told.host = thread.host;
  told.does = DoesWhat(thread, look);
  told.where = FrameText(OwnFrame(thread));
  told.callers = CallersOf(thread);
  if (thread.state == ThreadState::kSleeping) told.waits_for = WaitedFor(thread, look);
  told.lasts = HasLasted(thread, look);
  return told;
}

std::string LineOf(const FindingSubject& subject) {
  return fmt::format("{}  {}{}{}{}", subject.name, subject.does, subject.where.empty() ? "" : "   ",
                     subject.where, CallersText(subject.callers));
}

Wait ToldWait(const KnownWait& wait, const SystemSample& look) {
  Wait told;
  const ThreadFacts& thread = *FindThread(look, wait.thread);
  told.who = ToldThread(thread, look);
  for (const int id : wait.whom) {
    const ThreadFacts* const whom = FindThread(look, id);
    FindingSubject& subject = told.whom.emplace_back();
    subject.name = whom == nullptr ? std::to_string(IdOnHost(id)) : ThreadLabel(*whom);
    subject.thread = id;
    subject.process = whom == nullptr ? 0 : whom->pid;
  }
  told.doubt = wait.doubt;
  told.line = LineOf(told.who);
  told.since = thread.since.value_or(0);
  return told;
}

}  // namespace

LibraryWords LibraryWordsOf(const ThreadFacts& thread) {
  const LibraryObject* const object = LibraryObjectOf(thread);
  if (object == nullptr) return {};
  return {std::string(object->all), std::string(object->end)};
}

bool IsAtBarrier(const ThreadFacts& thread) {
  const LibraryObject* const object = LibraryObjectOf(thread);
  return thread.wait.kind == WaitKind::kBarrier ||
         (object != nullptr && object->text == "OpenMP barrier");
}

const ThreadFacts* FindThread(const SystemSample& look, int tid) {
  for (const ProcessFacts& process : look.processes) {
    for (const ThreadFacts& thread : process.threads) {
      if (thread.tid == tid) return &thread;
    }
  }
  return nullptr;
}

const ProcessFacts* FindProcess(const SystemSample& look, int pid) {
  for (const ProcessFacts& process : look.processes) {
    if (process.pid == pid) return &process;
  }
  return nullptr;
}

std::string ThreadLabel(const ThreadFacts& thread) {
  return fmt::format("{}{}{}{}", IdOnHost(thread.tid), thread.name.empty() ? "" : " ",
                     Short(thread.name), OnHost(thread.host));
}

std::string ProcessLabel(const SystemSample& look, int pid) {
  const ProcessFacts* const process = FindProcess(look, pid);
  if (process == nullptr || process->name.empty()) return fmt::format("process {}", IdOnHost(pid));
  return fmt::format("process {} ({}){}", IdOnHost(pid), Short(process->name),
                     OnHost(process->host));
}

std::string WaitedFor(const ThreadFacts& thread, const SystemSample& look) {
  const ThreadWait& wait = thread.wait;
  if (thread.state == ThreadState::kDiskSleep && !thread.kernel_function.empty())
    return "the kernel, in " + Short(thread.kernel_function);
  switch (wait.kind) {
    case WaitKind::kNone:
      return "";
    case WaitKind::kFutex:
      return WordText("futex", thread) + HeldBy(thread);
    case WaitKind::kMutex:
      return Variable("mutex", wait) + HeldBy(thread);
    case WaitKind::kRwLock:
      return Variable("rwlock", wait) + HeldBy(thread);
    case WaitKind::kCondition:
      return WordText("condition", thread);
    case WaitKind::kSemaphore:
      return Variable("semaphore", wait);
    case WaitKind::kBarrier:
      return WordText("barrier", thread);
    case WaitKind::kJoin:
      return wait.thread ? fmt::format("the end of thread {}", IdOnHost(*wait.thread))
                         : "the end of a thread";
    case WaitKind::kChild:
      return ChildText(wait, look);
    case WaitKind::kRead:
    case WaitKind::kWrite:
    case WaitKind::kPoll:
    case WaitKind::kAccept:
      if (wait.of_own_call) return "an answer over D-Bus from itself";
      if (std::string client = ClientText(thread, look); !client.empty()) return client;
      if (thread.system_call_name == "io_uring_enter" && !wait.files.empty() &&
          wait.files[0].kind != FileKind::kRing)
        return "an io_uring's request for " + FilesText(thread, look);
      return IsRubysWaitForChild(thread)
                 ? fmt::format("{}, over {}", ChildText(wait, look), FilesText(thread, look))
                 : FilesText(thread, look);
    case WaitKind::kConnect:
      return wait.files.empty() ? "an answer to connect()"
                                : ConnectText(wait.files[0], thread.pid, look);
    case WaitKind::kTime:
      return "time to pass";
    case WaitKind::kSignal:
      return wait.no_signal_comes ? "a signal, of which it blocks or ignores all"
                                  : "a signal to the process";
    case WaitKind::kFileLock:
      if (NapsForDatabase(thread)) return DatabaseText(wait.files[0], thread.pid, look);
      return wait.files.empty() ? "a file lock" + HeldBy(thread)
                                : LockText(wait.files[0], thread.pid, look) + HeldBy(thread);
    case WaitKind::kOpen:
      return OpenText(wait, look);
    case WaitKind::kServerLock:
      return ServerLockText(thread, look);
    case WaitKind::kRanks:
      return RanksText(thread, look);
    case WaitKind::kSupervisor:
      return "the seccomp supervisor that answers for the kernel";
    case WaitKind::kOther:
      if (thread.system_call_name.starts_with("sem")) return "a semaphore of System V";
      break;
  }
  return thread.system_call_name.empty() ? fmt::format("system call {}", thread.system_call)
                                         : Printable(thread.system_call_name);
}

Finding ToldFinding(const ProcessFinding& finding, const SystemSample& look) {
  // Who would have to act may be a process that was not looked at. Of many threads only the first
  // are told in full.
  const auto tell = [&](const std::vector<int>& ids) {
    std::vector<FindingSubject> list;
    for (const int id : ids) {
      const ThreadFacts* const thread = FindThread(look, id);
      const bool in_full = thread != nullptr && list.size() < kMostLines;
      list.push_back(in_full             ? ToldThread(*thread, look)
                     : thread != nullptr ? FindingSubject{ThreadLabel(*thread)}
                                         : FindingSubject{std::to_string(IdOnHost(id))});
      if (thread != nullptr) list.back().process = thread->pid;
      list.back().thread = id;
    }
    return list;
  };
  Finding told(finding);
  told.subjects = tell(finding.threads);
  told.partners = tell(finding.partners);
  told.victims = tell(finding.victims);
  // What tasks wait for says more than where the thread is that runs them all.
  while (
      !told.evidence.empty() && told.lines.size() < kMostLines &&
      (told.evidence.front().starts_with("task ") ||
       (finding.of_goroutines && told.evidence.front().find(" waits for ") != std::string::npos))) {
    told.lines.push_back(told.evidence.front());
    told.evidence.erase(told.evidence.begin());
  }
  for (const FindingSubject& subject : told.subjects) {
    if (finding.of_goroutines && !told.lines.empty()) break;
    if (told.lines.size() == kMostLines || subject.does.empty()) continue;
    told.lines.push_back(LineOf(subject));
  }
  return told;
}

Sightings ToldSightings(const ProcessJudgement& judgement, const SystemSample& look) {
  Sightings told;
  told.attached = true;
  told.as_of = look.begin;
  told.of_one_instant = look.whole_process_stopped;
  for (const ProcessFinding& finding : judgement.findings)
    told.findings.push_back(ToldFinding(finding, look));
  if (!told.findings.empty()) told.found_at = look.end;
  const auto names = [&](const std::vector<int>& threads) {
    std::vector<std::string> list;
    for (const int tid : threads) {
      const ThreadFacts* const thread = FindThread(look, tid);
      list.push_back(thread == nullptr ? std::to_string(IdOnHost(tid)) : ThreadLabel(*thread));
    }
    return list;
  };
  const ProcessStanding& standing = judgement.standing;
  told.moving = names(standing.moving);
  told.timed = names(standing.tickers);
  told.outside = standing.outside;
  told.unknown = standing.unknown;
  told.halted = standing.halted;
  if (!standing.complete) told.incomplete = "not all of its processes could be looked at";
  for (const KnownWait& wait : judgement.waits) told.waits.push_back(ToldWait(wait, look));
  told.still_threads = judgement.still;
  return told;
}

std::string TargetName(const SystemSample& look) {
  return fmt::format("process {}", IdOnHost(look.processes[0].pid));
}

std::optional<TimeNs> HasLasted(const ThreadFacts& thread, const SystemSample& look) {
  if (!thread.since) return std::nullopt;
  const TimeNs seen = thread.seen_until == 0 ? look.end : thread.seen_until;
  return std::max<TimeNs>(0, seen - *thread.since);
}

std::string ForHowLong(const ThreadFacts& thread, const SystemSample& look) {
  const auto lasted = HasLasted(thread, look);
  return lasted ? FormatElapsed(*lasted) : "";
}

std::string DoesWhat(const ThreadFacts& thread, const SystemSample& look) {
  const std::string time = ForHowLong(thread, look);
  const std::string lasted = time.empty() ? "" : " " + time;
  if (NapsAndLooks(thread)) return NapAndLookText(thread, look);
  switch (thread.state) {
    case ThreadState::kRunning:
      if (thread.wait.kind == WaitKind::kRanks) return "polls for " + WaitedFor(thread, look);
      return thread.spin && thread.spin->period != 0 ? SpinText(*thread.spin, thread.pid, look)
                                                     : "runs";
    case ThreadState::kStopped:
    case ThreadState::kTraced:
    case ThreadState::kFrozen: {
      const ProcessFacts* const process = FindProcess(look, thread.pid);
      return StandsStill(process == nullptr ? ProcessFacts() : *process, thread.state);
    }
    case ThreadState::kZombie:
    case ThreadState::kDead:
      return "ended";
    case ThreadState::kUnknown:
      return "does what nobody knows";
    default:
      break;
  }
  if (thread.wait.kind == WaitKind::kRanks && thread.wait.files.empty())
    return "polls for " + WaitedFor(thread, look);
  if (thread.naps_again) return NapText(thread, look);
  const std::string what = WaitedFor(thread, look);
  if (what.empty()) return fmt::format("sleeps{}", lasted);
  return fmt::format("waits{} for {}", lasted, what);
}

std::string StandsStill(const ProcessFacts& process, ThreadState state) {
  if (state == ThreadState::kFrozen)
    return "is frozen by its control group" +
           (process.frozen_by.empty() ? "" : ": " + Short(process.frozen_by));
  if (state == ThreadState::kTraced)
    return process.tracer == 0 ? "is held by a debugger"
                               : fmt::format("is held by {} {}, which traces it",
                                             IdOnHost(process.tracer), Short(process.tracer_name));
  const bool by_terminal = process.stop_signal == SIGTTIN || process.stop_signal == SIGTTOU;
  if (by_terminal && process.stopped_in_background)
    return fmt::format("is stopped by its terminal: it is in the background and {} it",
                       process.stop_signal == SIGTTIN ? "reads" : "writes or changes");
  return process.stop_signal == 0 ? "is stopped"
                                  : "is stopped by " + SignalName(process.stop_signal);
}

const StackFrame* OwnFrame(const ThreadFacts& thread) {
  const auto is_of_runtime = [](const StackFrame& frame) {
    return frame.language != FrameLanguage::kNative;
  };
  const auto first = std::find_if(thread.stack.begin(), thread.stack.end(), is_of_runtime);
  const auto own = std::find_if(first, thread.stack.end(), [&](const StackFrame& frame) {
    return is_of_runtime(frame) && !IsOfLibraries(frame);
  });
  if (first != thread.stack.end()) return own != thread.stack.end() ? &*own : &*first;
  for (const StackFrame& frame : thread.stack) {
    if (!IsOfLibraries(frame) && HasPlace(frame) && !IsShell(frame)) return &frame;
  }
  for (const StackFrame& frame : thread.stack) {
    if (!IsOfLanguage(frame) && HasPlace(frame)) return &frame;
  }
  return thread.stack.empty() ? nullptr : &thread.stack.front();
}

std::vector<const StackFrame*> CallingFrames(const ThreadFacts& thread, size_t most) {
  std::vector<const StackFrame*> callers;
  const StackFrame* const own = OwnFrame(thread);
  if (own == nullptr || IsOfLibraries(*own)) return callers;
  for (const StackFrame* frame = own + 1; frame < thread.stack.data() + thread.stack.size();
       ++frame) {
    if (callers.size() == most) break;
    const bool starts = frame->function.empty() || frame->function == "_start";
    if (!starts && !IsOfLibraries(*frame)) callers.push_back(frame);
  }
  return callers;
}

std::string SessionText(const ProcessFacts& process) {
  constexpr size_t kMostStatement = 160;
  const SessionFacts& session = *process.session;
  std::string text = fmt::format("{} {} of {}:", IdOnHost(process.pid), Short(process.name),
                                 Short(session.server));
  const auto add = [&](const char* what, const std::string& value) {
    if (!value.empty()) text += fmt::format(" {}{},", what, Short(value));
  };
  add("user ", session.user);
  add("database ", session.database);
  add("application ", session.application);
  add("", session.state);
  if (!session.statement.empty())
    return fmt::format("{} {} {}", text, session.state == "active" ? "runs" : "ran last",
                       Printable(session.statement, kMostStatement));
  text.pop_back();
  return text;
}

namespace {

std::string WhoHas(const TaskFacts& task) {
  if (!task.holder.empty()) return ", held by " + Short(task.holder);
  if (!task.is_stranded) return "";
  return task.known_to.empty() ? ", known to nobody else" : ", known only to " + task.known_to;
}

}  // namespace

std::string TaskText(const TaskFacts& task) {
  ThreadFacts shown;
  shown.stack = task.stack;
  const std::string where = FrameText(OwnFrame(shown));
  return fmt::format(
      "{}{} {}{}{}{}", task.is_goroutine ? "" : "task ", Short(task.name),
      task.waits_for.empty() ? "runs, or is about to" : "waits for " + Short(task.waits_for),
      WhoHas(task), where.empty() ? "" : "   ", where);
}

std::string InnermostName(const std::string& function) {
  constexpr std::string_view kInside = "<locals>.";
  const size_t at = function.rfind(kInside);
  return at == std::string::npos ? function : function.substr(at + kInside.size());
}

std::string FrameText(const StackFrame* frame) {
  if (frame == nullptr) return "";
  std::string text = frame->function.empty() ? fmt::format("{:#x}", frame->pc)
                                             : Short(InnermostName(frame->function));
  if (!frame->source.empty()) return text + "  " + Short(frame->source);
  return frame->module.empty() ? text : text + "  " + Short(frame->module);
}

}  // namespace hangscope
