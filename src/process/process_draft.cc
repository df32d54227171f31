#include "process/process_draft.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "process/process_words.h"

namespace hangscope {

std::vector<size_t> CircleOf(const std::vector<TaskFacts>& tasks) {
  std::vector<bool> seen(tasks.size());
  for (size_t start = 0; start < tasks.size(); ++start) {
    std::vector<size_t> path;
    std::vector<std::pair<size_t, size_t>> open = {{start, 0}};  // with the depth of the path
    while (!open.empty()) {
      const auto [at, depth] = open.back();
      open.pop_back();
      path.resize(depth);
      const auto begin = std::find(path.begin(), path.end(), at);
      if (begin != path.end()) return {begin, path.end()};
      if (seen[at] || tasks[at].has_timeout) continue;
      seen[at] = true;
      path.push_back(at);
      for (const size_t next : tasks[at].tasks) {
        if (next < tasks.size()) open.emplace_back(next, path.size());
      }
    }
  }
  return {};
}

namespace {

using NodeKind = ProcessNode::Kind;

// "Mutex::lock" of "void my::Mutex<int>::lock(int)": the last two parts, without arguments.
std::string_view MethodOf(std::string_view function) {
  function = function.substr(0, function.find('('));
  const size_t last = function.rfind("::");
  if (last == std::string_view::npos || last == 0) return {};
  const size_t before = function.rfind("::", last - 1);
  return before == std::string_view::npos ? function : function.substr(before + 2);
}

// A function that takes a lock and does nothing else: of glib, Qt, OpenMP, abseil, Boost, TBB,
// Rust's standard library and parking_lot, and methods of classes that are called a lock.
bool TakesLock(std::string_view function) {
  constexpr std::string_view kBegins[] = {"g_mutex_lock",
                                          "g_rec_mutex_lock",
                                          "g_rw_lock_reader_lock",
                                          "g_rw_lock_writer_lock",
                                          "omp_set_lock",
                                          "omp_set_nest_lock",
                                          "GOMP_critical_start",
                                          "GOMP_critical_name_start",
                                          "SDL_LockMutex",
                                          "gomp_mutex_lock",
                                          "lll_lock",
                                          "__lll_lock"};
  constexpr std::string_view kParts[] = {"lock_contended",   "read_contended",
                                         "write_contended",  "lock_slow",
                                         "lock_shared_slow", "lock_exclusive_slow"};
  constexpr std::string_view kMethods[] = {
      "lock",     "lock_shared",  "lock_upgrade", "Lock",        "ReaderLock",
      "LockSlow", "LockSlowLoop", "lockInternal", "lockForRead", "lockForWrite"};
  for (const std::string_view name : kBegins) {
    if (function.starts_with(name)) return true;
  }
  for (const std::string_view name : kParts) {
    if (function.find(name) != std::string_view::npos) return true;
  }
  const std::string_view method = MethodOf(function);
  const size_t at = method.rfind("::");
  if (at == std::string_view::npos || std::find(std::begin(kMethods), std::end(kMethods),
                                                method.substr(at + 2)) == std::end(kMethods))
    return false;
  const std::string_view of = method.substr(0, at);
  return of.find("utex") != std::string_view::npos || of.find("Lock") != std::string_view::npos;
}

// A lock of which nobody records who holds it; its waiters are in the function that takes it.
bool IsUnownedLock(const ThreadFacts& thread) {
  const ThreadWait& wait = thread.wait;
  if (wait.owner) return false;
  if (wait.kind == WaitKind::kRwLock || wait.kind == WaitKind::kMutex) return true;
  // Boost's shared_mutex is made of a condition.
  if (wait.kind != WaitKind::kFutex && wait.kind != WaitKind::kCondition) return false;
  return IsInLockFunction(thread);
}

// "disk" of "disk", "slots" of "slots+32": one of many in one place is one of a pool. Empty: it has
// no name of its own.
std::string PoolName(const std::string& variable) {
  return variable.find(' ') != std::string::npos
             ? ""
             : variable.substr(0, variable.find_first_of("+.[-"));
}

// Tasks that wait for ever, and are missed: those that something outside waits for, such as wait in
// circles, and all that could give these what they want. Others that nobody misses, as a worker
// whose result came too late, are only left behind; and one that may be meant to stay is told only
// where it is the only one.
std::vector<size_t> StrandedOf(const std::vector<TaskFacts>& tasks) {
  std::vector<bool> chosen(tasks.size());
  const auto choose = [&](size_t first) {
    std::vector<size_t> open = {first};
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      if (at >= tasks.size() || chosen[at] || !tasks[at].is_stranded) continue;
      chosen[at] = true;
      open.insert(open.end(), tasks[at].tasks.begin(), tasks[at].tasks.end());
    }
  };
  std::vector<TaskFacts> stranded = tasks;
  for (TaskFacts& task : stranded) {
    if (!task.is_stranded) task.tasks.clear();
  }
  for (const size_t i : CircleOf(stranded)) choose(i);
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].is_awaited && !MayBeMeantToStay(tasks[i])) choose(i);
  }
  for (size_t i = 0; i < tasks.size() && !std::count(chosen.begin(), chosen.end(), true); ++i) {
    if (tasks[i].is_awaited) choose(i);
  }
  std::vector<size_t> all;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (chosen[i]) all.push_back(i);
  }
  return all;
}

}  // namespace

