#include "process/process_graph.h"

#include <algorithm>
#include <set>
#include <utility>

#include "process/signal_sets.h"

namespace hangscope {
namespace {

// Whether the two were seen in their circles, or in vain between naps, at one time.
bool AreOfOneTime(const ThreadFacts::Spin& a, const ThreadFacts::Spin& b) {
  return (a.held_with_others && b.held_with_others) || (a.naps && b.naps);
}

WaitRole RoleOf(ThreadStand stand) {
  switch (stand) {
    case ThreadStand::kMoves:
    case ThreadStand::kTimed:
      return WaitRole::kMoves;
    case ThreadStand::kOutside:
    case ThreadStand::kFrozen:
      return WaitRole::kExcused;
    case ThreadStand::kUnknown:
      return WaitRole::kUnknown;
    case ThreadStand::kWaits:
    case ThreadStand::kSpins:
      return WaitRole::kWaits;
    case ThreadStand::kHalted:
      return WaitRole::kHalted;
    case ThreadStand::kEnded:
      return WaitRole::kEnded;
  }
  return WaitRole::kUnknown;
}

// In exactly the same state again and again, and all that it asks for comes out the same: nothing
// but what others do gets it out.
bool Spins(const ThreadFacts& thread) {
  if (!thread.spin || thread.spin->period == 0) return false;
  const ThreadFacts::Spin& spin = *thread.spin;
  return !spin.writes_memory && !spin.reads_clock && !spin.calls_kernel;
}

// It waits for signals, and only those of its children are meant.
bool HearsOfChildrenOnly(uint64_t signals, const ThreadWait& wait) {
  return (signals & ~kOwnFaults) == SignalBit(SIGCHLD) && !wait.children.empty();
}

bool WaitsForOutside(const ThreadWait& wait) {
  return wait.kind == WaitKind::kAccept ||
         (wait.kind == WaitKind::kSignal && !wait.no_signal_comes &&
          !HearsOfChildrenOnly(wait.signals, wait));
}

// A named pipe that has no name any more, so that nobody can open its other end, or one that those
// who will are known of.
bool OpensWhatIsKnown(const ThreadWait& wait) {
  return wait.kind == WaitKind::kOpen && wait.files.size() == 1 &&
         (!IsNamedPipe(wait.files[0]) || !wait.files[0].others.empty());
}

ThreadStand StandOfSleeper(const ThreadFacts& thread) {
  if (thread.wait.given_up_after && *thread.wait.given_up_after <= kSoonGivenUp)
    return ThreadStand::kTimed;
  if (thread.wait.has_timeout || thread.wait.kind == WaitKind::kTime) return ThreadStand::kTimed;
  if (WaitsForOutside(thread.wait)) return ThreadStand::kOutside;
  if (thread.wait.kind == WaitKind::kNone || thread.wait.kind == WaitKind::kOther ||
      thread.wait.kind == WaitKind::kSupervisor ||
      (thread.wait.kind == WaitKind::kOpen && !OpensWhatIsKnown(thread.wait)))
    return ThreadStand::kUnknown;
  return ThreadStand::kWaits;
}

using ThreadsById = std::map<int, const ThreadFacts*>;

ThreadsById ById(const SystemSample& look) {
  ThreadsById threads;
  for (const ProcessFacts& process : look.processes) {
    for (const ThreadFacts& thread : process.threads) threads.emplace(thread.tid, &thread);
  }
  return threads;
}

// Of the same holders.
bool IsForTheSame(const ThreadWait& before, const ThreadWait& now) {
  const auto holders_of = [](const ThreadWait& wait) {
    std::set<int> pids;
    for (const WaitFile& file : wait.files) {
      for (const auto& [pid, fd] : file.others) pids.insert(pid);
    }
    return pids;
  };
  return before.address == now.address && before.owner == now.owner &&
         holders_of(before) == holders_of(now);
}

// In every look it waits for the same lock of the same holder, for a time, or is about to do so
// again; and it has done so again and again, without any work.
bool Retries(const ThreadFacts& thread, const std::vector<ThreadsById>& earlier) {
  constexpr size_t kLooks = 5;
  constexpr size_t kSeen = 3;
  constexpr uint64_t kTimes = 3;
  constexpr TimeNs kMostCpuTime = 20 * kMillisecond;
  if (!MayRetry(thread) || earlier.size() + 1 < kLooks) return false;
  size_t seen = 1;
  uint64_t first = thread.voluntary_switches;
  uint64_t last = first;
  TimeNs begin = thread.cpu_time;
  TimeNs end = begin;
  for (const ThreadsById& threads : earlier) {
    const auto at = threads.find(thread.tid);
    if (at == threads.end()) return false;
    const ThreadFacts& before = *at->second;
    first = std::min(first, before.voluntary_switches);
    last = std::max(last, before.voluntary_switches);
    begin = std::min(begin, before.cpu_time);
    end = std::max(end, before.cpu_time);
    if (before.state == ThreadState::kRunning) continue;
    // A look without stacks does not tell what the word is, or that a nap is for a database.
    if (before.wait.kind == WaitKind::kFutex && before.wait.has_timeout) continue;
    if (before.wait.kind == WaitKind::kTime && before.stack.empty() && NapsForDatabase(thread))
      continue;
    if (!MayRetry(before) || !IsForTheSame(before.wait, thread.wait)) return false;
    ++seen;
  }
  return seen >= kSeen && last - first >= kTimes && end - begin <= kMostCpuTime;
}

// It was in the same call of MPI a while before, no message has passed since, and it had time to
// find one.
bool PollsForRanks(const ThreadFacts& thread, const std::vector<ThreadsById>& earlier) {
  constexpr TimeNs kLeastCpuTime = 50 * kMillisecond;
  constexpr uint64_t kLeastNaps = 100;  // of one that naps between two looks for messages
  if (thread.wait.kind != WaitKind::kRanks) return false;
  return std::any_of(earlier.begin(), earlier.end(), [&](const ThreadsById& threads) {
    const auto at = threads.find(thread.tid);
    if (at == threads.end()) return false;
    const ThreadFacts& before = *at->second;
    return before.wait.kind == WaitKind::kRanks && before.wait.address == thread.wait.address &&
           before.wait.object_type == thread.wait.object_type &&
           (thread.cpu_time - before.cpu_time >= kLeastCpuTime ||
            thread.voluntary_switches - before.voluntary_switches >= kLeastNaps);
  });
}

// A thread with a library's own event loop, which is asleep in it: not one that reads a file for
// the program.
bool IsOfLibraryAlone(const ThreadFacts& thread) {
  return thread.tid != thread.pid && !thread.stack.empty() &&
         thread.state == ThreadState::kSleeping && thread.wait.kind == WaitKind::kPoll &&
         std::all_of(thread.stack.begin(), thread.stack.end(),
                     [](const StackFrame& frame) { return frame.of_system; });
}

ThreadStand StandOf(const ThreadFacts& thread, const std::vector<ThreadsById>& earlier) {
  switch (thread.state) {
    case ThreadState::kRunning:
      if (PollsForRanks(thread, earlier)) return ThreadStand::kWaits;
      return Spins(thread) && (!thread.spin->naps || NapsAndLooks(thread)) ? ThreadStand::kSpins
                                                                           : ThreadStand::kMoves;
    case ThreadState::kStopped:
    case ThreadState::kTraced:
      return ThreadStand::kHalted;
    case ThreadState::kFrozen:
      return ThreadStand::kFrozen;
    case ThreadState::kZombie:
    case ThreadState::kDead:
      return ThreadStand::kEnded;
    case ThreadState::kDiskSleep:
    case ThreadState::kUnknown:
      return ThreadStand::kUnknown;
    case ThreadState::kSleeping:
      break;
  }
  if (PollsForRanks(thread, earlier) || Retries(thread, earlier)) return ThreadStand::kWaits;
  if (NapsAndLooks(thread)) return ThreadStand::kSpins;
  if (thread.of_runtime) return ThreadStand::kMoves;
  for (const ThreadsById& threads : earlier) {
    const auto before = threads.find(thread.tid);
    if (before == threads.end() || !IsSameWait(*before->second, thread)) return ThreadStand::kMoves;
  }
  return StandOfSleeper(thread);
}

// What a descriptor can be made ready by.
enum class FileSource { kProcesses, kOwnProcess, kOutside, kUnknown };

FileSource SourceOf(const WaitFile& file, const ThreadWait& wait) {
  if (file.kind == FileKind::kSignals && HearsOfChildrenOnly(file.signals, wait))
    return FileSource::kProcesses;
  // An event loop arms its timers between its waits.
  if (file.kind == FileKind::kTimer && (!file.is_idle || wait.files.size() > 1))
    return FileSource::kOutside;
  if (file.outside || file.listening) return FileSource::kOutside;
  if (file.others_unknown) return FileSource::kUnknown;
  if (wait.kind == WaitKind::kFileLock)
    return file.others.empty() ? FileSource::kUnknown : FileSource::kProcesses;
  switch (file.kind) {
    case FileKind::kTerminal:
      return file.others.empty() ? FileSource::kOutside : FileSource::kProcesses;
    case FileKind::kFile:
    case FileKind::kDevice:
    case FileKind::kSignals:
      return FileSource::kOutside;
    case FileKind::kUnknown:
      return FileSource::kUnknown;
    case FileKind::kRing:
    case FileKind::kNotify:
    case FileKind::kEpoll:  // of another epoll: what it watches is not known here
      return file.is_idle && !file.others.empty() ? FileSource::kProcesses : FileSource::kUnknown;
    case FileKind::kEvent:
      return file.others.empty() ? FileSource::kOwnProcess : FileSource::kProcesses;
    case FileKind::kQueue:
    case FileKind::kSemaphore:
    case FileKind::kMount:
    case FileKind::kServerLock:
    case FileKind::kFault:
    case FileKind::kTimer:
    case FileKind::kPipe:  // without another end, reading it would end at once
    case FileKind::kSocket:
    case FileKind::kProcess:
      return file.others.empty() ? FileSource::kUnknown : FileSource::kProcesses;
  }
  return FileSource::kUnknown;
}

// It woke once or twice to look whether its lock is free, as its runtime lets it.
bool HasOnlyRechecked(const ThreadFacts& before, const ThreadFacts& now) {
  constexpr uint64_t kMostWakes = 2;
  constexpr TimeNs kMostCpuTime = 2 * kMillisecond;
  return now.wait.rechecks && (before.wait.rechecks || before.wait.has_timeout) &&
         now.voluntary_switches - before.voluntary_switches <= kMostWakes &&
         now.cpu_time - before.cpu_time <= kMostCpuTime;
}

// Whether it waits for one of the sockets of `pid` through which the connection that `other` waits
// for would be accepted.
bool WatchesOneOf(const ThreadWait& wait, int pid, const ThreadWait& other) {
  return std::any_of(wait.files.begin(), wait.files.end(), [&](const WaitFile& file) {
    return std::any_of(other.files.begin(), other.files.end(), [&](const WaitFile& wanted) {
      return std::count(wanted.others.begin(), wanted.others.end(), std::pair(pid, file.fd)) != 0;
    });
  });
}

}  // namespace

bool IsHungUp(const ThreadFacts::Spin::Call& call, const WaitFile& file) {
  const bool is_closed = file.kind == FileKind::kPipe && file.fd >= 0 && !IsNamedPipe(file) &&
                         file.others.empty() && !file.others_unknown;
  const bool is_at_end = call.wait.kind == WaitKind::kRead && call.result == 0;
  const bool is_ready = call.wait.kind == WaitKind::kPoll &&
                        std::count(call.ready.begin(), call.ready.end(), file.fd) != 0;
  return is_closed && (is_at_end || is_ready);
}

uint64_t SignalsFromOutside(const ProcessFacts& process) {
  // The end of a child is a supplier of its own where it counts.
  return process.caught_signals & ~process.runtime_signals & ~kOwnFaults & ~SignalBit(SIGCHLD);
}

bool HandlesSignalsByRuntime(const ProcessFacts& process) {
  return (process.runtime_signals & ~SignalBit(SIGINT)) != 0;
}

bool AsksKernel(const ThreadFacts::Spin& spin) {
  return std::any_of(spin.calls.begin(), spin.calls.end(),
                     [](const auto& call) { return call.wait.kind != WaitKind::kNone; });
}

bool NapsAndLooks(const ThreadFacts& thread) {
  return Spins(thread) && thread.spin->naps && !thread.spin->polls_shared;
}

bool AsksForFileLocksOnly(const ThreadFacts::Spin& spin) {
  return std::all_of(spin.calls.begin(), spin.calls.end(), [](const auto& call) {
    return call.wait.kind == WaitKind::kNone || call.wait.kind == WaitKind::kFileLock;
  });
}

bool NapsForFileLocks(const ThreadFacts& thread) {
  if (!NapsAndLooks(thread)) return false;
  const ThreadFacts::Spin& spin = *thread.spin;
  const auto others_have_it = [&](const ThreadFacts::Spin::Call& call) {
    if (call.wait.kind == WaitKind::kNone) return true;
    const std::vector<WaitFile>& files = call.wait.files;
    return files.size() == 1 && !files[0].others.empty() && !files[0].others_unknown &&
           std::none_of(files[0].others.begin(), files[0].others.end(),
                        [&](const auto& other) { return other.first == thread.pid; });
  };
  return AsksKernel(spin) && AsksForFileLocksOnly(spin) && spin.polls.empty() &&
         spin.others.empty() && std::all_of(spin.calls.begin(), spin.calls.end(), others_have_it);
}

bool IsFileWait(WaitKind kind) {
  return kind == WaitKind::kRead || kind == WaitKind::kWrite || kind == WaitKind::kPoll;
}

bool WaitsForConnections(const ThreadWait& wait) {
  return wait.kind == WaitKind::kAccept ||
         std::any_of(wait.files.begin(), wait.files.end(),
                     [](const WaitFile& file) { return file.listening; });
}

bool WaitsForUnanswered(const ThreadWait& wait) {
  return IsFileWait(wait.kind) &&
         std::any_of(wait.files.begin(), wait.files.end(),
                     [](const WaitFile& file) { return file.unaccepted || file.unread; });
}

bool IsTransferOfCurl(const ThreadFacts& thread) {
  return thread.wait.kind == WaitKind::kPoll && HasFunction(thread.stack, "curl_easy_perform");
}

bool WaitsToBeWoken(const ThreadFacts& thread) {
  const auto is_lock = [](const StackFrame& frame) {
    return frame.function.find("lock") != std::string::npos ||
           frame.function.find("Lock") != std::string::npos;
  };
  constexpr size_t kInnermost = 4;
  switch (thread.wait.kind) {
    case WaitKind::kCondition:
    case WaitKind::kSemaphore:
    case WaitKind::kBarrier:
      return true;
    case WaitKind::kFutex:
      return std::none_of(
          thread.stack.begin(),
          thread.stack.begin() + static_cast<long>(std::min(thread.stack.size(), kInnermost)),
          is_lock);
    default:
      return false;
  }
}

bool WaitsForItself(const ProcessNode& node) {
  if (!node.weak || node.facts == nullptr) return false;
  const ThreadWait& wait = node.facts->wait;
  const auto is_end = [](const WaitFile& file) {
    return file.kind == FileKind::kProcess || file.kind == FileKind::kMount || IsOfSystemV(file);
  };
  return wait.kind == WaitKind::kFileLock || wait.kind == WaitKind::kConnect ||
         (!wait.files.empty() && std::all_of(wait.files.begin(), wait.files.end(), is_end));
}

bool NapsForDatabase(const ThreadFacts& thread) {
  return thread.wait.kind == WaitKind::kFileLock && thread.wait.has_timeout &&
         thread.wait.files.size() == 1 && !thread.wait.files[0].others.empty();
}

bool MayRetry(const ThreadFacts& thread) {
  if (thread.state == ThreadState::kSleeping && NapsForDatabase(thread)) return true;
  return thread.state == ThreadState::kSleeping && thread.wait.has_timeout &&
         (thread.wait.kind == WaitKind::kMutex || thread.wait.kind == WaitKind::kRwLock) &&
         thread.wait.owner && !thread.wait.owner_died && !thread.wait.owner_copied;
}

void NoteNaps(const SystemSample& before, SystemSample* now) {
  const ThreadsById earlier = ById(before);
  for (ProcessFacts& process : now->processes) {
    for (ThreadFacts& thread : process.threads) {
      const auto at = earlier.find(thread.tid);
      if (at == earlier.end()) continue;
      const ThreadFacts& then = *at->second;
      const auto naps = [](const ThreadFacts& each) {
        return each.state == ThreadState::kSleeping && each.wait.has_timeout;
      };
      if (naps(then) && naps(thread) && then.system_call == thread.system_call &&
          then.stack_pointer == thread.stack_pointer &&
          then.voluntary_switches != thread.voluntary_switches)
        thread.naps_again = true;
    }
  }
}

bool HandlerMayEnd(const ThreadFacts& thread) {
  const auto is_python = [](const StackFrame& frame) {
    return frame.function.starts_with("PyThread_acquire_lock");
  };
  if (std::any_of(thread.stack.begin(), thread.stack.end(), is_python))
    return thread.tid == thread.pid;
  // Ruby, too, has its handlers run in the main thread, which goes on with a system call after
  // that.
  const auto is_ruby = [](const StackFrame& frame) {
    return frame.language == FrameLanguage::kRuby;
  };
  if (!IsFileWait(thread.wait.kind) &&
      std::any_of(thread.stack.begin(), thread.stack.end(), is_ruby))
    return thread.tid == thread.pid;
  return thread.wait.kind == WaitKind::kSemaphore || thread.wait.kind == WaitKind::kFutex ||
         thread.wait.kind == WaitKind::kConnect || IsFileWait(thread.wait.kind);
}

bool IsSameWait(const ThreadFacts& before, const ThreadFacts& now) {
  // What a word belongs to may be known in one look only, and then it is told by where that begins.
  const bool same_word =
      before.wait.kind != now.wait.kind || before.wait.address == now.wait.address;
  const bool same_switches = before.voluntary_switches == now.voluntary_switches &&
                             before.involuntary_switches == now.involuntary_switches;
  return before.pid == now.pid && before.state == now.state &&
         before.system_call == now.system_call && same_word &&
         (same_switches || HasOnlyRechecked(before, now));
}

ProcessGraph::ProcessGraph(const std::vector<SystemSample>& looks) : now_(looks.back().end) {
  AddNodes(looks);
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].kind == ProcessNode::Kind::kThread) AddEdges(i);
  }
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (IsSharedWait(i) && !nodes_[i].facts->wait.owner_died && !LeadsBack(i))
      Stand(i, IsQueueWait(i) ? ThreadStand::kOutside : ThreadStand::kUnknown);
  }
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    waits_[i].role = RoleOf(nodes_[i].stand);
    auto& suppliers = waits_[i].suppliers;
    std::sort(suppliers.begin(), suppliers.end(),
              [](const WaitEdge& a, const WaitEdge& b) { return a.to < b.to; });
    suppliers.erase(std::unique(suppliers.begin(), suppliers.end(),
                                [](const WaitEdge& a, const WaitEdge& b) { return a.to == b.to; }),
                    suppliers.end());
  }
}

