#include "process/process_standing.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "process/process_words.h"

namespace hangscope {
namespace {

// Who uses more of a CPU than this between two naps works.
constexpr TimeNs kMostOfNap = 20;    // one part in so many
constexpr TimeNs kMostOfMoment = 3;  // and of the few milliseconds between two looks

std::string WaitsFor(const ThreadFacts& thread, const SystemSample& look) {
  const std::string what = WaitedFor(thread, look);
  return ThreadLabel(thread) + (what.empty() ? " sleeps" : " waits for " + what);
}

bool Naps(const ThreadFacts& thread) {
  return thread.state == ThreadState::kSleeping && thread.wait.has_timeout;
}

bool Runs(const ThreadFacts& thread) { return thread.state == ThreadState::kRunning; }

// At most one part in `parts` of a CPU.
bool UsesLittle(const ThreadFacts& before, const ThreadFacts& now, TimeNs passed, TimeNs parts) {
  return (now.cpu_time - before.cpu_time) * parts <= passed;
}

// Why nothing can be said of who could end its wait.
std::string WhyUnknown(const ThreadFacts& thread, const SystemSample& look) {
  const ThreadWait& wait = thread.wait;
  if (thread.state == ThreadState::kDiskSleep)
    return "it is in the kernel, where no signal wakes it";
  if (thread.state != ThreadState::kSleeping) return "what it does is not known";
  if (wait.kind == WaitKind::kSupervisor) return "who that is is not known";
  if (wait.kind == WaitKind::kOther) return "what ends this system call is not known";
  if (wait.kind == WaitKind::kNone) {
    const ProcessFacts* const process = FindProcess(look, thread.pid);
    return process != nullptr && process->is_hidden ? "what for may not be looked at"
                                                    : "what for is not known";
  }
  if (wait.kind == WaitKind::kOpen) return "who will is not known";
  for (const WaitFile& file : wait.files) {
    if (IsOfSystemV(file)) return "whoever knows its number may use it";
    if (file.kind == FileKind::kServerLock) return "who has it is not known";
    if (file.kind == FileKind::kRing)
      return "the kernel does that, and for whom it waits is not known";
    if (file.kind == FileKind::kMount) return "who serves it is not known";
    if (file.others_hidden)
      return "processes that may not be looked into might have the other end open, too";
    if (file.others_unknown) return "who has the other end is not known";
  }
  if (wait.is_public) return "whoever knows its name may come to it";
  if (wait.shared) return "who else has this word in its memory is not known";
  if (wait.kind == WaitKind::kChild) return "it has no such child";
  return "who could end that is not known";
}

// What a process started is part of it, so far as its waits led there.
std::set<int> WithChildren(std::set<int> asked, const SystemSample& look) {
  for (size_t before = 0; before != asked.size();) {
    before = asked.size();
    for (const ProcessFacts& process : look.processes) {
      if (asked.count(process.parent) != 0) asked.insert(process.pid);
    }
  }
  return asked;
}

class Standing {
 public:
  Standing(const std::vector<SystemSample>& looks, const ProcessGraph& graph,
           const std::vector<bool>& stuck, const std::vector<ProcessFinding>& findings)
      : looks_(looks),
        look_(looks.back()),
        graph_(graph),
        stuck_(stuck),
        asked_(WithChildren(AskedProcesses(look_), look_)) {
    for (const ProcessFinding& finding : findings) {
      std::set<int> threads(finding.threads.begin(), finding.threads.end());
      threads.insert(finding.victims.begin(), finding.victims.end());
      const bool for_signal =
          std::any_of(threads.begin(), threads.end(), [&](int tid) { return WaitsForSignal(tid); });
      if (finding.IsBad())
        told_.merge(threads);
      else if (for_signal)
        for_signal_.merge(threads);
    }
    for (const ThreadFacts* thread : Threads(looks.front())) before_[thread->tid] = thread;
  }

  ProcessStanding Take() {
    for (uint32_t i = 0; i < graph_.nodes().size(); ++i) {
      const ProcessNode& node = graph_.nodes()[i];
      if (node.kind == ProcessNode::Kind::kThread && asked_.count(node.pid) != 0) Add(i);
    }
    // Not again what a chain ends with.
    for (auto& [tid, clause] : outside_) {
      if (chained_.count(tid) == 0) standing_.outside.push_back(std::move(clause));
    }
    standing_.complete = look_.asked_are_all;
    for (const int pid : asked_) {
      const ProcessFacts* const process = FindProcess(look_, pid);
      if (process != nullptr && !process->is_hidden) continue;
      standing_.complete = false;
      if (standing_.hidden.empty() && process != nullptr && !process->warnings.empty())
        standing_.hidden = process->warnings.front();
    }
    return std::move(standing_);
  }

