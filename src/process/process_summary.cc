#include "process/process_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "process/process_doubts.h"
#include "process/process_words.h"

namespace hangscope {
namespace {

// It idles in an event loop of asyncio, whose tasks are known.
bool RunsTasks(const ThreadFacts& thread) {
  return !thread.tasks.empty() && !thread.tasks[0].is_goroutine &&
         HasFunction(thread.stack, "BaseEventLoop.run_forever");
}

// "runs task Task-1, which waits for queue jobs, and nobody is left to end that".
std::string TasksText(const ThreadFacts& thread) {
  const TaskFacts& first = thread.tasks[0];
  const std::string what =
      thread.tasks.size() > 1
          ? fmt::format("{} tasks, which all wait", thread.tasks.size())
          : fmt::format("task {}, which waits{}", Printable(first.name, 60),
                        first.waits_for.empty() ? "" : " for " + Printable(first.waits_for, 60));
  return fmt::format("runs {}, and nobody is left to end that", what);
}

// "reads a pipe or socket whose other end only this process has, and nobody there can write".
std::string OwnFilesText(const FindingDraft& draft, const JudgedProcesses& judged, bool reads) {
  std::set<FileKind> kinds;
  bool unaccepted = true;
  for (const uint32_t i : draft.members) {
    for (const WaitFile& file : judged.node(i).facts->wait.files) {
      kinds.insert(file.kind);
      unaccepted = unaccepted && file.unaccepted;
    }
  }
  const char* const verb = reads ? "read" : "write";
  const char* const other = reads ? "write" : "read";
  const char* const s = draft.members.size() == 1 ? "s" : "";
  if (kinds == std::set{FileKind::kTimer})
    return fmt::format(
        "wait{} for a timer that is not armed and that only this process has, and nobody there can "
        "arm it",
        s);
  if (kinds == std::set{FileKind::kEpoll})
    return fmt::format(
        "wait{} for an epoll that watches no file and that only this process has, and nobody there "
        "can add one",
        s);
  if (kinds == std::set{FileKind::kTerminal})
    return fmt::format(
        "{}{} a terminal whose other side only this process has, and nobody there can {}", verb, s,
        other);
  if (kinds == std::set{FileKind::kNotify})
    return fmt::format(
        "wait{} for an inotify that watches no file and that only this process has, and nobody "
        "there can add one",
        s);
  if (kinds == std::set{FileKind::kEvent})
    return fmt::format("{}{} an eventfd that only this process has, and nobody there can {}", verb,
                       s, other);
  if (kinds == std::set{FileKind::kRing})
    return fmt::format(
        "wait{} for completions of an io_uring that was given nothing to do and that only this "
        "process has",
        s);
  if (kinds == std::set{FileKind::kFault})
    return fmt::format(
        "wait{} for a page that a userfaultfd keeps back which only this process has, and nobody "
        "there can fill it",
        s);
  if (unaccepted)
    return fmt::format(
        "{}{} a connection to its own process that nobody has accepted, and nobody there can", verb,
        s);
  if (kinds == std::set{FileKind::kQueue})
    return fmt::format("wait{} for a message queue that only this process has, and nobody there {}",
                       s, reads ? "can send to it" : "receives from it");
  return fmt::format(
      "{}{} a pipe{} socket{} whose other end only this process has, and nobody "
      "there can {}",
      verb, s, kinds.count(FileKind::kEvent) != 0 ? "," : " or",
      kinds.count(FileKind::kEvent) != 0 ? " or eventfd" : "", other);
}

// The same words as of the thread, without who holds it.
std::string LockName(const ThreadFacts& thread, const SystemSample& look) {
  const std::string text = WaitedFor(thread, look);
  return text.substr(0, text.find(", "));
}

// "2 of 3 threads", "its only thread", "2 threads of 2 processes".
std::string CountText(const FindingDraft& draft, const JudgedProcesses& judged) {
  const std::set<int> pids = judged.PidsOf(draft.members);
  if (pids.size() > 1)
    return fmt::format("{} threads of {} processes", draft.members.size(), pids.size());
  const size_t all = judged.LiveThreads(pids);
  if (pids.count(judged.look.processes[0].pid) != 0)
    return all == 1 ? "its only thread"
                    : fmt::format("{} of {} threads", draft.members.size(), all);
  const std::string process = ProcessLabel(judged.look, *pids.begin());
  return all == 1 ? "the only thread of " + process
                  : fmt::format("{} of {} threads of {}", draft.members.size(), all, process);
}

size_t DifferentWaits(const FindingDraft& draft, const JudgedProcesses& judged) {
  std::set<decltype(ObjectOf({}))> waits;
  for (const uint32_t i : draft.members) waits.insert(ObjectOf(judged.node(i).facts->wait));
  return waits.size();
}

// "is stopped by SIGSTOP".
std::string WhyHalted(const FindingDraft& draft, const JudgedProcesses& judged) {
  const ProcessFacts* const process = FindProcess(judged.look, draft.about);
  if (process == nullptr) return "is stopped";
  const bool is_traced =
      std::any_of(process->threads.begin(), process->threads.end(),
                  [](const ThreadFacts& thread) { return thread.state == ThreadState::kTraced; });
  return StandsStill(*process, is_traced ? ThreadState::kTraced : ThreadState::kStopped);
}

bool AllHaveNames(const FindingDraft& draft, const JudgedProcesses& judged) {
  return std::all_of(draft.members.begin(), draft.members.end(), [&](uint32_t i) {
    const ThreadWait& wait = judged.node(i).facts->wait;
    return !wait.variable.empty() || !wait.shared_name.empty();
  });
}

// Of different ones, two.
std::string LockNames(const FindingDraft& draft, const JudgedProcesses& judged) {
  constexpr size_t kMost = 2;
  std::set<std::string> names;
  for (const uint32_t i : draft.members) names.insert(LockName(*judged.node(i).facts, judged.look));
  std::string text;
  size_t shown = 0;
  for (const std::string& name : names) {
    if (shown++ == kMost) return text + fmt::format(" and {} more", names.size() - kMost);
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

// "signals", or "std::futures" where all are that.
std::string WhatAllWaitFor(const FindingDraft& draft, const JudgedProcesses& judged) {
  std::set<std::string> all;
  for (const uint32_t i : draft.members) all.insert(LibraryWordsOf(*judged.node(i).facts).all);
  return all.size() == 1 && !all.begin()->empty() ? *all.begin() : "signals";
}

// "give one", or "set one" where all are that.
std::string HowTheyEnd(const FindingDraft& draft, const JudgedProcesses& judged) {
  if (WhatAllWaitFor(draft, judged) == "signals") return "give one";
  std::string end = LibraryWordsOf(*judged.node(draft.members[0]).facts).end;
  if (end == "send it" || end == "push it" || end == "make it") return "use one";
  constexpr std::string_view kIt = " it";
  return end.replace(end.find(kIt), kIt.size(), " one");
}

bool Retry(const FindingDraft& draft, const JudgedProcesses& judged) {
  return std::any_of(draft.members.begin(), draft.members.end(),
                     [&](uint32_t i) { return judged.node(i).retries; });
}

// "spin for tx_lock and for rx_lock" of two that do so.
// " for lock_a and for lock_b".
std::string EachOf(const std::set<std::string>& each) {
  constexpr size_t kMost = 2;
  std::string text;
  size_t shown = 0;
  for (const std::string& what : each) {
    if (shown == kMost) return text + fmt::format(" and in {} other ways", each.size() - kMost);
    text += (shown++ == 0 || what.empty() ? "" : " and") + what;
  }
  return text;
}

std::string SpinTexts(const FindingDraft& draft, const JudgedProcesses& judged) {
  constexpr std::string_view kOfOne = "spins";
  constexpr std::string_view kAgain = ", again and again";
  std::set<std::string> spin, nap;
  for (const uint32_t i : draft.members) {
    const ThreadFacts& thread = *judged.node(i).facts;
    std::string what = DoesWhat(thread, judged.look);
    if (!NapsAndLooks(thread)) {
      spin.insert(what.substr(kOfOne.size()));
      continue;
    }
    if (what.ends_with(kAgain)) what.resize(what.size() - kAgain.size());
    const size_t at = what.find(" for ");
    nap.insert(at == std::string::npos ? "" : what.substr(at));
  }
  return (spin.empty() ? "" : "spin" + EachOf(spin)) + (spin.empty() || nap.empty() ? "" : " or ") +
         (nap.empty() ? "" : "nap and look again" + EachOf(nap));
}

// By a process of which it is not known that it does, or by a handler: the doubts say which.
bool MayBeEndedFromOutside(const FindingDraft& draft, const JudgedProcesses& judged) {
  if (WriterFromOutside(draft, judged)) return true;
  return std::any_of(draft.members.begin(), draft.members.end(), [&](uint32_t i) {
    const ThreadFacts& thread = *judged.node(i).facts;
    const ProcessFacts* const process = FindProcess(judged.look, thread.pid);
    return thread.spin->polls_shared || (process != nullptr && SignalsFromOutside(*process) != 0);
  });
}

std::string_view WhomTasksWaitFor(const FindingDraft& draft, const std::vector<TaskFacts>& tasks) {
  const auto waits_for_nobody = [&](size_t i) { return tasks[i].tasks.empty(); };
  if (std::any_of(draft.tasks.begin(), draft.tasks.end(), waits_for_nobody))
    return "what nobody else can give";
  return draft.tasks.size() == 1 ? "itself" : "each other";
}

}  // namespace

std::string SummaryOf(const FindingDraft& draft, const JudgedProcesses& judged) {
  const ThreadFacts& first = *judged.node(draft.members[0]).facts;
  const bool one = draft.members.size() == 1;
  const std::string count = CountText(draft, judged);
  switch (draft.kind) {
    case FindingKind::kDeadlock: {
      if (!draft.tasks.empty())
        return fmt::format("deadlock, {} of {} {} of {} wait{} for {}", draft.tasks.size(),
                           first.tasks.size(), first.tasks[0].is_goroutine ? "goroutines" : "tasks",
                           ThreadLabel(first), draft.tasks.size() == 1 ? "s" : "",
                           WhomTasksWaitFor(draft, first.tasks));
      if (draft.unowned)
        return fmt::format("deadlock, {} wait{} for {}, and who holds {} is not recorded", count,
                           one ? "s" : "", LockNames(draft, judged), one ? "that" : "these");
      if (draft.asks_itself)
        return fmt::format(
            "deadlock, {} wait{} for {} of {} own process, and no other is left that reads "
            "requests",
            count, one ? "s" : "", one ? "an answer" : "answers", one ? "its" : "their");
      if (draft.beside_others)
        return fmt::format("deadlock, thread {} waits for {}, and {} a lock that it holds",
                           ThreadLabel(first), WaitedFor(first, judged.look),
                           draft.members.size() == 2
                               ? "another one wants"
                               : fmt::format("{} others want", draft.members.size() - 1));
      if (draft.holds_what_they_want)
        return fmt::format(
            "deadlock, {} wait{} for {}, and {} want{} a lock that {}", count, one ? "s" : "",
            LockNames(draft, judged),
            draft.partners.size() == 1 ? "another one"
                                       : fmt::format("{} others", draft.partners.size()),
            draft.partners.size() == 1 ? "s" : "", one ? "this one holds" : "these hold");
      if (WaitsForItself(judged.node(draft.members[0])))
        return fmt::format("deadlock, {} wait{} for {}", count, one ? "s" : "",
                           DifferentWaits(draft, judged) > 1 ? LockNames(draft, judged)
                                                             : WaitedFor(first, judged.look));
      const bool elsewhere =
          judged.PidsOf(draft.members) != std::set<int>{judged.look.processes[0].pid} &&
          judged.PidsOf(draft.members).size() == 1;
      if (judged.node(draft.members[0]).weak) {
        const bool at_barrier =
            std::any_of(draft.members.begin(), draft.members.end(),
                        [&](uint32_t i) { return IsAtBarrier(*judged.node(i).facts); });
        return fmt::format("deadlock, {} wait{} for {}, and every thread that could {} {} waits",
                           count, one ? "s" : "", LockNames(draft, judged),
                           at_barrier ? "end" : "hold",
                           DifferentWaits(draft, judged) > 1 ? "these" : "it");
      }
      if (!elsewhere)
        return one ? "deadlock, a thread waits for itself"
                   : fmt::format("deadlock, {} wait for each other{}", count,
                                 Retry(draft, judged) ? ", each time anew" : "");
      return fmt::format("deadlock, {} wait{} for {} ({})", count, one ? "s" : "",
                         one ? "itself" : "each other", LockNames(draft, judged));
    }
    case FindingKind::kOwnerDied:
      return fmt::format("owner died, {} wait{} for {}", count, one ? "s" : "",
                         WaitedFor(first, judged.look));
    case FindingKind::kCopiedLock:
      return fmt::format("copied lock, {} wait{} for {}", count, one ? "s" : "",
                         WaitedFor(first, judged.look));
    case FindingKind::kLostWakeup:
      if (NoSignalComes(draft, judged))
        return fmt::format(
            "lost wakeup, {} wait{} for a signal, and block{} or ignore{} all of them", count,
            one ? "s" : "", one ? "s" : "", one ? "s" : "");
      if (draft.beside_tickers)
        return fmt::format(
            "lost wakeup, {} wait{} for {}, and the others have slept and woken meanwhile", count,
            one ? "s" : "", LockNames(draft, judged));
      if (DifferentWaits(draft, judged) > 1 && !AllHaveNames(draft, judged))
        return fmt::format("lost wakeup, {} wait for {} different {}, and nobody is left to {}",
                           count, DifferentWaits(draft, judged), WhatAllWaitFor(draft, judged),
                           HowTheyEnd(draft, judged));
      if (DifferentWaits(draft, judged) > 1)
        return fmt::format("lost wakeup, {} wait for {}, and nobody is left to signal these", count,
                           LockNames(draft, judged));
      return fmt::format("lost wakeup, {} wait{} for {}, and nobody is left to {}", count,
                         one ? "s" : "", WaitedFor(first, judged.look), LibraryWordsOf(first).end);
    case FindingKind::kNoWriter: {
      const bool reads = first.wait.kind == WaitKind::kOpen ? first.wait.files[0].wants_read
                                                            : first.wait.kind != WaitKind::kWrite;
      if (first.wait.kind == WaitKind::kOpen)
        return fmt::format("no {}, {} wait{} for {}", reads ? "writer" : "reader", count,
                           one ? "s" : "", WaitedFor(first, judged.look));
      return fmt::format(
          "no {}, {} {}", reads ? "writer" : "reader", count,
          one && RunsTasks(first) ? TasksText(first) : OwnFilesText(draft, judged, reads));
    }
    case FindingKind::kStoppedChild:
      return fmt::format("stopped child, {} wait{} for {}, which {}", count, one ? "s" : "",
                         ProcessLabel(judged.look, draft.about), WhyHalted(draft, judged));
    case FindingKind::kHeld:
      return fmt::format("held, {} wait{} for {}, which {}", count, one ? "s" : "",
                         ProcessLabel(judged.look, draft.about), WhyHalted(draft, judged));
    case FindingKind::kSpin:
      return fmt::format("spin, {} {}, and nobody is {} to end that", count,
                         one ? DoesWhat(first, judged.look) : SpinTexts(draft, judged),
                         MayBeEndedFromOutside(draft, judged) ? "known" : "left");
    default:
      return count;
  }
}

}  // namespace hangscope