// The threads of a process first, then the process itself, which is as stuck as all of them.
void ProcessGraph::AddNodes(const std::vector<SystemSample>& looks) {
  const auto add = [&](ProcessNode node) {
    nodes_.push_back(node);
    waits_.emplace_back();
    return static_cast<uint32_t>(nodes_.size() - 1);
  };
  std::vector<ThreadsById> earlier;
  for (size_t i = 0; i + 1 < looks.size(); ++i) earlier.push_back(ById(looks[i]));
  nobody_knows_ =
      add({ProcessNode::Kind::kNobodyKnows, 0, 0, nullptr, ThreadStand::kUnknown, false, false});
  for (const ProcessFacts& process : looks.back().processes) {
    if (processes_.count(process.pid) != 0) continue;
    std::vector<WaitEdge> alive;
    for (const ThreadFacts& thread : process.threads) {
      if (threads_.count(thread.tid) != 0) continue;
      const ThreadStand its_stand = StandOf(thread, earlier);
      const uint32_t node = add(
          {ProcessNode::Kind::kThread, process.pid, thread.tid, &thread, its_stand, false, false});
      nodes_[node].retries = its_stand == ThreadStand::kWaits && thread.wait.has_timeout;
      threads_[thread.tid] = node;
      if (nodes_[node].stand != ThreadStand::kEnded && !thread.of_runtime)
        alive.push_back({node, false});
    }
    // One that has ended will be seen to have ended.
    const ThreadStand stand = !alive.empty()            ? ThreadStand::kWaits
                              : process.threads.empty() ? ThreadStand::kUnknown
                                                        : ThreadStand::kMoves;
    const uint32_t node =
        add({ProcessNode::Kind::kProcess, process.pid, 0, nullptr, stand, false, false});
    facts_[process.pid] = &process;
    waits_[node].suppliers = std::move(alive);
    processes_[process.pid] = node;
  }
}