 private:
  static std::vector<const ThreadFacts*> Threads(const SystemSample& look) {
    std::vector<const ThreadFacts*> threads;
    for (const ProcessFacts& process : look.processes) {
      for (const ThreadFacts& thread : process.threads) threads.push_back(&thread);
    }
    return threads;
  }

  // Asleep for a set time in one of the looks, whether or not it woke meanwhile: on a busy machine
  // it may have woken before the others, and not run yet.
  bool IsTicker(const ThreadFacts& now) const {
    const auto at = before_.find(now.tid);
    if (at == before_.end() || !(Naps(*at->second) || Runs(*at->second)) ||
        !(Naps(now) || Runs(now)))
      return false;
    const ThreadFacts* last = &now;
    TimeNs end = look_.begin;
    bool has_napped = Naps(*at->second) || Naps(now);
    for (const SystemSample& look : looks_) {
      const ThreadFacts* const other = looks_.size() > 2 ? FindThread(look, now.tid) : nullptr;
      if (other == nullptr) continue;
      has_napped = has_napped || Naps(*other);
      if (look.begin > end) last = other, end = look.begin;
    }
    return has_napped && UsesLittle(*at->second, *last, end - looks_.front().begin, kMostOfNap);
  }

  void Add(uint32_t i) {
    const ThreadFacts& thread = *graph_.nodes()[i].facts;
    if (thread.of_runtime) {
      standing_.serving.push_back(thread.tid);
      if (graph_.nodes()[i].stand == ThreadStand::kMoves) return;
    }
    switch (graph_.nodes()[i].stand) {
      case ThreadStand::kMoves:
        if (!IsTicker(thread)) return standing_.moving.push_back(thread.tid);
        return AddTicker(thread);
      case ThreadStand::kTimed:
        return AddTicker(thread);
      case ThreadStand::kOutside:
        if (told_.count(thread.tid) != 0) return;
        outside_.emplace_back(thread.tid, WaitsFor(thread, look_));
        return;
      case ThreadStand::kUnknown:
        return standing_.unknown.push_back(
            fmt::format("{}: {}", WaitsFor(thread, look_), WhyUnknown(thread, look_)));
      case ThreadStand::kHalted:
      case ThreadStand::kFrozen:
        return standing_.halted.push_back(
            fmt::format("{} {}", ThreadLabel(thread), DoesWhat(thread, look_)));
      case ThreadStand::kWaits:
        return AddWaiter(i, thread);
      case ThreadStand::kSpins:
      case ThreadStand::kEnded:
        return;
    }
  }

  // An event loop waits for connections, too, while it waits for its next timer.
  void AddTicker(const ThreadFacts& thread) {
    standing_.tickers.push_back(thread.tid);
    const auto is_outside = [](const WaitFile& file) { return file.outside || file.listening; };
    if (std::any_of(thread.wait.files.begin(), thread.wait.files.end(), is_outside))
      outside_.emplace_back(0, WaitsFor(thread, look_));
  }

  bool WaitsForSignal(int tid) const {
    const ThreadFacts* const thread = FindThread(look_, tid);
    const ProcessFacts* const process =
        thread == nullptr ? nullptr : FindProcess(look_, thread->pid);
    return process != nullptr && SignalsFromOutside(*process) != 0 && HandlerMayEnd(*thread);
  }

  // Those who wait for others of the asked are as these are; and what is found is told there.
  void AddWaiter(uint32_t i, const ThreadFacts& thread) {
    if (told_.count(thread.tid) != 0) return;
    if (for_signal_.count(thread.tid) != 0) {
      if (WaitsForSignal(thread.tid))
        outside_.emplace_back(0, WaitsFor(thread, look_) + ", or for a signal that it handles");
      return;
    }
    if (stuck_[i]) {
      standing_.unknown.push_back(
          fmt::format("{}: perhaps nobody could end that", WaitsFor(thread, look_)));
      return;
    }
    int last = 0;
    if (std::string chain = ChainFrom(i, &last); !chain.empty()) {
      chained_.insert(last);
      outside_.emplace_back(0, std::move(chain));
      return;
    }
    for (const WaitEdge& edge : graph_.waits()[i].suppliers) {
      if (asked_.count(graph_.nodes()[edge.to].pid) != 0 || stuck_[edge.to]) continue;
      outside_.emplace_back(0, WaitsFor(thread, look_) + WhatOnlyOneDoes(edge.to));
      return;
    }
  }