// A main goroutine of a program that is never to end waits for a channel or a wait group which it
// has for that. One that several values come from is none of these.
bool MayBeMeantToStay(const TaskFacts& task) {
  return task.is_stranded && task.tasks.empty() && HasFunction(task.stack, "runtime.main") &&
         (task.waits_for.starts_with("wait group") ||
          (task.waits_for == "chan receive" && !HasFunction(task.stack, "runtime.chanrecv2")));
}

namespace {

class DraftFinder {
 public:
  explicit DraftFinder(const JudgedProcesses& judged) : judged_(judged) {}

  std::vector<FindingDraft> Find();

 private:
  const ProcessNode& node(uint32_t index) const { return judged_.node(index); }
  void JudgeCause(const WaitCause& cause);
  void AddRanks(FindingDraft* draft) const;
  void AddWeakCause(uint32_t who, const std::vector<uint32_t>& waiters);
  std::vector<uint32_t> WhoWaitsFor(uint32_t halted) const;
  bool StoodForASecond(const ThreadFacts& thread, const std::vector<size_t>& tasks) const;
  void AddWeak();
  void AddWhoWantsTheirLocks(FindingDraft* draft) const;
  void AddWhoWaitsAlike(int pid, std::vector<uint32_t>* roots) const;
  bool IsWaitedFor(uint32_t index) const;
  void AddWeakOf(int pid, std::vector<uint32_t> roots, const std::vector<uint32_t>& victims);
  void DropLoopsThatHandleSignals(int pid, std::map<FindingKind, FindingDraft>* drafts) const;
  void KeepLoopsApart(int pid, std::map<FindingKind, FindingDraft>* drafts) const;
  void TellLoopsLast(std::map<FindingKind, FindingDraft>* drafts) const;
  void JoinVictims(int pid, const std::vector<uint32_t>& more);
  void AddDraft(FindingDraft draft);
  bool IsExplained(int pid) const { return explained_.count(pid) != 0; }
  void JoinAcrossProcesses();
  void AddUnownedLocks(int pid);
  void AddHoldersOfPipes(int pid);
  bool AsksItself(uint32_t index) const;
  void AddWhoAsksItself(int pid);
  bool IsTicker(uint32_t index, TimeNs woken_after) const;
  void AddBesideTickers(int pid);
  void AddTaskCircles();
  void AddStoppedChildren();
  bool SendsToOwnQueue(uint32_t index) const;
  void AddOpeners();
  bool IsHalted(int pid) const;