uint32_t ProcessGraph::ProcessNodeOf(int pid) {
  const auto found = processes_.find(pid);
  return found == processes_.end() ? nobody_knows_ : found->second;
}

void ProcessGraph::Stand(uint32_t node, ThreadStand stand) {
  nodes_[node].stand = stand;
  waits_[node].suppliers.clear();
}

void ProcessGraph::WaitForThread(uint32_t node, int tid) {
  const auto found = threads_.find(tid);
  if (found == threads_.end() || nodes_[found->second].stand == ThreadStand::kEnded)
    return Unknown(node);
  waits_[node].suppliers.push_back({found->second, false});
}

void ProcessGraph::WaitForProcess(uint32_t node, int pid) {
  if (processes_.count(pid) == 0) return Unknown(node);
  waits_[node].suppliers.push_back({processes_[pid], false});
}

constexpr int kNotKnown = -1;  // a descriptor

void AddInQuestion(const WaitFile& file, int pid, FilesInQuestion* files) {
  for (const auto& [other, descriptor] : file.others) {
    if (other == pid) files->descriptors.insert(descriptor);
  }
  if (file.others.empty()) files->descriptors.insert(kNotKnown);
  const bool is_nameless = (file.kind == FileKind::kPipe && !IsNamedPipe(file)) ||
                           file.kind == FileKind::kSocket || file.kind == FileKind::kEvent;
  files->have_names = files->have_names || !is_nameless;
}