  // ", and 4712 redis-server runs", where that is the only thread of the process that has its work.
  std::string WhatOnlyOneDoes(uint32_t to) const {
    if (graph_.nodes()[to].kind != ProcessNode::Kind::kProcess) return "";
    std::vector<const ThreadFacts*> busy;
    for (const WaitEdge& edge : graph_.waits()[to].suppliers) {
      const ProcessNode& node = graph_.nodes()[edge.to];
      const bool runs =
          node.stand == ThreadStand::kMoves && node.facts->state == ThreadState::kRunning;
      if (runs || node.stand == ThreadStand::kTimed) busy.push_back(node.facts);
    }
    return busy.size() == 1
               ? fmt::format(", and {} {}", ThreadLabel(*busy[0]), DoesWhat(*busy[0], look_))
               : "";
  }

  // The only thread that has what `i` waits for, a lock of a file or the other end of a pipe or
  // socket; nothing: it is none, or there are more.
  std::optional<uint32_t> OnlyPartner(uint32_t i) const {
    const WaitKind kind = graph_.nodes()[i].facts->wait.kind;
    if (!IsFileWait(kind) && kind != WaitKind::kFileLock && kind != WaitKind::kServerLock)
      return std::nullopt;
    std::vector<uint32_t> partners;
    for (const WaitEdge& edge : graph_.waits()[i].suppliers) {
      const auto only = OnlyThread(edge.to);
      if (!only || graph_.nodes()[*only].pid == graph_.nodes()[i].pid) return std::nullopt;
      partners.push_back(*only);
    }
    // A shell whose command has inherited it waits for that one's end.
    const std::vector<uint32_t> all = partners;
    std::erase_if(partners, [&](uint32_t partner) {
      const ThreadWait& wait = graph_.nodes()[partner].facts->wait;
      return wait.kind == WaitKind::kChild && wait.children.size() == 1 &&
             std::any_of(all.begin(), all.end(), [&](uint32_t other) {
               return graph_.nodes()[other].pid == wait.children[0];
             });
    });
    return partners.size() == 1 ? std::optional(partners[0]) : std::nullopt;
  }

  std::optional<uint32_t> OnlyThread(uint32_t to) const {
    if (graph_.nodes()[to].kind == ProcessNode::Kind::kThread) return to;
    const auto& threads = graph_.waits()[to].suppliers;
    const bool is_one =
        graph_.nodes()[to].kind == ProcessNode::Kind::kProcess && threads.size() == 1;
    return is_one ? std::optional(threads[0].to) : std::nullopt;
  }

  // "4711 cat waits for data from a pipe (fd 0) written by 4712 nc, and 4712 nc waits for a
  // connection": where whom it waits for, *last, does something else, which comes from outside.
  // Else empty.
  std::string ChainFrom(uint32_t i, int* last) const {
    constexpr size_t kMostLinks = 4;
    std::string text = WaitsFor(*graph_.nodes()[i].facts, look_);
    for (size_t links = 0; links < kMostLinks; ++links) {
      const auto partner = OnlyPartner(i);
      if (!partner) return "";
      i = *partner;
      text += ", and " + WaitsFor(*graph_.nodes()[i].facts, look_);
      *last = graph_.nodes()[i].tid;
      if (graph_.nodes()[i].stand == ThreadStand::kOutside) return text;
      if (graph_.nodes()[i].stand != ThreadStand::kWaits) return "";
    }
    return "";
  }

  const std::vector<SystemSample>& looks_;
  const SystemSample& look_;
  const ProcessGraph& graph_;
  const std::vector<bool>& stuck_;
  const std::set<int> asked_;
  std::set<int> told_;        // threads of findings that count
  std::set<int> for_signal_;  // of those that a handler could end
  std::map<int, const ThreadFacts*> before_;
  std::vector<std::pair<int, std::string>> outside_;  // who waits for it, and what is told of that
  std::set<int> chained_;                             // of these, whom others wait for, who tell it
  ProcessStanding standing_;
};

}  // namespace

std::set<int> AskedProcesses(const SystemSample& look) {
  std::set<int> asked(look.asked.begin(), look.asked.end());
  if (asked.empty() && !look.processes.empty()) asked.insert(look.processes[0].pid);
  return asked;
}

bool MayBeTicker(const std::vector<SystemSample>& looks, int tid) {
  const ThreadFacts* const before = FindThread(looks.front(), tid);
  const ThreadFacts* const now = FindThread(looks.back(), tid);
  if (before == nullptr || now == nullptr) return false;
  return (Naps(*before) || Runs(*before)) && (Naps(*now) || Runs(*now)) &&
         UsesLittle(*before, *now, looks.back().begin - looks.front().begin, kMostOfMoment);
}

ProcessStanding StandingOf(const std::vector<SystemSample>& looks, const ProcessGraph& graph,
                           const std::vector<bool>& stuck,
                           const std::vector<ProcessFinding>& findings) {
  return Standing(looks, graph, stuck, findings).Take();
}

}  // namespace hangscope
