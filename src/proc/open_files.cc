#include "proc/open_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/kcmp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <set>

#include "proc/ipc/tcp_counts.h"
#include "proc/poll_calls.h"
#include "proc/process_memory.h"

namespace hangscope {
namespace {

constexpr size_t kMostHolders = 1024;  // of one file that are listed

std::string DescriptorPath(int pid, int fd) { return fmt::format("{}/fd/{}", pid, fd); }

bool MayRead(uint64_t flags) { return (flags & O_ACCMODE) != O_WRONLY; }
bool MayWrite(uint64_t flags) { return (flags & O_ACCMODE) != O_RDONLY; }

// "socket:[4711]"
uint64_t InodeIn(std::string_view target) {
  const size_t open = target.find('[');
  uint64_t inode = 0;
  if (open != std::string_view::npos)
    std::from_chars(target.data() + open + 1, target.data() + target.size(), inode);
  return inode;
}

FileKind AnonymousKind(std::string_view target) {
  constexpr std::pair<std::string_view, FileKind> kKinds[] = {
      {"[eventfd]", FileKind::kEvent},    {"[timerfd]", FileKind::kTimer},
      {"[signalfd]", FileKind::kSignals}, {"[eventpoll]", FileKind::kEpoll},
      {"[pidfd]", FileKind::kProcess},    {"inotify", FileKind::kNotify},
      {"[fanotify]", FileKind::kDevice},  {"[perf_event]", FileKind::kDevice},
      {"[io_uring]", FileKind::kRing},    {"[userfaultfd]", FileKind::kFault},
  };
  for (const auto& [name, kind] : kKinds) {
    if (target.ends_with(name)) return kind;
  }
  return FileKind::kUnknown;
}

// Whatever number the kernel counts it by now.
bool IsSameHeldLock(const FileLockLine& a, const FileLockLine& b) {
  return a.flock == b.flock && a.of_description == b.of_description && a.write == b.write &&
         a.pid == b.pid && a.device == b.device && a.inode == b.inode && a.first == b.first &&
         a.last == b.last;
}

// Somebody may talk to it over one, as to a window, a multiplexer or a server.
bool HasSocket(const ProcFolder& proc, int pid) {
  int error = 0;
  const std::vector<DescriptorLink> links = proc.Descriptors(pid, &error);
  return error != 0 || links.empty() ||
         std::any_of(links.begin(), links.end(), [](const DescriptorLink& link) {
           return link.target.starts_with("socket:[");
         });
}

// A descriptor of our own of what another process has open; negative: it may not be had.
int Borrow(int pid, int fd) {
  const int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (process < 0) return -1;
  const int borrowed = static_cast<int>(syscall(SYS_pidfd_getfd, process, fd, 0));
  close(process);
  return borrowed;
}

bool IsTerminal(std::string_view target) {
  return target.starts_with("/dev/pts/") || target.starts_with("/dev/tty") ||
         target == "/dev/ptmx" || target == "/dev/console";
}

}  // namespace

void OpenFiles::Scan() {
  if (scanned_) return;
  scanned_ = true;
  for (const int pid : proc_.Processes()) {
    int error = 0;
    for (DescriptorLink& link : proc_.Descriptors(pid, &error)) {
      Holders& holders = holders_[std::move(link.target)];
      if (holders.size() < kMostHolders) holders.emplace_back(pid, link.fd);
    }
    // A process that has just ended has nothing open; the kernel's own threads have nothing either.
    if (error != EACCES && error != EPERM) continue;
    const auto stat = proc_.Stat(pid);
    if (!stat || stat->kernel_thread) continue;
    ++hidden_;
    hidden_pids_.insert(pid);
    newest_hidden_ = std::max(newest_hidden_, stat->start_ticks);
  }
}

const OpenFiles::Holders& OpenFiles::HoldersOf(const std::string& target) {
  static const Holders kNobody;
  Scan();
  const auto found = holders_.find(target);
  return found != holders_.end() ? found->second : kNobody;
}

DescriptorInfo OpenFiles::Info(int pid, int fd) const {
  const auto text = proc_.Read(fmt::format("{}/fdinfo/{}", pid, fd));
  return text ? ParseDescriptorInfo(*text) : DescriptorInfo();
}

WaitFile OpenFiles::Describe(int pid, int fd, bool wants_read) {
  WaitFile file;
  file.fd = fd;
  file.wants_read = wants_read;
  const auto target = proc_.Link(DescriptorPath(pid, fd));
  if (!target) {
    file.others_unknown = true;
    return file;
  }
  file.name = *target;
  const auto identity = proc_.Identify(DescriptorPath(pid, fd));
  if (target->starts_with("pipe:[") || (identity && identity->is_fifo)) {
    DescribePipe(pid, *target, &file);
  } else if (target->starts_with("socket:[")) {
    DescribeSocket(pid, *target, &file);
  } else if (target->starts_with("anon_inode:")) {
    DescribeEvent(pid, fd, *target, &file);
  } else if (IsTerminal(*target)) {
    file.kind = FileKind::kTerminal;
    DescribeTerminal(pid, *target, &file);
  } else if (identity && identity->is_character_device) {
    file.kind = FileKind::kDevice;
    file.outside = true;
  } else {
    file.kind = identity && identity->is_regular ? FileKind::kFile : FileKind::kUnknown;
    file.others_unknown = file.kind == FileKind::kUnknown;
  }
  return file;
}

std::optional<TimeNs> OpenFiles::TerminalTimeout(int pid, int fd) {
  constexpr TimeNs kUnit = 100 * kMillisecond;  // of VTIME
  const int terminal = Borrow(pid, fd);
  if (terminal < 0) return std::nullopt;
  termios settings = {};
  const int failed = tcgetattr(terminal, &settings);
  close(terminal);
  const bool is_timed = failed == 0 && (settings.c_lflag & ICANON) == 0 &&
                        settings.c_cc[VMIN] == 0 && settings.c_cc[VTIME] > 0;
  return is_timed ? std::optional(settings.c_cc[VTIME] * kUnit) : std::nullopt;
}

std::optional<TimeNs> OpenFiles::SocketTimeout(int pid, int fd, bool reads) {
  const int socket = Borrow(pid, fd);
  if (socket < 0) return std::nullopt;
  timeval limit = {};
  socklen_t size = sizeof limit;
  const int failed =
      getsockopt(socket, SOL_SOCKET, reads ? SO_RCVTIMEO : SO_SNDTIMEO, &limit, &size);
  close(socket);
  if (failed != 0 || (limit.tv_sec == 0 && limit.tv_usec == 0)) return std::nullopt;
  return limit.tv_sec * kSecond + limit.tv_usec * (kMillisecond / 1000);
}

// What is written to the terminal of a pseudo-terminal's slave, those read who have its master. Who
// reads at one side waits for the person at the other end, whom only those know who have that; or,
// where that one can do nothing but wait for this side, for that one.
void OpenFiles::DescribeTerminal(int pid, const std::string& target, WaitFile* file) {
  constexpr std::string_view kSlave = "/dev/pts/";
  constexpr std::string_view kMasters[] = {"/dev/ptmx", "/dev/pts/ptmx"};
  file->outside = true;
  int number = -1;
  const bool is_master =
      std::find(std::begin(kMasters), std::end(kMasters), target) != std::end(kMasters);
  if (is_master)
    number = Info(pid, file->fd).terminal.value_or(-1);
  else if (target.starts_with(kSlave))
    std::from_chars(target.data() + kSlave.size(), target.data() + target.size(), number);
  if (number < 0 || (is_master && !file->wants_read)) return;
  const std::string slave = fmt::format("{}{}", kSlave, number);
  const auto own = proc_.Identify(fmt::format("self/root{}", slave));
  const auto is_slave = [&](int holder, int descriptor) {
    const auto its = proc_.Identify(DescriptorPath(holder, descriptor));
    return own && its && own->device == its->device && own->inode == its->inode;
  };
  // Each mount of devpts, as containers have their own, counts from 0.
  if (!is_master && !is_slave(pid, file->fd)) return;
  if (is_master) {
    for (const auto& [holder, descriptor] : HoldersOf(slave)) {
      if (is_slave(holder, descriptor)) file->others.emplace_back(holder, descriptor);
    }
  }
  for (const std::string_view master : kMasters) {
    for (const auto& [holder, descriptor] : HoldersOf(std::string(master))) {
      if (!is_master && Info(holder, descriptor).terminal == number)
        file->others.emplace_back(holder, descriptor);
    }
  }
  // Whoever has both sides for itself alone would have to write what it waits for.
  const bool is_own = std::all_of(file->others.begin(), file->others.end(),
                                  [pid](const auto& other) { return other.first == pid; });
  if (file->wants_read && !is_own &&
      std::none_of(file->others.begin(), file->others.end(), [&](const auto& other) {
        const bool is_given = is_master ? Descends(other.first, pid) : Descends(pid, other.first);
        return WaitsForTerminal(other.first, other.second, is_given);
      }))
    file->others.clear();
  if (hidden_ > 0 || CameFromOutside(file->others) || MayBeElsewhere(pid, file->others))
    file->others.clear();
  file->outside = file->others.empty();
}

// Whether nobody there writes to its side of a terminal, `fd`, before something comes over that: a
// thread reads it, or waits for it among other files, and the others wait for these threads. Who
// polls may do so for a person, so one has to have started the other and so given it its side (as
// `is_given` says; other terminals are there to be opened by their names), out of everybody's
// reach.
bool OpenFiles::WaitsForTerminal(int pid, int fd, bool is_given) const {
  bool waits = false;
  for (const int thread : proc_.Threads(pid)) {
    const auto text = proc_.Read(fmt::format("{}/task/{}/syscall", pid, thread));
    const auto call = text ? ParseTaskSystemCall(*text) : std::nullopt;
    if (!call) return false;
    if (call->number == SYS_futex) continue;
    const bool reads = call->number == SYS_read && static_cast<int>(call->arguments[0]) == fd;
    if (!reads && (!is_given || !Polls(pid, *call, fd) || HasSocket(proc_, pid))) return false;
    waits = true;
  }
  return waits;
}

bool OpenFiles::Polls(int pid, const TaskSystemCall& call, int fd) const {
  if (IsEpollCall(call.number)) {
    const std::vector<int> files = EpollFiles(pid, static_cast<int>(call.arguments[0]));
    return std::find(files.begin(), files.end(), fd) != files.end();
  }
  const ProcessMemory memory(pid);
  const PolledFiles polled = ReadPolledFiles(call, [&](uint64_t address, void* into, size_t bytes) {
    return memory.ReadInto(address, into, bytes);
  });
  return std::any_of(polled.files.begin(), polled.files.end(),
                     [fd](const PolledFiles::File& file) { return file.fd == fd; });
}

// Whether one of those that may not be looked into may have inherited a pipe without a name, as
// these have it. Who made it is above `pid` or has ended; the nearest one above that does not have
// it, and may be looked into, made it or is older than who did. So nobody who is older than that
// one has it, unless it was sent there.
bool OpenFiles::HiddenMayHave(int pid, const Holders& holders) const {
  if (hidden_ == 0) return false;
  const auto has_it = [&](int process) {
    return std::any_of(holders.begin(), holders.end(),
                       [&](const auto& holder) { return holder.first == process; });
  };
  auto stat = proc_.Stat(pid);
  while (stat && has_it(stat->id)) stat = proc_.Stat(stat->parent);
  return !stat || stat->id <= 1 || hidden_pids_.count(stat->id) != 0 || stat->start_ticks == 0 ||
         newest_hidden_ >= stat->start_ticks;
}

// In a container, what the process that was started from outside has open may be open there, too,
// where nobody can be seen.
bool OpenFiles::CameFromOutside(const Holders& holders) const {
  if (proc_.IsInFirstPidNamespace().value_or(true)) return false;
  return std::any_of(holders.begin(), holders.end(), [&](const auto& holder) {
    const auto stat = proc_.Stat(holder.first);
    return stat && stat->parent == 0;
  });
}

void OpenFiles::DescribePipe(int pid, const std::string& target, WaitFile* file) {
  file->kind = FileKind::kPipe;
  bool only_kept = true;  // whoever could end this has opened both ends in one, as keepers do
  for (const auto& [holder, descriptor] : HoldersOf(target)) {
    const DescriptorInfo info = Info(holder, descriptor);
    if (!(file->wants_read ? MayWrite(info.flags) : MayRead(info.flags))) continue;
    file->others.emplace_back(holder, descriptor);
    only_kept = only_kept && (info.flags & O_ACCMODE) == O_RDWR;
  }
  const Holders& holders = HoldersOf(target);
  const bool may_have = target.starts_with("pipe:[") ? HiddenMayHave(pid, holders) : hidden_ > 0;
  file->others_unsent = hidden_ > 0 && !may_have;
  file->others_unknown = file->others_hidden = may_have || CameFromOutside(holders);
  file->others_unknown =
      file->others_unknown ||
      MayBeElsewhere(pid, holders, file->wants_read ? RingUse::kWrite : RingUse::kRead);
  // One that keeps a named pipe open for itself, or lets a child read what it keeps open, waits for
  // those who will come to open it, as a daemon does.
  const bool is_alone = std::all_of(file->others.begin(), file->others.end(),
                                    [&](const auto& other) { return other.first == pid; });
  if (IsNamedPipe(*file) && (is_alone || only_kept)) file->outside = true;
}

// Whether somebody may use the file of these, for which `pid` waits, whom no table names.
bool OpenFiles::MayBeElsewhere(int pid, const Holders& holders, RingUse use) {
  return MayBeInARing(holders, use) || MayBeOnItsWay(pid, holders);
}

// The kernel reads and writes for an io_uring what nobody sees it wait for.
bool OpenFiles::MayBeInARing(const Holders& holders, RingUse use) {
  const Holders& rings = HoldersOf("anon_inode:[io_uring]");
  return std::any_of(rings.begin(), rings.end(), [&](const auto& ring) {
    const bool is_theirs = std::any_of(holders.begin(), holders.end(), [&](const auto& holder) {
      return ring.first == holder.first;
    });
    return is_theirs && MayUse(ring.first, ring.second, use);
  });
}

bool OpenFiles::MayUse(int pid, int ring, RingUse use) {
  const auto [known, is_new] = rings_.try_emplace({pid, ring});
  RingFacts& facts = known->second;
  if (is_new) {
    const auto counts = Info(pid, ring).ring;
    facts.given_nothing = counts && WasGivenNothing(*counts);
    const auto maps = facts.given_nothing ? std::nullopt : proc_.Read(fmt::format("{}/maps", pid));
    if (maps) facts.requests = RequestsOf(pid, ring, ParseMemoryMappings(*maps));
  }
  if (facts.given_nothing) return false;
  if (!facts.requests || use == RingUse::kAny) return true;
  return std::any_of(
      facts.requests->begin(), facts.requests->end(),
      [&](const RingRequest& request) { return request.reads == (use == RingUse::kRead); });
}

std::optional<std::vector<RingRequest>> OpenFiles::RequestsOf(
    int pid, int fd, const std::vector<MemoryMapping>& mappings) {
  Scan();
  const auto ring = Info(pid, fd).ring;
  if (!ring || hidden_ > 0) return std::nullopt;
  for (const auto& [holder, descriptor] : HoldersOf("anon_inode:[io_uring]")) {
    if (holder == pid) continue;
    const auto other = Info(holder, descriptor).ring;
    if (!other || other->inode == ring->inode) return std::nullopt;
  }
  return OpenRequests(*ring, mappings,
                      [memory = ProcessMemory(pid)](uint64_t address, void* into, size_t bytes) {
                        return memory.ReadInto(address, into, bytes);
                      });
}

// A descriptor that was sent through a unix socket, and not received yet, is a file of nobody who
// could be asked; its sender may have closed it, and it may be of any file that the sender had. So
// it counts where who waits, one whom that started, or one who has the file has such a socket:
// programs that have nothing to do with one another send each other descriptors all the time.
bool OpenFiles::MayBeOnItsWay(int pid, const Holders& holders) {
  FindWhoPasses();
  return std::any_of(passing_->begin(), passing_->end(), [&](int passing) {
    return Descends(passing, pid) ||
           std::any_of(holders.begin(), holders.end(),
                       [&](const auto& holder) { return holder.first == passing; });
  });
}

void OpenFiles::FindWhoPasses() {
  if (passing_) return;
  Scan();
  passing_.emplace();
  const auto add = [&](const Holders& holders) {
    for (const auto& [pid, fd] : holders) passing_->insert(pid);
  };
  for (const auto& [target, holders] : holders_) {
    if (!target.starts_with("socket:[")) continue;
    const auto& [pid, fd] = holders.front();
    const SocketFacts* const facts = SocketsOf(pid).Find(InodeIn(target));
    const bool is_tcp = facts != nullptr && !facts->local.empty();  // a server may have thousands
    if (is_tcp || Info(pid, fd).descriptors_to_take == 0) continue;
    add(holders);
    if (facts != nullptr && facts->peer) add(HoldersOf(fmt::format("socket:[{}]", *facts->peer)));
  }
}

bool OpenFiles::Descends(int pid, int from) const {
  while (pid > 1 && pid != from) {
    const auto stat = proc_.Stat(pid);
    pid = stat ? stat->parent : 0;
  }
  return pid == from;
}

SocketTable& OpenFiles::SocketsOf(int pid) {
  const std::string space = proc_.Link(fmt::format("{}/ns/net", pid)).value_or("");
  const auto known = sockets_.find(space);
  if (known != sockets_.end()) return known->second;
  return sockets_.emplace(space, SocketTable::Read(proc_, pid)).first->second;
}

void OpenFiles::DescribeSocket(int pid, const std::string& target, WaitFile* file) {
  file->kind = FileKind::kSocket;
  const SocketFacts* const facts = SocketsOf(pid).Find(InodeIn(target));
  if (facts == nullptr) {
    // UDP, netlink and the like: anybody may send; or a unix socket whose namespace the kernel does
    // not speak of.
    file->outside = true;
    file->others_unknown = true;
    return;
  }
  file->name = facts->name;
  file->listening = facts->listening;
  // Whoever comes.
  if (facts->listening) file->outside = file->others_unknown = true;
  if (facts->outside) file->outside = true;
  if (!facts->acceptors.empty()) {
    file->unaccepted = true;
    for (const uint64_t acceptor : facts->acceptors) {
      const Holders& holders = HoldersOf(fmt::format("socket:[{}]", acceptor));
      file->others.insert(file->others.end(), holders.begin(), holders.end());
    }
    file->others_hidden = hidden_ > 0 || CameFromOutside(file->others);
    file->others_unknown =
        file->others_hidden || file->others.empty() || MayBeElsewhere(pid, file->others);
  } else if (facts->peer) {
    file->others = HoldersOf(fmt::format("socket:[{}]", *facts->peer));
    file->others_unknown =
        (hidden_ > 0 && file->others.empty()) || MayBeElsewhere(pid, file->others);
    file->unread = file->wants_read && IsUnread(pid, *file, *facts->peer);
  } else if (!facts->outside) {
    // Without a peer, anybody may send; and one that is connected has a peer that the kernel does
    // not name.
    file->others_unknown = true;
  }
}

// Whether bytes have come to `peer`, which `pid` itself has, and nobody has ever read any: of a
// connection between a process and itself alone, as the kernel is asked for each.
bool OpenFiles::IsUnread(int pid, const WaitFile& file, uint64_t peer) {
  const SocketFacts* const facts = SocketsOf(pid).Find(peer);
  const bool is_own = std::all_of(file.others.begin(), file.others.end(),
                                  [&](const auto& other) { return other.first == pid; });
  if (facts == nullptr || facts->unread == 0 || !is_own || file.others.empty()) return false;
  const auto received = BytesReceived(facts->local, facts->remote, peer);
  return received && *received <= facts->unread;
}

void OpenFiles::DescribeBacklog(int pid, std::string_view address, WaitFile* file) {
  const auto target = proc_.Link(DescriptorPath(pid, file->fd));
  sa_family_t family = AF_UNSPEC;
  if (!target || address.size() < sizeof family) return;
  std::memcpy(&family, address.data(), sizeof family);
  SocketTable& sockets = SocketsOf(pid);
  std::optional<uint64_t> listener;
  if (family == AF_UNIX) {
    const std::string_view path = address.substr(sizeof family);
    const bool is_abstract = path.starts_with('\0');
    const std::string name(path.substr(0, is_abstract ? path.size() : path.find('\0')));
    listener = is_abstract ? sockets.ListenerAt(name)
                           : sockets.ListenerAt(proc_.Identify(fmt::format(
                                 "{}/{}/{}", pid, name.starts_with('/') ? "root" : "cwd", name)));
  } else {
    listener = sockets.BusyListenerFor(InodeIn(*target));
  }
  if (!listener) return;
  const Holders& holders = HoldersOf(fmt::format("socket:[{}]", *listener));
  file->name = sockets.Find(*listener)->name;
  file->backlog = true;
  file->queued = sockets.Find(*listener)->queued;
  file->outside = false;
  file->others = holders;
  file->others_hidden = hidden_ > 0 || CameFromOutside(holders);
  file->others_unknown = file->others_hidden || MayBeElsewhere(pid, holders);
}

std::vector<RemoteEnd> OpenFiles::RemoteEndsOf(const std::vector<int>& pids, size_t most,
                                               size_t* left_out) {
  std::vector<RemoteEnd> ends;
  *left_out = 0;
  std::set<std::string> known;
  for (const int pid : pids) {
    int error = 0;
    for (const DescriptorLink& link : proc_.Descriptors(pid, &error)) {
      if (!link.target.starts_with("socket:[") || !known.insert(link.target).second) continue;
      const SocketFacts* const facts = SocketsOf(pid).Find(InodeIn(link.target));
      if (facts == nullptr || facts->listening || !facts->outside || facts->remote.empty())
        continue;
      if (ends.size() == most) {
        ++*left_out;
        continue;
      }
      const Holders& holders = HoldersOf(link.target);
      ends.push_back(
          {facts->local, facts->remote, holders, hidden_ > 0 || CameFromOutside(holders)});
    }
  }
  return ends;
}

void OpenFiles::DescribeEvent(int pid, int fd, const std::string& target, WaitFile* file) {
  file->kind = AnonymousKind(target);
  const DescriptorInfo info = Info(pid, fd);
  if (file->kind == FileKind::kProcess) {
    if (info.process.value_or(0) > 0)
      file->others.emplace_back(*info.process, -1);
    else
      file->others_unknown = true;
    return;
  }
  file->signals = info.signals;
  file->is_idle = (file->kind == FileKind::kTimer && info.is_unarmed) ||
                  (file->kind == FileKind::kRing && info.ring && WasGivenNothing(*info.ring)) ||
                  (file->kind == FileKind::kNotify && info.is_read && !info.notifies) ||
                  (file->kind == FileKind::kEpoll && info.flags != 0 && info.epoll_files.empty());
  if (file->is_idle) return DescribeSharers(pid, target, file);
  if (file->kind != FileKind::kEvent) {
    file->others_unknown = file->kind == FileKind::kUnknown || file->kind == FileKind::kRing;
    // whoever changes a file, a counter
    file->outside = file->kind == FileKind::kDevice || file->kind == FileKind::kNotify;
    return;
  }
  if (!info.event) {
    file->others_unknown = true;
    return;
  }
  for (const auto& [holder, descriptor] : HoldersOf(target)) {
    if (Info(holder, descriptor).event == info.event) file->others.emplace_back(holder, descriptor);
  }
  file->others_unknown = file->others_hidden = hidden_ > 0;
  file->others_unknown = file->others_unknown || MayBeElsewhere(pid, file->others);
}

WaitFile OpenFiles::DescribeFault(int pid) {
  WaitFile file;
  file.kind = FileKind::kFault;
  file.others = HoldersOf("anon_inode:[userfaultfd]");
  file.others_unknown = file.others_hidden = hidden_ > 0;
  file.others_unknown = file.others_unknown || MayBeElsewhere(pid, file.others);
  return file;
}

WaitFile OpenFiles::DescribeQueue(int pid, int fd, bool wants_read) {
  WaitFile file;
  file.fd = fd;
  file.wants_read = wants_read;
  file.kind = FileKind::kQueue;
  const auto target = proc_.Link(DescriptorPath(pid, fd));
  const auto identity = proc_.Identify(DescriptorPath(pid, fd));
  if (!target || !identity) {
    file.others_unknown = true;
    return file;
  }
  file.name = *target;
  file.is_public = !target->ends_with(" (deleted)");
  bool only_kept = true;  // whoever could end this has opened it for both, as those do who take
  for (const auto& [holder, descriptor] :
       HoldersOfFile(*target, identity->inode, identity->device)) {
    const DescriptorInfo info = Info(holder, descriptor);
    if (!(wants_read ? MayWrite(info.flags) : MayRead(info.flags)) ||
        (wants_read && holder != pid && OnlyReceives(holder, descriptor)))
      continue;
    file.others.emplace_back(holder, descriptor);
    only_kept = only_kept && (info.flags & O_ACCMODE) == O_RDWR;
  }
  file.others_hidden = hidden_ > 0 || CameFromOutside(HoldersOf(*target));
  file.others_unknown = file.others_hidden || MayBeElsewhere(pid, HoldersOf(*target));
  file.others_unsure = file.is_public && only_kept;
  const bool is_alone = std::all_of(file.others.begin(), file.others.end(),
                                    [&](const auto& other) { return other.first == pid; });
  if (file.is_public && is_alone) file.outside = true;  // those who will come
  return file;
}

WaitFile OpenFiles::DescribeMount(int pid, int fd, const std::string& path) {
  WaitFile file;
  file.kind = FileKind::kMount;
  file.others_unknown = true;
  auto mounts = ParseMounts(proc_.Read(fmt::format("{}/mountinfo", pid)).value_or(""));
  std::erase_if(mounts, [](const MountLine& mount) { return !mount.type.starts_with("fuse"); });
  const auto identity = fd < 0 ? std::nullopt : proc_.Identify(DescriptorPath(pid, fd));
  std::string whole = path;
  if (!whole.empty() && whole[0] != '/')
    whole = proc_.Link(fmt::format("{}/cwd", pid)).value_or("") + "/" + whole;
  const bool is_asked = identity.has_value() || !whole.empty();
  const MountLine* found = mounts.size() == 1 && !is_asked ? &mounts[0] : nullptr;
  for (const MountLine& mount : mounts) {
    const bool is_in = whole.starts_with(mount.point) &&
                       (whole.size() == mount.point.size() || whole[mount.point.size()] == '/');
    const bool is_longer = found == nullptr || mount.point.size() > found->point.size();
    if (identity ? mount.device == identity->device : is_in && is_longer) found = &mount;
  }
  if (found == nullptr) return file;
  file.name = found->point;
  for (const auto& [holder, descriptor] : HoldersOf("/dev/fuse")) {
    if (Info(holder, descriptor).fuse != found->minor) continue;  // since Linux 6.15
    file.others.emplace_back(holder, descriptor);
  }
  file.others_hidden = hidden_ > 0;
  file.others_unknown = file.others_hidden || file.others.empty();
  return file;
}

// All of its threads wait for a message of this very queue: workers of one server do.
bool OpenFiles::OnlyReceives(int pid, int fd) const {
  const std::vector<int> threads = proc_.Threads(pid);
  return std::all_of(threads.begin(), threads.end(), [&](int thread) {
    const auto text = proc_.Read(fmt::format("{}/task/{}/syscall", pid, thread));
    const auto call = text ? ParseTaskSystemCall(*text) : std::nullopt;
    return call && call->number == SYS_mq_timedreceive &&
           static_cast<int>(call->arguments[0]) == fd;
  });
}

// All timers have the same link, and so have all epolls.
void OpenFiles::DescribeSharers(int pid, const std::string& target, WaitFile* file) {
  file->others_unknown = file->others_hidden = hidden_ > 0;
  for (const auto& [holder, descriptor] : HoldersOf(target)) {
    const long differs =
        syscall(SYS_kcmp, pid, holder, KCMP_FILE, static_cast<unsigned long>(file->fd),
                static_cast<unsigned long>(descriptor));
    if (differs == 0) file->others.emplace_back(holder, descriptor);
    file->others_unknown = file->others_unknown || differs < 0;
  }
  file->others_unknown = file->others_unknown || MayBeElsewhere(pid, file->others);
}

// Whose number was closed, while a copy of it keeps the file open, is still waited for; the number
// may be another file's.
std::vector<int> OpenFiles::EpollFiles(int pid, int fd) const {
  std::vector<int> files;
  for (const EpollFile& file : Info(pid, fd).epoll_files) {
    const auto now = proc_.Identify(DescriptorPath(pid, file.fd));
    const bool is_same = file.inode == 0 || (now && now->inode == file.inode);
    files.push_back(is_same ? file.fd : -1);
  }
  return files;
}

int OpenFiles::EpollFileOf(int pid, int fd, uint64_t data) const {
  const auto files = Info(pid, fd).epoll_files;
  const auto is_it = [&](const EpollFile& file) { return file.data == data; };
  const auto found = std::find_if(files.begin(), files.end(), is_it);
  if (found == files.end() || std::count_if(files.begin(), files.end(), is_it) != 1) return -1;
  return found->fd;
}

int OpenFiles::ProcessBehind(int pid, int fd) const {
  return std::max(Info(pid, fd).process.value_or(0), 0);
}

std::vector<int> OpenFiles::ProcessesThatMap(const std::string& device, uint64_t inode,
                                             bool* all_seen) const {
  std::vector<int> processes;
  std::vector<int> unseen;
  const std::string words = fmt::format(" {} {} ", device, inode);
  for (const int pid : proc_.Processes()) {
    int error = 0;
    const auto maps = proc_.Read(fmt::format("{}/maps", pid), &error);
    if (!maps && (error == EACCES || error == EPERM)) unseen.push_back(pid);
    // A path may look like that, too; so what looks like it is read properly.
    if (!maps || maps->find(words) == std::string::npos) continue;
    const auto mappings = ParseMemoryMappings(*maps);
    const bool maps_it =
        std::any_of(mappings.begin(), mappings.end(), [&](const MemoryMapping& mapping) {
          return mapping.inode == inode && mapping.device == device;
        });
    if (maps_it) processes.push_back(pid);
  }
  const auto start = [this](int pid) {
    const auto stat = proc_.Stat(pid);
    return stat ? stat->start_ticks : 0;
  };
  uint64_t oldest = UINT64_MAX;
  for (const int pid : processes) oldest = std::min(oldest, start(pid));
  *all_seen =
      std::all_of(unseen.begin(), unseen.end(), [&](int pid) { return start(pid) < oldest; });
  return processes;
}

// Of those whose descriptors lead to that name, who has that very file.
OpenFiles::Holders OpenFiles::HoldersOfFile(const std::string& name, uint64_t inode,
                                            const std::optional<std::string>& device) {
  Holders holders;
  for (const auto& [holder, descriptor] : HoldersOf(name)) {
    const auto identity = proc_.Identify(DescriptorPath(holder, descriptor));
    if (identity && identity->inode == inode && (!device || identity->device == *device))
      holders.emplace_back(holder, descriptor);
  }
  return holders;
}

void OpenFiles::DescribeEnd(int pid, WaitFile* file) {
  if (file->kind == FileKind::kDevice) file->outside = file->name != "/dev/null";
  if (file->kind != FileKind::kFile) return;
  file->outside = !file->name.ends_with(" (deleted)");
  const auto own = proc_.Identify(DescriptorPath(pid, file->fd));
  if (file->outside || !own) return;
  const Holders holders = HoldersOfFile(file->name, own->inode, own->device);
  file->others.clear();
  std::copy_if(holders.begin(), holders.end(), std::back_inserter(file->others),
               [pid](const auto& holder) { return holder.first != pid; });
  file->others_unknown = hidden_ > 0 || MayBeElsewhere(pid, holders);
}

std::vector<int> OpenFiles::ProcessesWithOpen(int pid, const MemoryMapping& mapping,
                                              bool* all_known) {
  std::vector<int> processes;
  const Holders holders = HoldersOfFile(mapping.path, mapping.inode, std::nullopt);
  for (const auto& [holder, descriptor] : holders) {
    if (processes.empty() || processes.back() != holder) processes.push_back(holder);
  }
  *all_known = !MayBeElsewhere(pid, holders);
  return processes;
}

std::set<int> OpenFiles::ProcessesThatShare(int pid, const MemoryMapping& mapping,
                                            bool* all_known) {
  const std::vector<int> mapped = ProcessesThatMap(mapping.device, mapping.inode, all_known);
  std::set<int> processes(mapped.begin(), mapped.end());
  if (!mapping.path.starts_with("/memfd:") && !mapping.path.ends_with(" (deleted)"))
    return processes;
  bool openers_known = false;
  const std::vector<int> openers = ProcessesWithOpen(pid, mapping, &openers_known);
  processes.insert(openers.begin(), openers.end());
  *all_known = *all_known && openers_known;
  return processes;
}

std::vector<int> OpenFiles::ProcessesWithMemoryOpen(int pid) {
  Scan();
  std::set<int> processes;
  const std::string begin = fmt::format("/proc/{}/", pid);
  for (auto at = holders_.begin(); at != holders_.end(); ++at) {
    if (!at->first.starts_with(begin) || !at->first.ends_with("/mem")) continue;
    for (const auto& [holder, descriptor] : at->second) {
      if (MayWrite(Info(holder, descriptor).flags)) processes.insert(holder);
    }
  }
  return {processes.begin(), processes.end()};
}

// A path that the kernel calls deleted is not always a file without a name: sem_open makes its
// files under another one first. Memory of System V has a key, or only a number.
std::optional<std::string> OpenFiles::NameOfMapped(int pid, const MemoryMapping& mapping) const {
  constexpr std::string_view kDeleted = " (deleted)";
  if (!mapping.path.ends_with(kDeleted)) return mapping.path;
  if (mapping.path.starts_with("/SYSV")) {
    if (mapping.path.starts_with("/SYSV00000000")) return std::nullopt;
    return "";
  }
  const std::string link =
      proc_.Path(fmt::format("{}/map_files/{:x}-{:x}", pid, mapping.begin, mapping.end));
  struct stat about = {};
  const bool is_told = stat(link.c_str(), &about) == 0;
  if (is_told && about.st_nlink == 0) return std::nullopt;
  const std::string folder = mapping.path.substr(0, mapping.path.rfind('/') + 1);
  if (folder.size() > 1) {
    const std::string path = proc_.Path(fmt::format("{}/root{}", pid, folder));
    DIR* const names = opendir(path.c_str());
    std::optional<std::string> found;
    for (dirent* entry; !found && names != nullptr && (entry = readdir(names)) != nullptr;) {
      if (entry->d_ino != mapping.inode) continue;
      const auto same = proc_.Identify(fmt::format("{}/root{}{}", pid, folder, entry->d_name));
      if (same && same->inode == mapping.inode && same->device == mapping.device)
        found = folder + entry->d_name;
    }
    if (names != nullptr) closedir(names);
    if (found) return found;
  }
  return is_told ? std::optional<std::string>("") : std::nullopt;
}

std::vector<FileLockLine> OpenFiles::ReadLocks() const {
  return ParseFileLocks(proc_.Read("locks").value_or(""));
}

const std::vector<FileLockLine>& OpenFiles::Locks() {
  if (!locks_) locks_ = ReadLocks();
  return *locks_;
}

bool OpenFiles::LocksAreAsBefore(int pid, int fd) {
  const auto identity = proc_.Identify(DescriptorPath(pid, fd));
  if (!identity) return false;
  const auto held_of = [&](const std::vector<FileLockLine>& all) {
    std::vector<FileLockLine> held;
    std::copy_if(all.begin(), all.end(), std::back_inserter(held), [&](const FileLockLine& lock) {
      return !lock.waits && lock.inode == identity->inode && lock.device == identity->device;
    });
    return held;
  };
  const std::vector<FileLockLine> before = held_of(Locks());
  const std::vector<FileLockLine> now = held_of(ReadLocks());
  return std::is_permutation(before.begin(), before.end(), now.begin(), now.end(), IsSameHeldLock);
}

std::vector<FileLockLine> OpenFiles::LocksOn(int pid, int fd) {
  std::vector<FileLockLine> locks;
  const auto identity = proc_.Identify(DescriptorPath(pid, fd));
  if (!identity) return locks;
  std::copy_if(Locks().begin(), Locks().end(), std::back_inserter(locks),
               [&](const FileLockLine& lock) {
                 return !lock.waits && !lock.of_description && lock.inode == identity->inode &&
                        lock.device == identity->device;
               });
  return locks;
}

int OpenFiles::DescriptorOf(int pid, const std::string& target) {
  for (const auto& [holder, descriptor] : HoldersOf(target)) {
    if (holder == pid) return descriptor;
  }
  return -1;
}

int OpenFiles::DescribeLock(int pid, WaitFile* file) {
  const auto identity = proc_.Identify(DescriptorPath(pid, file->fd));
  if (!identity) return 0;
  const auto is_of_file = [&](const FileLockLine& lock) {
    return lock.inode == identity->inode && lock.device == identity->device;
  };
  // A file may have many locks, of parts of it and of both kinds: which of them it is stands with
  // who waits.
  std::set<uint64_t> wanted;
  for (const FileLockLine& lock : Locks()) {
    // Of an open file description the kernel may name nobody.
    const bool is_theirs = lock.pid == pid || (lock.of_description && lock.pid <= 0);
    if (lock.waits && is_theirs && is_of_file(lock)) wanted.insert(lock.number);
  }
  std::set<int> owners;
  const FileLockLine* shared = nullptr;
  for (const FileLockLine& lock : Locks()) {
    if (lock.waits || wanted.count(lock.number) == 0) continue;
    if (lock.of_description)
      shared = &lock;
    else
      owners.insert(lock.pid);
  }
  if (shared == nullptr) return owners.size() == 1 ? std::max(*owners.begin(), 0) : 0;
  const Holders& open = HoldersOf(file->name);
  for (const auto& [holder, descriptor] : open) {
    if (holder == pid && descriptor == file->fd) continue;
    const DescriptorInfo info = Info(holder, descriptor);
    if (std::any_of(info.locks.begin(), info.locks.end(), [&](const FileLockLine& lock) {
          return lock.of_description && lock.flock == shared->flock && is_of_file(lock);
        }))
      file->others.emplace_back(holder, descriptor);
  }
  file->others_unknown = file->others_hidden =
      !owners.empty() || hidden_ > 0 || CameFromOutside(open);
  return 0;
}

// Those who have the open file descriptions of these locks, by any of their descriptors of the name
// that the file has to `pid`.
void OpenFiles::AddLockHolders(int pid, const std::vector<const FileLockLine*>& locks,
                               WaitFile* file) {
  std::set<const FileLockLine*> found;
  const Holders& open = HoldersOf(file->name);
  for (const auto& [holder, descriptor] : open) {
    if (holder == pid && descriptor == file->fd) continue;
    bool has = false;
    for (const FileLockLine& its : Info(holder, descriptor).locks) {
      for (const FileLockLine* lock : locks) {
        if (its.of_description && its.flock == lock->flock && its.inode == lock->inode &&
            its.device == lock->device && its.pid == lock->pid) {
          found.insert(lock);
          has = true;
        }
      }
    }
    if (has) file->others.emplace_back(holder, descriptor);
  }
  if (found.size() < locks.size()) file->others_unknown = true;
  if (hidden_ > 0 || CameFromOutside(open)) file->others_unknown = file->others_hidden = true;
}

void OpenFiles::DescribeRefusedLock(int pid, bool of_flock, WaitFile* file) {
  const auto identity = proc_.Identify(DescriptorPath(pid, file->fd));
  if (!identity) return;
  std::vector<const FileLockLine*> shared;
  for (const FileLockLine& lock : Locks()) {
    if (lock.waits || lock.flock != of_flock || lock.inode != identity->inode ||
        lock.device != identity->device)
      continue;
    if (lock.of_description)
      shared.push_back(&lock);
    else if (lock.pid <= 0)
      file->others_unknown = true;
    else if (lock.pid != pid)
      file->others.emplace_back(lock.pid, -1);
  }
  if (!shared.empty()) AddLockHolders(pid, shared, file);
}

}  // namespace hangscope