bool UsesNoneOf(const ThreadFacts& thread, const FilesInQuestion& files) {
  if (thread.uses_no_files) return true;
  return thread.uses_descriptors && !files.descriptors.empty() &&
         files.descriptors.count(kNotKnown) == 0 && !(thread.opens_files && files.have_names) &&
         std::none_of(files.descriptors.begin(), files.descriptors.end(), [&](int descriptor) {
           return thread.uses_descriptors->count(descriptor) != 0;
         });
}

// Of the process, without the threads that nap beside it and wake nobody; `files`: nor end a wait
// for these.
uint32_t ProcessGraph::WithoutHarmless(int pid, const std::optional<FilesInQuestion>& files) {
  const uint32_t all = ProcessNodeOf(pid);
  if (all == nobody_knows_) return all;
  const auto wakes_nobody = [&](const WaitEdge& edge) {
    const ThreadFacts* const facts = nodes_[edge.to].facts;
    return facts != nullptr && (files ? UsesNoneOf(*facts, *files) : facts->wakes_nobody);
  };
  const std::vector<WaitEdge>& threads = waits_[all].suppliers;
  if (std::none_of(threads.begin(), threads.end(), wakes_nobody)) return all;
  const auto [wakers, is_new] =
      wakers_.emplace(std::pair(pid, files), static_cast<uint32_t>(nodes_.size()));
  if (is_new) {
    nodes_.push_back(nodes_[all]);
    waits_.push_back(waits_[all]);
    std::erase_if(waits_.back().suppliers, wakes_nobody);
  }
  return wakers->second;
}

