#include "control/socket_clients.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <iterator>

namespace hangscope {
namespace {

constexpr int kMostAtATime = 16;

}  // namespace

SocketClients::SocketClients(int listener, size_t most, TimeNs patience)
    : listener_(listener),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      most_(most),
      patience_(patience),
      admit_([](int, bool full) { return !full; }) {
  Follow(listener_, 0, EPOLL_CTL_ADD, EPOLLIN);
}

SocketClients::~SocketClients() {
  for (const auto& [id, client] : clients_) close(client.fd);
  close(listener_);
  close(epoll_);
}

void SocketClients::Follow(int fd, int id, int operation, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = id;
  epoll_ctl(epoll_, operation, fd, &event);
}

std::vector<SocketClients::Event> SocketClients::Poll(TimeNs now) {
  std::vector<Event> found;
  epoll_event events[kMostAtATime];
  const int count = epoll_wait(epoll_, events, kMostAtATime, 0);
  for (int i = 0; i < count; ++i) {
    const int id = events[i].data.fd;
    if (id == 0) {
      Accept(now);
    } else if ((events[i].events & EPOLLIN) != 0) {
      found.push_back({id, Event::Kind::kReadable});
    } else if ((events[i].events & EPOLLOUT) != 0) {
      found.push_back({id, Event::Kind::kWritable});
    } else {
      HangUp(id);  // it has gone
    }
  }
  for (auto at = clients_.begin(); at != clients_.end();) {
    const bool late = !at->second.excused && now - at->second.since > patience_;
    if (late) close(at->second.fd);
    at = late ? clients_.erase(at) : std::next(at);
  }
  return found;
}

void SocketClients::Accept(TimeNs now) {
  for (int i = 0; i < kMostAtATime; ++i) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    if (!admit_(fd, clients_.size() >= most_)) {
      close(fd);
      continue;
    }
    const int id = ++last_id_;
    clients_[id] = {fd, now};
    Follow(fd, id, EPOLL_CTL_ADD, EPOLLIN);
  }
}

int SocketClients::Descriptor(int client) const {
  const auto at = clients_.find(client);
  return at == clients_.end() ? -1 : at->second.fd;
}

void SocketClients::AwaitWriting(int client) {
  const auto at = clients_.find(client);
  if (at == clients_.end()) return;
  at->second.asked = true;
  Follow(at->second.fd, client, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
}

void SocketClients::HangUpOnIdlest() {
  for (const auto& [id, client] : clients_) {  // in the order in which they came
    if (!client.asked && !client.excused) return HangUp(id);
  }
}

void SocketClients::Excuse(int client) {
  const auto at = clients_.find(client);
  if (at == clients_.end()) return;
  at->second.excused = true;
  Follow(at->second.fd, client, EPOLL_CTL_MOD, 0);
}

void SocketClients::HangUp(int client) {
  const auto at = clients_.find(client);
  if (at == clients_.end()) return;
  close(at->second.fd);
  clients_.erase(at);
}

}  // namespace hangscope
