#include "process/process_verdict.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/units.h"
#include "process/judged_processes.h"
#include "process/process_doubts.h"
#include "process/process_draft.h"
#include "process/process_standing.h"
#include "process/process_summary.h"
#include "process/process_words.h"

namespace hangscope {
namespace {

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

// Of equal confidence, what threads of the program do comes before how event loops idle.
int RankOf(FindingKind kind) {
  switch (kind) {
    case FindingKind::kNoWriter:
      return 2;
    case FindingKind::kLostWakeup:
      return 1;
    default:
      return 0;
  }
}

constexpr size_t kMostWaits = 256;
constexpr size_t kMostWhom = 64;  // of one of them
constexpr size_t kMostStill = 4096;

bool IsStill(const ProcessNode& node) {
  if (node.kind != ProcessNode::Kind::kThread || node.facts->state != ThreadState::kSleeping)
    return false;
  if (node.retries) return false;
  return node.stand == ThreadStand::kWaits || node.stand == ThreadStand::kOutside ||
         node.stand == ThreadStand::kUnknown;
}

// Why others than those that are known might end it.
std::string DoubtOf(const ThreadWait& wait) {
  if (wait.kind == WaitKind::kFileLock)
    return "any thread of a process may give back its lock of a file";
  if (wait.kind == WaitKind::kServerLock) return "the server may be told to end this wait";
  if (wait.kind == WaitKind::kConnect) return "any thread of a process may accept a connection";
  if (IsFileWait(wait.kind)) return "any thread of a process may use its end of a pipe or socket";
  return wait.kind == WaitKind::kSignal ? "other signals may end this wait, too" : "";
}

// "no system call", "system calls: read, sched_yield".
std::string CallsOfSpin(const ThreadFacts::Spin& spin) {
  std::set<std::string> names;
  for (const auto& call : spin.calls) names.insert(call.name);
  if (names.empty()) return "no system call";
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return fmt::format("system call{}: {}", names.size() == 1 ? "" : "s", text);
}

class ProcessJudge {
 public:
  explicit ProcessJudge(const std::vector<SystemSample>& looks) : judged_(looks) {}

  ProcessJudgement Take();

 private:
  const ProcessNode& node(uint32_t index) const { return judged_.node(index); }
  void FindWaited();
  std::vector<std::string> WhoWaits(const ProcessFinding& finding) const;
  void AddStates();
  void AddSpinners();
  bool IsRestless(const FindingDraft& draft) const;
  bool OfBusyLoop(const FindingDraft& draft) const;
  void AddFinding(const FindingDraft& draft);
  void AddTasks(const FindingDraft& draft, ProcessFinding* finding) const;
  void AddSessions(const FindingDraft& draft, ProcessFinding* finding) const;
  void AddEvidence(const FindingDraft& draft, ProcessFinding* finding) const;
  void AddWhatLedThere(const FindingDraft& draft, ProcessFinding* finding) const;
  bool IsAsked(const ProcessFinding& finding) const;
  void Finish(ProcessFinding finding);
  std::vector<int> WhomFor(uint32_t waiter) const;
  void TellWaits(ProcessJudgement* judgement) const;