bool ProcessGraph::Descends(int pid, int from) const {
  constexpr size_t kMostParents = 64;
  for (size_t i = 0; i < kMostParents; ++i) {
    const auto process = facts_.find(pid);
    if (process == facts_.end()) return false;
    pid = process->second->parent;
    if (pid == from) return true;
  }
  return false;
}

// Of a process that has the socket which listens, without the threads that do something else and
// have let the connection of `waiter` stand: who stands ready for other work, or has slept and
// woken since. Nothing: it is one that the other descends from, and all of it does, or waits for
// signals, as the process that begins a server's workers leaves the connections to these; or it is
// systemd, which leaves them to a service that it has begun.
std::optional<uint32_t> ProcessGraph::WhoMayAccept(int pid, uint32_t waiter) {
  constexpr TimeNs kLong = 3 * kSecond;
  const uint32_t all = ProcessNodeOf(pid);
  const ThreadFacts& who = *nodes_[waiter].facts;
  if (all == nobody_knows_ || !who.since || now_ - *who.since < kLong) return all;
  const bool is_parent = pid != who.pid && Descends(who.pid, pid);
  const bool is_systemd = is_parent && pid == 1 && facts_.at(pid)->name == "systemd";
  const auto lets_it_stand = [&](const WaitEdge& edge) {
    const ProcessNode& node = nodes_[edge.to];
    if (node.facts == nullptr || node.facts->state != ThreadState::kSleeping) return false;
    const ThreadFacts& thread = *node.facts;
    if (is_systemd) return !WatchesOneOf(thread.wait, pid, who.wait);
    if (edge.to == waiter || WaitsForConnections(thread.wait)) return false;
    const bool naps = thread.wait.has_timeout || thread.wait.kind == WaitKind::kTime;
    const bool has_woken = thread.since && *thread.since > *who.since + kSecond;
    const bool is_ready = thread.stands_by &&
                          (naps || WaitsToBeWoken(thread) || thread.wait.kind == WaitKind::kChild);
    const bool may_be_told = std::any_of(thread.wait.files.begin(), thread.wait.files.end(),
                                         [](const WaitFile& file) { return file.outside; });
    return is_ready || (naps && has_woken && !may_be_told) ||
           (is_parent && thread.wait.kind == WaitKind::kSignal);
  };
  std::vector<WaitEdge> threads = waits_[all].suppliers;
  std::erase_if(threads, lets_it_stand);
  if (threads.size() == waits_[all].suppliers.size()) return all;
  if (threads.empty()) return is_parent ? std::nullopt : std::optional(all);
  const auto [found, is_new] =
      acceptors_.emplace(std::pair(pid, waiter), static_cast<uint32_t>(nodes_.size()));
  if (is_new) {
    nodes_.push_back(ProcessNode(nodes_[all]));
    waits_.push_back(WaitNode(waits_[all]));
    waits_.back().suppliers = std::move(threads);
  }
  return found->second;
}

