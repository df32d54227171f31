#include "target/gdb_target.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/utf8.h"

namespace hangscope {
namespace {

constexpr size_t kMostPerRequest = 4096;
constexpr size_t kLeastAtOnce = 8;
constexpr size_t kMostOfAnswer = 16;
constexpr int kMostNews = 4096;  // packets that are none, before an answer
constexpr size_t kMostConsole = 64u << 10;
constexpr size_t kFrame = 8;  // what frames a packet, generously
constexpr size_t kMostThreadsOfServer = 4096;
// An answer should take such a part of the patience: a server may become as much slower at once.
constexpr TimeNs kPatiencePerAnswer = 5;
// Until 8.0 QEMU said unasked that it had stopped its guest.
constexpr int kSilentQemu[] = {8, 1};

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
    // Small requests, each of which waits for the answer to the one before.
    const int at_once = 1;
    setsockopt(candidate, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
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

// "E01", "E.memtype". Memory has an even number of digits, and no dot.
bool IsError(std::string_view answer) {
  return answer.empty() || answer.starts_with("E.") || (answer[0] == 'E' && answer.size() == 3);
}

}  // namespace

GdbTarget::GdbTarget(std::string name, std::unique_ptr<ByteChannel> channel, TimeNs patience,
                     Clock& clock)
    : name_(std::move(name)),
      channel_(std::move(channel)),
      packets_(name_, *channel_),
      patience_(patience),
      clock_(clock),
      ranges_{{0, UINT64_MAX}} {}

// Who is out of step is told, and not listened to any more.
GdbTarget::~GdbTarget() {
  if (warning_.ok())
    Leave();
  else
    (void)channel_->Send(FrameGdbPacket("D"), clock_.Monotonic());
}

// Lets go on what ran before. Closing the connection is all that leaves a guest of QEMU's as it
// was; with an OpenOCD it would stay halted. The answer is waited for, or it would be lost with the
// connection.
void GdbTarget::Leave() {
  const bool may_be_openocd = Offers("qXfer:memory-map:read");
  if (may_be_openocd && Monitor("version").find("Open On-Chip Debugger") != std::string::npos) {
    auto stop = Ask("?", GdbPacketKind::kStop);
    // SIGINT: halted for a debugger; not at a breakpoint, and not running.
    const bool for_us = stop.ok() && (stop->starts_with("S02") || stop->starts_with("T02"));
    if (for_us) (void)Monitor("resume");
  } else if (!may_be_openocd && !said_stop_ && StoodStillInQemu()) {
    return;
  }
  (void)Ask("D").ok();
}

// "VM status: paused (prelaunch)": it stands still for a reason of its own.
bool GdbTarget::StoodStillInQemu() {
  const std::string status = Monitor("info status");
  if (status.find("VM status: paused") == std::string::npos) return false;
  if (status.find('(') != std::string::npos) return true;
  const std::string version = Monitor("info version");
  int major = 0;
  int minor = 0;
  if (std::sscanf(version.c_str(), "%d.%d", &major, &minor) != 2) return false;
  return std::pair(major, minor) < std::pair(kSilentQemu[0], kSilentQemu[1]);
}

// What a server's own command prints; nothing where it knows none.
std::string GdbTarget::Monitor(std::string_view command) {
  std::string packet = "qRcmd,";
  for (const char byte : command) packet += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  auto answer = Ask(packet);
  // Some print before the answer, some in it.
  const auto words = answer.ok() ? BytesOfGdbHex(*answer) : std::nullopt;
  return console_ + words.value_or("");
}

bool GdbTarget::Offers(std::string_view feature) const {
  return features_.find(feature) != std::string::npos;
}

Result<std::unique_ptr<Target>> GdbTarget::Open(const std::string& where, TimeNs patience) {
  static SystemClock system_clock;
  const size_t colon = where.rfind(':');
  const bool is_path = colon == std::string::npos || where.find('/') != std::string::npos;
  const int fd =
      is_path ? ConnectPath(where) : ConnectHost(where.substr(0, colon), where.substr(colon + 1));
  if (fd < 0) return Status::FromErrno(errno, "connect to the debug server", where);
  return Open("debug server '" + where + "'", std::make_unique<DescriptorChannel>(fd, fd), patience,
              system_clock);
}

Result<std::unique_ptr<Target>> GdbTarget::Open(std::string name,
                                                std::unique_ptr<ByteChannel> channel,
                                                TimeNs patience, Clock& clock) {
  std::unique_ptr<GdbTarget> target(
      new GdbTarget(std::move(name), std::move(channel), patience, clock));
  if (Status status = target->Greet(); !status.ok()) return status;
  return std::unique_ptr<Target>(std::move(target));
}

Status GdbTarget::Greet() {
  auto answer = Ask("qSupported");
  if (!answer.ok()) return answer.status();
  features_ = *answer;
  const size_t at = features_.find("PacketSize=");
  if (at == std::string::npos) return {};
  size_t size = 0;
  const auto [stop, error] =
      std::from_chars(features_.data() + at + 11, features_.data() + features_.size(), size, 16);
  // Two digits a byte.
  if (error == std::errc())
    most_at_once_ = std::clamp((size - std::min(size, kFrame)) / 2, kLeastAtOnce, kMostPerRequest);
  return {};
}

Status GdbTarget::GiveUp(Status why) {
  warning_ = why;
  return why;
}

// Packets of another kind are news, which a server may send at any time.
Result<std::string> GdbTarget::Ask(const std::string& packet, GdbPacketKind wanted) {
  if (!warning_.ok()) return warning_;
  const TimeNs deadline = clock_.Monotonic() + patience_;
  console_.clear();
  if (channel_->Send(FrameGdbPacket(packet), deadline) != ByteChannel::Outcome::kDone) {
    return GiveUp(Status::Io(fmt::format("{} takes no requests", name_)));
  }
  for (int news = 0; news <= kMostNews; ++news) {
    auto answer = packets_.Next(deadline);
    if (!answer.ok()) return GiveUp(answer.status());
    const GdbPacketKind kind = KindOfGdbPacket(*answer);
    if (kind == wanted || kind == GdbPacketKind::kAnswer) return answer;
    said_stop_ = said_stop_ || kind == GdbPacketKind::kStop;
    said_end_ = said_end_ || kind == GdbPacketKind::kEnd;
    if (kind == GdbPacketKind::kConsole && console_.size() < kMostConsole)
      console_ += *BytesOfGdbHex(answer->substr(1));
  }
  return GiveUp(Status::Corrupt(fmt::format("{} sends news without an end, and no answer", name_)));
}

// Fewer bytes while the server refuses more than it has ever given.
Result<std::string> GdbTarget::AskForMemory(uint64_t address, size_t count) {
  for (bool refused = false;;) {
    const TimeNs begin = clock_.Monotonic();
    auto answer = Ask(fmt::format("m{:x},{:x}", address, count));
    if (!answer.ok()) return answer;
    const size_t got = answer->size() / 2;
    if (!IsError(*answer) && answer->size() % 2 == 0 && got <= count) {
      if (refused) most_at_once_ = count;
      Adapt(got, clock_.Monotonic() - begin);
      return answer;
    }
    if (IsError(*answer) && proven_ == 0 && AttachAgain()) continue;
    if (!IsError(*answer) || count <= std::max(proven_, kLeastAtOnce)) {
      return Status::NotFound(fmt::format("{} cannot read {} bytes at {:#x} (it says '{}'{})",
                                          name_, count, address, Printable(*answer, kMostOfAnswer),
                                          WhyRefused(*answer)));
    }
    refused = true;
    count /= 2;
  }
}

const char* GdbTarget::WhyRefused(std::string_view answer) const {
  if (said_end_) return ", and that the target has ended";
  // Black Magic's, of any address.
  return answer == "EFF" && proven_ == 0 ? "; is a target attached to it?" : "";
}

void GdbTarget::Adapt(size_t got, TimeNs took) {
  proven_ = std::max(proven_, got);
  const TimeNs fair = patience_ / kPatiencePerAnswer;
  const auto fits = static_cast<size_t>(static_cast<double>(got) * static_cast<double>(fair) /
                                        static_cast<double>(std::max<TimeNs>(took, 1)));
  piece_ = std::clamp(fits, std::min(kLeastAtOnce, most_at_once_),
                      std::min(most_at_once_, 2 * std::max(piece_, got)));
}

// A Black Magic Probe that was left attaches its last target again for a gdb that asks for its
// registers' names, as they all do.
bool GdbTarget::AttachAgain() {
  if (attached_again_ || !Offers("qXfer:features:read+")) return false;
  attached_again_ = true;
  auto answer = Ask("qXfer:features:read:target.xml:0,40");
  return answer.ok() && !IsError(*answer);
}

Status GdbTarget::Read(uint64_t address, std::span<char> bytes) {
  if (Status status = CheckRange(address, bytes.size()); !status.ok()) return status;
  while (!bytes.empty()) {
    const size_t count = std::min({bytes.size(), piece_, most_at_once_});
    auto answer = AskForMemory(address, count);
    if (!answer.ok()) return answer.status();
    const auto got = BytesOfGdbHex(*answer);
    if (!got)
      return GiveUp(Status::Corrupt(fmt::format("{} answers with something else than bytes: '{}'",
                                                name_, Printable(*answer, kMostOfAnswer))));
    std::copy(got->begin(), got->end(), bytes.begin());
    bytes = bytes.subspan(got->size());
    address += got->size();
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
    const auto words = answer.ok() ? BytesOfGdbHex(*answer) : std::nullopt;
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
                         ? BytesOfGdbHex(std::string_view(*answer).substr(0, digits))
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
