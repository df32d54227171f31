#include "process/process_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/units.h"
#include "process/process_words.h"

namespace hangscope {
namespace {

using NodeKind = ProcessNode::Kind;

constexpr size_t kMostLines = 16;

bool IsFileWait(WaitKind kind) {
  return kind == WaitKind::kRead || kind == WaitKind::kWrite || kind == WaitKind::kPoll;
}

// The looks as they would be if no process that may not be looked into had the other end of a pipe;
// whether that makes any difference.
bool LeaveHiddenOut(std::vector<SystemSample>* looks) {
  bool is_other = false;
  for (SystemSample& look : *looks) {
    for (ProcessFacts& process : look.processes) {
      for (ThreadFacts& thread : process.threads) {
        for (WaitFile& file : thread.wait.files) {
          is_other = is_other || file.others_hidden;
          file.others_unknown = file.others_unknown && !file.others_hidden;
        }
      }
    }
  }
  return is_other;
}

// A handler may post a semaphore or wake a futex; it may not signal a condition variable. Those of
// Python run between its own instructions: in none of its locks.
bool HandlerMayEnd(const ThreadFacts& thread) {
  const auto is_python = [](const StackFrame& frame) {
    return frame.function.starts_with("PyThread_acquire_lock");
  };
  if (std::any_of(thread.stack.begin(), thread.stack.end(), is_python)) return false;
  return thread.wait.kind == WaitKind::kSemaphore || thread.wait.kind == WaitKind::kFutex;
}

// Equal for two threads of one process that wait for the same thing.
std::tuple<WaitKind, uint64_t, std::string, int> ObjectOf(const ThreadWait& wait) {
  return {wait.kind, wait.address, wait.variable, wait.files.empty() ? -1 : wait.files[0].fd};
}

class ProcessJudge {
 public:
  explicit ProcessJudge(const std::vector<SystemSample>& looks)
      : looks_(looks), look_(looks.back()), graph_(looks) {}

  ProcessJudgement Take();

 private:
  // A finding in the making; of nodes rather than threads.
  struct Draft {
    FindingKind kind = FindingKind::kHeld;
    std::vector<uint32_t> members;
    std::vector<uint32_t> victims;
    std::vector<int> partners;
    int about = 0;  // kHeld, kStoppedChild: the process that stands still
  };

  const ProcessNode& node(uint32_t index) const { return graph_.nodes()[index]; }
  void FindStuck();
  void JudgeCause(const WaitCause& cause);
  void AddWeakCause(uint32_t who, const std::vector<uint32_t>& waiters);
  std::vector<uint32_t> WhoWaitsFor(uint32_t halted) const;
  void AddWeak();
  void AddWhoWaitsAlike(int pid, std::vector<uint32_t>* roots) const;
  void AddWeakOf(int pid, std::vector<uint32_t> roots, const std::vector<uint32_t>& victims);
  void JoinVictims(int pid, const std::vector<uint32_t>& more);
  void AddDraft(Draft draft);
  bool IsExplained(int pid) const { return explained_.count(pid) != 0; }

  void AddStates();
  void AddSpinners();
  void AddFinding(const Draft& draft);
  Confidence ConfidenceOf(const Draft& draft, ProcessFinding* finding) const;
  void DoubtFiles(const Draft& draft, ProcessFinding* finding) const;
  void DoubtSignals(const Draft& draft, Confidence most, ProcessFinding* finding) const;
  void DoubtWords(const Draft& draft, ProcessFinding* finding) const;
  void AddEvidence(const Draft& draft, ProcessFinding* finding) const;
  std::string Summary(const Draft& draft) const;
  size_t DifferentWaits(const Draft& draft) const;
  std::string CountText(const Draft& draft) const;
  size_t LiveThreads(const std::set<int>& pids) const;
  std::set<int> PidsOf(const std::vector<uint32_t>& members) const;
  bool IsAsked(const ProcessFinding& finding) const;
  void Finish(ProcessFinding finding);