void ProcessGraph::WaitForWaker(uint32_t node) {
  nodes_[node].weak = true;
  const ProcessFacts& process = *facts_.at(nodes_[node].pid);
  const uint32_t wakers = WithoutHarmless(process.pid, std::nullopt);  // which may move all nodes
  waits_[node].suppliers.push_back({wakers, false});
  for (const int sharer : process.shares_memory_with)
    waits_[node].suppliers.push_back({ProcessNodeOf(sharer), false});
}

void ProcessGraph::WaitForOwnProcess(uint32_t node) {
  nodes_[node].weak = true;
  const ProcessFacts& process = *facts_.at(nodes_[node].pid);
  waits_[node].suppliers.push_back({ProcessNodeOf(process.pid), false});
  for (const int sharer : process.shares_memory_with)
    waits_[node].suppliers.push_back({ProcessNodeOf(sharer), false});
}

// One for each lock.
void ProcessGraph::WaitForDead(uint32_t node) {
  const ThreadWait& wait = nodes_[node].facts->wait;
  const auto [lock, is_new] = dead_owners_.emplace(std::pair(nodes_[node].pid, wait.address),
                                                   static_cast<uint32_t>(nodes_.size()));
  waits_[node].suppliers.push_back({lock->second, false});
  if (!is_new) return;
  nodes_.push_back({ProcessNode::Kind::kDeadOwner, nodes_[node].pid, wait.owner.value_or(0),
                    nullptr, ThreadStand::kHalted, false, false});
  waits_.emplace_back();
}

// The main thread of a child is the copy of the one that called fork(), and may unlock what that
// had locked.
void ProcessGraph::WaitForCopied(uint32_t node) {
  WaitForDead(node);
  const auto main = threads_.find(nodes_[node].pid);
  if (main != threads_.end() && main->second != node &&
      nodes_[main->second].stand != ThreadStand::kEnded)
    waits_[node].suppliers.push_back({main->second, false});
}

// What others send through the server comes over a session that is in no transaction (NOTIFY).
bool ProcessGraph::MayBeNotified(const WaitFile& file) const {
  if (file.kind != FileKind::kSocket) return false;
  return std::any_of(file.others.begin(), file.others.end(), [&](const auto& other) {
    const auto process = facts_.find(other.first);
    if (process == facts_.end() || !process->second->session) return false;
    const std::string& state = process->second->session->state;
    return state != "active" && !state.starts_with("idle in transaction");
  });
}

void ProcessGraph::AddFileEdges(uint32_t node) {
  const ThreadWait& wait = nodes_[node].facts->wait;
  const std::vector<WaitFile>& files = wait.files;
  const int own = nodes_[node].pid;
  bool only_own = true;
  std::set<int> pids(wait.children.begin(), wait.children.end());
  std::set<int> acceptors;
  for (const WaitFile& file : files) {
    const FileSource source = SourceOf(file, wait);
    if (source == FileSource::kOutside || MayBeNotified(file))
      return Stand(node, ThreadStand::kOutside);
    if (source == FileSource::kUnknown) return Unknown(node);
    if (source == FileSource::kOwnProcess) pids.insert(own);
    std::set<int>& into = file.unaccepted ? acceptors : pids;
    for (const auto& [pid, fd] : file.others) into.insert(pid);
  }
  for (const int pid : acceptors) {
    const auto users = WhoMayAccept(pid, node);  // which may move all nodes
    if (!users) continue;
    only_own = only_own && pid == own;
    waits_[node].suppliers.push_back({*users, false});
  }
  for (const int pid : pids) {
    only_own = only_own && pid == own;
    FilesInQuestion in_question;
    for (const WaitFile& file : files) AddInQuestion(file, pid, &in_question);
    const uint32_t users = WithoutHarmless(pid, in_question);  // which may move all nodes
    waits_[node].suppliers.push_back({users, false});
  }
  nodes_[node].weak = only_own;
  if (waits_[node].suppliers.empty()) Unknown(node);
}

// Who polls what another spinner changes and changes back may get out by that. And where the two
// were not held at one time, each may have been in its circle when the other was not.
bool ProcessGraph::MayBeMovedBySpinner(uint32_t node) const {
  const ThreadFacts::Spin& spin = *nodes_[node].facts->spin;
  const auto flickers_for_it = [&](const ThreadFacts::Spin& other) {
    if (!AreOfOneTime(spin, other)) return true;
    if (other.flickers_cut || (spin.polls_cut && !other.flickers.empty())) return true;
    return std::any_of(spin.polls.begin(), spin.polls.end(), [&](uint64_t address) {
      constexpr uint64_t kWord = 8;
      return std::count(other.flickers.begin(), other.flickers.end(), address / kWord * kWord) != 0;
    });
  };
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const ProcessNode& other) {
    // Where memory is shared, the same word has another address in each of the processes.
    const std::vector<int>& near = facts_.at(nodes_[node].pid)->shares_memory_with;
    const bool is_near =
        other.pid == nodes_[node].pid || std::count(near.begin(), near.end(), other.pid) != 0;
    return other.stand == ThreadStand::kSpins && other.facts != nodes_[node].facts &&
           (is_near ? flickers_for_it(*other.facts->spin)
                    : spin.polls_shared && (!AreOfOneTime(spin, *other.facts->spin) ||
                                            !other.facts->spin->flickers.empty()));
  });
}

