// Who has which pipe, socket or terminal open: from a descriptor that is waited on to the other
// end's processes. What this process may not see is counted, never guessed.
#ifndef HANGSCOPE_PROC_OPEN_FILES_H
#define HANGSCOPE_PROC_OPEN_FILES_H

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/process.h"
#include "proc/ipc/ring_requests.h"
#include "proc/socket_table.h"

namespace hangscope {

// As of the first question: all descriptors of the machine are read once, then. One thread.
class OpenFiles {
 public:
  explicit OpenFiles(const ProcFolder& proc) : proc_(proc) {}

  // What `fd` of process `pid` is, and who could end a wait for it.
  WaitFile Describe(int pid, int fd, bool wants_read);
  // The same of a message queue of POSIX.
  WaitFile DescribeQueue(int pid, int fd, bool wants_read);
  // The file system of a process of this machine, as FUSE has them, that `fd` is of, or `path` is
  // in as `pid` sees it; with who serves it. Nothing is asked of that file system.
  WaitFile DescribeMount(int pid, int fd, const std::string& path);
  // Whether a process has what /proc calls `target` open, in any way.
  bool IsOpen(const std::string& target) { return !HoldersOf(target).empty(); }
  // Of a thread of `pid` that touched a page which the kernel leaves to whoever has the userfaultfd
  // of its memory.
  WaitFile DescribeFault(int pid);
  // What the io_uring `fd` of `pid`, whose mappings these are, waits for, if nobody else has it;
  // nothing: not known.
  std::optional<std::vector<RingRequest>> RequestsOf(int pid, int fd,
                                                     const std::vector<MemoryMapping>& mappings);
  // The descriptors that an epoll descriptor waits for.
  std::vector<int> EpollFiles(int pid, int fd) const;
  // The one of these beside which the process has stored `data`; -1: none, or several.
  int EpollFileOf(int pid, int fd, uint64_t data) const;
  // How long calls that read from a socket, or write to it, block at most (SO_RCVTIMEO,
  // SO_SNDTIMEO); nothing: for ever, it is no socket, or it may not be looked at. Only the socket
  // itself tells: this process has it open, too, for a moment.
  static std::optional<TimeNs> SocketTimeout(int pid, int fd, bool reads);
  // How long a call that reads from a terminal blocks at most, as its settings say (VMIN 0, VTIME);
  // nothing: until somebody has written a line, or so much. As above.
  static std::optional<TimeNs> TerminalTimeout(int pid, int fd);
  // The process behind a pidfd; 0: none, or not known.
  int ProcessBehind(int pid, int fd) const;
  // The process that holds the lock which `pid` waits for, on this file of its; 0: none that is
  // known. Where those with an open file description hold it, they become the file's others.
  int DescribeLock(int pid, WaitFile* file);
  // Of a lock of this file that `pid` asked for without waiting, and was refused: whoever has one
  // of that kind, flock's or fcntl's, becomes the file's others.
  void DescribeRefusedLock(int pid, bool of_flock, WaitFile* file);
  // Of a file that `pid` has read up to its end: whoever may write more to it become its others.
  // One that has a name is written by whoever knows that; to /dev/null nobody ever writes.
  void DescribeEnd(int pid, WaitFile* file);
  // Whether the same have the same locks of what `fd` of `pid` is now as at the first question.
  bool LocksAreAsBefore(int pid, int fd);
  // The locks that processes hold on what `fd` of `pid` is; not those of open file descriptions.
  std::vector<FileLockLine> LocksOn(int pid, int fd);
  // The lowest descriptor of `pid` that its link says is `target`; -1: none.
  int DescriptorOf(int pid, const std::string& target);
  // Of a connect() of `pid` to `address`, a sockaddr, which has not returned: `file` becomes the
  // socket of this machine that listens there, and has connections to accept first.
  void DescribeBacklog(int pid, std::string_view address, WaitFile* file);
  // The processes that have some of this file in their memory; only those that may be looked into.
  // *all_seen: whether each may that can have it: not one that is older than these, who would have
  // had to be given it.
  std::vector<int> ProcessesThatMap(const std::string& device, uint64_t inode,
                                    bool* all_seen) const;
  // Those that have the file of `mapping`, of `pid`, open; which has no name, or only that of a
  // file in memory. *all_known: nobody else may have it, or be about to get it.
  std::vector<int> ProcessesWithOpen(int pid, const MemoryMapping& mapping, bool* all_known);
  // Those that may write to what `mapping` of `pid` has in its memory: who has it, too, and of what
  // has no name, or only that of a file in memory, who has it open and may map it later.
  // *all_known: there are no others.
  std::set<int> ProcessesThatShare(int pid, const MemoryMapping& mapping, bool* all_known);
  // Those that have the memory of `pid` open (/proc/PID/mem).
  std::vector<int> ProcessesWithMemoryOpen(int pid);
  // The name by which others may come to what `mapping` of process `pid` has in its memory, which
  // is shared; empty: it has one, but not known is which. Nothing: none has.
  std::optional<std::string> NameOfMapped(int pid, const MemoryMapping& mapping) const;
  // The connections of these processes that lead to other machines, at most `most`; *left_out: how
  // many more there are.
  std::vector<RemoteEnd> RemoteEndsOf(const std::vector<int>& pids, size_t most, size_t* left_out);
  // Processes whose descriptors this one may not see.
  size_t hidden() const { return hidden_; }

