#include "control/control_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "base/file_system.h"
#include "control/control_folder.h"

namespace hangscope {
namespace {

constexpr TimeNs kForever = -1;

// A request on its way and the reply so far.
class Conversation {
 public:
  // Refused (a dead recorder) is kNotFound.
  static Result<std::unique_ptr<Conversation>> Begin(const ControlFolderHandle& folder, int pid,
                                                     const ControlRequest& request) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return Status::FromErrno(errno, "make a socket for", SocketName(pid));
    std::unique_ptr<Conversation> conversation(new Conversation(fd));
    const sockaddr_un address = folder.Address(SocketName(pid));
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      if (errno == ECONNREFUSED) return Status::NotFound("its recorder is dead");
      return Status::FromErrno(errno, "connect to", SocketName(pid));
    }
    if (!PeerIsTrusted(fd, folder.owner()))
      return Status::Io(fmt::format("{} belongs to another user's process", SocketName(pid)));
    const std::string line = RequestLine(request) + "\n";
    if (send(fd, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size())) {
      return Status::FromErrno(errno, "ask", SocketName(pid));
    }
    return conversation;
  }
  ~Conversation() { close(fd_); }
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  // The line of the reply; `patience` in all, or kForever.
  Result<std::string> Reply(TimeNs patience) {
    SystemClock clock;
    const TimeNs deadline = clock.Monotonic() + patience;
    for (;;) {
      const size_t newline = reply_.find('\n');
      if (newline != std::string::npos) return reply_.substr(0, newline);
      if (reply_.size() > kLongestReply) return Status::Corrupt("its reply is too long");
      const TimeNs left =
          patience == kForever ? kForever : std::max<TimeNs>(0, deadline - clock.Monotonic());
      pollfd event{fd_, POLLIN, 0};
      const int ready =
          poll(&event, 1, left == kForever ? -1 : static_cast<int>(left / kMillisecond));
      if (ready < 0 && errno != EINTR) return Status::FromErrno(errno, "wait for", "the recorder");
      if (ready == 0) return Status::Busy("it does not answer");
      if (ready > 0 && !Receive()) return Status::Io("it ended before it had answered");
    }
  }

 private:
  explicit Conversation(int fd) : fd_(fd) {}

  bool Receive() {
    char buffer[4096];
    const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    reply_.append(buffer, static_cast<size_t>(got));
    return got > 0;
  }

  const int fd_;
  std::string reply_;
};

struct Asked {
  int pid = 0;
  std::unique_ptr<Conversation> conversation;  // none: it takes no more calls now
};

// The folder may be there or not; one that is there and not private is a warning.
std::vector<Asked> AskAllIn(const std::string& path, std::string* warning) {
  std::vector<Asked> asked;
  auto folder = ControlFolderHandle::Open(path, false);
  if (!folder.ok()) {
    if (folder.status().code() != Status::Code::kNotFound) *warning = folder.status().message();
    return asked;
  }
  for (const int pid : folder->Pids()) {
    auto conversation = Conversation::Begin(*folder, pid, {});
    if (conversation.ok()) {
      asked.push_back({pid, std::move(*conversation)});
    } else if (conversation.status().code() == Status::Code::kNotFound) {
      folder->Remove(SocketName(pid));
    } else {
      asked.push_back({pid, nullptr});
    }
  }
  return asked;
}

bool ComesBefore(const LiveRecorder& a, const LiveRecorder& b) {
  if (a.status.name != b.status.name) return a.status.name < b.status.name;
  if (a.status.age != b.status.age) return a.status.age > b.status.age;
  return a.status.pid < b.status.pid;
}

std::string Canonical(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  std::error_code error;
  const auto canonical = std::filesystem::weakly_canonical(path, error);
  return error ? path : canonical.string();
}

bool LiesAt(const RecorderStatus& status, const std::string& target) {
  const std::string path = Canonical(target);
  if (path == status.prefix || path == FolderOf(status.prefix)) return true;
  return std::any_of(status.rings.begin(), status.rings.end(), [&](const std::string& ring) {
    return path == ring ||
           (path.starts_with(ring + ".") && path.find('/', ring.size()) == std::string::npos);
  });
}

template <typename Predicate>
std::vector<LiveRecorder> Those(const std::vector<LiveRecorder>& recorders, Predicate wanted) {
  std::vector<LiveRecorder> chosen;
  std::copy_if(recorders.begin(), recorders.end(), std::back_inserter(chosen), wanted);
  return chosen;
}

}  // namespace

LiveRecorders FindRecorders(const std::string& folder, TimeNs patience) {
  LiveRecorders recorders;
  const std::vector<Asked> asked = AskAllIn(folder, &recorders.warning);
  SystemClock clock;
  const TimeNs deadline = clock.Monotonic() + patience;
  for (const Asked& one : asked) {
    LiveRecorder recorder;
    recorder.folder = folder;
    recorder.status.answered = false;
    if (one.conversation != nullptr) {
      auto reply = one.conversation->Reply(std::max<TimeNs>(0, deadline - clock.Monotonic()));
      if (!reply.ok() && reply.status().code() == Status::Code::kIo) continue;  // it just ended
      auto status = reply.ok() ? ParseStatusReply(*reply) : reply.status();
      if (status.ok()) recorder.status = *status;
    }
    recorder.status.pid = one.pid;
    recorders.found.push_back(std::move(recorder));
  }
  std::sort(recorders.found.begin(), recorders.found.end(), ComesBefore);
  return recorders;
}

std::vector<LiveRecorder> RecordersMatching(const std::vector<LiveRecorder>& recorders,
                                            const std::string& target) {
  auto exact = Those(recorders,
                     [&](const LiveRecorder& r) { return std::to_string(r.status.pid) == target; });
  if (!exact.empty()) return exact;
  return Those(recorders, [&](const LiveRecorder& r) {
    if (!r.status.answered) return false;
    const bool child = r.status.child_pid != 0 && std::to_string(r.status.child_pid) == target;
    return child || r.status.name == target || LiesAt(r.status, target);
  });
}

Result<std::string> AskForSnapshot(const LiveRecorder& recorder, bool now, bool since_last) {
  auto folder = ControlFolderHandle::Open(recorder.folder, false);
  if (!folder.ok()) return folder.status();
  ControlRequest request;
  request.command = ControlRequest::Command::kSnap;
  request.now = now;
  request.since_last = since_last;
  auto conversation = Conversation::Begin(*folder, recorder.status.pid, request);
  if (!conversation.ok()) return conversation.status();
  auto reply = (*conversation)->Reply(kForever);
  if (!reply.ok()) return reply.status();
  return ParseSnapReply(*reply);
}

}  // namespace hangscope
