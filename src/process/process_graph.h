// Which thread of which process could end whose wait: the looks at processes as a graph for
// FindCauses. Pure; docs/verdicts.md has the rules.
#ifndef HANGSCOPE_PROCESS_PROCESS_GRAPH_H
#define HANGSCOPE_PROCESS_PROCESS_GRAPH_H

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "model/process.h"
#include "verdict/wait_graph.h"

namespace hangscope {

// What a thread does, as far as it matters to those who wait for it.
enum class ThreadStand {
  kMoves,    // it ran between the looks, or may at any time
  kTimed,    // its wait ends by itself
  kOutside,  // it waits for a person, another machine, a device, a signal
  kUnknown,  // nothing is concluded from it
  kWaits,    // in the same wait in all looks; others must end it
  kSpins,    // goes round a loop that only others can end
  kHalted,   // stopped by a signal or a debugger
  kFrozen,   // by its control group: somebody will thaw it
  kEnded,
};

constexpr std::string_view ThreadStandName(ThreadStand stand) {
  switch (stand) {
    case ThreadStand::kMoves:
      return "moves";
    case ThreadStand::kTimed:
      return "timed";
    case ThreadStand::kOutside:
      return "outside";
    case ThreadStand::kUnknown:
      return "unknown";
    case ThreadStand::kWaits:
      return "waits";
    case ThreadStand::kSpins:
      return "spins";
    case ThreadStand::kHalted:
      return "halted";
    case ThreadStand::kFrozen:
      return "frozen";
    case ThreadStand::kEnded:
      return "ended";
  }
  return "unknown";
}

// A thread; or all threads of a process together, for those who wait for any of them; or the thread
// that died with a lock, or has another copy of it.
struct ProcessNode {
  enum class Kind { kThread, kProcess, kDeadOwner, kNobodyKnows };
  Kind kind = Kind::kThread;
  int pid = 0;
  int tid = 0;
  const ThreadFacts* facts = nullptr;  // of kThread
  ThreadStand stand = ThreadStand::kUnknown;
  // It waits for something that any thread of its own process may do (a signal, a store, a write
  // into a pipe): there is no telling which, so it hangs only if none of them can.
  bool weak = false;
  // Its wait ends by itself after a time, and in all looks it had begun the same one again; or it
  // naps between two tries to get the lock of a file.
  bool retries = false;
};

// By which a process could end waits for files: its descriptors, and whether somebody could come to
// them by a name.
struct FilesInQuestion {
  std::set<int> descriptors;  // -1, or none: not known
  bool have_names = false;
  auto operator<=>(const FilesInQuestion&) const = default;
};
void AddInQuestion(const WaitFile& file, int pid, FilesInQuestion* files);
// Of what it does after its nap the code tells, and it is nothing with these.
bool UsesNoneOf(const ThreadFacts& thread, const FilesInQuestion& files);

// A wait that a server, or SQLite, ends so soon by itself is none that lasts.
constexpr TimeNs kSoonGivenUp = 120 * kSecond;

class ProcessGraph {
 public:
  // The newest look last; one at least. They outlive this.
  explicit ProcessGraph(const std::vector<SystemSample>& looks);

  const std::vector<ProcessNode>& nodes() const { return nodes_; }
  // With every wait, and all who could end it: what is stuck here is stuck.
  const std::vector<WaitNode>& waits() const { return waits_; }
  // Of what is stuck, without the waits that any thread may end where another explanation is left:
  // these stand as if halted. Its cycles are those of locks, joins, pipes and children.
  std::vector<WaitNode> Reduced(const std::vector<bool>& stuck) const;

