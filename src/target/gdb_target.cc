#include "target/gdb_target.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/utf8.h"

namespace hangscope {
namespace {

constexpr size_t kMostPerRequest = 4096;
constexpr size_t kLeastAtOnce = 8;
constexpr size_t kMostOfAnswer = 16;
constexpr int kMostStops = 16;  // that are told before an answer
constexpr size_t kFrame = 8;    // what frames a packet, generously
constexpr size_t kMostThreadsOfServer = 4096;

// Bounds connecting and sending.
void SetPatience(int fd) {
  const timeval patience{5, 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
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
  if (fd >= 0) SetPatience(fd);
  if (fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return fd;
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
    SetPatience(candidate);
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

// "T05thread:01;", "S05": no answer to anything that is asked here begins so.
bool IsStop(const std::string& answer) {
  return answer.size() >= 3 && (answer[0] == 'T' || answer[0] == 'S') &&
         GdbHexByte(answer.substr(1, 2));
}

// The bytes that a text of hexadecimal digits stands for; nothing where it is none.
std::optional<std::string> BytesOfHex(std::string_view text) {
  std::string bytes;
  for (; text.size() >= 2; text.remove_prefix(2)) {
    const auto byte = GdbHexByte(text.substr(0, 2));
    if (!byte) return std::nullopt;
    bytes += static_cast<char>(*byte);
  }
  return text.empty() ? std::optional(bytes) : std::nullopt;
}

}  // namespace

GdbTarget::GdbTarget(std::string name, std::unique_ptr<ByteChannel> channel, TimeNs patience)
    : name_(std::move(name)),
      channel_(std::move(channel)),
      packets_(name_, *channel_),
      patience_(patience),
      ranges_{{0, UINT64_MAX}} {}

// Detached, so that the target goes on; the answer to it is waited for, or it would be lost with
// the connection. Who is out of step is told, and not listened to any more.
GdbTarget::~GdbTarget() {
  SystemClock clock;
  if (warning_.ok())
    (void)Ask("D").ok();
  else
    (void)channel_->Send(FrameGdbPacket("D"), clock.Monotonic());
}

Result<std::unique_ptr<Target>> GdbTarget::Open(const std::string& where, TimeNs patience) {
  const size_t colon = where.rfind(':');
  const bool is_path = colon == std::string::npos || where.find('/') != std::string::npos;
  const int fd =
      is_path ? ConnectPath(where) : ConnectHost(where.substr(0, colon), where.substr(colon + 1));
  if (fd < 0) return Status::FromErrno(errno, "connect to the debug server", where);
  return Open("debug server '" + where + "'", std::make_unique<DescriptorChannel>(fd, fd),
              patience);
}

Result<std::unique_ptr<Target>> GdbTarget::Open(std::string name,
                                                std::unique_ptr<ByteChannel> channel,
                                                TimeNs patience) {
  std::unique_ptr<GdbTarget> target(new GdbTarget(std::move(name), std::move(channel), patience));
  if (Status status = target->Greet(); !status.ok()) return status;
  return std::unique_ptr<Target>(std::move(target));
}

Status GdbTarget::Greet() {
  auto answer = Ask("qSupported");
  if (!answer.ok()) return answer.status();
  const size_t at = answer->find("PacketSize=");
  if (at == std::string::npos) return {};
  size_t size = 0;
  const auto [stop, error] =
      std::from_chars(answer->data() + at + 11, answer->data() + answer->size(), size, 16);
  // Two digits a byte.
  if (error == std::errc())
    most_at_once_ = std::clamp((size - std::min(size, kFrame)) / 2, kLeastAtOnce, kMostPerRequest);
  return {};
}

Status GdbTarget::GiveUp(Status why) {
  warning_ = why;
  return why;
}

// A server that stopped the target for us says so unasked, perhaps between two answers.
Result<std::string> GdbTarget::Ask(const std::string& packet) {
  if (!warning_.ok()) return warning_;
  SystemClock clock;
  const TimeNs deadline = clock.Monotonic() + patience_;
  if (channel_->Send(FrameGdbPacket(packet), deadline) != ByteChannel::Outcome::kDone) {
    return GiveUp(Status::Io(fmt::format("{} takes no requests", name_)));
  }
  for (int skipped = 0;; ++skipped) {
    auto answer = packets_.Next(deadline);
    if (!answer.ok()) return GiveUp(answer.status());
    if (!IsStop(*answer) || skipped == kMostStops) return answer;
  }
}

Status GdbTarget::Read(uint64_t address, std::span<char> bytes) {
  if (Status status = CheckRange(address, bytes.size()); !status.ok()) return status;
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), most_at_once_);
    auto answer = Ask(fmt::format("m{:x},{:x}", address, count));
    if (!answer.ok()) return answer.status();
    if (answer->starts_with("E") || answer->empty() || answer->size() % 2 != 0 ||
        answer->size() / 2 > count) {
      return Status::NotFound(fmt::format("{} cannot read {} bytes at {:#x} (it says '{}')", name_,
                                          count, address, Printable(*answer, kMostOfAnswer)));
    }
    const size_t got = answer->size() / 2;
    for (size_t i = 0; i < got; ++i) {
      const auto byte = GdbHexByte(std::string_view(*answer).substr(2 * i, 2));
      if (!byte)
        return GiveUp(Status::Corrupt(fmt::format("{} answers with something else than bytes: '{}'",
                                                  name_, Printable(*answer, kMostOfAnswer))));
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
    for (const char byte : bytes.substr(0, count))
      packet += fmt::format("{:02x}", static_cast<uint8_t>(byte));
    auto answer = Ask(packet);
    if (!answer.ok()) return answer.status();
    if (*answer != "OK")
      return Status::Io(fmt::format("{} cannot write {} bytes at {:#x} (it says '{}')", name_,
                                    count, address, Printable(*answer, kMostOfAnswer)));
    bytes.remove_prefix(count);
    address += count;
  }
  return {};
}

const std::vector<std::string>& GdbTarget::Threads() {
  if (threads_) return *threads_;
  threads_.emplace();
  auto answer = Ask("qfThreadInfo");
  // "m1,2", "m3", "l"
  while (answer.ok() && answer->starts_with('m') && threads_->size() < kMostThreadsOfServer) {
    for (size_t at = 1; at < answer->size();) {
      const size_t end = std::min(answer->find(',', at), answer->size());
      threads_->push_back(answer->substr(at, end - at));
      at = end + 1;
    }
    answer = Ask("qsThreadInfo");
  }
  return *threads_;
}

std::optional<std::string> GdbTarget::ThreadOfHart(uint32_t hart) {
  for (const std::string& thread : Threads()) {
    auto answer = Ask("qThreadExtraInfo," + thread);
    const auto words = answer.ok() ? BytesOfHex(*answer) : std::nullopt;
    // "CPU#3 [running]"
    if (words && words->starts_with(fmt::format("CPU#{} ", hart))) return thread;
  }
  return std::nullopt;
}

std::optional<CoreRegisters> GdbTarget::RegistersOf(uint32_t hart, int xlen) {
  const auto thread = ThreadOfHart(hart);
  if (!thread) return std::nullopt;
  auto chosen = Ask("Hg" + *thread);
  if (!chosen.ok() || *chosen != "OK") return std::nullopt;
  auto answer = Ask("g");
  // Memory is read as the first of them sees it, as before.
  (void)Ask("Hg" + threads_->front()).ok();
  const size_t word = static_cast<size_t>(xlen) / 8;
  const size_t digits = 2 * word * (CoreRegisters::kCount + 1);
  const auto bytes = answer.ok() && answer->size() >= digits
                         ? BytesOfHex(std::string_view(*answer).substr(0, digits))
                         : std::nullopt;
  if (!bytes) return std::nullopt;
  CoreRegisters registers;
  for (size_t i = 0; i <= CoreRegisters::kCount; ++i) {
    uint64_t value = 0;
    std::memcpy(&value, bytes->data() + i * word, word);  // RISC-V's are little-endian
    if (i < CoreRegisters::kCount)
      registers.x.push_back(value);
    else
      registers.pc = value;
  }
  return registers;
}

}  // namespace hangscope
