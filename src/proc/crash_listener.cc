#include "proc/crash_listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "proc/proc_folder.h"

namespace hangscope {
namespace {

constexpr size_t kEventAt = NLMSG_HDRLEN + sizeof(cn_msg);
constexpr size_t kMostDying = 1024;

bool Request(int fd, proc_cn_mcast_op operation) {
  std::array<std::byte, kEventAt + sizeof operation> request{};
  nlmsghdr header{};
  header.nlmsg_len = request.size();
  header.nlmsg_type = NLMSG_DONE;
  cn_msg message{};
  message.id = {CN_IDX_PROC, CN_VAL_PROC};
  message.len = sizeof operation;
  memcpy(request.data(), &header, sizeof header);
  memcpy(request.data() + NLMSG_HDRLEN, &message, sizeof message);
  memcpy(request.data() + kEventAt, &operation, sizeof operation);
  return send(fd, request.data(), request.size(), 0) == static_cast<ssize_t>(request.size());
}

// A filter reads words as the network orders their bytes.
constexpr uint32_t At(size_t offset) { return static_cast<uint32_t>(kEventAt + offset); }

// Lets pass those that a core dump begins, and ends by a signal.
bool Filter(int fd) {
  constexpr uint32_t kWhat = At(offsetof(proc_event, what));
  constexpr uint32_t kExitCode = At(offsetof(proc_event, event_data.exit.exit_code));
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kWhat),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(proc_event::PROC_EVENT_COREDUMP), 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(proc_event::PROC_EVENT_EXIT), 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kExitCode),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, htonl(0x7f), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
      BPF_STMT(BPF_RET | BPF_K, 0),
  };
  const sock_fprog filter = {std::size(program), program};
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0;
}

}  // namespace

std::unique_ptr<CrashListener> CrashListener::Open() {
  // The kernel numbers processes as the machine's first namespace does, and does not tell others;
  // their messages may come all the same, when somebody else of the machine listens.
  if (!ProcFolder("/proc").IsInFirstPidNamespace().value_or(false)) return nullptr;
  const int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
  if (fd < 0) return nullptr;
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = CN_IDX_PROC;
  const bool listens = Filter(fd) &&
                       bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                       Request(fd, PROC_CN_MCAST_LISTEN);
  if (listens) return std::unique_ptr<CrashListener>(new CrashListener(fd));
  close(fd);
  return nullptr;
}

// Kernels before 6.6 would go on making messages for a listener that only closes.
CrashListener::~CrashListener() {
  (void)Request(fd_, PROC_CN_MCAST_IGNORE);
  close(fd_);
}

std::vector<ProcessCrash> CrashListener::Drain(const std::function<bool(int)>& is_wanted) {
  std::vector<ProcessCrash> crashes;
  std::array<std::byte, 4096> message;
  for (;;) {
    sockaddr_nl from{};
    socklen_t from_size = sizeof from;
    const ssize_t got = recvfrom(fd_, message.data(), message.size(), 0,
                                 reinterpret_cast<sockaddr*>(&from), &from_size);
    if (got < 0 && errno != ENOBUFS) break;
    // Messages were lost: ends of those who die, perhaps, whose numbers others will have.
    if (got < 0) dying_.clear();
    if (got < static_cast<ssize_t>(kEventAt + sizeof(proc_event)) || from.nl_pid != 0) continue;
    proc_event event;
    memcpy(&event, message.data() + kEventAt, sizeof event);
    if (event.what == proc_event::PROC_EVENT_COREDUMP) NoteDying(event, is_wanted);
    if (event.what == proc_event::PROC_EVENT_EXIT) NoteEnd(event, &crashes);
  }
  return crashes;
}

void CrashListener::NoteDying(const proc_event& event, const std::function<bool(int)>& is_wanted) {
  const int pid = event.event_data.coredump.process_tgid;
  if (dying_.size() == kMostDying) dying_.clear();
  // Of the process itself nothing may be left by now; its parent still waits for it.
  const bool wanted = is_wanted(event.event_data.coredump.parent_tgid);
  Dying& dying = dying_[pid];
  const ProcFolder proc("/proc");
  if (const auto stat = proc.Stat(pid)) {
    dying = {wanted, stat->name, proc.CommandLine(pid),
             proc.Link(fmt::format("{}/cwd", pid)).value_or("")};
  } else {
    dying = {wanted, "", "", ""};
  }
}

// The first of its threads to end; the dump is written by then.
void CrashListener::NoteEnd(const proc_event& event, std::vector<ProcessCrash>* crashes) {
  const auto dying = dying_.find(event.event_data.exit.process_tgid);
  if (dying == dying_.end()) return;
  const uint32_t code = event.event_data.exit.exit_code;
  if (dying->second.is_wanted)
    crashes->push_back({dying->first, static_cast<int>(code & 0x7f), (code & 0x80) != 0,
                        std::move(dying->second.name), std::move(dying->second.command),
                        std::move(dying->second.folder)});
  dying_.erase(dying);
}

}  // namespace hangscope
