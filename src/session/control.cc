#include "session/control.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace hangscope {
namespace {

constexpr size_t kMostClients = 32;
constexpr int kBacklog = 16;
constexpr int kMostEvents = 16;
constexpr TimeNs kRequestTimeout = 2 * kSecond;

void Watch(int epoll, int fd, int id, int operation, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = id;
  epoll_ctl(epoll, operation, fd, &event);
}

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
  const bool listens = bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                       listen(listener, kBacklog) == 0 &&
                       renameat(folder->fd(), unborn.c_str(), folder->fd(), name.c_str()) == 0;
  if (!listens) {
    const Status status = Status::FromErrno(errno, "make a socket in", path);
    folder->Remove(unborn);
    close(listener);
    return status;
  }
  return std::unique_ptr<ControlServer>(new ControlServer(std::move(*folder), listener, epoll_create1(EPOLL_CLOEXEC)));
}

ControlServer::ControlServer(ControlFolderHandle folder, int listener, int epoll)
    : folder_(std::move(folder)), listener_(listener), epoll_(epoll) {
  Watch(epoll_, listener_, 0, EPOLL_CTL_ADD, EPOLLIN);
}

ControlServer::~ControlServer() {
  folder_.Remove(SocketName(getpid()));
  for (const auto& [id, client] : clients_) close(client.fd);
  close(listener_);
  close(epoll_);
}

std::vector<ControlServer::Call> ControlServer::Poll(TimeNs now) {
  std::vector<Call> calls;
  epoll_event events[kMostEvents];
  const int count = epoll_wait(epoll_, events, kMostEvents, 0);
  for (int i = 0; i < count; ++i) {
    const int id = events[i].data.fd;
    if (id == 0) {
      Accept(now);
    } else if ((events[i].events & EPOLLIN) != 0) {
      Read(id, &calls);
    } else {
      HangUp(id);  // it has gone
    }
  }
  HangUpOnTheSlow(now);
  return calls;
}

void ControlServer::Accept(TimeNs now) {
  for (int i = 0; i < kBacklog; ++i) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    if (!PeerIsTrusted(fd)) {
      close(fd);
    } else if (clients_.size() >= kMostClients) {
      Send(fd, FailedReply("too many ask at once"));
      close(fd);
    } else {
      const int id = ++last_id_;
      clients_[id] = {fd, now, {}, false};
      Watch(epoll_, fd, id, EPOLL_CTL_ADD, EPOLLIN);
    }
  }
}

void ControlServer::Read(int id, std::vector<Call>* calls) {
  const auto at = clients_.find(id);
  if (at == clients_.end()) return;
  Client& client = at->second;
  char buffer[kLongestRequest];
  const ssize_t got = recv(client.fd, buffer, sizeof buffer, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return HangUp(id);
  client.input.append(buffer, static_cast<size_t>(got));
  const size_t newline = client.input.find('\n');
  if (newline == std::string::npos) {
    if (client.input.size() >= kLongestRequest) Answer(id, FailedReply("the request is too long"));
    return;
  }
  auto request = ParseRequest(std::string_view(client.input).substr(0, newline));
  if (!request.ok()) return Answer(id, FailedReply(request.status().message()));
  client.asked = true;
  client.input.clear();
  Watch(epoll_, client.fd, id, EPOLL_CTL_MOD, 0);  // that it has gone is told still
  calls->push_back({id, *request});
}

void ControlServer::Answer(int id, const std::string& line) {
  const auto at = clients_.find(id);
  if (at == clients_.end()) return;
  Send(at->second.fd, line);  // fits the socket's buffer, or is nobody's concern
  HangUp(id);
}

void ControlServer::HangUp(int id) {
  const auto at = clients_.find(id);
  if (at == clients_.end()) return;
  close(at->second.fd);
  clients_.erase(at);
}

void ControlServer::HangUpOnTheSlow(TimeNs now) {
  for (auto at = clients_.begin(); at != clients_.end();) {
    const bool slow = !at->second.asked && now - at->second.since > kRequestTimeout;
    if (slow) close(at->second.fd);
    at = slow ? clients_.erase(at) : std::next(at);
  }
}

}  // namespace hangscope
