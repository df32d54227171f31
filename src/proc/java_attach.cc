#include "proc/java_attach.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/side_process.h"
#include "proc/proc_folder.h"

namespace hangscope {
namespace {

constexpr size_t kMostPrinted = 64u << 20;
constexpr uint64_t kQuit = 1u << (SIGQUIT - 1);
constexpr TimeNs kBetweenTries = 20 * kMillisecond;
constexpr char kAnswered = '+';  // what the side process says: this or that, then a text
constexpr char kFailed = '-';

struct Machine {
  int pid = 0;
  std::string socket;  // its paths, as this process sees them
  std::string request;
  uid_t user = 0;
  gid_t group = 0;
  bool handles_quit = false;
};

std::string Failed(const std::string& why) { return kFailed + why; }

// Only what the process itself may do is done there.
bool BecomeUserOf(const Machine& machine) {
  if (geteuid() != 0) return geteuid() == machine.user;
  return setgroups(0, nullptr) == 0 &&
         setresgid(machine.group, machine.group, machine.group) == 0 &&
         setresuid(machine.user, machine.user, machine.user) == 0;
}

bool HasSocket(const Machine& machine) {
  struct stat status = {};
  return lstat(machine.socket.c_str(), &status) == 0 && S_ISSOCK(status.st_mode) &&
         status.st_uid == machine.user;
}

// Empty: it has opened its socket. Else a sentence.
std::string OpenItsSocket(Clock& clock, const Machine& machine, TimeNs within) {
  if (HasSocket(machine)) return {};  // it was asked before, or began with it (-Xrs)
  if (!machine.handles_quit) return "it does not handle SIGQUIT, by which it would be";
  const int file =
      open(machine.request.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0 && errno != EEXIST)
    return fmt::format("cannot make '{}': {}", machine.request, ErrorText(errno));
  if (file >= 0) close(file);
  const TimeNs end = clock.Monotonic() + within;
  const bool sent = kill(machine.pid, SIGQUIT) == 0;
  while (sent && !HasSocket(machine) && clock.Monotonic() < end) clock.Sleep(kBetweenTries);
  unlink(machine.request.c_str());
  return HasSocket(machine) ? ""
                            : "it does not open the socket at which it would be asked "
                              "(-XX:+DisableAttachMechanism forbids that)";
}

std::string Exchange(Clock& clock, const Machine& machine, TimeNs within) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // Its path may be longer than an address takes.
  const std::string folder = machine.socket.substr(0, machine.socket.rfind('/'));
  const int at = open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  const std::string path =
      fmt::format("/proc/self/fd/{}{}", at, machine.socket.substr(folder.size()));
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (at < 0 || fd < 0 || path.size() >= sizeof address.sun_path)
    return Failed("its socket cannot be reached");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return Failed(fmt::format("cannot connect to '{}': {}", machine.socket, ErrorText(errno)));
  constexpr std::string_view kRequest("1\0threaddump\0-l\0\0\0", 18);
  if (send(fd, kRequest.data(), kRequest.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(kRequest.size()))
    return Failed("it does not take the question");
  std::string answer;
  char bytes[1 << 16];
  for (const TimeNs end = clock.Monotonic() + within;;) {
    const TimeNs left = end - clock.Monotonic();
    pollfd ready = {fd, POLLIN, 0};
    if (left <= 0 || poll(&ready, 1, static_cast<int>(left / kMillisecond) + 1) == 0)
      return Failed(fmt::format("it did not answer within {} s: perhaps it cannot halt its threads",
                                within / kSecond));
    const ssize_t got = read(fd, bytes, sizeof bytes);
    if (got == 0) break;
    if (got < 0 && errno != EINTR) return Failed("it broke off");
    if (got > 0) answer.append(bytes, static_cast<size_t>(got));
    if (answer.size() > kMostPrinted) return Failed("it prints more than 64 MiB");
  }
  const size_t line = answer.find('\n');
  if (line == std::string::npos || answer.substr(0, line) != "0")
    return Failed("it refused to print its threads");
  return kAnswered + answer.substr(line + 1);
}

}  // namespace

Result<std::string> AskJavaThreads(int pid, const JavaAttachTimes& times) {
  const ProcFolder proc("/proc");
  const auto text = proc.Read(fmt::format("{}/status", pid));
  const auto status = text ? ParseTaskStatus(*text) : std::nullopt;
  struct stat folder = {};
  if (!status || stat(fmt::format("/proc/{}", pid).c_str(), &folder) != 0)
    return Status::NotFound(fmt::format("there is no process {}", pid));
  const auto sentence = [&](const std::string& why) {
    return Status::Io(fmt::format("process {} cannot be asked: {}", pid, why));
  };
  const int inner = status->inner_id > 0 ? status->inner_id : pid;
  const std::string begin = fmt::format("/proc/{}/root/tmp/.", pid);
  const Machine machine{pid,
                        fmt::format("{}java_pid{}", begin, inner),
                        fmt::format("{}attach_pid{}", begin, inner),
                        folder.st_uid,
                        folder.st_gid,
                        (status->caught_signals & kQuit) != 0};
  if (geteuid() != 0 && geteuid() != machine.user)
    return sentence("it belongs to another user; run hangscope as root, or as that one");
  SystemClock clock;
  auto answer = AskSideProcess("java-asker", {}, [&] {
    if (!BecomeUserOf(machine)) return Failed("its user cannot be taken on");
    const std::string trouble = OpenItsSocket(clock, machine, times.opens);
    return trouble.empty() ? Exchange(clock, machine, times.answers) : Failed(trouble);
  });
  if (!answer.ok()) return sentence(answer.status().message());
  if (answer->empty() || answer->front() != kAnswered)
    return sentence(answer->empty() ? "nothing came back" : answer->substr(1));
  return answer->substr(1);
}

}  // namespace hangscope
