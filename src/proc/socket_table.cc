#include "proc/socket_table.h"

#include <fmt/format.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace hangscope {
namespace {

constexpr uint8_t kListenState = 10;  // TCP_LISTEN, which unix sockets use, too
constexpr size_t kMostSockets = 1 << 20;
constexpr unsigned kMinorBits = 20;  // of a device's number, as the kernel has it inside

// "127.0.0.1:80", "[::1]:80": without the port, and that alone.
std::string_view HostOf(std::string_view address) { return address.substr(0, address.rfind(':')); }
std::string_view PortOf(std::string_view address) {
  return address.substr(std::min(address.rfind(':'), address.size()));
}

std::string_view Payload(const rtattr* attribute) {
  return {static_cast<const char*>(RTA_DATA(attribute)),
          static_cast<size_t>(RTA_PAYLOAD(attribute))};
}

std::string UnixName(std::string_view path) {
  if (path.empty()) return "unix";
  if (path.front() == '\0') return fmt::format("unix '@{}'", path.substr(1));
  return fmt::format("unix '{}'", path.substr(0, path.find('\0')));
}

bool AskForUnixSockets(int fd) {
  struct {
    nlmsghdr header;
    unix_diag_req request;
  } message = {};
  message.header.nlmsg_len = sizeof message;
  message.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  message.request.sdiag_family = AF_UNIX;
  message.request.udiag_states = ~0u;
  message.request.udiag_show =
      UDIAG_SHOW_NAME | UDIAG_SHOW_VFS | UDIAG_SHOW_PEER | UDIAG_SHOW_ICONS;
  return send(fd, &message, sizeof message, 0) == static_cast<ssize_t>(sizeof message);
}

// *waiting: inodes of those who have connected to it and were not accepted yet.
SocketFacts FactsOfUnix(const nlmsghdr* header, std::vector<uint32_t>* waiting) {
  const auto* const about = static_cast<const unix_diag_msg*>(NLMSG_DATA(header));
  SocketFacts facts;
  facts.listening = about->udiag_state == kListenState;
  facts.name = "unix";
  int rest = static_cast<int>(header->nlmsg_len - NLMSG_LENGTH(sizeof *about));
  for (auto* attribute = reinterpret_cast<const rtattr*>(about + 1); RTA_OK(attribute, rest);
       attribute = RTA_NEXT(attribute, rest)) {
    const std::string_view bytes = Payload(attribute);
    if (attribute->rta_type == UNIX_DIAG_NAME) facts.name = UnixName(bytes);
    unix_diag_vfs file = {};
    if (attribute->rta_type == UNIX_DIAG_VFS && bytes.size() >= sizeof file) {
      std::memcpy(&file, bytes.data(), sizeof file);
      facts.file_device = fmt::format("{:02x}:{:02x}", file.udiag_vfs_dev >> kMinorBits,
                                      file.udiag_vfs_dev & ((1u << kMinorBits) - 1));
      facts.file_inode = file.udiag_vfs_ino;
    }
    if (attribute->rta_type == UNIX_DIAG_ICONS) {
      waiting->resize(bytes.size() / sizeof(uint32_t));
      if (!waiting->empty())
        std::memcpy(waiting->data(), bytes.data(), waiting->size() * sizeof(uint32_t));
    }
    uint32_t peer = 0;
    if (attribute->rta_type == UNIX_DIAG_PEER && bytes.size() >= sizeof peer) {
      std::memcpy(&peer, bytes.data(), sizeof peer);
      facts.peer = peer;
    }
  }
  // Whoever knows its name may send.
  facts.outside = about->udiag_type == SOCK_DGRAM && !facts.peer && facts.name != "unix";
  return facts;
}

}  // namespace

SocketTable SocketTable::Read(const ProcFolder& proc, int pid) {
  SocketTable table;
  const auto own = proc.Link("self/ns/net");
  const auto theirs = proc.Link(fmt::format("{}/ns/net", pid));
  if (!own || !theirs || *own == *theirs) table.ReadUnix();
  for (const char* family : {"tcp", "tcp6"}) {
    if (const auto text = proc.Read(fmt::format("{}/net/{}", pid, family)))
      table.AddTcp(*text, family);
  }
  table.LinkTcp();
  return table;
}