  const std::vector<SystemSample>& looks_;
  const SystemSample& look_;
  const ProcessGraph graph_;
  std::vector<bool> stuck_;
  std::vector<Draft> drafts_;
  std::map<int, size_t> explained_;                  // processes with threads in a draft
  std::map<int, std::vector<uint32_t>> weak_roots_;  // by process: those that somebody waits for
  std::map<int, std::vector<uint32_t>> weak_victims_;
  std::vector<ProcessFinding> findings_;
};

void ProcessJudge::FindStuck() {
  stuck_.assign(graph_.nodes().size(), false);
  for (const WaitCause& cause : FindCauses(graph_.waits())) {
    for (const auto* list : {&cause.members, &cause.victims}) {
      for (const uint32_t i : *list) stuck_[i] = true;
    }
  }
}

std::vector<uint32_t> ProcessJudge::WhoWaitsFor(uint32_t halted) const {
  std::vector<uint32_t> who;
  for (uint32_t i = 0; i < graph_.nodes().size(); ++i) {
    if (!stuck_[i] || node(i).kind != NodeKind::kThread) continue;
    const auto& suppliers = graph_.waits()[i].suppliers;
    const auto is_it = [&](const WaitEdge& edge) {
      const ProcessNode& to = node(edge.to);
      return edge.to == halted || (to.kind == NodeKind::kProcess && to.pid == node(halted).pid &&
                                   node(halted).kind == NodeKind::kThread);
    };
    if (std::any_of(suppliers.begin(), suppliers.end(), is_it)) who.push_back(i);
  }
  return who;
}

void ProcessJudge::AddDraft(Draft draft) {
  std::vector<uint32_t> victims;
  for (const uint32_t i : draft.victims) {
    const bool is_member = std::count(draft.members.begin(), draft.members.end(), i) != 0;
    if (node(i).kind == NodeKind::kThread && !is_member) victims.push_back(i);
  }
  draft.victims = std::move(victims);
  for (const auto* list : {&draft.members, &draft.victims}) {
    for (const uint32_t i : *list) explained_.emplace(node(i).pid, drafts_.size());
  }
  drafts_.push_back(std::move(draft));
}

void ProcessJudge::JudgeCause(const WaitCause& cause) {
  Draft draft;
  draft.victims = cause.victims;
  if (cause.kind == WaitCause::Kind::kCycle) {
    draft.kind = FindingKind::kDeadlock;
    std::copy_if(cause.members.begin(), cause.members.end(), std::back_inserter(draft.members),
                 [&](uint32_t i) { return node(i).kind == NodeKind::kThread; });
    if (!draft.members.empty()) AddDraft(std::move(draft));
    return;
  }
  if (cause.kind != WaitCause::Kind::kNode) return;
  const uint32_t who = cause.members[0];
  if (node(who).weak) return AddWeakCause(who, cause.victims);
  draft.members = WhoWaitsFor(who);
  if (draft.members.empty()) return;
  if (node(who).kind == NodeKind::kDeadOwner) {
    draft.kind = FindingKind::kOwnerDied;
    if (node(who).tid != 0) draft.partners = {node(who).tid};
  } else {
    const auto waits_for_child = [&](uint32_t i) {
      return node(i).facts->wait.kind == WaitKind::kChild;
    };
    draft.kind = std::all_of(draft.members.begin(), draft.members.end(), waits_for_child)
                     ? FindingKind::kStoppedChild
                     : FindingKind::kHeld;
    draft.about = node(who).pid;
    draft.partners = {draft.about};
  }
  AddDraft(std::move(draft));
}

// Whoever waits for the process as a whole waits for all of its idle threads alike.
void ProcessJudge::AddWeakCause(uint32_t who, const std::vector<uint32_t>& waiters) {
  const int pid = node(who).pid;
  weak_roots_[pid].push_back(who);
  auto& victims = weak_victims_[pid];
  victims.insert(victims.end(), waiters.begin(), waiters.end());
  const bool as_whole = std::any_of(waiters.begin(), waiters.end(), [&](uint32_t i) {
    return node(i).kind == NodeKind::kProcess && node(i).pid == pid;
  });
  for (uint32_t i = 0; as_whole && i < graph_.nodes().size(); ++i) {
    if (i != who && stuck_[i] && node(i).weak && node(i).pid == pid) weak_roots_[pid].push_back(i);
  }
}

void ProcessJudge::JoinVictims(int pid, const std::vector<uint32_t>& more) {
  auto& victims = drafts_[explained_[pid]].victims;
  for (const uint32_t i : more) {
    if (node(i).kind == NodeKind::kThread) victims.push_back(i);
  }
}

// Those whom something else of the process waits for first: they tell why it stands still. Where
// the process is part of another finding, that one is why.
void ProcessJudge::AddWeak() {
  for (const auto& [pid, roots] : weak_roots_) {
    if (!IsExplained(pid))
      AddWeakOf(pid, roots, weak_victims_[pid]);
    else
      JoinVictims(pid, roots), JoinVictims(pid, weak_victims_[pid]);
  }
  std::map<int, std::vector<uint32_t>> rest;
  std::set<uint32_t> told;
  for (const Draft& draft : drafts_) {
    for (const auto* list : {&draft.members, &draft.victims})
      told.insert(list->begin(), list->end());
  }
  for (uint32_t i = 0; i < graph_.nodes().size(); ++i) {
    if (stuck_[i] && node(i).weak && told.count(i) == 0) rest[node(i).pid].push_back(i);
  }
  for (const auto& [pid, threads] : rest) {
    if (IsExplained(pid))
      JoinVictims(pid, threads);
    else
      AddWeakOf(pid, threads, {});
  }
}

// Of a pool of threads that wait for one signal, a join leads to the last alone: the others are no
// less the reason.
void ProcessJudge::AddWhoWaitsAlike(int pid, std::vector<uint32_t>* roots) const {
  std::set<decltype(ObjectOf({}))> waited;
  for (const uint32_t i : *roots) {
    if (node(i).facts->wait.kind == WaitKind::kCondition)
      waited.insert(ObjectOf(node(i).facts->wait));
  }
  if (waited.empty()) return;
  for (uint32_t i = 0; i < graph_.nodes().size(); ++i) {
    const bool is_idle = node(i).pid == pid && stuck_[i] && node(i).weak &&
                         node(i).facts->wait.kind == WaitKind::kCondition;
    if (is_idle && waited.contains(ObjectOf(node(i).facts->wait))) roots->push_back(i);
  }
}

// Who spins, or reads what nobody writes, is no part of how threads usually idle: these come before
// those who wait for a signal.
void ProcessJudge::AddWeakOf(int pid, std::vector<uint32_t> roots,
                             const std::vector<uint32_t>& victims) {
  std::map<FindingKind, Draft> drafts;
  const auto kind_of = [&](uint32_t i) {
    if (node(i).stand == ThreadStand::kSpins) return FindingKind::kSpin;
    return IsFileWait(node(i).facts->wait.kind) ? FindingKind::kNoWriter : FindingKind::kLostWakeup;
  };
  for (uint32_t i = 0; i < graph_.nodes().size(); ++i) {
    const bool is_special =
        node(i).pid == pid && stuck_[i] && node(i).weak && kind_of(i) != FindingKind::kLostWakeup;
    if (is_special) roots.push_back(i);
  }
  AddWhoWaitsAlike(pid, &roots);
  std::sort(roots.begin(), roots.end());
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  for (const uint32_t i : roots) {
    const FindingKind kind = kind_of(i);
    drafts[kind].kind = kind;
    drafts[kind].members.push_back(i);
  }
  // Where nobody can be told to hold a lock for reading, all of its threads wait: for each other.
  const bool idle_only = drafts.size() == 1 && drafts.count(FindingKind::kLostWakeup) != 0;
  const auto is_lock = [&](uint32_t i) {
    return node(i).facts->wait.kind == WaitKind::kRwLock ||
           node(i).facts->wait.kind == WaitKind::kMutex;
  };
  if (idle_only && std::any_of(roots.begin(), roots.end(), is_lock))
    drafts[FindingKind::kLostWakeup].kind = FindingKind::kDeadlock;
  if (!idle_only) {
    if (const auto idle = drafts.find(FindingKind::kLostWakeup); idle != drafts.end()) {
      Draft& first = drafts.begin()->first == FindingKind::kLostWakeup
                         ? std::next(drafts.begin())->second
                         : drafts.begin()->second;
      first.victims = idle->second.members;
      drafts.erase(idle);
    }
  }
  if (drafts.empty()) return;
  auto& all = drafts.begin()->second.victims;
  all.insert(all.end(), victims.begin(), victims.end());
  for (auto& [kind, draft] : drafts) AddDraft(std::move(draft));
}

std::set<int> ProcessJudge::PidsOf(const std::vector<uint32_t>& members) const {
  std::set<int> pids;
  for (const uint32_t i : members) pids.insert(node(i).pid);
  return pids;
}

size_t ProcessJudge::LiveThreads(const std::set<int>& pids) const {
  return static_cast<size_t>(
      std::count_if(graph_.nodes().begin(), graph_.nodes().end(), [&](const ProcessNode& node) {
        return node.kind == NodeKind::kThread && node.stand != ThreadStand::kEnded &&
               pids.count(node.pid) != 0;
      }));
}

// "2 of 3 threads", "its only thread", "2 threads of 2 processes".
std::string ProcessJudge::CountText(const Draft& draft) const {
  const std::set<int> pids = PidsOf(draft.members);
  if (pids.size() > 1)
    return fmt::format("{} threads of {} processes", draft.members.size(), pids.size());
  const size_t all = LiveThreads(pids);
  return all == 1 ? "its only thread" : fmt::format("{} of {} threads", draft.members.size(), all);
}

size_t ProcessJudge::DifferentWaits(const Draft& draft) const {
  std::set<decltype(ObjectOf({}))> waits;
  for (const uint32_t i : draft.members) waits.insert(ObjectOf(node(i).facts->wait));
  return waits.size();
}

std::string ProcessJudge::Summary(const Draft& draft) const {
  const ThreadFacts& first = *node(draft.members[0]).facts;
  const bool one = draft.members.size() == 1;
  const std::string count = CountText(draft);
  switch (draft.kind) {
    case FindingKind::kDeadlock:
      if (one) return fmt::format("deadlock, a thread waits for itself");
      return fmt::format("deadlock, {} wait for each other", count);
    case FindingKind::kOwnerDied:
      return fmt::format("owner died, {} wait{} for {}", count, one ? "s" : "",
                         WaitedFor(first, look_));
    case FindingKind::kLostWakeup:
      if (DifferentWaits(draft) > 1)
        return fmt::format(
            "lost wakeup, {} wait for {} different signals, and nobody is left to give one", count,
            DifferentWaits(draft));
      return fmt::format("lost wakeup, {} wait{} for {}, and nobody is left to signal it", count,
                         one ? "s" : "", WaitedFor(first, look_));
    case FindingKind::kNoWriter: {
      const bool reads = first.wait.kind != WaitKind::kWrite;
      return fmt::format(
          "no {}, {} {}{} a pipe or socket whose other end only this process has, and nobody there "
          "can {}",
          reads ? "writer" : "reader", count, reads ? "read" : "write", one ? "s" : "",
          reads ? "write" : "read");
    }
    case FindingKind::kStoppedChild:
      return fmt::format("stopped child, {} wait{} for {}, which is stopped", count, one ? "s" : "",
                         ProcessLabel(look_, draft.about));
    case FindingKind::kHeld:
      return fmt::format("held, {} wait{} for {}, which is stopped", count, one ? "s" : "",
                         ProcessLabel(look_, draft.about));
    case FindingKind::kSpin:
      return fmt::format("spin, {} {}, and nobody is left to end that", count,
                         DoesWhat(first, look_));
    default:
      return count;
  }
}

// A handler may do what nothing else in the process can; or the read returns with EINTR.
void ProcessJudge::DoubtSignals(const Draft& draft, Confidence most,
                                ProcessFinding* finding) const {
  for (const int pid : PidsOf(draft.members)) {
    const ProcessFacts* const process = FindProcess(look_, pid);
    if (process == nullptr || !process->handles_signals) continue;
    finding->Lower(most, fmt::format("{} handles signals: a handler could end this wait",
                                     ProcessLabel(look_, pid)));
  }
}

// Whoever holds the other end of a pipe, or a lock of a file, may use it from any of its threads.
void ProcessJudge::DoubtFiles(const Draft& draft, ProcessFinding* finding) const {
  bool locks = false;
  bool files = false;
  size_t events = 0;
  size_t named_pipes = 0;
  for (const uint32_t i : draft.members) {
    const ThreadWait& wait = node(i).facts->wait;
    locks = locks || wait.kind == WaitKind::kFileLock;
    files = files || IsFileWait(wait.kind);
    for (const WaitFile& file : wait.files) {
      if (file.kind == FileKind::kEvent && events++ == 0)
        finding->Lower(Confidence::kLikely,
                       "the kernel signals an eventfd, too, for asynchronous I/O and devices");
      if (IsNamedPipe(file) && named_pipes++ == 0)
        finding->Lower(Confidence::kLikely, "whoever opens the named pipe may use its other end");
    }
  }
  if (!files && !locks) return;
  DoubtSignals(draft, Confidence::kLikely, finding);
  std::set<int> pids = PidsOf(draft.members);
  if (LiveThreads(pids) <= draft.members.size()) return;
  const char* const may =
      files ? "use its end of a pipe or socket" : "give back its lock of a file";
  finding->Lower(
      Confidence::kLikely,
      fmt::format("any thread of a process may {}; those that are left here are stuck, too, as "
                  "far as can be told",
                  may));
}

void ProcessJudge::DoubtWords(const Draft& draft, ProcessFinding* finding) const {
  for (const uint32_t i : draft.members) {
    const ThreadFacts::Spin& spin = *node(i).facts->spin;
    if (!spin.polls.empty() && spin.polled_variable.empty()) {
      return finding->Lower(
          Confidence::kLikely,
          "what it polls has no name: another process, or a device, may be able to change it");
    }
  }
}

Confidence ProcessJudge::ConfidenceOf(const Draft& draft, ProcessFinding* finding) const {
  finding->confidence = Confidence::kCertain;
  if (looks_.size() < 2) finding->Lower(Confidence::kLikely, "it was looked at once only");
  const auto weak = [&](uint32_t i) { return node(i).weak; };
  switch (draft.kind) {
    case FindingKind::kDeadlock:
      if (std::any_of(draft.members.begin(), draft.members.end(), weak)) {
        finding->Lower(
            Confidence::kLikely,
            "who holds a lock for reading is not recorded: it is one of these threads, as there "
            "are no others that run");
      }
      DoubtFiles(draft, finding);
      break;
    case FindingKind::kHeld:
      DoubtFiles(draft, finding);
      break;
    case FindingKind::kNoWriter:
      DoubtFiles(draft, finding);
      break;
    case FindingKind::kSpin:
      DoubtWords(draft, finding);
      DoubtSignals(draft, Confidence::kLikely, finding);
      break;
    case FindingKind::kLostWakeup: {
      const auto may_end = [&](uint32_t i) {
        return node(i).weak && HandlerMayEnd(*node(i).facts);
      };
      const bool may = std::any_of(draft.members.begin(), draft.members.end(), may_end) ||
                       std::any_of(draft.victims.begin(), draft.victims.end(), may_end);
      finding->Lower(
          Confidence::kLikely,
          "all that could signal it stand still themselves; what else might is not known");
      DoubtSignals(draft, may ? Confidence::kPossible : Confidence::kLikely, finding);
      break;
    }
    default:
      break;
  }
  return finding->confidence;
}

void ProcessJudge::AddEvidence(const Draft& draft, ProcessFinding* finding) const {
  const std::string apart =
      fmt::format("{:.0f} ms", Seconds(look_.begin - looks_.front().begin) * 1e3);
  const bool spins = draft.kind == FindingKind::kSpin;
  if (looks_.size() > 1 && !spins) {
    finding->evidence.push_back(
        fmt::format("{} the same in {} looks, {} apart, and nobody in it ran meanwhile",
                    draft.members.size() == 1 ? "this wait is" : "each of these waits is",
                    looks_.size(), apart));
  }
  for (const uint32_t i : draft.members) {
    if (!spins || !node(i).facts->spin) continue;
    const ThreadFacts::Spin& spin = *node(i).facts->spin;
    finding->evidence.push_back(fmt::format(
        "{}: {} steps in {:#x}..{:#x}, in the same state again after each {}, nothing stored{}",
        ThreadLabel(*node(i).facts), FormatCount(spin.steps), spin.begin, spin.end,
        FormatCount(spin.period), spin.calls_kernel ? ", yields only" : ", no system call"));
  }
}

void ProcessJudge::AddFinding(const Draft& draft) {
  ProcessFinding finding;
  finding.kind = draft.kind;
  for (const uint32_t i : draft.members) finding.threads.push_back(node(i).tid);
  std::set<int> victims;
  for (const uint32_t i : draft.victims) victims.insert(node(i).tid);
  for (const int tid : finding.threads) victims.erase(tid);
  finding.victims.assign(victims.begin(), victims.end());
  finding.partners = draft.partners;
  finding.summary = Summary(draft);
  ConfidenceOf(draft, &finding);
  AddEvidence(draft, &finding);
  Finish(std::move(finding));
}

// A finding in a process that one of the waits led to counts only where the asked process waits for
// it.
bool ProcessJudge::IsAsked(const ProcessFinding& finding) const {
  const int asked = look_.processes[0].pid;
  for (const auto* list : {&finding.threads, &finding.victims}) {
    for (const int tid : *list) {
      const ThreadFacts* const thread = FindThread(look_, tid);
      if (thread != nullptr && thread->pid == asked) return true;
    }
  }
  return std::count(finding.threads.begin(), finding.threads.end(), asked) != 0;
}

void ProcessJudge::Finish(ProcessFinding finding) {
  if (!IsAsked(finding))
    finding.Lower(Confidence::kPossible, fmt::format("no thread of {} waits for these alone",
                                                     ProcessLabel(look_, look_.processes[0].pid)));
  for (const int tid : finding.threads) {
    const ThreadFacts* const thread = FindThread(look_, tid);
    if (thread == nullptr || finding.lines.size() == kMostLines) continue;
    const std::string where = FrameText(OwnFrame(*thread));
    finding.lines.push_back(fmt::format("{}  {}{}{}", ThreadLabel(*thread),
                                        DoesWhat(*thread, look_), where.empty() ? "" : "   ",
                                        where));
  }
  findings_.push_back(std::move(finding));
}

// What the asked process is, whatever its threads wait for.
void ProcessJudge::AddStates() {
  const ProcessFacts& asked = look_.processes[0];
  const std::string label = ProcessLabel(look_, asked.pid);
  size_t halted = 0;
  ProcessFinding finding;
  finding.confidence = Confidence::kCertain;
  for (const ProcessNode& node : graph_.nodes()) {
    if (node.kind != NodeKind::kThread || node.pid != asked.pid ||
        node.stand == ThreadStand::kEnded)
      continue;
    finding.threads.push_back(node.tid);
    if (node.stand == ThreadStand::kHalted) ++halted;
  }
  if (finding.threads.empty() && asked.state == ThreadState::kZombie) {
    finding.kind = FindingKind::kZombie;
    finding.threads = {asked.pid};
    finding.partners = {asked.parent};
    finding.summary = fmt::format("zombie, {} has ended, and {}, its parent, has not collected it",
                                  label, ProcessLabel(look_, asked.parent));
    Finish(std::move(finding));
  } else if (!finding.threads.empty() && halted == finding.threads.size()) {
    const bool traced =
        std::any_of(asked.threads.begin(), asked.threads.end(),
                    [](const ThreadFacts& t) { return t.state == ThreadState::kTraced; });
    finding.kind = FindingKind::kStopped;
    finding.summary = fmt::format("stopped, {} is {}", label,
                                  traced ? "held by a debugger" : "stopped by a signal");
    finding.evidence.push_back(traced ? "it goes on when the debugger lets it"
                                      : fmt::format("kill -CONT {} lets it go on", asked.pid));
    Finish(std::move(finding));
  }
}

// Those that others could still release: burning a CPU in one state is worth saying all the same.
void ProcessJudge::AddSpinners() {
  for (uint32_t i = 0; i < graph_.nodes().size(); ++i) {
    if (node(i).stand != ThreadStand::kSpins || stuck_[i]) continue;
    ProcessFinding finding;
    finding.kind = FindingKind::kSpin;
    finding.confidence = Confidence::kLikely;
    finding.threads = {node(i).tid};
    finding.summary = fmt::format("spin, thread {} {} and does nothing else",
                                  ThreadLabel(*node(i).facts), DoesWhat(*node(i).facts, look_));
    AddEvidence({FindingKind::kSpin, {i}, {}, {}, 0}, &finding);
    finding.doubts.push_back("other threads move, and one of them may end it");
    if (looks_.size() < 2) finding.Lower(Confidence::kPossible, "it was looked at once only");
    Finish(std::move(finding));
  }
}

ProcessJudgement ProcessJudge::Take() {
  FindStuck();
  for (const WaitCause& cause : FindCauses(graph_.Reduced(stuck_))) JudgeCause(cause);
  AddWeak();
  AddStates();
  for (const Draft& draft : drafts_) AddFinding(draft);
  AddSpinners();
  std::stable_sort(
      findings_.begin(), findings_.end(),
      [](const ProcessFinding& a, const ProcessFinding& b) { return a.confidence > b.confidence; });
  ProcessJudgement judgement;
  judgement.findings = std::move(findings_);
  for (const ProcessNode& node : graph_.nodes()) {
    if (node.kind == NodeKind::kThread) judgement.stands[node.tid] = node.stand;
  }
  return judgement;
}

}  // namespace

bool ProcessJudgement::IsBad() const {
  return std::any_of(findings.begin(), findings.end(),
                     [](const ProcessFinding& finding) { return finding.IsBad(); });
}

ProcessJudgement JudgeProcess(const std::vector<SystemSample>& looks) {
  if (looks.empty() || looks.back().processes.empty()) return {};
  ProcessJudgement judgement = ProcessJudge(looks).Take();
  std::vector<SystemSample> visible =
      judgement.findings.empty() ? looks : std::vector<SystemSample>();
  if (visible.empty() || !LeaveHiddenOut(&visible)) return judgement;
  // To whom others' descriptors are closed, silence would look as if all were well.
  judgement.findings = ProcessJudge(visible).Take().findings;
  for (ProcessFinding& finding : judgement.findings) {
    finding.Lower(
        Confidence::kPossible,
        "processes of other users, which may not be looked into, might have the other end open, "
        "too; root sees them");
  }
  return judgement;
}

}  // namespace hangscope
