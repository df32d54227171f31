#include "process/process_doubts.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "base/units.h"
#include "base/utf8.h"
#include "process/process_words.h"
#include "process/signal_sets.h"
#include "runtime/jvm/jvm_threads.h"

namespace hangscope {
namespace {

constexpr const char* kNapsAlikeDoubt =
    "who naps was followed from one nap to the next, and the others are taken to be alike";
constexpr TimeNs kClocksAgree = kSecond;  // of hosts, to so much

// It waits for its children, and the others wait for its end: a handler that runs meanwhile, as
// shells have one for SIGINT, moves none of them.
bool OnlyItsEndMatters(int pid, const std::vector<uint32_t>& threads,
                       const JudgedProcesses& judged) {
  return std::all_of(threads.begin(), threads.end(), [&](uint32_t i) {
    const ThreadFacts* const thread = judged.node(i).facts;
    return thread == nullptr || thread->wait.kind == WaitKind::kChild ||
           (thread->pid != pid && WaitsForProcesses(*thread, judged.look).count(pid) == 0);
  });
}

// A child of the process that goes on, and of whose end a handler of the process hears; null: there
// is none.
const ProcessFacts* ChildHeardOf(const ProcessFacts& process, const JudgedProcesses& judged) {
  const uint64_t caught = process.caught_signals & ~process.runtime_signals;
  if ((caught & SignalBit(SIGCHLD)) == 0) return nullptr;
  for (uint32_t i = 0; i < judged.graph.nodes().size(); ++i) {
    if (judged.node(i).kind != ProcessNode::Kind::kProcess || judged.stuck[i]) continue;
    const ProcessFacts* const child = FindProcess(judged.look, judged.node(i).pid);
    if (child != nullptr && child->parent == process.pid && child->state != ThreadState::kZombie)
      return child;
  }
  return nullptr;
}

// A handler of its process ends its wait, or does what others wait for while it waits for a child.
bool MayActInHandler(const ThreadFacts& thread) {
  return thread.wait.kind == WaitKind::kChild || HandlerMayEnd(thread);
}

constexpr uint64_t kOfTimers = SignalBit(SIGALRM) | SignalBit(SIGVTALRM);
constexpr uint64_t kOfUsers = SignalBit(SIGUSR1) | SignalBit(SIGUSR2);
constexpr uint64_t kOfWork = kOfUsers | SignalBit(SIGIO) | ~(SignalBit(34) - 1);  // real-time

constexpr uint64_t kOfEnds = SignalBit(SIGHUP) | SignalBit(SIGTERM) | SignalBit(SIGXCPU) |
                             SignalBit(SIGPROF) | SignalBit(SIGALRM) | SignalBit(SIGVTALRM);

// Each signal of a timer, and those that end a program: nobody has work for all of these.
bool HandlesEachEnd(const ProcessFacts& process) {
  return (process.caught_signals & kOfEnds) == kOfEnds;
}

// Its temporary files, as sort does.
bool RemovesFilesAtItsEnd(const ProcessFacts& process) {
  return HandlesEachEnd(process) && (process.caught_signals & kOfUsers) == 0;
}

// Those for which somebody wrote a handler to be called again and again: who handles only such that
// end it would not wait for one. The runtimes of Ruby and Go handle all signals, that of node
// SIGUSR1, whether their programs do or not. Of make SIGUSR1 turns its messages on and off.
uint64_t SignalsOfWork(const ProcessFacts& process) {
  constexpr uint64_t kOfAll = kOfUsers | SignalBit(SIGHUP) | SignalBit(SIGALRM);
  const uint64_t caught = process.caught_signals & ~process.runtime_signals & (kOfTimers | kOfWork);
  if ((process.caught_signals & kOfAll) == kOfAll) return 0;
  if (HandlesEachEnd(process)) return caught & kOfUsers;
  const bool handles_first_user =
      process.name.starts_with("node") || process.name == "make" || process.name == "gmake";
  if (process.name == "psql") return caught & ~SignalBit(SIGALRM);
  return handles_first_user ? caught & ~SignalBit(SIGUSR1) : caught;
}

// A handler answers no request.
bool AsksItsOwn(int pid, const FindingDraft& draft, const JudgedProcesses& judged) {
  return std::any_of(draft.members.begin(), draft.members.end(), [&](uint32_t i) {
    const ThreadFacts* const thread = judged.node(i).facts;
    return thread != nullptr && thread->pid == pid && WaitsForUnanswered(thread->wait);
  });
}

// It waits for its children, which read what it has open: a handler that somebody wrote for being
// told to end closes that. Who handles all that ends a program alike, or makes nothing of it but
// cleans up, would not wait for one.
bool MayLetGoInHandler(const ProcessFacts& process, const FindingDraft& draft,
                       const JudgedProcesses& judged) {
  constexpr uint64_t kToldToEnd = SignalBit(SIGTERM) | SignalBit(SIGHUP);
  constexpr uint64_t kCleansUp =
      SignalBit(SIGHUP) | SignalBit(SIGINT) | SignalBit(SIGQUIT) | SignalBit(SIGTERM);
  const uint64_t caught = process.caught_signals & ~process.runtime_signals;
  if ((caught & kToldToEnd) == 0 || (caught & kCleansUp) == kCleansUp || HandlesEachEnd(process))
    return false;
  const auto is = [&](bool own, const auto& waits) {
    return std::any_of(draft.members.begin(), draft.members.end(), [&](uint32_t i) {
      const ThreadFacts* const thread = judged.node(i).facts;
      return thread != nullptr && (thread->pid == process.pid) == own && waits(*thread);
    });
  };
  const auto reads_of_it = [&](const ThreadFacts& thread) {
    return thread.wait.kind == WaitKind::kRead &&
           WaitsForProcesses(thread, judged.look).count(process.pid) != 0;
  };
  return is(true, [](const ThreadFacts& thread) { return thread.wait.kind == WaitKind::kChild; }) &&
         is(false, reads_of_it);
}

// A handler may do what nothing else in the process can; or the read returns with EINTR.
void DoubtSignals(const FindingDraft& draft, const JudgedProcesses& judged, Confidence most,
                  ProcessFinding* finding) {
  for (const int pid : judged.PidsOf(draft.members)) {
    const ProcessFacts* const process = FindProcess(judged.look, pid);
    if (process == nullptr || OnlyItsEndMatters(pid, draft.members, judged)) continue;
    if (const ProcessFacts* const child = ChildHeardOf(*process, judged)) {
      const bool may_act = std::any_of(draft.members.begin(), draft.members.end(), [&](uint32_t i) {
        return judged.node(i).pid == pid && MayActInHandler(*judged.node(i).facts);
      });
      finding->Lower(
          may_act ? Confidence::kPossible : most,
          fmt::format("{} handles the end of its children, as of {}: the handler could "
                      "end this wait",
                      ProcessLabel(judged.look, pid), ProcessLabel(judged.look, child->pid)));
    }
    if (SignalsFromOutside(*process) == 0) continue;
    if (process->session) {
      finding->Lower(most, fmt::format("{} may be told to end what {} does",
                                       Printable(process->session->server, 60),
                                       ProcessLabel(judged.look, pid)));
      continue;
    }
    const uint64_t works = SignalsOfWork(*process);
    // Nobody sees the timer of alarm(2) from outside.
    const char* const which = (works & kOfTimers) != 0 ? "the signal of a timer"
                              : works != 0             ? "signals that may bring it work"
                                                       : "signals";
    // What a program of Java or Node.js does when it is told to end is the program's own.
    const bool asks_itself = AsksItsOwn(pid, draft, judged);
    const bool may_work = !asks_itself && (works != 0 || HandlesSignalsByRuntime(*process));
    const bool may_act = may_work || (!asks_itself && MayLetGoInHandler(*process, draft, judged));
    const Confidence limit =
        RemovesFilesAtItsEnd(*process) || asks_itself ? Confidence::kLikely : most;
    finding->Lower(may_act ? Confidence::kPossible : limit,
                   fmt::format("{} handles {}: a handler could end this wait",
                               ProcessLabel(judged.look, pid), which));
  }
}

// Who stands still in other processes, so that the members do: those who could end their waits, or
// those of these.
std::vector<uint32_t> WhoStandsBehind(const FindingDraft& draft, const JudgedProcesses& judged) {
  const std::set<int> own = judged.PidsOf(draft.members);
  std::set<uint32_t> seen(draft.members.begin(), draft.members.end());
  std::vector<uint32_t> open = draft.members;
  std::vector<uint32_t> found;
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    const ProcessNode& node = judged.node(at);
    const bool stands = node.stand == ThreadStand::kWaits || node.stand == ThreadStand::kSpins;
    if (!stands) continue;
    if (node.facts != nullptr && own.count(node.pid) == 0) found.push_back(at);
    for (const WaitEdge& edge : judged.graph.waits()[at].suppliers) {
      if (seen.insert(edge.to).second) open.push_back(edge.to);
    }
  }
  return found;
}

bool RunsPython(const ThreadFacts& thread) {
  return std::any_of(thread.stack.begin(), thread.stack.end(), [](const StackFrame& frame) {
    return frame.language == FrameLanguage::kPython;
  });
}

// That a worker has nothing to do is no hang while a handler of the process which gives it work may
// run. A handler of a language's own may do anything while its process waits for a child.
void DoubtWhoStandsBehind(const FindingDraft& draft, const JudgedProcesses& judged,
                          ProcessFinding* finding) {
  if (!draft.tasks.empty()) return;
  const std::vector<uint32_t> behind = WhoStandsBehind(draft, judged);
  std::vector<uint32_t> all = behind;
  all.insert(all.end(), draft.members.begin(), draft.members.end());
  for (const int pid : judged.PidsOf(behind)) {
    const ProcessFacts* const process = FindProcess(judged.look, pid);
    if (process == nullptr || process->session) continue;
    const ProcessFacts* const child = ChildHeardOf(*process, judged);
    if ((SignalsFromOutside(*process) == 0 && child == nullptr) ||
        OnlyItsEndMatters(pid, all, judged))
      continue;
    const bool may_act = std::any_of(behind.begin(), behind.end(), [&](uint32_t i) {
      const ThreadFacts& thread = *judged.node(i).facts;
      return thread.pid == pid &&
             (thread.wait.kind == WaitKind::kChild ? thread.tid == pid && RunsPython(thread)
                                                   : HandlerMayEnd(thread));
    });
    if (!may_act) continue;
    finding->Lower(
        Confidence::kPossible,
        fmt::format("{}, which could end it, handles {}: a handler could end its own wait",
                    ProcessLabel(judged.look, pid),
                    child == nullptr ? "signals" : "the end of its children"));
  }
}

// One that raises an exception takes Python's main thread out of its wait.
void DoubtRaises(const FindingDraft& draft, const JudgedProcesses& judged,
                 ProcessFinding* finding) {
  for (const uint32_t i : draft.members) {
    const ThreadFacts& thread = *judged.node(i).facts;
    const ProcessFacts* const process = FindProcess(judged.look, thread.pid);
    const bool is_lock = thread.wait.kind == WaitKind::kMutex ||
                         (thread.wait.kind == WaitKind::kJoin && !thread.wait.object_type.empty());
    if (!is_lock || !HandlerMayEnd(thread) || process == nullptr ||
        SignalsFromOutside(*process) == 0)
      continue;
    return finding->Lower(Confidence::kLikely,
                          fmt::format("{} handles signals: a handler that raises an exception "
                                      "could end this wait",
                                      ProcessLabel(judged.look, thread.pid)));
  }
}

// Another thread of Java or Ruby may interrupt them. Somebody will, if there is one that still does
// anything, where the program asked for a lock that lets itself be interrupted.
void DoubtInterrupts(const FindingDraft& draft, const JudgedProcesses& judged,
                     ProcessFinding* finding) {
  for (const uint32_t i : draft.members) {
    const ThreadFacts& thread = *judged.node(i).facts;
    if (!thread.wait.may_be_interrupted) continue;
    const std::string who = LocksInterruptibly(thread.stack) ? WhoMayAct(thread.pid, judged) : "";
    finding->Lower(who.empty() ? Confidence::kLikely : Confidence::kPossible,
                   who.empty() ? "another thread of the program may interrupt them"
                               : fmt::format("they may be interrupted by {}", who));
  }
}

constexpr uint64_t kOfProcessor = SignalBit(SIGPROF) | SignalBit(SIGXCPU);  // of time used

// A time limit that jumps out of whatever the thread does, as siglongjmp lets one.
void DoubtTimers(const FindingDraft& draft, const JudgedProcesses& judged, uint64_t of_limits,
                 Confidence limit, ProcessFinding* finding) {
  for (const int pid : judged.PidsOf(draft.members)) {
    const ProcessFacts* const process = FindProcess(judged.look, pid);
    if (process != nullptr &&
        (process->caught_signals & ~process->runtime_signals & of_limits) != 0)
      finding->Lower(limit,
                     fmt::format("{} handles the signal of a timer: a handler that jumps out could "
                                 "end this wait",
                                 ProcessLabel(judged.look, pid)));
  }
}

// Who has the socket that listens as well, and lets connections stand.
void DoubtAcceptors(const FindingDraft& draft, const JudgedProcesses& judged,
                    ProcessFinding* finding) {
  std::set<int> pids;
  TimeNs waits = 0;
  for (const uint32_t i : draft.members) {
    const ThreadFacts* const thread = judged.node(i).facts;
    if (thread == nullptr || !thread->since) continue;
    for (const WaitFile& file : thread->wait.files) {
      if (!file.unaccepted) continue;
      for (const auto& [pid, fd] : file.others) pids.insert(pid);
      waits = std::max(waits, judged.look.end - *thread->since);
    }
  }
  for (const int pid : pids) {
    if (const std::string who = WhoMayAct(pid, judged); !who.empty())
      finding->Lower(Confidence::kLikely,
                     fmt::format("the connection could be accepted by {}, but was not in {}", who,
                                 FormatElapsed(waits)));
  }
}

// Whoever holds the other end of a pipe, or a lock of a file, may use it from any of its threads.
void DoubtFiles(const FindingDraft& draft, const JudgedProcesses& judged, ProcessFinding* finding) {
  bool locks = false;
  bool files = false;
  bool connects = false;
  size_t events = 0;
  size_t named_pipes = 0;
  const WaitFile* shared = nullptr;
  bool unsure = false;
  bool unsent = false;
  for (const uint32_t i : draft.members) {
    const ThreadWait& wait = judged.node(i).facts->wait;
    locks = locks || wait.kind == WaitKind::kFileLock;
    files = files || IsFileWait(wait.kind);
    connects = connects || wait.kind == WaitKind::kConnect;
    for (const WaitFile& file : wait.files) {
      if (file.kind == FileKind::kEvent && events++ == 0)
        finding->Lower(Confidence::kLikely,
                       "the kernel signals an eventfd, too, for asynchronous I/O and devices");
      if ((file.is_public && file.kind == FileKind::kQueue) || IsOfSystemV(file)) shared = &file;
      unsent = unsent || file.others_unsent;
      unsure = unsure || file.others_unsure;
      // A reader of a named pipe serves whoever comes; what its other end keeps open is no work.
      if (IsNamedPipe(file) && named_pipes++ == 0)
        finding->Lower(wait.kind == WaitKind::kRead || wait.kind == WaitKind::kPoll
                           ? Confidence::kPossible
                           : Confidence::kLikely,
                       "whoever opens the named pipe may use its other end");
    }
  }
  if (shared != nullptr)
    finding->Lower(unsure ? Confidence::kPossible : Confidence::kLikely,
                   IsOfSystemV(*shared)
                       ? "whoever knows the number of what is of System V may use it"
                       : "whoever knows the name of the message queue may use it");
  if (unsent)
    finding->Lower(Confidence::kLikely,
                   "processes that may not be looked into are too old to have inherited it; one of "
                   "them has it only if somebody sent it there");
  if (!files && !locks && !connects) return;
  if (draft.kind != FindingKind::kNoWriter)
    DoubtSignals(draft, judged, Confidence::kLikely, finding);
  std::set<int> pids = judged.PidsOf(draft.members);
  if (judged.LiveThreads(pids) <= draft.members.size()) return;
  const char* const may = files   ? "use its end of a pipe or socket"
                          : locks ? "give back its lock of a file"
                                  : "accept a connection";
  finding->Lower(
      Confidence::kLikely,
      fmt::format("any thread of a process may {}; those that are left here are stuck, too, as "
                  "far as can be told",
                  may));
}

// A busy handler of SQLite that soon gives up ends the wait with an error.
void DoubtDatabases(const FindingDraft& draft, const JudgedProcesses& judged,
                    ProcessFinding* finding) {
  for (const uint32_t i : draft.members) {
    const ThreadFacts& thread = *judged.node(i).facts;
    if (!judged.node(i).retries || !NapsForDatabase(thread)) continue;
    const auto& limit = thread.wait.timeout;
    finding->Lower(limit && *limit <= kSoonGivenUp ? Confidence::kPossible : Confidence::kLikely,
                   limit ? fmt::format("{} gives up with SQLITE_BUSY after {}", ThreadLabel(thread),
                                       FormatElapsed(*limit))
                         : fmt::format("the busy handler of {} is the program's own, and may give "
                                       "up",
                                       ThreadLabel(thread)));
  }
}

// What a database server ends by itself: a wait with a limit, and a circle of its own locks.
void DoubtServers(const FindingDraft& draft, const JudgedProcesses& judged,
                  ProcessFinding* finding) {
  bool is_circle_of_locks = draft.kind == FindingKind::kDeadlock;
  bool of_server = false;
  bool of_files = false;  // which are doubted on their own
  std::optional<TimeNs> ends_after;
  for (const uint32_t i : draft.members) {
    if (judged.node(i).facts == nullptr) return;
    const ThreadWait& wait = judged.node(i).facts->wait;
    of_server = of_server || wait.kind == WaitKind::kServerLock;
    of_files = of_files || IsFileWait(wait.kind);
    is_circle_of_locks = is_circle_of_locks && wait.kind == WaitKind::kServerLock;
    if (wait.given_up_after)
      finding->Lower(
          Confidence::kLikely,
          fmt::format("{} gives up after {} ({})", ThreadLabel(*judged.node(i).facts),
                      FormatElapsed(*wait.given_up_after), Printable(wait.given_up_by, 60)));
    if (wait.circle_ends_after)
      ends_after = std::max(ends_after.value_or(0), *wait.circle_ends_after);
  }
  if (is_circle_of_locks)
    finding->Lower(
        ends_after && *ends_after > kSoonGivenUp ? Confidence::kLikely : Confidence::kPossible,
        ends_after ? fmt::format("the server looks for such a circle {} after a wait has "
                                 "begun, and ends one of them (deadlock_timeout)",
                                 FormatElapsed(*ends_after))
                   : "the server looks for such circles, and ends one of the waits");
  if (of_server && !of_files && draft.kind == FindingKind::kDeadlock)
    DoubtSignals(draft, judged, Confidence::kLikely, finding);
}

// Whether the function in which the program waits calls itself a lock: "LockWord", "spin_lock".
bool IsCalledLock(const ThreadFacts& thread) {
  const auto says_lock = [](const StackFrame& frame) {
    const std::string name = frame.function.substr(0, frame.function.find('('));
    for (size_t at = name.find("ock"); at != std::string::npos; at = name.find("ock", at + 1)) {
      if (at == 0) continue;
      const bool begins_word = at == 1 || name[at - 2] == '_' || name[at - 2] == ':';
      if (name[at - 1] == 'L' || (name[at - 1] == 'l' && begins_word)) return true;
    }
    return false;
  };
  constexpr size_t kLockFrames = 4;
  const size_t frames = std::min(thread.stack.size(), kLockFrames);
  return IsInLockFunction(thread) ||
         std::any_of(thread.stack.begin(), thread.stack.begin() + static_cast<long>(frames),
                     says_lock);
}

// A named pipe whose name is gone may have another one, as after it was renamed.
// Whether there is such an open among these.
bool DoubtOpens(const FindingDraft& draft, const JudgedProcesses& judged, ProcessFinding* finding) {
  bool opens = false;
  for (const uint32_t i : draft.members) {
    const ThreadWait& wait = judged.node(i).facts->wait;
    if (wait.kind != WaitKind::kOpen) continue;
    if (IsNamedPipe(wait.files[0])) {
      if (opens) continue;
      opens = true;
      finding->Lower(Confidence::kLikely,
                     "that each opens later what the other one opens is read from their code");
      continue;
    }
    opens = true;
    finding->Lower(wait.files[0].others_unsure ? Confidence::kPossible : Confidence::kLikely,
                   wait.files[0].others_unsure
                       ? "the pipe may have been renamed: whoever knows the new name may open it"
                       : "the pipe may have had more names than the one that is gone");
  }
  return opens;
}

// Words in files that have names.
void DoubtWords(const FindingDraft& draft, const JudgedProcesses& judged, ProcessFinding* finding) {
  const auto any_public = [&](bool owner_died) {
    return std::any_of(draft.members.begin(), draft.members.end(), [&](uint32_t i) {
      const ThreadFacts* const thread = judged.node(i).facts;
      return thread != nullptr && thread->wait.is_public && thread->wait.owner_died == owner_died;
    });
  };
  if (any_public(true))
    finding->Lower(Confidence::kLikely,
                   "whoever knows the name of the file that the mutex is in may make it anew");
  if (any_public(false))
    finding->Lower(Confidence::kPossible,
                   "whoever knows the name of what they wait for may come and signal it");
}

// What comes through an io_uring, from a userfaultfd, or is up to a terminal.
void DoubtKernelWork(const FindingDraft& draft, const JudgedProcesses& judged,
                     ProcessFinding* finding) {
  for (const uint32_t i : draft.members) {
    const ThreadFacts* const thread = judged.node(i).facts;
    if (thread == nullptr || thread->wait.files.empty()) continue;
    const FileKind kind = thread->wait.files[0].kind;
    if (thread->system_call_name == "io_uring_enter")
      return finding->Lower(Confidence::kLikely,
                            "what the ring was given is read from the memory of its process");
    // Who makes one for others to open by its name keeps it open, as with a named pipe; its own
    // side has no name.
    const bool serves = draft.kind == FindingKind::kNoWriter &&
                        thread->wait.kind != WaitKind::kWrite &&
                        thread->wait.files[0].name.find("ptmx") != std::string::npos;
    if (kind == FileKind::kTerminal)
      return finding->Lower(serves ? Confidence::kPossible : Confidence::kLikely,
                            thread->wait.kind == WaitKind::kWrite
                                ? "whoever has the terminal open may discard what was written to it"
                                : "whoever may open the terminal by its name may write to it");
    if (kind == FileKind::kFault)
      return finding->Lower(Confidence::kLikely, "which userfaultfd the page is of is not known");
  }
}

// Of locks that do not record who holds them, the code tells.
void DoubtHolders(const FindingDraft& draft, const JudgedProcesses& judged,
                  ProcessFinding* finding) {
  for (const uint32_t i : draft.members) {
    const ThreadFacts* const thread = judged.node(i).facts;
    if (thread == nullptr || !thread->wait.owner_by_code) continue;
    finding->Lower(
        Confidence::kLikely,
        fmt::format("who holds {} is read from the code: {} took it in a function that it is in",
                    thread->wait.variable.empty() ? "it" : Printable(thread->wait.variable, 60),
                    IdOnHost(thread->wait.owner.value_or(0))));
    const std::string who = WhoMayAct(thread->pid, judged);
    if (who.empty()) continue;
    if (thread->wait.kind == WaitKind::kSemaphore)
      finding->Lower(Confidence::kPossible,
                     fmt::format("any thread may post a semaphore: {}", who));
    // A word of the program's own may be given back by another thread than who took it.
    if (thread->wait.kind == WaitKind::kFutex && !IsCalledLock(*thread) &&
        LibraryWordsOf(*thread).all.empty())
      finding->Lower(Confidence::kPossible,
                     fmt::format("any thread may give back such a word: {}", who));
  }
}

// A core dump has the threads of one process at one instant.
void DoubtOwnersElsewhere(const FindingDraft& draft, const JudgedProcesses& judged,
                          ProcessFinding* finding) {
  if (!judged.look.whole_process_stopped) return;
  if (std::any_of(draft.members.begin(), draft.members.end(), [&](uint32_t i) {
        const ThreadFacts* const thread = judged.node(i).facts;
        return thread != nullptr && (thread->wait.owner_died || thread->wait.owner_copied);
      }))
    finding->Lower(Confidence::kLikely,
                   "whether who holds it ended, or is a thread of the process that this one was "
                   "forked from, a core dump does not tell");
}

// What a thread of these processes waits for a handler may signal, as one that is to end a program
// sets the event that its main thread waits for: then that thread goes on, and the others may.
void DoubtEvents(const FindingDraft& draft, const JudgedProcesses& judged,
                 ProcessFinding* finding) {
  std::set<uint32_t> waited(draft.members.begin(), draft.members.end());
  for (const uint32_t i : draft.members) {
    for (const WaitEdge& edge : judged.graph.waits()[i].suppliers) {
      if (judged.node(edge.to).kind != ProcessNode::Kind::kProcess ||
          judged.node(edge.to).pid == judged.node(i).pid)
        continue;
      for (const WaitEdge& thread : judged.graph.waits()[edge.to].suppliers)
        waited.insert(thread.to);
    }
  }
  for (const uint32_t i : waited) {
    const ThreadFacts* const thread = judged.node(i).facts;
    if (thread == nullptr || !judged.node(i).weak || IsFileWait(thread->wait.kind) ||
        !WaitsToBeWoken(*thread) || !HandlerMayEnd(*thread) || IdlesInRuntime(*thread) ||
        (!draft.holds_what_they_want && !RunsPython(*thread)))
      continue;
    const ProcessFacts* const process = FindProcess(judged.look, thread->pid);
    if (process != nullptr && SignalsFromOutside(*process) != 0)
      finding->Lower(Confidence::kPossible,
                     fmt::format("{} handles signals: a handler may signal what {} waits for",
                                 ProcessLabel(judged.look, thread->pid), ThreadLabel(*thread)));
  }
}

void DoubtSpins(const FindingDraft& draft, const JudgedProcesses& judged, ProcessFinding* finding) {
  const auto any = [&](const auto& is_so) {
    return std::any_of(draft.members.begin(), draft.members.end(),
                       [&](uint32_t i) { return is_so(*judged.node(i).facts->spin); });
  };
  using Spin = ThreadFacts::Spin;
  const bool naps = any([](const Spin& spin) { return spin.naps; });
  const bool in_part = any([](const Spin& spin) { return spin.in_part && !spin.naps; });
  // Who has a lock is seen for all at one time.
  const bool ask_or_run =
      any([](const Spin& spin) { return !spin.naps || !AsksForFileLocksOnly(spin); });
  if (((naps && ask_or_run) || in_part) && draft.members.size() > 1)
    finding->Lower(Confidence::kPossible,
                   "those who look again and again may do so by turns: that none of them found "
                   "anything was not seen at one time");
  if (naps)
    finding->Lower(Confidence::kLikely, kNapsAlikeDoubt);
  else if (in_part)
    finding->Lower(Confidence::kLikely,
                   "what decides on the way round is the same each time; a counter, or the time, "
                   "that goes on beside it is taken to decide nothing");
  if (const auto writer = WriterFromOutside(draft, judged))
    finding->Lower(
        Confidence::kLikely,
        ProcessLabel(judged.look, writer->pid) +
            (writer->is_copy ? " was copied by fork() from the same memory, and may know how to "
                               "write to this one's from outside"
                             : " can write to its memory from outside"));
  if (any([](const Spin& spin) { return spin.polls_shared; })) {
    const bool known =
        !any([](const Spin& spin) { return spin.polls_shared && !spin.sharers_known; });
    // Who is not stuck is told as who may end it.
    if (known && !judged.stuck[draft.members[0]]) return;
    return finding->Lower(known ? Confidence::kLikely : Confidence::kPossible,
                          known ? "what it polls is shared memory, or of a file: those who have "
                                  "it, too, are stuck, as far as can be told"
                                : "what it polls is shared memory, or of a file: another process "
                                  "may change it");
  }
  if (any(AsksKernel))
    finding->Lower(Confidence::kLikely,
                   "the kernel answers its system calls, and may answer in another way");
  if (any([](const Spin& spin) {
        return !spin.polls.empty() && spin.polled_variable.empty() && !AsksKernel(spin) &&
               !spin.naps;
      }))
    finding->Lower(
        Confidence::kLikely,
        "what it polls has no name: another process, or a device, may be able to change it");
}

// Who asks for the lock of a file again and again, with a nap in between.
void DoubtFileLockNaps(const FindingDraft& draft, const JudgedProcesses& judged,
                       ProcessFinding* finding) {
  if (draft.kind == FindingKind::kSpin ||
      std::none_of(draft.members.begin(), draft.members.end(), [&](uint32_t i) {
        return judged.node(i).facts != nullptr && NapsForFileLocks(*judged.node(i).facts);
      }))
    return;
  finding->Lower(Confidence::kLikely, kNapsAlikeDoubt);
  DoubtSignals(draft, judged, Confidence::kLikely, finding);
}

// What a thread does itself raises these; but somebody may send one all the same.
void DoubtFaultHandlers(const FindingDraft& draft, const JudgedProcesses& judged,
                        ProcessFinding* finding) {
  for (const int pid : judged.PidsOf(draft.members)) {
    const ProcessFacts* const process = FindProcess(judged.look, pid);
    if (process != nullptr &&
        (process->caught_signals & ~process->runtime_signals & kOwnFaults) != 0)
      finding->Lower(Confidence::kLikely,
                     fmt::format("{} handles signals of faults, which others could send",
                                 ProcessLabel(judged.look, pid)));
  }
}

// A handler sets a variable that has a place of its own, as those do that have names: one that ends
// a program, too, where that is all that the program naps or spins for. Or it sets one of a
// program that is interpreted, which looks at many words for each.
bool MayPollWhatAHandlerSets(const FindingDraft& draft, const JudgedProcesses& judged) {
  constexpr size_t kFew = 4;
  return std::any_of(draft.members.begin(), draft.members.end(), [&](uint32_t i) {
    const ThreadFacts& thread = *judged.node(i).facts;
    const ThreadFacts::Spin& spin = *thread.spin;
    const ProcessFacts* const process = FindProcess(judged.look, thread.pid);
    if (spin.polls.size() > kFew) return process != nullptr && SignalsFromOutside(*process) != 0;
    // In a program without symbols none has a name.
    return !spin.polls.empty() && spin.polled_variable.find(' ') == std::string::npos;
  });
}

// "4713 metrics (naps 2 s) and 3 more": those of the process that may go on.
std::string WhoActs(int pid, const JudgedProcesses& judged,
                    const std::function<bool(const ThreadFacts&)>& is_meant) {
  constexpr size_t kMost = 3;
  std::string text;
  size_t all = 0;
  for (uint32_t i = 0; i < judged.graph.nodes().size(); ++i) {
    const ProcessNode& node = judged.node(i);
    const bool may = node.kind == ProcessNode::Kind::kThread && node.pid == pid &&
                     !judged.stuck[i] && node.stand != ThreadStand::kWaits &&
                     node.stand != ThreadStand::kSpins && node.stand != ThreadStand::kEnded &&
                     !node.facts->of_runtime;
    if (may && is_meant(*node.facts) && all++ < kMost)
      text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", ThreadLabel(*node.facts),
                          DoesWhat(*node.facts, judged.look));
  }
  return all > kMost ? text + fmt::format(" and {} more", all - kMost) : text;
}