  const JudgedProcesses& judged_;
  std::vector<FindingDraft> drafts_;
  std::map<int, size_t> explained_;                  // processes with threads in a draft
  std::map<int, std::vector<uint32_t>> weak_roots_;  // by process: those that somebody waits for
  std::map<int, std::vector<uint32_t>> weak_victims_;
};

std::vector<uint32_t> DraftFinder::WhoWaitsFor(uint32_t halted) const {
  std::vector<uint32_t> who;
  for (uint32_t i = 0; i < judged_.graph.nodes().size(); ++i) {
    if (!judged_.stuck[i] || node(i).kind != NodeKind::kThread) continue;
    const auto& suppliers = judged_.graph.waits()[i].suppliers;
    const auto is_it = [&](const WaitEdge& edge) {
      const ProcessNode& to = node(edge.to);
      return edge.to == halted || (to.kind == NodeKind::kProcess && to.pid == node(halted).pid &&
                                   node(halted).kind == NodeKind::kThread);
    };
    if (std::any_of(suppliers.begin(), suppliers.end(), is_it)) who.push_back(i);
  }
  return who;
}

void DraftFinder::AddDraft(FindingDraft draft) {
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

// Which rank of MPI waits for which is not known: all that poll are in the circle, or none.
void DraftFinder::AddRanks(FindingDraft* draft) const {
  const auto polls = [&](uint32_t i) {
    return node(i).kind == NodeKind::kThread && node(i).facts->wait.kind == WaitKind::kRanks;
  };
  if (draft->members.empty() || !std::all_of(draft->members.begin(), draft->members.end(), polls))
    return;
  for (const uint32_t i : draft->victims) {
    if (polls(i) && std::count(draft->members.begin(), draft->members.end(), i) == 0)
      draft->members.push_back(i);
  }
}

void DraftFinder::JudgeCause(const WaitCause& cause) {
  FindingDraft draft;
  draft.victims = cause.victims;
  if (cause.kind == WaitCause::Kind::kCycle) {
    draft.kind = FindingKind::kDeadlock;
    std::copy_if(cause.members.begin(), cause.members.end(), std::back_inserter(draft.members),
                 [&](uint32_t i) { return node(i).kind == NodeKind::kThread; });
    AddRanks(&draft);
    if (!draft.members.empty()) AddDraft(std::move(draft));
    return;
  }
  if (cause.kind != WaitCause::Kind::kNode) return;
  const uint32_t who = cause.members[0];
  if (node(who).weak) return AddWeakCause(who, cause.victims);
  draft.members = WhoWaitsFor(who);
  if (draft.members.empty()) return;
  if (node(who).kind == NodeKind::kDeadOwner) {
    const bool is_copy = node(draft.members[0]).facts->wait.owner_copied;
    draft.kind = is_copy ? FindingKind::kCopiedLock : FindingKind::kOwnerDied;
    if (node(who).tid != 0 && !is_copy) draft.partners = {node(who).tid};
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
void DraftFinder::AddWeakCause(uint32_t who, const std::vector<uint32_t>& waiters) {
  const int pid = node(who).pid;
  weak_roots_[pid].push_back(who);
  auto& victims = weak_victims_[pid];
  victims.insert(victims.end(), waiters.begin(), waiters.end());
  const bool as_whole = std::any_of(waiters.begin(), waiters.end(), [&](uint32_t i) {
    return node(i).kind == NodeKind::kProcess && node(i).pid == pid;
  });
  for (uint32_t i = 0; as_whole && i < judged_.graph.nodes().size(); ++i) {
    if (i != who && judged_.stuck[i] && node(i).weak && node(i).pid == pid)
      weak_roots_[pid].push_back(i);
  }
}

void DraftFinder::JoinVictims(int pid, const std::vector<uint32_t>& more) {
  auto& victims = drafts_[explained_[pid]].victims;
  for (const uint32_t i : more) {
    if (node(i).kind == NodeKind::kThread) victims.push_back(i);
  }
}

// Those whom something else of the process waits for first: they tell why it stands still. Where
// the process is part of another finding, that one is why.
void DraftFinder::AddWeak() {
  for (const auto& [pid, roots] : weak_roots_) {
    if (!IsExplained(pid))
      AddWeakOf(pid, roots, weak_victims_[pid]);
    else
      JoinVictims(pid, roots), JoinVictims(pid, weak_victims_[pid]);
  }
  std::map<int, std::vector<uint32_t>> rest;
  std::set<uint32_t> told;
  for (const FindingDraft& draft : drafts_) {
    for (const auto* list : {&draft.members, &draft.victims})
      told.insert(list->begin(), list->end());
  }
  for (uint32_t i = 0; i < judged_.graph.nodes().size(); ++i) {
    if (judged_.stuck[i] && node(i).weak && told.count(i) == 0) rest[node(i).pid].push_back(i);
  }
  for (const auto& [pid, threads] : rest) {
    if (IsExplained(pid))
      JoinVictims(pid, threads);
    else
      AddWeakOf(pid, threads, {});
  }
}

// Of a pool of threads that wait for one signal, a join leads to the last alone: the others are no
// less the reason. Nor are those who wait for another signal, where there are few different ones:
// each may be to give the other's.
void DraftFinder::AddWhoWaitsAlike(int pid, std::vector<uint32_t>* roots) const {
  constexpr size_t kFew = 3;
  const auto is_signal = [&](uint32_t i) {
    return node(i).facts->state == ThreadState::kSleeping && !IsFileWait(node(i).facts->wait.kind);
  };
  std::set<decltype(ObjectOf({}))> waited;
  for (const uint32_t i : *roots) {
    if (is_signal(i)) waited.insert(ObjectOf(node(i).facts->wait));
  }
  if (waited.empty()) return;
  std::vector<uint32_t> idle;
  auto all = waited;
  for (uint32_t i = 0; i < judged_.graph.nodes().size(); ++i) {
    if (node(i).pid != pid || !judged_.stuck[i] || !node(i).weak || !is_signal(i)) continue;
    idle.push_back(i);
    all.insert(ObjectOf(node(i).facts->wait));
  }
  std::copy_if(idle.begin(), idle.end(), std::back_inserter(*roots), [&](uint32_t i) {
    return all.size() <= kFew || waited.contains(ObjectOf(node(i).facts->wait));
  });
}

// Where all who read are event loops that idle, what others of the program wait for comes before
// these, and apart from pools.
void DraftFinder::KeepLoopsApart(int pid, std::map<FindingKind, FindingDraft>* drafts) const {
  const auto loops = drafts->find(FindingKind::kNoWriter);
  const auto idles = [&](uint32_t i) { return IdlesInRuntime(*node(i).facts); };
  if (loops == drafts->end() || drafts->count(FindingKind::kSpin) != 0 ||
      drafts->count(FindingKind::kDeadlock) != 0 ||
      !std::all_of(loops->second.members.begin(), loops->second.members.end(), idles))
    return;
  FindingDraft apart;
  apart.kind = FindingKind::kLostWakeup;
  apart.beside_loops =
      std::any_of(loops->second.members.begin(), loops->second.members.end(), [&](uint32_t i) {
        const auto& stack = node(i).facts->stack;
        return std::none_of(stack.begin(), stack.end(), [](const StackFrame& frame) {
          return frame.function.find("DelayedTaskScheduler") != std::string::npos;  // time alone
        });
      });
  for (uint32_t i = 0; i < judged_.graph.nodes().size(); ++i) {
    if (node(i).pid != pid || node(i).kind != NodeKind::kThread || !judged_.stuck[i] ||
        !node(i).weak)
      continue;
    (idles(i) || IsFileWait(node(i).facts->wait.kind) ? apart.victims : apart.members).push_back(i);
  }
  if (apart.members.empty()) return;
  drafts->clear();
  drafts->emplace(FindingKind::kLostWakeup, std::move(apart));
}

// An event loop that reads its own pipe waits for the handler of a signal that writes it: a daemon
// idles so.
void DraftFinder::DropLoopsThatHandleSignals(int pid,
                                             std::map<FindingKind, FindingDraft>* drafts) const {
  const auto loops = drafts->find(FindingKind::kNoWriter);
  const ProcessFacts* const process = FindProcess(judged_.look, pid);
  if (loops == drafts->end() || process == nullptr || SignalsFromOutside(*process) == 0) return;
  for (const auto& [kind, draft] : *drafts) {
    for (const uint32_t i : draft.members) {
      if (!IdlesInRuntime(*node(i).facts)) return;
    }
  }
  drafts->clear();
}

// Beside threads of the program that read what nobody writes, a library's own threads that idle are
// no reason.
void DraftFinder::TellLoopsLast(std::map<FindingKind, FindingDraft>* drafts) const {
  const auto reads = drafts->find(FindingKind::kNoWriter);
  if (reads == drafts->end()) return;
  auto& [kind, draft] = *reads;
  const auto idle =
      std::stable_partition(draft.members.begin(), draft.members.end(),
                            [&](uint32_t i) { return !IdlesInRuntime(*node(i).facts); });
  if (idle == draft.members.begin()) return;
  draft.victims.insert(draft.victims.end(), idle, draft.members.end());
  draft.members.erase(idle, draft.members.end());
}

// Who wants a lock that one of these holds may be the one that they wait for: where they wait for
// what a thread of the process does, and none but these is left, that is a deadlock.
void DraftFinder::AddWhoWantsTheirLocks(FindingDraft* draft) const {
  std::set<int> members;
  for (const uint32_t i : draft->members) members.insert(node(i).tid);
  for (uint32_t i = 0; i < judged_.graph.nodes().size(); ++i) {
    if (node(i).kind != NodeKind::kThread || !judged_.stuck[i] || node(i).weak) continue;
    const ThreadWait& wait = node(i).facts->wait;
    if (wait.kind != WaitKind::kFileLock && wait.owner && members.count(*wait.owner) != 0 &&
        members.count(node(i).tid) == 0)
      draft->partners.push_back(node(i).tid);
  }
  const bool spins = draft->kind == FindingKind::kSpin;
  if (!draft->partners.empty() && !spins) {
    draft->kind = FindingKind::kDeadlock;
    draft->holds_what_they_want = true;
  }
}

// A stuck thread waits for a lock that this one has, or for its end.
bool DraftFinder::IsWaitedFor(uint32_t index) const {
  const int tid = node(index).tid;
  for (uint32_t i = 0; i < judged_.graph.nodes().size(); ++i) {
    if (node(i).kind != NodeKind::kThread || !judged_.stuck[i]) continue;
    const ThreadWait& wait = node(i).facts->wait;
    if (wait.kind != WaitKind::kFileLock && (wait.owner == tid || wait.thread == tid)) return true;
  }
  return false;
}

// Who spins, or reads what nobody writes, is no part of how threads usually idle: these come before
// those who wait for a signal.
void DraftFinder::AddWeakOf(int pid, std::vector<uint32_t> roots,
                            const std::vector<uint32_t>& victims) {
  std::map<FindingKind, FindingDraft> drafts;
  const auto kind_of = [&](uint32_t i) {
    if (node(i).stand == ThreadStand::kSpins) return FindingKind::kSpin;
    if (WaitsForItself(node(i))) return FindingKind::kDeadlock;
    const WaitKind wait = node(i).facts->wait.kind;
    return IsFileWait(wait) || wait == WaitKind::kOpen ? FindingKind::kNoWriter
                                                       : FindingKind::kLostWakeup;
  };
  for (uint32_t i = 0; i < judged_.graph.nodes().size(); ++i) {
    const bool is_special =
        node(i).pid == pid && judged_.stuck[i] && node(i).weak &&
        (kind_of(i) != FindingKind::kLostWakeup || IsUnownedLock(*node(i).facts));
    if (is_special) roots.push_back(i);
  }
  AddWhoWaitsAlike(pid, &roots);
  std::erase_if(roots, [&](uint32_t i) { return node(i).facts->stands_by && !IsWaitedFor(i); });
  std::sort(roots.begin(), roots.end());
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  for (const uint32_t i : roots) {
    const FindingKind kind = kind_of(i);
    drafts[kind].kind = kind;
    drafts[kind].members.push_back(i);
  }
  KeepLoopsApart(pid, &drafts);
  DropLoopsThatHandleSignals(pid, &drafts);
  TellLoopsLast(&drafts);
  // Where nobody can be told to hold a lock for reading, all of its threads wait: for each other.
  const bool idle_only = drafts.size() == 1 && drafts.count(FindingKind::kLostWakeup) != 0;
  const auto is_lock = [&](uint32_t i) { return IsUnownedLock(*node(i).facts); };
  if (idle_only && std::any_of(roots.begin(), roots.end(), is_lock)) {
    FindingDraft& draft = drafts[FindingKind::kLostWakeup];
    draft.kind = FindingKind::kDeadlock;
    // Whoever holds it may wait at a barrier for the others.
    const auto is_told = [&](uint32_t i) { return is_lock(i) || IsAtBarrier(*node(i).facts); };
    const auto idle = std::stable_partition(draft.members.begin(), draft.members.end(), is_told);
    std::stable_partition(draft.members.begin(), idle, is_lock);
    draft.victims.assign(idle, draft.members.end());
    draft.members.erase(idle, draft.members.end());
  }
  if (!idle_only) {
    if (const auto idle = drafts.find(FindingKind::kLostWakeup); idle != drafts.end()) {
      std::vector<uint32_t> idlers = std::move(idle->second.members);
      drafts.erase(idle);
      for (const FindingKind kind :
           {FindingKind::kDeadlock, FindingKind::kSpin, FindingKind::kNoWriter}) {
        const auto first = drafts.find(kind);
        if (first == drafts.end()) continue;
        first->second.victims = std::move(idlers);
        break;
      }
    }
  }
  for (auto& [kind, draft] : drafts) AddWhoWantsTheirLocks(&draft);
  if (drafts.empty()) return;
  auto& all = drafts.begin()->second.victims;
  all.insert(all.end(), victims.begin(), victims.end());
  for (auto& [kind, draft] : drafts) AddDraft(std::move(draft));
}

// Processes that spin on each other's words or pipes hang together, and those that wait for what
// the others would have to signal.
void DraftFinder::JoinAcrossProcesses() {
  const auto leads_to = [&](const FindingDraft& from, const FindingDraft& to) {
    const std::set<int> pids = judged_.PidsOf(to.members);
    return std::any_of(from.members.begin(), from.members.end(), [&](uint32_t i) {
      const auto& suppliers = judged_.graph.waits()[i].suppliers;
      return std::any_of(suppliers.begin(), suppliers.end(), [&](const WaitEdge& edge) {
        return node(edge.to).kind == NodeKind::kProcess && pids.count(node(edge.to).pid) != 0;
      });
    });
  };
  for (size_t a = 0; a < drafts_.size(); ++a) {
    for (size_t b = drafts_.size(); b-- > a + 1;) {
      const FindingKind kind = drafts_[a].kind;
      if ((kind != FindingKind::kSpin && kind != FindingKind::kLostWakeup) ||
          drafts_[b].kind != kind || !leads_to(drafts_[a], drafts_[b]) ||
          !leads_to(drafts_[b], drafts_[a]))
        continue;
      FindingDraft& into = drafts_[a];
      FindingDraft& from = drafts_[b];
      into.members.insert(into.members.end(), from.members.begin(), from.members.end());
      into.victims.insert(into.victims.end(), from.victims.begin(), from.victims.end());
      drafts_.erase(drafts_.begin() + static_cast<long>(b));
    }
  }
}

// Beside threads that move, nobody can tell from outside whether these hold them; that somebody has
// waited so long for a lock is worth saying all the same. Semaphores are used as locks, too: where
// threads wait for different ones that have names.
void DraftFinder::AddUnownedLocks(int pid) {
  constexpr TimeNs kLong = kSecond;
  FindingDraft draft;
  draft.unowned = true;
  draft.kind = FindingKind::kDeadlock;
  std::vector<uint32_t> semaphores;
  std::set<std::string> names;
  for (uint32_t i = 0; i < judged_.graph.nodes().size(); ++i) {
    if (node(i).pid != pid || !node(i).weak || judged_.stuck[i] ||
        node(i).stand != ThreadStand::kWaits)
      continue;
    const ThreadFacts& thread = *node(i).facts;
    if (!thread.since || judged_.look.end - *thread.since < kLong) continue;
    if (IsUnownedLock(thread)) draft.members.push_back(i);
    const std::string name = PoolName(thread.wait.variable);
    if (thread.wait.kind != WaitKind::kSemaphore || name.empty()) continue;
    names.insert(name);
    semaphores.push_back(i);
  }
  if (names.size() > 1)
    draft.members.insert(draft.members.end(), semaphores.begin(), semaphores.end());
  if (!draft.members.empty()) AddDraft(std::move(draft));
}

// Who reads what any thread of its process may write, and holds a lock for which others wait: one
// of these may be the one that would write, though others move, too.
void DraftFinder::AddHoldersOfPipes(int pid) {
  constexpr TimeNs kLong = kSecond;
  const auto stands = [&](uint32_t i) {
    return node(i).kind == NodeKind::kThread && node(i).pid == pid && !judged_.stuck[i] &&
           node(i).stand == ThreadStand::kWaits && node(i).facts->since &&
           judged_.look.end - *node(i).facts->since >= kLong;
  };
  for (uint32_t i = 0; i < judged_.graph.nodes().size(); ++i) {
    if (!stands(i) || !node(i).weak || !IsFileWait(node(i).facts->wait.kind)) continue;
    const auto& files = node(i).facts->wait.files;  // to fill a page takes those who move no lock
    if (!files.empty() && files[0].kind == FileKind::kFault) continue;
    FindingDraft draft;
    draft.kind = FindingKind::kDeadlock;
    draft.members = {i};
    draft.beside_others = true;
    for (uint32_t other = 0; other < judged_.graph.nodes().size(); ++other) {
      if (!stands(other) || node(other).facts->wait.owner != node(i).tid ||
          node(other).facts->wait.kind == WaitKind::kFileLock)
        continue;
      draft.members.push_back(other);
    }
    if (draft.members.size() > 1) AddDraft(std::move(draft));
  }
}

// It has waited for a while for the answer to a request that its own process has not begun to read.
bool DraftFinder::AsksItself(uint32_t index) const {
  constexpr TimeNs kLong = 3 * kSecond;
  if (node(index).kind != NodeKind::kThread || node(index).stand != ThreadStand::kWaits)
    return false;
  const ThreadFacts& thread = *node(index).facts;
  return thread.wait.files.size() == 1 && thread.wait.files[0].unread &&
         !thread.wait.files[0].others_unknown && thread.since &&
         judged_.look.end - *thread.since >= kLong;
}

// "http-nio-8080-exec-" of Java, whose pools number their threads; else where its program begins.
std::string PoolOf(const ThreadFacts& thread) {
  const auto is_java = [](const StackFrame& frame) {
    return frame.language == FrameLanguage::kJava;
  };
  if (std::any_of(thread.stack.begin(), thread.stack.end(), is_java))
    return thread.name.substr(0, thread.name.find_last_not_of("0123456789") + 1);
  const auto first = std::find_if(
      thread.stack.rbegin(), thread.stack.rend(),
      [](const StackFrame& frame) { return !frame.of_system && !frame.function.empty(); });
  return first == thread.stack.rend() ? "" : first->function + " of " + first->module;
}

// Requests of a process to itself that lie unread, while each thread that could handle one waits
// for such an answer: who takes connections, or watches many, gives them to these. A thread that
// may do anything else may be free in a moment.
void DraftFinder::AddWhoAsksItself(int pid) {
  FindingDraft draft;
  draft.kind = FindingKind::kDeadlock;
  draft.asks_itself = true;
  std::set<int> members;
  std::set<std::string> pools;
  TimeNs begin = 0;
  for (uint32_t i = 0; i < judged_.graph.nodes().size(); ++i) {
    if (node(i).pid != pid || !AsksItself(i)) continue;
    draft.members.push_back(i);
    members.insert(node(i).tid);
    pools.insert(PoolOf(*node(i).facts));
    begin = std::max(begin, *node(i).facts->since);
  }
  if (draft.members.empty()) return;
  for (uint32_t i = 0; i < judged_.graph.nodes().size(); ++i) {
    if (node(i).kind != NodeKind::kThread || node(i).pid != pid || members.contains(node(i).tid) ||
        node(i).stand == ThreadStand::kEnded || node(i).facts->of_runtime)
      continue;
    const ThreadFacts& thread = *node(i).facts;
    const ThreadWait& wait = thread.wait;
    if (thread.state != ThreadState::kSleeping) return;
    const bool watches = wait.kind == WaitKind::kPoll && wait.files.size() > 1;
    if (WaitsForConnections(wait) || watches || wait.kind == WaitKind::kSignal ||
        wait.kind == WaitKind::kJoin || (wait.kind == WaitKind::kChild && thread.stands_by))
      continue;
    if (wait.owner && wait.kind != WaitKind::kFileLock && members.contains(*wait.owner)) {
      draft.victims.push_back(i);
      continue;
    }
    const bool is_of_them = pools.contains(PoolOf(thread));
    const bool naps = wait.has_timeout || wait.kind == WaitKind::kTime;
    if (naps && !thread.stands_by) {
      if (is_of_them || !thread.since || *thread.since < begin + kSecond) return;
    } else if (WaitsToBeWoken(thread) || naps) {
      if (is_of_them || !thread.stands_by) draft.may_serve.push_back(i);
    } else {
      return;
    }
  }
  AddDraft(std::move(draft));
}

// It sleeps for a time, and has done something since.
bool DraftFinder::IsTicker(uint32_t index, TimeNs woken_after) const {
  const ThreadFacts& thread = *node(index).facts;
  if (thread.state != ThreadState::kSleeping || !thread.wait.files.empty()) return false;
  if (!thread.wait.has_timeout && thread.wait.kind != WaitKind::kTime) return false;
  return node(index).stand == ThreadStand::kMoves ||
         (node(index).stand == ThreadStand::kTimed && thread.since && *thread.since > woken_after);
}

// What the main thread waits for, or one whose end it waits for, could be given by a thread that
// sleeps for a time: a heartbeat, as a rule, which has slept and woken meanwhile and gave nothing.
// Of programs with lines alone: those are somebody's own, who looks for what he has forgotten.
void DraftFinder::AddBesideTickers(int pid) {
  constexpr TimeNs kLong = 2 * kSecond;
  const ProcessFacts* const process = FindProcess(judged_.look, pid);
  if (process == nullptr || SignalsFromOutside(*process) != 0 ||
      HandlesSignalsByRuntime(*process) || !process->shares_memory_with.empty())
    return;
  const auto has_lines = [](const ThreadFacts& thread) {
    const StackFrame* const own = OwnFrame(thread);
    return own != nullptr && !own->source.empty();
  };
  FindingDraft draft;
  draft.kind = FindingKind::kLostWakeup;
  draft.beside_tickers = true;
  TimeNs begin = 0;
  std::vector<uint32_t> others;
  bool main_waits = false;
  for (uint32_t i = 0; i < judged_.graph.nodes().size(); ++i) {
    if (node(i).kind != NodeKind::kThread || node(i).pid != pid ||
        node(i).stand == ThreadStand::kEnded)
      continue;
    const ThreadFacts& thread = *node(i).facts;
    if (node(i).stand != ThreadStand::kWaits) {
      others.push_back(i);
      continue;
    }
    // A main thread that lets no signal in leaves the work to the others for good.
    if (!thread.since || judged_.stuck[i] || thread.wait.no_signal_comes) return;
    if (NapsForDatabase(thread)) return;  // another of its connections is at work
    if (thread.tid == pid) {
      main_waits = true;
      begin = std::max(begin, *thread.since);
    }
    if (node(i).weak && !IsFileWait(thread.wait.kind) && has_lines(thread)) {
      draft.members.push_back(i);
    } else if (thread.wait.kind == WaitKind::kJoin) {
      draft.victims.push_back(i);
    } else {
      return;
    }
  }
  // A main thread that waits for one which ticks does what it should.
  const auto is_main = [&](uint32_t i) { return node(i).tid == pid; };
  const auto joined = [&](uint32_t i) {
    return std::any_of(draft.members.begin(), draft.members.end(), [&](uint32_t member) {
      return node(member).tid == node(i).facts->wait.thread;
    });
  };
  const bool of_main = std::any_of(draft.members.begin(), draft.members.end(), is_main) ||
                       std::any_of(draft.victims.begin(), draft.victims.end(),
                                   [&](uint32_t i) { return is_main(i) && joined(i); });
  if (!main_waits || !of_main || others.empty() || judged_.look.end - begin < kLong) return;
  for (const uint32_t i : draft.members) {
    if (!node(i).facts->wait.children.empty()) return;
  }
  if (std::all_of(others.begin(), others.end(),
                  [&](uint32_t i) { return IsTicker(i, begin + kLong); }))
    AddDraft(std::move(draft));
}

// Of a loop that was asleep: what runs in it may be half done. What others of its tasks do now and
// then changes nothing for those that stand; a goroutine that waits has a state of its own,
// whatever the threads do.
void DraftFinder::AddTaskCircles() {
  for (uint32_t i = 0; i < judged_.graph.nodes().size(); ++i) {
    if (node(i).kind != NodeKind::kThread || node(i).facts->tasks.empty()) continue;
    const bool is_go = node(i).facts->tasks[0].is_goroutine;
    if (node(i).facts->state != ThreadState::kSleeping && !is_go) continue;
    const bool goes_on = is_go || node(i).stand == ThreadStand::kMoves;
    FindingDraft draft;
    draft.kind = FindingKind::kDeadlock;
    draft.members = {i};
    draft.tasks = StrandedOf(node(i).facts->tasks);
    if (draft.tasks.empty()) draft.tasks = CircleOf(node(i).facts->tasks);
    if (draft.tasks.empty() || (goes_on && !StoodForASecond(*node(i).facts, draft.tasks))) continue;
    AddDraft(std::move(draft));
  }
}

// Tasks, in an earlier look, too. Who holds a lock may give it back in ways that the code does
// not show, but not while all of them stand still for ever.
bool DraftFinder::StoodForASecond(const ThreadFacts& thread,
                                  const std::vector<size_t>& tasks) const {
  const auto is_as_before = [](const TaskFacts& one, const TaskFacts& other) {
    return one.name == other.name && one.waits_for == other.waits_for &&
           one.holder == other.holder && one.is_stranded == other.is_stranded &&
           std::equal(one.stack.begin(), one.stack.end(), other.stack.begin(), other.stack.end(),
                      [](const StackFrame& a, const StackFrame& b) {
                        return a.pc == b.pc && a.function == b.function && a.source == b.source;
                      });
  };
  return std::any_of(judged_.looks.begin(), judged_.looks.end(), [&](const SystemSample& look) {
    const ThreadFacts* const then = FindThread(look, thread.tid);
    return then != nullptr && judged_.look.begin - look.begin >= kSecond &&
           std::all_of(tasks.begin(), tasks.end(), [&](size_t task) {
             return std::any_of(then->tasks.begin(), then->tasks.end(), [&](const TaskFacts& each) {
               return is_as_before(each, thread.tasks[task]);
             });
           });
  });
}

bool DraftFinder::IsHalted(int pid) const {
  bool any = false;
  for (const ProcessNode& node : judged_.graph.nodes()) {
    if (node.kind != NodeKind::kThread || node.pid != pid || node.stand == ThreadStand::kEnded)
      continue;
    if (node.stand != ThreadStand::kHalted) return false;
    any = true;
  }
  return any;
}

// Who waits for signals, and for the end of its child by one of them: as timeout does, whose
// command its terminal has stopped.
void DraftFinder::AddStoppedChildren() {
  for (uint32_t i = 0; i < judged_.graph.nodes().size(); ++i) {
    if (node(i).kind != NodeKind::kThread || node(i).stand != ThreadStand::kOutside ||
        judged_.asked.count(node(i).pid) == 0 || IsExplained(node(i).pid))
      continue;
    const ThreadWait& wait = node(i).facts->wait;
    const bool all_halted = std::all_of(wait.children.begin(), wait.children.end(),
                                        [&](int child) { return IsHalted(child); });
    if (wait.kind != WaitKind::kSignal || wait.children.empty() || !all_halted) continue;
    FindingDraft draft;
    draft.kind = FindingKind::kStoppedChild;
    draft.members = {i};
    draft.about = wait.children[0];
    draft.partners = wait.children;
    AddDraft(std::move(draft));
  }
}

// It sends to a full queue with a name, which only its own process has open; the rest of that
// waits.
bool DraftFinder::SendsToOwnQueue(uint32_t index) const {
  const ThreadWait& wait = node(index).facts->wait;
  if (wait.kind != WaitKind::kWrite || wait.files.size() != 1 || wait.has_timeout ||
      wait.files[0].kind != FileKind::kQueue || IsOfSystemV(wait.files[0]) ||
      wait.files[0].others_unknown)
    return false;
  for (uint32_t i = 0; i < judged_.graph.nodes().size(); ++i) {
    if (i != index && node(i).kind == NodeKind::kThread && node(i).pid == node(index).pid &&
        node(i).stand != ThreadStand::kEnded && !judged_.stuck[i])
      return false;
  }
  return std::all_of(wait.files[0].others.begin(), wait.files[0].others.end(),
                     [&](const auto& other) { return other.first == node(index).pid; });
}

// Who opens a named pipe that nobody has open at the other end, or sends to a queue that nobody
// receives from: others may come, or never.
void DraftFinder::AddOpeners() {
  for (uint32_t i = 0; i < judged_.graph.nodes().size(); ++i) {
    if (node(i).kind != NodeKind::kThread || judged_.stuck[i] ||
        judged_.asked.count(node(i).pid) == 0 || IsExplained(node(i).pid))
      continue;
    const ThreadStand stand = node(i).stand;
    const bool opens = node(i).facts->wait.kind == WaitKind::kOpen &&
                       !node(i).facts->wait.files.empty() &&
                       (stand == ThreadStand::kUnknown || stand == ThreadStand::kWaits);
    if (!opens && (stand != ThreadStand::kOutside || !SendsToOwnQueue(i))) continue;
    FindingDraft draft;
    draft.kind = FindingKind::kNoWriter;
    draft.members = {i};
    AddDraft(std::move(draft));
  }
}

std::vector<FindingDraft> DraftFinder::Find() {
  for (const WaitCause& cause : FindCauses(judged_.graph.Reduced(judged_.stuck))) JudgeCause(cause);
  AddTaskCircles();
  AddWeak();
  JoinAcrossProcesses();
  for (const int pid : judged_.asked) {
    if (!IsExplained(pid)) AddUnownedLocks(pid);
    if (!IsExplained(pid)) AddHoldersOfPipes(pid);
    if (!IsExplained(pid)) AddWhoAsksItself(pid);
    if (!IsExplained(pid)) AddBesideTickers(pid);
  }
  AddStoppedChildren();
  AddOpeners();
  return std::move(drafts_);
}

}  // namespace

bool IsInLockFunction(const ThreadFacts& thread) {
  constexpr size_t kLockFrames = 8;
  const size_t frames = std::min(thread.stack.size(), kLockFrames);
  return std::any_of(thread.stack.begin(), thread.stack.begin() + static_cast<long>(frames),
                     [](const StackFrame& frame) { return TakesLock(frame.function); });
}

bool NoSignalComes(const FindingDraft& draft, const JudgedProcesses& judged) {
  return std::all_of(draft.members.begin(), draft.members.end(),
                     [&](uint32_t i) { return judged.node(i).facts->wait.no_signal_comes; });
}

std::vector<FindingDraft> DraftFindings(const JudgedProcesses& judged) {
  return DraftFinder(judged).Find();
}

}  // namespace hangscope