 private:
  using Holders = std::vector<std::pair<int, int>>;  // process and descriptor

  void Scan();
  std::vector<FileLockLine> ReadLocks() const;
  const std::vector<FileLockLine>& Locks();
  const Holders& HoldersOf(const std::string& target);
  Holders HoldersOfFile(const std::string& name, uint64_t inode,
                        const std::optional<std::string>& device);
  DescriptorInfo Info(int pid, int fd) const;
  bool HiddenMayHave(int pid, const Holders& holders) const;
  bool CameFromOutside(const Holders& holders) const;
  // What a request of an io_uring would have to do to end a wait.
  enum class RingUse { kRead, kWrite, kAny };
  bool MayBeElsewhere(int pid, const Holders& holders, RingUse use = RingUse::kAny);
  bool MayBeInARing(const Holders& holders, RingUse use);
  bool MayUse(int pid, int ring, RingUse use);
  bool MayBeOnItsWay(int pid, const Holders& holders);
  void FindWhoPasses();
  bool Descends(int pid, int from) const;
  void DescribePipe(int pid, const std::string& target, WaitFile* file);
  void DescribeSocket(int pid, const std::string& target, WaitFile* file);
  bool IsUnread(int pid, const WaitFile& file, uint64_t peer);
  void DescribeEvent(int pid, int fd, const std::string& target, WaitFile* file);
  bool OnlyReceives(int pid, int fd) const;
  void DescribeSharers(int pid, const std::string& target, WaitFile* file);
  void DescribeTerminal(int pid, const std::string& target, WaitFile* file);
  bool WaitsForTerminal(int pid, int fd, bool is_given) const;
  bool Polls(int pid, const TaskSystemCall& call, int fd) const;
  SocketTable& SocketsOf(int pid);
  void AddLockHolders(int pid, const std::vector<const FileLockLine*>& locks, WaitFile* file);

  const ProcFolder& proc_;
  bool scanned_ = false;
  size_t hidden_ = 0;
  std::set<int> hidden_pids_;
  uint64_t newest_hidden_ = 0;  // when the newest of them began, in clock ticks
  std::unordered_map<std::string, Holders> holders_;  // by what the descriptor's link says
  std::map<std::string, SocketTable> sockets_;        // by network namespace
  struct RingFacts {
    bool given_nothing = false;
    std::optional<std::vector<RingRequest>> requests;
  };
  std::map<std::pair<int, int>, RingFacts> rings_;  // by process and descriptor
  std::optional<std::vector<FileLockLine>> locks_;
  // Processes at either end of a socket through which descriptors are on their way.
  std::optional<std::set<int>> passing_;
};

}  // namespace hangscope

#endif
