#include "probe/gdb_target.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace hangscope {
namespace {

constexpr size_t kLongestPacket = 1u << 20;
constexpr size_t kMostAtOnce = 4096;
constexpr int kTries = 3;

int Checksum(std::string_view packet) {
  unsigned sum = 0;
  for (const char c : packet) sum += static_cast<uint8_t>(c);
  return static_cast<int>(sum & 0xff);
}

std::optional<unsigned> HexByte(std::string_view two) {
  unsigned value = 0;
  const auto [stop, error] = std::from_chars(two.data(), two.data() + two.size(), value, 16);
  if (two.size() != 2 || error != std::errc() || stop != two.data() + 2) return std::nullopt;
  return value;
}

// Connected, or -1 and errno.
int ConnectPath(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  const int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  return -1;
}

int ConnectHost(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) {
    errno = EHOSTUNREACH;
    return -1;
  }
  int fd = -1;
  int error = ECONNREFUSED;
  for (const addrinfo* at = found; at != nullptr && fd < 0; at = at->ai_next) {
    const int candidate = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (candidate < 0) continue;
    const timeval patience{5, 0};  // bounds connect, too
    setsockopt(candidate, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(candidate, at->ai_addr, at->ai_addrlen) == 0) {
      fd = candidate;
    } else {
      error = errno;
      close(candidate);
    }
  }
  freeaddrinfo(found);
  errno = error;
  return fd;
}

}  // namespace

GdbTarget::GdbTarget(std::string name, int fd, TimeNs patience)
    : name_(std::move(name)), fd_(fd), patience_(patience), ranges_{{0, UINT64_MAX}} {}

// Detached, so that the target goes on; the answer to it is waited for, or it would be lost with the
// connection.
GdbTarget::~GdbTarget() {
  (void)Ask("D").ok();
  close(fd_);
}

Result<std::unique_ptr<Target>> GdbTarget::Open(const std::string& where, TimeNs patience) {
  const size_t colon = where.rfind(':');
  const bool is_path = colon == std::string::npos || where.find('/') != std::string::npos;
  const int fd = is_path ? ConnectPath(where) : ConnectHost(where.substr(0, colon), where.substr(colon + 1));
  if (fd < 0) return Status::FromErrno(errno, "connect to the debug server", where);
  std::unique_ptr<GdbTarget> target(new GdbTarget("debug server '" + where + "'", fd, patience));
  if (Status status = target->Greet(); !status.ok()) return status;
  return std::unique_ptr<Target>(std::move(target));
}

Status GdbTarget::Greet() {
  auto answer = Ask("qSupported");
  if (!answer.ok()) return answer.status();
  const size_t at = answer->find("PacketSize=");
  if (at == std::string::npos) return {};
  size_t size = 0;
  std::from_chars(answer->data() + at + 11, answer->data() + answer->size(), size, 16);
  // Two digits a byte, and what frames them.
  if (size >= 64) most_at_once_ = std::min(kMostAtOnce, (size - 8) / 2);
  return {};
}