namespace {

// There is nothing more to be read, and there will be nothing unless one of those who have the file
// open, too, writes to it. `others` are these.
bool IsAtItsEnd(const ThreadFacts::Spin::Call& call, const WaitFile& file) {
  return call.wait.kind == WaitKind::kRead && call.result == 0 && !file.outside &&
         (file.kind == FileKind::kFile || file.kind == FileKind::kDevice);
}

}  // namespace

// Whoever could change the memory that it polls, or a file that its calls ask about.
void ProcessGraph::AddSpinEdges(uint32_t node) {
  const ThreadFacts::Spin& spin = *nodes_[node].facts->spin;
  // Nothing that its own process does gives it a lock that others have.
  nodes_[node].retries = NapsForFileLocks(*nodes_[node].facts);
  if (!nodes_[node].retries) WaitForOwnProcess(node);
  auto& suppliers = waits_[node].suppliers;
  std::set<int> pids(spin.others.begin(), spin.others.end());
  bool is_known = !MayBeMovedBySpinner(node) && (!spin.polls_shared || spin.sharers_known);
  pids.insert(spin.sharers.begin(), spin.sharers.end());
  for (const ThreadFacts::Spin::Call& call : spin.calls) {
    is_known = is_known && call.wait.kind != WaitKind::kOther;
    pids.insert(call.wait.children.begin(), call.wait.children.end());
    for (const WaitFile& file : call.wait.files) {
      if (IsHungUp(call, file)) continue;
      const FileSource source =
          IsAtItsEnd(call, file) ? FileSource::kProcesses : SourceOf(file, call.wait);
      is_known = is_known && !file.others_unknown;
      // It looks again and again whether something has come from there.
      if (source == FileSource::kOutside) return Stand(node, ThreadStand::kMoves);
      is_known = is_known && source != FileSource::kUnknown;
      for (const auto& [pid, fd] : file.others) pids.insert(pid);
    }
  }
  for (const int pid : pids) suppliers.push_back({ProcessNodeOf(pid), false});
  if (!is_known) suppliers.push_back({nobody_knows_, false});
}

// Any other rank may send what it waits for, from any of its threads but those of the library; and
// so may its own process.
void ProcessGraph::AddRankEdges(uint32_t node) {
  const auto& rank = facts_.at(nodes_[node].pid)->rank;
  if (!rank || rank->others_unknown) return Unknown(node);
  std::set<int> pids = {nodes_[node].pid};
  for (const auto& [number, pid] : rank->others) pids.insert(pid);
  for (const int pid : pids) {
    const auto process = facts_.find(pid);
    if (process == facts_.end() || process->second->is_hidden) return Unknown(node);
    for (const ThreadFacts& thread : process->second->threads) {
      if (thread.tid != nodes_[node].tid && !IsOfLibraryAlone(thread))
        WaitForThread(node, thread.tid);
    }
  }
}

namespace {

// GLib's own, which passes on what comes over a bus. One that wakes after a time ends a call that
// has a limit. A loop of the program's, in a thread of its own, may answer.
bool PassesOnForBus(const ThreadFacts& thread) {
  return IsOfLibraryAlone(thread) && !thread.wait.has_timeout &&
         (thread.name == "gmain" || thread.name == "gdbus" || thread.name == "dconf worker");
}

}  // namespace

// Any other thread of its process may answer it. It cannot itself.
void ProcessGraph::AddOwnCallEdges(uint32_t node) {
  waits_[node].suppliers.push_back({node, false});
  for (const ThreadFacts& thread : facts_.at(nodes_[node].pid)->threads) {
    const bool has_ended =
        thread.state == ThreadState::kZombie || thread.state == ThreadState::kDead;
    if (thread.tid != nodes_[node].tid && !PassesOnForBus(thread) && !has_ended)
      WaitForThread(node, thread.tid);
  }
}