  const JudgedProcesses judged_;
  // Processes for which the asked ones wait, directly or over others: by whom.
  std::map<int, int> waited_;
  std::map<int, std::set<int>> waits_for_;  // by process: for which
  std::vector<ProcessFinding> findings_;
};

// Those that wait in a circle; of other findings, all that wait in an event loop that is in it.
void ProcessJudge::AddTasks(const FindingDraft& draft, ProcessFinding* finding) const {
  constexpr size_t kMost = 6;
  size_t all = 0;
  const auto add = [&](const TaskFacts& task) {
    if (all++ < kMost) finding->evidence.push_back(TaskText(task));
  };
  for (const uint32_t i : draft.members) {
    if (node(i).facts == nullptr) continue;
    const std::vector<TaskFacts>& tasks = node(i).facts->tasks;
    if (draft.tasks.empty()) std::for_each(tasks.begin(), tasks.end(), add);
    for (const size_t task : draft.tasks) add(tasks[task]);
  }
  if (all > kMost) finding->evidence.push_back(fmt::format("and {} more tasks", all - kMost));
}

void ProcessJudge::AddSessions(const FindingDraft& draft, ProcessFinding* finding) const {
  constexpr size_t kMostSessions = 6;
  size_t told = 0;
  for (const int pid : judged_.PidsOf(draft.members)) {
    const ProcessFacts* const process = FindProcess(judged_.look, pid);
    if (process == nullptr || !process->session || told++ == kMostSessions) continue;
    finding->evidence.push_back(SessionText(*process));
  }
}

void ProcessJudge::AddEvidence(const FindingDraft& draft, ProcessFinding* finding) const {
  if (finding->of_goroutines || OfBusyLoop(draft)) {
    finding->evidence.push_back("they waited so at one time, and still did a second later");
    return;
  }
  const bool spins = draft.kind == FindingKind::kSpin;
  const auto was_followed = [&](uint32_t i) {
    return node(i).stand == ThreadStand::kSpins && node(i).facts->spin &&
           (spins || node(i).retries);
  };
  const bool retries = std::any_of(draft.members.begin(), draft.members.end(),
                                   [&](uint32_t i) { return node(i).retries && !was_followed(i); });
  const bool any_followed = std::any_of(draft.members.begin(), draft.members.end(), was_followed);
  TimeNs begin = judged_.look.begin;
  TimeNs end = judged_.look.end;
  for (const SystemSample& look : judged_.looks) {
    begin = std::min(begin, look.begin);
    end = std::max(end, look.end);
  }
  if (HasRanks(draft, judged_)) {
    finding->evidence.push_back(
        fmt::format("who polls is in the same call of MPI in 2 looks within {:.1f} s, and no "
                    "message has passed in between",
                    Seconds(end - begin)));
  } else if (retries) {
    finding->evidence.push_back(
        fmt::format("what has a time limit here is begun again each time: the same in {} looks "
                    "over {:.1f} s",
                    judged_.looks.size(), Seconds(end - begin)));
  } else if (judged_.looks.size() > 1 && !any_followed) {
    const std::string apart =
        judged_.looks.size() == 2
            ? fmt::format(", {:.0f} ms apart",
                          Seconds(judged_.look.begin - judged_.looks.front().begin) * 1e3)
            : fmt::format(" over {:.1f} s", Seconds(end - begin));
    finding->evidence.push_back(
        fmt::format("{} the same in {} looks{}, and nobody in it ran meanwhile",
                    draft.members.size() == 1 ? "this wait is" : "each of these waits is",
                    judged_.looks.size(), IsOfTwoLooks(draft, judged_) ? " on its host" : apart));
  }
  if (draft.kind == FindingKind::kCopiedLock) {
    const ThreadFacts& thread = *node(draft.members[0]).facts;
    finding->evidence.push_back(fmt::format(
        "{} is no thread of {}, whose copy of the lock is its own",
        IdOnHost(thread.wait.owner.value_or(0)), ProcessLabel(judged_.look, thread.pid)));
  }
  AddWhatLedThere(draft, finding);
  for (const uint32_t i : draft.members) {
    if (!was_followed(i)) continue;
    const ThreadFacts::Spin& spin = *node(i).facts->spin;
    finding->evidence.push_back(
        fmt::format("{}: {} steps in {:#x}..{:#x}{}, {} after {}{}, {}, {}",
                    ThreadLabel(*node(i).facts), FormatCount(spin.steps), spin.begin, spin.end,
                    spin.of_anonymous_code ? ", which is code of no file" : "",
                    spin.naps      ? "asleep again for the same"
                    : spin.in_part ? "on the same way again"
                                   : "in the same state again",
                    spin.naps ? "" : "each ", FormatCount(spin.period),
                    !spin.flickers.empty() ? "what it stores included"
                    : spin.in_part         ? "nothing stored that others have"
                                           : "nothing stored",
                    CallsOfSpin(spin)));
  }
}

// Of a hang in other processes: what the asked one waits for there.
void ProcessJudge::AddWhatLedThere(const FindingDraft& draft, ProcessFinding* finding) const {
  constexpr size_t kMost = 2;
  const std::set<int> pids = judged_.PidsOf(draft.members);
  const int asked = judged_.look.processes[0].pid;
  if (pids.count(asked) != 0) return;
  size_t told = 0;
  for (const uint32_t i : draft.victims) {
    if (node(i).facts == nullptr || node(i).pid != asked) continue;
    const ThreadFacts& thread = *node(i).facts;
    const std::set<int> whom = WaitsForProcesses(thread, judged_.look);
    const bool waits_there =
        std::any_of(whom.begin(), whom.end(), [&](int pid) { return pids.count(pid) != 0; });
    if (!waits_there || told++ == kMost) continue;
    finding->evidence.push_back(
        fmt::format("{} waits for {}", ThreadLabel(thread), WaitedFor(thread, judged_.look)));
  }
}

// Tasks of a loop that runs others meanwhile.
bool ProcessJudge::OfBusyLoop(const FindingDraft& draft) const {
  return !draft.tasks.empty() && node(draft.members[0]).stand == ThreadStand::kMoves;
}

// Whether one of them polls, looks now and then whether it may go on, or runs other tasks.
bool ProcessJudge::IsRestless(const FindingDraft& draft) const {
  if (draft.kind == FindingKind::kSpin) return false;
  return OfBusyLoop(draft) ||
         std::any_of(draft.members.begin(), draft.members.end(), [&](uint32_t i) {
           if (node(i).facts == nullptr) return false;
           const ThreadFacts& thread = *node(i).facts;
           return node(i).retries || thread.wait.rechecks || NapsAndLooks(thread) ||
                  thread.wait.kind == WaitKind::kRanks || NapsForDatabase(thread) ||
                  NapsForFileLocks(thread);
         });
}

void ProcessJudge::AddFinding(const FindingDraft& draft) {
  ProcessFinding finding;
  finding.kind = draft.kind;
  for (const uint32_t i : draft.members) finding.threads.push_back(node(i).tid);
  std::set<int> victims;
  for (const uint32_t i : draft.victims) victims.insert(node(i).tid);
  for (const int tid : finding.threads) victims.erase(tid);
  finding.victims.assign(victims.begin(), victims.end());
  finding.partners = draft.partners;
  finding.summary = SummaryOf(draft, judged_);
  finding.of_goroutines =
      !draft.tasks.empty() && node(draft.members[0]).facts->tasks[0].is_goroutine;
  finding.is_restless = finding.of_goroutines || IsRestless(draft);
  JudgeConfidence(draft, judged_, &finding);
  AddTasks(draft, &finding);
  AddSessions(draft, &finding);
  // Naps cost nobody anything: that they are for ever is worth saying only where it is likely.
  const auto naps = [&](uint32_t i) { return NapsAndLooks(*node(i).facts); };
  if (draft.kind == FindingKind::kSpin && !finding.IsBad() &&
      std::all_of(draft.members.begin(), draft.members.end(), naps))
    return;
  AddEvidence(draft, &finding);
  Finish(std::move(finding));
}

// A finding in a process that one of the waits led to counts only where an asked process waits for
// it.
bool ProcessJudge::IsAsked(const ProcessFinding& finding) const {
  for (const auto* list : {&finding.threads, &finding.victims}) {
    for (const int tid : *list) {
      const ThreadFacts* const thread = FindThread(judged_.look, tid);
      if (thread != nullptr && judged_.asked.count(thread->pid) != 0) return true;
    }
  }
  return std::any_of(finding.threads.begin(), finding.threads.end(),
                     [&](int id) { return judged_.asked.count(id) != 0; });
}

// Whom the asked processes wait for, and whom those do.
void ProcessJudge::FindWaited() {
  for (const ProcessFacts& process : judged_.look.processes) {
    for (const ThreadFacts& thread : process.threads)
      waits_for_[process.pid].merge(WaitsForProcesses(thread, judged_.look));
  }
  std::vector<int> open(judged_.asked.begin(), judged_.asked.end());
  for (size_t i = 0; i < open.size(); ++i) {
    for (const int pid : waits_for_[open[i]]) {
      if (judged_.asked.count(pid) == 0 && waited_.emplace(pid, open[i]).second)
        open.push_back(pid);
    }
  }
}

// From the process that hangs to an asked one; empty: none of these waits for it.
std::vector<std::string> ProcessJudge::WhoWaits(const ProcessFinding& finding) const {
  const ThreadFacts* const first =
      finding.threads.empty() ? nullptr : FindThread(judged_.look, finding.threads[0]);
  if (first == nullptr) return {};
  std::vector<std::string> who;
  for (auto at = waited_.find(first->pid); at != waited_.end(); at = waited_.find(at->second)) {
    const size_t more = waits_for_.at(at->second).size() - 1;
    who.push_back(fmt::format("{} waits for {}{}", ProcessLabel(judged_.look, at->second),
                              who.empty() ? "it" : "that one",
                              more == 0 ? "" : fmt::format(", and for {} more", more)));
  }
  return who;
}

void ProcessJudge::Finish(ProcessFinding finding) {
  if (!IsAsked(finding)) {
    const auto who =
        finding.confidence == Confidence::kCertain ? WhoWaits(finding) : std::vector<std::string>();
    finding.evidence.insert(finding.evidence.end(), who.begin(), who.end());
    if (who.empty())
      finding.Lower(Confidence::kPossible,
                    fmt::format("no thread of {} waits for these alone",
                                ProcessLabel(judged_.look, judged_.look.processes[0].pid)));
  }
  findings_.push_back(std::move(finding));
}

// What the asked process is, whatever its threads wait for.
void ProcessJudge::AddStates() {
  const ProcessFacts& asked = judged_.look.processes[0];
  const std::string label = ProcessLabel(judged_.look, asked.pid);
  size_t halted = 0;
  ProcessFinding finding;
  finding.confidence = Confidence::kCertain;
  for (const ProcessNode& node : judged_.graph.nodes()) {
    if (node.kind != ProcessNode::Kind::kThread || node.pid != asked.pid ||
        node.stand == ThreadStand::kEnded)
      continue;
    finding.threads.push_back(node.tid);
    if (node.stand == ThreadStand::kHalted || node.stand == ThreadStand::kFrozen) ++halted;
  }
  if (finding.threads.empty() && asked.state == ThreadState::kZombie) {
    finding.kind = FindingKind::kZombie;
    finding.threads = {asked.pid};
    finding.partners = {asked.parent};
    finding.summary = fmt::format("zombie, {} has ended, and {}, its parent, has not collected it",
                                  label, ProcessLabel(judged_.look, asked.parent));
    Finish(std::move(finding));
  } else if (!finding.threads.empty() && halted == finding.threads.size()) {
    const auto any = [&](ThreadState state) {
      return std::any_of(asked.threads.begin(), asked.threads.end(),
                         [state](const ThreadFacts& t) { return t.state == state; });
    };
    const bool frozen = any(ThreadState::kFrozen);
    const bool traced = any(ThreadState::kTraced);
    finding.kind = FindingKind::kStopped;
    const ThreadState state = frozen   ? ThreadState::kFrozen
                              : traced ? ThreadState::kTraced
                                       : ThreadState::kStopped;
    finding.summary =
        fmt::format("stopped, {} {}{}", label, StandsStill(asked, state),
                    state == ThreadState::kStopped && asked.stop_signal == 0 ? " by a signal" : "");
    const bool by_terminal = (asked.stop_signal == SIGTTIN || asked.stop_signal == SIGTTOU) &&
                             asked.stopped_in_background;
    finding.evidence.push_back(
        frozen        ? "it goes on when the group is thawed"
        : traced      ? "it goes on when the debugger lets it"
        : by_terminal ? "the shell's fg lets it go on; after kill -CONT alone it would stop again"
                      : fmt::format("kill -CONT {} lets it go on", asked.pid));
    if (!frozen && IsShortStop(asked, judged_.look.end))
      finding.Lower(Confidence::kPossible, kShortStopDoubt);
    Finish(std::move(finding));
  }
}

// Those that others could still release, as who waits for the work of another thread without giving
// up its CPU: burning that in one state is worth saying all the same.
void ProcessJudge::AddSpinners() {
  for (uint32_t i = 0; i < judged_.graph.nodes().size(); ++i) {
    const bool spins = node(i).stand == ThreadStand::kSpins && !judged_.stuck[i];
    if (!spins || node(i).facts->spin->naps || node(i).facts->spin->in_part) continue;
    FindingDraft draft;
    draft.kind = FindingKind::kSpin;
    draft.members = {i};
    ProcessFinding finding;
    finding.kind = draft.kind;
    finding.threads = {node(i).tid};
    finding.summary =
        fmt::format("spin, thread {} {} and does nothing else", ThreadLabel(*node(i).facts),
                    DoesWhat(*node(i).facts, judged_.look));
    JudgeConfidence(draft, judged_, &finding);
    const std::string who = WhoMayAct(node(i).pid, judged_);
    finding.Lower(Confidence::kPossible, who.empty() ? "another process may end it"
                                                     : fmt::format("it may be ended by {}", who));
    AddEvidence(draft, &finding);
    Finish(std::move(finding));
  }
}

// Empty: it is not known, or they are too many to be told.
std::vector<int> ProcessJudge::WhomFor(uint32_t waiter) const {
  std::set<int> whom;
  for (const WaitEdge& edge : judged_.graph.waits()[waiter].suppliers) {
    const ProcessNode& to = node(edge.to);
    if (to.kind == ProcessNode::Kind::kThread) {
      whom.insert(to.tid);
    } else if (to.kind == ProcessNode::Kind::kProcess) {
      for (const WaitEdge& thread : judged_.graph.waits()[edge.to].suppliers)
        whom.insert(node(thread.to).tid);
    } else {
      return {};
    }
    if (whom.size() > kMostWhom) return {};
  }
  return {whom.begin(), whom.end()};
}

// From one look alone it is not known who stands still.
void ProcessJudge::TellWaits(ProcessJudgement* judgement) const {
  if (judged_.looks.size() < 2) return;
  for (uint32_t i = 0; i < judged_.graph.nodes().size(); ++i) {
    if (!IsStill(node(i))) continue;
    if (judgement->still.size() < kMostStill) judgement->still.push_back(node(i).tid);
    if (node(i).stand != ThreadStand::kWaits || node(i).weak ||
        judgement->waits.size() == kMostWaits)
      continue;
    std::vector<int> whom = WhomFor(i);
    if (!whom.empty())
      judgement->waits.push_back({node(i).tid, std::move(whom), DoubtOf(node(i).facts->wait)});
  }
}

ProcessJudgement ProcessJudge::Take() {
  FindWaited();
  AddStates();
  for (const FindingDraft& draft : DraftFindings(judged_)) AddFinding(draft);
  AddSpinners();
  std::stable_sort(
      findings_.begin(), findings_.end(), [](const ProcessFinding& a, const ProcessFinding& b) {
        return std::pair(b.confidence, RankOf(a.kind)) < std::pair(a.confidence, RankOf(b.kind));
      });
  ProcessJudgement judgement;
  judgement.standing = StandingOf(judged_.looks, judged_.graph, judged_.stuck, findings_);
  judgement.findings = std::move(findings_);
  TellWaits(&judgement);
  for (const ProcessNode& node : judged_.graph.nodes()) {
    if (node.kind == ProcessNode::Kind::kThread) judgement.stands[node.tid] = node.stand;
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
        "processes that may not be looked into, of other users or outside of this container, might "
        "have the other end open, too; root sees them there");
  }
  return judgement;
}

}  // namespace hangscope