 private:
  void AddNodes(const std::vector<SystemSample>& looks);
  void AddEdges(uint32_t node);
  void AddFileEdges(uint32_t node);
  bool MayBeNotified(const WaitFile& file) const;
  void AddSpinEdges(uint32_t node);
  void AddRankEdges(uint32_t node);
  void AddOwnCallEdges(uint32_t node);
  bool MayBeMovedBySpinner(uint32_t node) const;
  uint32_t ProcessNodeOf(int pid);
  uint32_t WithoutHarmless(int pid, const std::optional<FilesInQuestion>& files);
  void WaitForThread(uint32_t node, int tid);
  void WaitForProcess(uint32_t node, int pid);
  void WaitForOwnProcess(uint32_t node);
  std::optional<uint32_t> WhoMayAccept(int pid, uint32_t waiter);
  bool Descends(int pid, int from) const;
  void WaitForWaker(uint32_t node);
  void WaitForDead(uint32_t node);
  void WaitForCopied(uint32_t node);
  bool IsSharedWait(uint32_t node) const;
  bool IsSystemVWait(uint32_t node) const;
  bool IsQueueWait(uint32_t node) const;
  bool IsSameWord(uint32_t node, uint32_t other) const;
  bool LeadsBack(uint32_t node) const;
  void DropUnwaited(std::vector<WaitNode>* waits) const;
  void Unknown(uint32_t node) { Stand(node, ThreadStand::kUnknown); }
  void Stand(uint32_t node, ThreadStand stand);

  std::vector<ProcessNode> nodes_;
  std::vector<WaitNode> waits_;
  std::map<int, uint32_t> threads_;
  std::map<int, uint32_t> processes_;
  // By process: those of its threads that may wake others, or use files that others have.
  std::map<std::pair<int, std::optional<FilesInQuestion>>, uint32_t> wakers_;
  // Likewise, by who waits for that: those that may accept a connection.
  std::map<std::pair<int, uint32_t>, uint32_t> acceptors_;
  std::map<int, const ProcessFacts*> facts_;
  std::map<std::pair<int, uint64_t>, uint32_t> dead_owners_;  // by process and lock
  uint32_t nobody_knows_ = 0;
  TimeNs now_ = 0;  // when the newest look ended
};

bool IsFileWait(WaitKind kind);

// It waits for a connection, with or without other files.
bool WaitsForConnections(const ThreadWait& wait);

// It reads from a connection that nobody has accepted, or of which its own process has read
// nothing yet.
bool WaitsForUnanswered(const ThreadWait& wait);

// Its system calls ask for what others may give: not only for the CPU or its own number.
bool AsksKernel(const ThreadFacts::Spin& spin);

// The call says that the other end of a pipe is closed: nobody has that any more, nor can have it.
bool IsHungUp(const ThreadFacts::Spin::Call& call, const WaitFile& file);

// It sleeps for a time, looks, and sleeps again: what it looks at decides alone, and nobody outside
// has that.
bool NapsAndLooks(const ThreadFacts& thread);

// It naps, and all that decides on its way is that others, who are known, have the locks of files
// that it asks for.
bool NapsForFileLocks(const ThreadFacts& thread);

// Its system calls ask for nothing but locks of files.
bool AsksForFileLocksOnly(const ThreadFacts::Spin& spin);

// It waits for libcurl to end a transfer, which wakes now and then while nothing comes.
bool IsTransferOfCurl(const ThreadFacts& thread);

// It waits for what whoever ends that has to wake it for: a condition, a semaphore, a barrier, a
// word of memory. No lock, which is given back by who needs to wake nobody.
bool WaitsToBeWoken(const ThreadFacts& thread);

// It waits for something that only its own process could give, and that this process has: a lock of
// a file through another descriptor, the backlog of a socket, its own end.
bool WaitsForItself(const ProcessNode& node);

// Signals that come from outside, for which the process has handlers: not those that a thread
// raises itself.
uint64_t SignalsFromOutside(const ProcessFacts& process);

// Its runtime handles signals for more than to raise an exception, as Python does for SIGINT: what
// is left to the program are handlers of its language, which may do whatever the program may.
bool HandlesSignalsByRuntime(const ProcessFacts& process);

// A handler may post a semaphore, wake a futex, write a pipe or interrupt a read; it may not signal
// a condition variable. Python's main thread runs its handlers while it waits for a lock, too.
bool HandlerMayEnd(const ThreadFacts& thread);

// It is in SQLite's busy handler, or the program's own: naps until a database's lock is free, which
// others have.
bool NapsForDatabase(const ThreadFacts& thread);

// It waits for a time only, for a lock whose holder is known: worth being looked at for longer.
bool MayRetry(const ThreadFacts& thread);

// Which threads of `now` have slept for a set time in the same place before, and woken since.
void NoteNaps(const SystemSample& before, SystemSample* now);

// The same sleep in both: it did not run in between.
bool IsSameWait(const ThreadFacts& before, const ThreadFacts& now);

}  // namespace hangscope

#endif
