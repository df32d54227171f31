#include "control/control.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace hangscope {
namespace {

constexpr size_t kMostClients = 32;
constexpr int kBacklog = 16;
constexpr TimeNs kRequestTimeout = 2 * kSecond;

void Send(int fd, const std::string& line) {
  const std::string text = line + "\n";
  (void)!send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::Open(const std::string& path) {
  auto folder = ControlFolderHandle::Open(path, true);
  if (!folder.ok()) return folder.status();
  // A socket gets its name when it listens: whoever finds one that refuses may
  // take it for a dead recorder's.
  const std::string name = SocketName(getpid());
  const std::string unborn = name + "~";
  folder->Remove(unborn);
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return Status::FromErrno(errno, "make a socket in", path);
  const sockaddr_un address = folder->Address(unborn);
  const bool listens =
      bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      fchmodat(folder->fd(), unborn.c_str(), 0600, 0) == 0 && listen(listener, kBacklog) == 0 &&
      renameat(folder->fd(), unborn.c_str(), folder->fd(), name.c_str()) == 0;
  if (!listens) {
    const Status status = Status::FromErrno(errno, "make a socket in", path);
    folder->Remove(unborn);
    close(listener);
    return status;
  }
  return std::unique_ptr<ControlServer>(new ControlServer(std::move(*folder), listener));
}

ControlServer::ControlServer(ControlFolderHandle folder, int listener)
    : folder_(std::move(folder)), clients_(listener, kMostClients, kRequestTimeout) {
  clients_.SetAdmission([owner = folder_.owner()](int fd, bool full) {
    if (!PeerIsTrusted(fd, owner)) return false;
    if (full) Send(fd, FailedReply("too many ask at once"));
    return !full;
  });
}

ControlServer::~ControlServer() { folder_.Remove(SocketName(getpid())); }

std::vector<ControlServer::Call> ControlServer::Poll(TimeNs now) {
  std::vector<Call> calls;
  for (const SocketClients::Event& event : clients_.Poll(now)) Read(event.client, &calls);
  std::erase_if(input_, [this](const auto& entry) { return !clients_.Has(entry.first); });
  return calls;
}

void ControlServer::Read(int id, std::vector<Call>* calls) {
  const int fd = clients_.Descriptor(id);
  if (fd < 0) return;
  char buffer[kLongestRequest];
  const ssize_t got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return clients_.HangUp(id);
  std::string& input = input_[id];
  input.append(buffer, static_cast<size_t>(got));
  const size_t newline = input.find('\n');
  if (newline == std::string::npos) {
    if (input.size() >= kLongestRequest) Answer(id, FailedReply("the request is too long"));
    return;
  }
  auto request = ParseRequest(std::string_view(input).substr(0, newline));
  if (!request.ok()) return Answer(id, FailedReply(request.status().message()));
  clients_.Excuse(id);
  input_.erase(id);
  calls->push_back({id, *request});
}

void ControlServer::Answer(int id, const std::string& line) {
  const int fd = clients_.Descriptor(id);
  if (fd >= 0) Send(fd, line);  // fits the socket's buffer, or is nobody's concern
  clients_.HangUp(id);
}

}  // namespace hangscope