void ProcessGraph::AddEdges(uint32_t node) {
  const ThreadStand stand = nodes_[node].stand;
  if (stand == ThreadStand::kSpins) return AddSpinEdges(node);
  if (stand != ThreadStand::kWaits) return;
  const ThreadWait& wait = nodes_[node].facts->wait;
  if (wait.of_own_call) return AddOwnCallEdges(node);
  if (wait.owner_copied) return WaitForCopied(node);
  if (wait.owner_died) return WaitForDead(node);
  // A lock of a file belongs to a process, and any of its threads may give it back.
  if (wait.owner && wait.kind == WaitKind::kFileLock) return WaitForProcess(node, *wait.owner);
  if (wait.owner) return WaitForThread(node, *wait.owner);
  switch (wait.kind) {
    case WaitKind::kJoin:
      return wait.thread ? WaitForThread(node, *wait.thread) : Unknown(node);
    case WaitKind::kSignal:  // of its children, or none
      if (wait.no_signal_comes) return WaitForOwnProcess(node);
      [[fallthrough]];
    case WaitKind::kChild:
      for (const int child : wait.children)
        waits_[node].suppliers.push_back({ProcessNodeOf(child), false});
      if (wait.children.empty()) Unknown(node);
      return;
    case WaitKind::kRead:
    case WaitKind::kWrite:
    case WaitKind::kPoll:
    case WaitKind::kConnect:
    case WaitKind::kFileLock:
    case WaitKind::kServerLock:
      return AddFileEdges(node);
    case WaitKind::kRanks:
      return AddRankEdges(node);
    case WaitKind::kOpen:
      for (const auto& [pid, fd] : wait.files[0].others)
        waits_[node].suppliers.push_back({ProcessNodeOf(pid), false});
      return wait.files[0].others.empty() ? WaitForOwnProcess(node) : void();
    default:
      break;
  }
  // A word that others may have mapped, too: nobody knows who.
  if (wait.shared && wait.sharers.empty()) return Unknown(node);
  if (WaitsToBeWoken(*nodes_[node].facts))
    WaitForWaker(node);
  else
    WaitForOwnProcess(node);
  for (const int sharer : wait.sharers)
    waits_[node].suppliers.push_back({ProcessNodeOf(sharer), false});
  for (const int child : wait.children)
    waits_[node].suppliers.push_back({ProcessNodeOf(child), false});
}

bool ProcessGraph::IsSharedWait(uint32_t node) const {
  if (nodes_[node].kind != ProcessNode::Kind::kThread || nodes_[node].stand != ThreadStand::kWaits)
    return false;
  const ThreadWait& wait = nodes_[node].facts->wait;
  return wait.is_public || (wait.files.size() == 1 && wait.files[0].is_public);
}

// Of POSIX.
bool ProcessGraph::IsQueueWait(uint32_t node) const {
  const std::vector<WaitFile>& files = nodes_[node].facts->wait.files;
  return !files.empty() && files[0].kind == FileKind::kQueue && !IsOfSystemV(files[0]);
}

// Those who idle on one word wait for who will come, not for each other.
bool ProcessGraph::IsSameWord(uint32_t node, uint32_t other) const {
  if (nodes_[other].facts == nullptr) return false;
  const ThreadWait& wait = nodes_[node].facts->wait;
  return wait.is_public && nodes_[other].facts->wait.shared_name == wait.shared_name;
}

bool ProcessGraph::IsSystemVWait(uint32_t node) const {
  if (nodes_[node].kind != ProcessNode::Kind::kThread || nodes_[node].stand != ThreadStand::kWaits)
    return false;
  const std::vector<WaitFile>& files = nodes_[node].facts->wait.files;
  return files.size() == 1 && IsOfSystemV(files[0]) &&
         (files[0].is_public || files[0].kind == FileKind::kQueue);
}

// Who has a message queue with a name open need not be who sends the next message: others will
// come. It is taken for that in a circle alone. Who took from a semaphore of System V last, or sent
// a message last, in a circle of such waits alone, as of semaphores that are locks.
bool ProcessGraph::LeadsBack(uint32_t node) const {
  std::set<uint32_t> seen;
  std::vector<uint32_t> open = {node};
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    for (const WaitEdge& edge : waits_[at].suppliers) {
      const bool is_process = nodes_[edge.to].kind == ProcessNode::Kind::kProcess;
      const bool is_own = nodes_[edge.to].pid == nodes_[node].pid;
      if ((is_own && at == node) || IsSameWord(node, edge.to)) continue;
      if (is_own) return true;
      if ((is_process || !IsSystemVWait(node) || IsSystemVWait(edge.to)) &&
          seen.insert(edge.to).second)
        open.push_back(edge.to);
    }
  }
  return false;
}

// A process whom nobody waits for, other than its own idle threads, is nobody's victim.
void ProcessGraph::DropUnwaited(std::vector<WaitNode>* waits) const {
  std::set<uint32_t> waited;
  for (const WaitNode& wait : *waits) {
    for (const WaitEdge& edge : wait.suppliers) waited.insert(edge.to);
  }
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    const bool is_process = nodes_[node].kind == ProcessNode::Kind::kProcess;
    if (is_process && waited.count(node) == 0) (*waits)[node] = {};
  }
}

std::vector<WaitNode> ProcessGraph::Reduced(const std::vector<bool>& stuck) const {
  std::vector<WaitNode> reduced = waits_;
  for (uint32_t i = 0; i < reduced.size(); ++i) {
    WaitNode& wait = reduced[i];
    if (wait.role != WaitRole::kWaits) continue;
    if (!stuck[i])
      wait.role = WaitRole::kMoves;
    else if (nodes_[i].weak)
      wait.role = WaitRole::kHalted;
    if (wait.role != WaitRole::kWaits) {
      wait.suppliers.clear();
      continue;
    }
    const auto is_last_resort = [&](const WaitEdge& edge) {
      const ProcessNode& to = nodes_[edge.to];
      return to.weak || (to.kind == ProcessNode::Kind::kProcess &&
                         nodes_[i].kind == ProcessNode::Kind::kThread && to.pid == nodes_[i].pid);
    };
    if (std::all_of(wait.suppliers.begin(), wait.suppliers.end(), is_last_resort)) continue;
    wait.suppliers.erase(
        std::remove_if(wait.suppliers.begin(), wait.suppliers.end(), is_last_resort),
        wait.suppliers.end());
  }
  DropUnwaited(&reduced);
  return reduced;
}

}  // namespace hangscope