// Threads of a library, or of a pool without work, idle so where nobody wants anything.
bool MayIdle(const FindingDraft& draft, const JudgedProcesses& judged) {
  const auto is_of_library = [&](uint32_t i) {
    const StackFrame* const own = OwnFrame(*judged.node(i).facts);
    return own == nullptr || own->source.empty();
  };
  std::set<decltype(ObjectOf({}))> waits;
  for (const uint32_t i : draft.members) waits.insert(ObjectOf(judged.node(i).facts->wait));
  return (draft.members.size() > 1 && waits.size() == 1) ||
         std::any_of(draft.members.begin(), draft.members.end(), is_of_library);
}

// Of those who nap beside these, the code tells that they wake nobody.
void DoubtNappers(const FindingDraft& draft, const JudgedProcesses& judged,
                  ProcessFinding* finding) {
  std::set<int> pids;
  bool of_files = false;
  for (const uint32_t i : draft.members) {
    const ProcessNode& node = judged.node(i);
    if (node.facts == nullptr) continue;
    const bool of_file = IsFileWait(node.facts->wait.kind);
    of_files = of_files || of_file;
    if (of_file || (node.weak && WaitsToBeWoken(*node.facts))) pids.insert(node.pid);
  }
  for (const int pid : pids) {
    bool is_main = false;
    const std::string who = WhoActs(pid, judged, [&](const ThreadFacts& thread) {
      const bool is_harmless =
          of_files ? thread.uses_no_files || thread.uses_descriptors : thread.wakes_nobody;
      is_main = is_main || (is_harmless && thread.tid == pid);
      return is_harmless;
    });
    if (who.empty()) continue;
    finding->Lower(Confidence::kLikely,
                   fmt::format("that nothing it does after its wait {} is read from the code: {}",
                               of_files ? "uses their files" : "wakes anybody", who));
    const bool is_idle =
        draft.kind == FindingKind::kLostWakeup || draft.kind == FindingKind::kNoWriter;
    if (is_main && is_idle && MayIdle(draft, judged))
      finding->Lower(Confidence::kPossible,
                     "its main thread waits for none of them: threads without work idle so");
  }
}