void SocketTable::ReadUnix() {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (fd < 0) return;
  // The kernel answers at once; what never comes must not hang whoever looks for hangs.
  const timeval limit = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  bool complete = false;
  if (AskForUnixSockets(fd)) {
    alignas(nlmsghdr) char buffer[32768];
    while (!complete && sockets_.size() < kMostSockets) {
      const ssize_t got = recv(fd, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      size_t rest = static_cast<size_t>(got);
      bool failed = false;
      for (auto* header = reinterpret_cast<const nlmsghdr*>(buffer); NLMSG_OK(header, rest);
           header = NLMSG_NEXT(header, rest)) {
        complete = complete || header->nlmsg_type == NLMSG_DONE;
        failed = failed || header->nlmsg_type == NLMSG_ERROR;
        if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
            header->nlmsg_len < NLMSG_LENGTH(sizeof(unix_diag_msg)))
          continue;
        const uint32_t inode = static_cast<const unix_diag_msg*>(NLMSG_DATA(header))->udiag_ino;
        std::vector<uint32_t> waiting;
        sockets_[inode] = FactsOfUnix(header, &waiting);
        for (const uint32_t client : waiting) unix_acceptors_[client].push_back(inode);
      }
      if (failed) break;
    }
  }
  close(fd);
  for (auto& [client, acceptors] : unix_acceptors_) {
    const auto facts = sockets_.find(client);
    if (client != 0 && facts != sockets_.end()) facts->second.acceptors = std::move(acceptors);
  }
}

void SocketTable::AddTcp(std::string_view text, std::string_view family) {
  for (const TcpLine& line : ParseTcpTable(text)) {
    if (sockets_.size() + unaccepted_.size() >= kMostSockets) continue;
    const std::string local = TcpAddressName(line.local);
    const std::string remote = TcpAddressName(line.remote);
    if (line.inode == 0) {
      if (line.connected) unaccepted_.insert(local + " " + remote);
      continue;
    }
    SocketFacts facts;
    facts.local = local;
    facts.remote = remote;
    facts.listening = line.listening;
    facts.queued = line.listening ? line.received : 0;
    facts.unread = line.listening ? 0 : line.received;
    facts.name = line.listening ? fmt::format("{} {}", family, local)
                                : fmt::format("{} {} - {}", family, local, remote);
    facts.outside = !line.listening;
    sockets_[line.inode] = facts;
    if (!line.listening) tcp_ends_[local + " " + remote] = line.inode;
  }
  LinkTcp();
}

// Two sockets are the ends of one connection where each has the other's address: also on this
// machine's own address.
void SocketTable::LinkTcp() {
  for (const auto& [ends, inode] : tcp_ends_) {
    const size_t space = ends.find(' ');
    const std::string reverse = ends.substr(space + 1) + " " + ends.substr(0, space);
    const auto other = tcp_ends_.find(reverse);
    if (unaccepted_.count(reverse) != 0) FindAcceptors(ends.substr(space + 1), &sockets_[inode]);
    if (other == tcp_ends_.end()) continue;
    sockets_[inode].peer = other->second;
    sockets_[inode].outside = false;
  }
}

// Several may listen at one address (SO_REUSEPORT).
void SocketTable::FindAcceptors(const std::string& local, SocketFacts* facts) const {
  facts->acceptors.clear();
  for (const auto& [inode, other] : sockets_) {
    if (!other.listening || other.local.empty() || PortOf(other.local) != PortOf(local)) continue;
    const std::string_view at = HostOf(other.local);
    if (at == HostOf(local) || at == "0.0.0.0" || at == "[::]") facts->acceptors.push_back(inode);
  }
  facts->outside = facts->outside && facts->acceptors.empty();
}

std::optional<uint64_t> SocketTable::Listener(
    const std::function<bool(const SocketFacts&)>& is_wanted) const {
  for (const auto& [inode, facts] : sockets_) {
    if (facts.listening && is_wanted(facts)) return inode;
  }
  return std::nullopt;
}

std::optional<uint64_t> SocketTable::ListenerAt(std::string_view name) const {
  const std::string wanted = UnixName(name);
  return Listener(
      [&](const SocketFacts& facts) { return facts.file_inode == 0 && facts.name == wanted; });
}

std::optional<uint64_t> SocketTable::ListenerAt(
    const std::optional<ProcFolder::FileIdentity>& file) const {
  if (!file || file->inode == 0) return std::nullopt;
  return Listener([&](const SocketFacts& facts) {
    return facts.file_inode == static_cast<uint32_t>(file->inode) &&
           facts.file_device == file->device;
  });
}

std::optional<uint64_t> SocketTable::BusyListenerFor(uint64_t inode) const {
  const SocketFacts* const connecting = Find(inode);
  if (connecting == nullptr || connecting->remote.empty()) return std::nullopt;
  const std::string_view host = HostOf(connecting->remote);
  const bool is_here = host == HostOf(connecting->local) || host.starts_with("127.");
  if (!is_here) return std::nullopt;
  return Listener([&](const SocketFacts& facts) {
    const std::string_view at = HostOf(facts.local);
    return facts.queued > 0 && PortOf(facts.local) == PortOf(connecting->remote) &&
           (at == host || at == "0.0.0.0" || at == "[::]");
  });
}

const SocketFacts* SocketTable::Find(uint64_t inode) const {
  const auto found = sockets_.find(inode);
  return found != sockets_.end() ? &found->second : nullptr;
}

}  // namespace hangscope
