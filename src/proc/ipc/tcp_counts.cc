#include "proc/ipc/tcp_counts.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <string>

namespace hangscope {
namespace {

constexpr size_t kReceivedAt = 128;  // tcpi_bytes_received in the kernel's struct tcp_info

// Puts the address into the request; whether it is one.
bool ReadEnd(std::string_view text, uint8_t* family, uint32_t* address, uint16_t* port) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  std::string host(text.substr(0, colon));
  const std::string_view digits = text.substr(colon + 1);
  uint16_t number = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), number).ec != std::errc())
    return false;
  *port = htons(number);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  *family = host.find(':') == std::string::npos ? AF_INET : AF_INET6;
  return inet_pton(*family, host.c_str(), address) == 1;
}

std::optional<uint64_t> ReadReply(std::string_view reply, uint64_t inode) {
  size_t bytes = reply.size();
  const auto* const header = reinterpret_cast<const nlmsghdr*>(reply.data());
  if (!NLMSG_OK(header, bytes) || header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
      header->nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg)))
    return std::nullopt;
  const auto* const about = static_cast<const inet_diag_msg*>(NLMSG_DATA(header));
  if (about->idiag_inode != static_cast<uint32_t>(inode)) return std::nullopt;
  int rest = static_cast<int>(header->nlmsg_len - NLMSG_LENGTH(sizeof *about));
  for (auto* attribute = reinterpret_cast<const rtattr*>(about + 1); RTA_OK(attribute, rest);
       attribute = RTA_NEXT(attribute, rest)) {
    uint64_t received = 0;
    if (attribute->rta_type != INET_DIAG_INFO ||
        RTA_PAYLOAD(attribute) < kReceivedAt + sizeof received)
      continue;
    std::memcpy(&received, static_cast<const char*>(RTA_DATA(attribute)) + kReceivedAt,
                sizeof received);
    return received;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> BytesReceived(std::string_view local, std::string_view remote,
                                      uint64_t inode) {
  struct {
    nlmsghdr header;
    inet_diag_req_v2 request;
  } message = {};
  message.header.nlmsg_len = sizeof message;
  message.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  message.header.nlmsg_flags = NLM_F_REQUEST;
  inet_diag_req_v2& request = message.request;
  request.sdiag_protocol = IPPROTO_TCP;
  request.idiag_ext = 1 << (INET_DIAG_INFO - 1);
  request.idiag_states = ~0u;
  request.id.idiag_cookie[0] = request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  uint8_t other_family = 0;
  if (!ReadEnd(local, &request.sdiag_family, request.id.idiag_src, &request.id.idiag_sport) ||
      !ReadEnd(remote, &other_family, request.id.idiag_dst, &request.id.idiag_dport) ||
      other_family != request.sdiag_family)
    return std::nullopt;
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (fd < 0) return std::nullopt;
  const timeval limit = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  alignas(nlmsghdr) char reply[8192];
  const bool is_asked =
      send(fd, &message, sizeof message, 0) == static_cast<ssize_t>(sizeof message);
  const ssize_t got = is_asked ? recv(fd, reply, sizeof reply, 0) : -1;
  close(fd);
  if (got <= 0) return std::nullopt;
  return ReadReply({reply, static_cast<size_t>(got)}, inode);
}

}  // namespace hangscope