// A debugger, or whoever looks at a process, holds it for a moment.
void DoubtStops(const FindingDraft& draft, const JudgedProcesses& judged, ProcessFinding* finding) {
  const ProcessFacts* const process = FindProcess(judged.look, draft.about);
  if (process == nullptr) return;
  if (IsShortStop(*process, judged.look.end))
    finding->Lower(Confidence::kPossible, kShortStopDoubt);
  const bool is_traced =
      std::any_of(process->threads.begin(), process->threads.end(),
                  [](const ThreadFacts& thread) { return thread.state == ThreadState::kTraced; });
  if (is_traced && process->tracer != 0 && judged.PidsOf(draft.members).count(process->tracer) == 0)
    finding->Lower(Confidence::kPossible, fmt::format("{}, which holds it, may let it go on",
                                                      ProcessLabel(judged.look, process->tracer)));
}

// Whom a finding is about, by threads: those who wait, and the process that does not deliver.
std::vector<const ThreadFacts*> Involved(const FindingDraft& draft, const JudgedProcesses& judged) {
  std::vector<const ThreadFacts*> threads;
  for (const uint32_t i : draft.members) {
    if (judged.node(i).facts != nullptr) threads.push_back(judged.node(i).facts);
  }
  if (const ProcessFacts* const process = FindProcess(judged.look, draft.about)) {
    for (const ThreadFacts& thread : process->threads) threads.push_back(&thread);
  }
  return threads;
}