Status GdbTarget::Send(std::string_view packet) {
  const std::string framed = fmt::format("${}#{:02x}", packet, Checksum(packet));
  for (size_t sent = 0; sent < framed.size();) {
    const ssize_t n = send(fd_, framed.data() + sent, framed.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Status::FromErrno(errno, "send to", name_);
    sent += static_cast<size_t>(n);
  }
  return {};
}

Result<char> GdbTarget::ReadByte(TimeNs deadline) {
  if (taken_ == received_.size()) {
    SystemClock clock;
    pollfd event{fd_, POLLIN, 0};
    const TimeNs left = deadline - clock.Monotonic();
    const int ready = left <= 0 ? 0 : poll(&event, 1, static_cast<int>(left / kMillisecond) + 1);
    if (ready == 0) return Status::Io(fmt::format("{} does not answer; is it one, and does nobody else use it?", name_));
    char bytes[4096];
    const ssize_t got = ready < 0 ? -1 : recv(fd_, bytes, sizeof bytes, 0);
    if (got < 0) return Status::FromErrno(errno, "receive from", name_);
    if (got == 0) return Status::Io(fmt::format("{} has closed the connection", name_));
    received_.assign(bytes, static_cast<size_t>(got));
    taken_ = 0;
  }
  return received_[taken_++];
}

// One packet: $DATA#CC, with } before an escaped character and * before a count of repetitions.
Result<std::string> GdbTarget::Receive() {
  SystemClock clock;
  const TimeNs deadline = clock.Monotonic() + patience_;
  for (int tries = 0; tries < kTries; ++tries) {
    std::string raw;
    for (char c = '\0'; c != '$';) {
      auto byte = ReadByte(deadline);
      if (!byte.ok()) return byte.status();
      c = *byte;  // what comes before is an acknowledgement, or left over
    }
    for (;;) {
      auto byte = ReadByte(deadline);
      if (!byte.ok()) return byte.status();
      if (*byte == '#') break;
      raw.push_back(*byte);
      if (raw.size() > kLongestPacket) return Status::Corrupt(fmt::format("{} sends a packet without an end", name_));
    }
    std::string digits;
    for (int i = 0; i < 2; ++i) {
      auto byte = ReadByte(deadline);
      if (!byte.ok()) return byte.status();
      digits.push_back(*byte);
    }
    const auto sum = HexByte(digits);
    const bool sound = sum && static_cast<int>(*sum) == Checksum(raw);
    (void)!send(fd_, sound ? "+" : "-", 1, MSG_NOSIGNAL);
    if (!sound) continue;
    std::string packet;
    for (size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] == '}' && i + 1 < raw.size()) packet.push_back(static_cast<char>(raw[++i] ^ 0x20));
      else if (raw[i] == '*' && i + 1 < raw.size() && !packet.empty()) packet.append(static_cast<size_t>(std::max(0, raw[++i] - 29)), packet.back());
      else packet.push_back(raw[i]);
      if (packet.size() > kLongestPacket) return Status::Corrupt(fmt::format("{} sends a packet without an end", name_));
    }
    return packet;
  }
  return Status::Corrupt(fmt::format("{} sends packets whose checksums are wrong", name_));
}

Result<std::string> GdbTarget::Ask(const std::string& packet) {
  if (Status status = Send(packet); !status.ok()) return status;
  return Receive();
}

Status GdbTarget::Read(uint64_t address, std::span<char> bytes) {
  if (Status status = CheckRange(address, bytes.size()); !status.ok()) return status;
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), most_at_once_);
    auto answer = Ask(fmt::format("m{:x},{:x}", address, count));
    if (!answer.ok()) return answer.status();
    if (answer->starts_with("E") || answer->empty() || answer->size() % 2 != 0 || answer->size() / 2 > count) {
      return Status::NotFound(fmt::format("{} cannot read {} bytes at {:#x} (it says '{}')", name_, count, address, answer->substr(0, 16)));
    }
    const size_t got = answer->size() / 2;
    for (size_t i = 0; i < got; ++i) {
      const auto byte = HexByte(std::string_view(*answer).substr(2 * i, 2));
      if (!byte) return Status::Corrupt(fmt::format("{} answers with something else than bytes", name_));
      bytes[i] = static_cast<char>(*byte);
    }
    bytes = bytes.subspan(got);
    address += got;
  }
  return {};
}

Status GdbTarget::Write(uint64_t address, std::string_view bytes) {
  if (Status status = CheckRange(address, bytes.size()); !status.ok()) return status;
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), most_at_once_ / 2);
    std::string packet = fmt::format("M{:x},{:x}:", address, count);
    for (const char byte : bytes.substr(0, count)) packet += fmt::format("{:02x}", static_cast<uint8_t>(byte));
    auto answer = Ask(packet);
    if (!answer.ok()) return answer.status();
    if (*answer != "OK") return Status::Io(fmt::format("{} cannot write {} bytes at {:#x}", name_, count, address));
    bytes.remove_prefix(count);
    address += count;
  }
  return {};
}

}  // namespace hangscope
