#include "process/process_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/units.h"
#include "base/utf8.h"

namespace hangscope {
namespace {

constexpr size_t kMostName = 60;
constexpr size_t kMostOthers = 3;

std::string Short(const std::string& name) { return Printable(name, kMostName); }

// "mutex lock_b", "mutex at 0x7ffe1234".
std::string Variable(const char* what, const ThreadWait& wait) {
  if (!wait.variable.empty()) return fmt::format("{} {}", what, Short(wait.variable));
  if (!wait.shared_name.empty()) return fmt::format("{} {}", what, Short(wait.shared_name));
  return wait.address == 0 ? what : fmt::format("{} at {:#x}", what, wait.address);
}

std::string HeldBy(const ThreadFacts& thread) {
  const ThreadWait& wait = thread.wait;
  if (wait.owner_died)
    return wait.owner ? fmt::format(", held by {}, which ended", *wait.owner)
                      : ", whose holder ended";
  if (!wait.owner) return "";
  return *wait.owner == thread.tid ? ", which it holds itself"
                                   : fmt::format(", held by {}", *wait.owner);
}

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
            (pid == own ? std::string("itself") : fmt::format("{}{}", pid, name));
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
    case FileKind::kDevice:
      return "a device";
    default:
      return "a file";
  }
}

// "a pipe (fd 3) that only 4713 server writes".
std::string FileText(const WaitFile& file, int own, const SystemSample& look) {
  const bool named = !file.name.empty() && file.kind != FileKind::kEvent &&
                     (file.kind != FileKind::kPipe || IsNamedPipe(file));
  std::string text = named ? Short(file.name) : FileKindText(file.kind);
  if (file.fd >= 0) text += fmt::format(" (fd {})", file.fd);
  std::set<int> pids;
  for (const auto& [pid, fd] : file.others) pids.insert(pid);
  if (pids.empty()) return text;
  const std::string who =
      Processes(pids, own, look) + (file.others_unknown ? " and perhaps others" : "");
  return text + fmt::format(" {} {}", file.wants_read ? "written by" : "read by", who);
}

std::string ChildText(const ThreadWait& wait, const SystemSample& look) {
  if (wait.children.size() != 1)
    return fmt::format("the end of one of {} children", wait.children.size());
  return "the end of child " + Processes({wait.children[0]}, 0, look);
}

std::string FilesText(const ThreadFacts& thread, const SystemSample& look) {
  const ThreadWait& wait = thread.wait;
  if (wait.files.empty()) return wait.kind == WaitKind::kAccept ? "a connection" : "files";
  const std::string first = FileText(wait.files[0], thread.pid, look);
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
      return "data from " + first;
  }
}

std::string SpinText(const ThreadFacts::Spin& spin) {
  if (!spin.polled_variable.empty()) return "spins for " + Short(spin.polled_variable);
  if (spin.polls.size() == 1) return fmt::format("spins for the word at {:#x}", spin.polls[0]);
  return spin.polls.empty() ? "spins" : fmt::format("spins for {} words", spin.polls.size());
}

bool IsOfLibraries(const StackFrame& frame) {
  for (const char* module : {"libc.so", "libc-", "libpthread", "ld-linux", "libstdc++", "libgcc",
                             "libc++", "[vdso]", "linux-vdso"}) {
    if (frame.module.starts_with(module)) return true;
  }
  for (const char* prefix : {"std::", "__gnu_cxx::", "__gthread", "void std::", "bool std::"}) {
    if (frame.function.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace

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
  return thread.name.empty() ? std::to_string(thread.tid)
                             : fmt::format("{} {}", thread.tid, Short(thread.name));
}

std::string ProcessLabel(const SystemSample& look, int pid) {
  const ProcessFacts* const process = FindProcess(look, pid);
  if (process == nullptr || process->name.empty()) return fmt::format("process {}", pid);
  return fmt::format("process {} ({})", pid, Short(process->name));
}

std::string WaitedFor(const ThreadFacts& thread, const SystemSample& look) {
  const ThreadWait& wait = thread.wait;
  switch (wait.kind) {
    case WaitKind::kNone:
      return "";
    case WaitKind::kFutex:
      return Variable("futex", wait) + HeldBy(thread);
    case WaitKind::kMutex:
      return Variable("mutex", wait) + HeldBy(thread);
    case WaitKind::kRwLock:
      return Variable("rwlock", wait) + HeldBy(thread);
    case WaitKind::kCondition:
      return Variable("condition", wait);
    case WaitKind::kSemaphore:
      return Variable("semaphore", wait);
    case WaitKind::kBarrier:
      return Variable("barrier", wait);
    case WaitKind::kJoin:
      return wait.thread ? fmt::format("the end of thread {}", *wait.thread)
                         : "the end of a thread";
    case WaitKind::kChild:
      return ChildText(wait, look);
    case WaitKind::kRead:
    case WaitKind::kWrite:
    case WaitKind::kPoll:
    case WaitKind::kAccept:
      return FilesText(thread, look);
    case WaitKind::kTime:
      return "time to pass";
    case WaitKind::kSignal:
      return "a signal to the process";
    case WaitKind::kFileLock:
      return wait.files.empty()
                 ? "a file lock" + HeldBy(thread)
                 : "the lock of " + FileText(wait.files[0], thread.pid, look) + HeldBy(thread);
    case WaitKind::kOther:
      break;
  }
  return thread.system_call_name.empty() ? fmt::format("system call {}", thread.system_call)
                                         : Printable(thread.system_call_name);
}

std::string ForHowLong(const ThreadFacts& thread, const SystemSample& look) {
  return thread.since ? FormatElapsed(std::max<TimeNs>(0, look.end - *thread.since)) : "";
}

std::string DoesWhat(const ThreadFacts& thread, const SystemSample& look) {
  const std::string time = ForHowLong(thread, look);
  const std::string lasted = time.empty() ? "" : " " + time;
  switch (thread.state) {
    case ThreadState::kRunning:
      return thread.spin && thread.spin->period != 0 ? SpinText(*thread.spin) : "runs";
    case ThreadState::kStopped:
      return "is stopped";
    case ThreadState::kTraced:
      return "is held by a debugger";
    case ThreadState::kZombie:
    case ThreadState::kDead:
      return "ended";
    case ThreadState::kUnknown:
      return "does what nobody knows";
    default:
      break;
  }
  const std::string what = WaitedFor(thread, look);
  if (what.empty()) return fmt::format("sleeps{}", lasted);
  return fmt::format("waits{} for {}", lasted, what);
}

const StackFrame* OwnFrame(const ThreadFacts& thread) {
  for (const StackFrame& frame : thread.stack) {
    if (!IsOfLibraries(frame) && !(frame.function.empty() && frame.source.empty())) return &frame;
  }
  return thread.stack.empty() ? nullptr : &thread.stack.front();
}

std::string FrameText(const StackFrame* frame) {
  if (frame == nullptr) return "";
  std::string text =
      frame->function.empty() ? fmt::format("{:#x}", frame->pc) : Short(frame->function);
  if (!frame->source.empty()) return text + "  " + Short(frame->source);
  return frame->module.empty() ? text : text + "  " + Short(frame->module);
}

}  // namespace hangscope