// What was seen on two hosts was not seen at one time; what lasted is taken to have been so at one.
void DoubtClocks(const FindingDraft& draft, const JudgedProcesses& judged,
                 ProcessFinding* finding) {
  if (!IsOfTwoLooks(draft, judged)) return;
  std::optional<TimeNs> begin = 0;
  TimeNs end = judged.look.end;
  for (const ThreadFacts* thread : Involved(draft, judged)) {
    begin = begin && thread->since ? std::optional(std::max(*begin, *thread->since)) : std::nullopt;
    if (thread->seen_until != 0) end = std::min(end, thread->seen_until);
  }
  if (begin && *begin + kClocksAgree <= end)
    return finding->Lower(Confidence::kLikely,
                          "they were not looked at in one instant, and the clocks of their hosts "
                          "are taken to agree within 1 s");
  finding->Lower(Confidence::kPossible,
                 "it is not known that they waited at one time: look at all of their hosts again");
}

}  // namespace

// Such a system call leaves no trace in whose memory it changes.
std::optional<OutsideWriter> WriterFromOutside(const FindingDraft& draft,
                                               const JudgedProcesses& judged) {
  std::set<int> hang_too;
  for (const auto* list : {&draft.members, &draft.victims}) hang_too.merge(judged.PidsOf(*list));
  for (const uint32_t i : draft.members) {
    const ThreadFacts::Spin& spin = *judged.node(i).facts->spin;
    if (!spin.writers.empty()) return OutsideWriter{spin.writers[0], false};
    const auto copy = std::find_if(spin.relatives.begin(), spin.relatives.end(),
                                   [&](int pid) { return hang_too.count(pid) == 0; });
    if (copy != spin.relatives.end()) return OutsideWriter{*copy, true};
  }
  return std::nullopt;
}

bool HasRanks(const FindingDraft& draft, const JudgedProcesses& judged) {
  return std::any_of(draft.members.begin(), draft.members.end(), [&](uint32_t i) {
    const ThreadFacts* const thread = judged.node(i).facts;
    return thread != nullptr && thread->wait.kind == WaitKind::kRanks;
  });
}

std::string WhoMayAct(int pid, const JudgedProcesses& judged) {
  return WhoActs(pid, judged, [](const ThreadFacts&) { return true; });
}

bool IsShortStop(const ProcessFacts& process, TimeNs now) {
  constexpr TimeNs kShort = kSecond;
  return std::any_of(process.threads.begin(), process.threads.end(), [&](const auto& thread) {
    const bool is_halted =
        thread.state == ThreadState::kStopped || thread.state == ThreadState::kTraced;
    return is_halted && thread.since && now - *thread.since < kShort;
  });
}

bool IsOfTwoLooks(const FindingDraft& draft, const JudgedProcesses& judged) {
  const auto threads = Involved(draft, judged);
  return std::any_of(threads.begin(), threads.end(), [&](const ThreadFacts* thread) {
    return thread->seen_until != threads[0]->seen_until;
  });
}

void JudgeConfidence(const FindingDraft& draft, const JudgedProcesses& judged,
                     ProcessFinding* finding) {
  finding->confidence = Confidence::kCertain;
  DoubtHolders(draft, judged, finding);
  DoubtOwnersElsewhere(draft, judged, finding);
  if (std::any_of(draft.members.begin(), draft.members.end(),
                  [&](uint32_t i) { return judged.node(i).facts->wait.of_own_call; }))
    finding->Lower(Confidence::kLikely,
                   "that its call came to its own process, and was not answered, is read from the "
                   "memory of that");
  if (judged.looks.size() < 2 && !judged.look.whole_process_stopped)
    finding->Lower(Confidence::kLikely, "it was looked at once only");
  DoubtDatabases(draft, judged, finding);
  DoubtServers(draft, judged, finding);
  DoubtAcceptors(draft, judged, finding);
  if (std::any_of(draft.members.begin(), draft.members.end(), [&](uint32_t i) {
        const ThreadFacts* const thread = judged.node(i).facts;
        return thread != nullptr && IsTransferOfCurl(*thread);
      }))
    finding->Lower(Confidence::kLikely, "libcurl may have been given a time limit");
  if (HasRanks(draft, judged))
    finding->Lower(Confidence::kLikely,
                   "that no message is under way is read from the memory that the ranks share");
  if (std::any_of(draft.members.begin(), draft.members.end(), [&](uint32_t i) {
        const ThreadFacts& thread = *judged.node(i).facts;
        return judged.node(i).retries && !NapsForDatabase(thread) && !NapsForFileLocks(thread);
      }))
    finding->Lower(Confidence::kLikely,
                   "these waits have time limits, and who tries again and again may give up");
  DoubtFileLockNaps(draft, judged, finding);
  const auto weak = [&](uint32_t i) {
    return judged.node(i).weak && !WaitsForItself(judged.node(i));
  };
  switch (draft.kind) {
    case FindingKind::kDeadlock:
      if (!draft.tasks.empty()) {
        const bool is_go = judged.node(draft.members[0]).facts->tasks[0].is_goroutine;
        const std::vector<TaskFacts>& tasks = judged.node(draft.members[0]).facts->tasks;
        const bool by_memory = std::any_of(draft.tasks.begin(), draft.tasks.end(), [&](size_t i) {
          return tasks[i].is_stranded && tasks[i].holder.empty();
        });
        if (MayBeMeantToStay(tasks[draft.tasks[0]]))
          finding->Lower(Confidence::kPossible, "its main goroutine may be meant to stay there");
        finding->Lower(Confidence::kLikely,
                       by_memory
                           ? "who can come to what they wait for is read from the program's memory"
                           : fmt::format("who holds a lock is read from the code{}",
                                         is_go ? "" : ", and the program may cancel a task"));
        if (judged.node(draft.members[0]).facts->wait.may_be_interrupted)
          finding->Lower(Confidence::kPossible,
                         "a timer of the loop, or another task, may have one of these tasks, and "
                         "could cancel it");
        break;
      }
      if (draft.unowned) {
        const std::string who = WhoMayAct(judged.node(draft.members[0]).pid, judged);
        finding->Lower(Confidence::kPossible,
                       fmt::format("it may be held by {}", who.empty() ? "another process" : who));
        break;
      }
      if (draft.asks_itself) {
        finding->Lower(Confidence::kLikely,
                       "that no other thread will read these requests is told by how long they "
                       "have stood");
        if (!draft.may_serve.empty())
          finding->Lower(
              Confidence::kPossible,
              fmt::format("{} may read them", ThreadLabel(*judged.node(draft.may_serve[0]).facts)));
        break;
      }
      if (draft.beside_others) {
        finding->Lower(Confidence::kPossible,
                       fmt::format("it may yet be given by {}",
                                   WhoMayAct(judged.node(draft.members[0]).pid, judged)));
        break;
      }
      DoubtEvents(draft, judged, finding);
      if (draft.holds_what_they_want) {
        finding->Lower(Confidence::kLikely,
                       "that those who want the lock would give what these wait for is not known: "
                       "nobody else is left who could");
        DoubtSignals(draft, judged, Confidence::kLikely, finding);
        break;
      }
      if (std::any_of(draft.members.begin(), draft.members.end(), weak)) {
        finding->Lower(
            Confidence::kLikely,
            "who holds the lock is not recorded: it is one of these threads, as there are no "
            "others that run");
      }
      DoubtInterrupts(draft, judged, finding);
      DoubtRaises(draft, judged, finding);
      DoubtTimers(draft, judged, kOfTimers | kOfProcessor, Confidence::kLikely, finding);
      DoubtFiles(draft, judged, finding);
      if (DoubtOpens(draft, judged, finding))
        DoubtSignals(draft, judged, Confidence::kLikely, finding);
      break;
    case FindingKind::kHeld:
      DoubtFiles(draft, judged, finding);
      break;
    case FindingKind::kNoWriter:
      if (!judged.stuck[draft.members[0]]) {
        finding->Lower(Confidence::kPossible, "whoever knows its name may open it at any time");
        break;
      }
      DoubtOpens(draft, judged, finding);
      DoubtFiles(draft, judged, finding);
      DoubtSignals(draft, judged, Confidence::kPossible, finding);
      break;
    case FindingKind::kSpin:
      DoubtSpins(draft, judged, finding);
      DoubtFaultHandlers(draft, judged, finding);
      DoubtTimers(draft, judged, kOfProcessor, Confidence::kPossible, finding);
      DoubtSignals(
          draft, judged,
          MayPollWhatAHandlerSets(draft, judged) ? Confidence::kPossible : Confidence::kLikely,
          finding);
      break;
    case FindingKind::kStoppedChild:
      if (judged.node(draft.members[0]).stand == ThreadStand::kOutside)
        finding->Lower(Confidence::kLikely, "other signals may end this wait, too");
      break;
    case FindingKind::kLostWakeup: {
      if (draft.beside_tickers) {
        finding->Lower(Confidence::kPossible,
                       fmt::format("it may yet be given by {}",
                                   WhoMayAct(judged.node(draft.members[0]).pid, judged)));
        break;
      }
      if (NoSignalComes(draft, judged)) {
        finding->Lower(Confidence::kLikely, "it may be meant to last until SIGKILL ends it");
        DoubtSignals(draft, judged, Confidence::kLikely, finding);
        break;
      }
      // While Python's main thread waits for the end of another one, too, it runs handlers, which
      // may signal conditions.
      const auto may_end = [&](uint32_t i) {
        const ThreadFacts* const thread = judged.node(i).facts;
        return (judged.node(i).weak || RunsPython(*thread)) && !IsFileWait(thread->wait.kind) &&
               HandlerMayEnd(*thread) && !IdlesInRuntime(*thread);
      };
      const bool may = draft.beside_loops ||
                       std::any_of(draft.members.begin(), draft.members.end(), may_end) ||
                       std::any_of(draft.victims.begin(), draft.victims.end(), may_end);
      finding->Lower(
          Confidence::kLikely,
          "all that could signal it stand still themselves; what else might is not known");
      DoubtSignals(draft, judged, may ? Confidence::kPossible : Confidence::kLikely, finding);
      break;
    }
    default:
      break;
  }
  DoubtWhoStandsBehind(draft, judged, finding);
  DoubtNappers(draft, judged, finding);
  DoubtStops(draft, judged, finding);
  DoubtWords(draft, judged, finding);
  DoubtKernelWork(draft, judged, finding);
  DoubtClocks(draft, judged, finding);
}

}  // namespace hangscope
