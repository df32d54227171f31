#include "watch/metrics_server.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace hangscope {
namespace {

constexpr size_t kMostClients = 16;
constexpr int kBacklog = 16;
constexpr size_t kLongestScrape = 8192;
constexpr TimeNs kPatience = 5 * kSecond;  // from the connection to the last byte

std::string Response(const char* status, const std::string& type, const std::string& body) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
      status, type, body.size(), body);
}

Status Wrong(const std::string& where) {
  return Status::Usage(
      fmt::format("--metrics '{}': HOST:PORT, or the path of a socket with a slash in it; for "
                  "example 127.0.0.1:9187",
                  where));
}

struct Listener {
  int fd = -1;
  std::string address;
  std::string path;
};

Result<Listener> ListenTo(int fd, const sockaddr* address, socklen_t length,
                          const std::string& where) {
  if (fd < 0) return Status::FromErrno(errno, "make a socket for", where);
  if (bind(fd, address, length) == 0 && listen(fd, kBacklog) == 0) return Listener{fd, {}, {}};
  const Status status = Status::FromErrno(errno, "listen on", where);
  close(fd);
  return status;
}

Result<Listener> ListenOnPath(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return Status::Usage(fmt::format("--metrics '{}': a socket's path has less than {} bytes", path,
                                     sizeof address.sun_path));
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  // One that a dead watcher left; nothing else is removed.
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) {
    const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool refused =
        connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
        errno == ECONNREFUSED;
    close(probe);
    if (refused) unlink(path.c_str());
  }
  auto listener = ListenTo(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                           reinterpret_cast<const sockaddr*>(&address), sizeof address, path);
  if (listener.ok()) listener->address = listener->path = path;
  return listener;
}

Result<Listener> ListenOnPort(const std::string& where) {
  const size_t colon = where.rfind(':');
  if (colon == std::string::npos || colon + 1 == where.size()) return Wrong(where);
  std::string host = where.substr(0, colon);
  const std::string port = where.substr(colon + 1);
  if (port.find_first_not_of("0123456789") != std::string::npos || port.size() > 5 ||
      std::stoi(port) > 65535)
    return Wrong(where);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_family = host.empty() ? AF_INET : AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error =
          getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
      error != 0) {
    return Status::Usage(fmt::format("--metrics '{}': {}", where, gai_strerror(error)));
  }
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  auto listener = ListenTo(fd, found->ai_addr, found->ai_addrlen, where);
  freeaddrinfo(found);
  if (!listener.ok()) return listener;
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length);
  const in_port_t got = bound.ss_family == AF_INET6
                            ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                            : reinterpret_cast<sockaddr_in*>(&bound)->sin_port;
  listener->address = fmt::format("http://{}:{}/metrics",
                                  host.empty() ? "0.0.0.0" : where.substr(0, colon), ntohs(got));
  return listener;
}

}  // namespace

Result<std::unique_ptr<MetricsServer>> MetricsServer::Open(const std::string& where,
                                                           std::function<std::string()> metrics) {
  auto listener = where.find('/') != std::string::npos ? ListenOnPath(where) : ListenOnPort(where);
  if (!listener.ok()) return listener.status();
  return std::unique_ptr<MetricsServer>(
      new MetricsServer(listener->fd, listener->address, listener->path, std::move(metrics)));
}

MetricsServer::MetricsServer(int listener, std::string address, std::string path,
                             std::function<std::string()> metrics)
    : address_(std::move(address)),
      path_(std::move(path)),
      metrics_(std::move(metrics)),
      clients_(listener, kMostClients, kPatience) {
  // Idle connections keep nobody out.
  clients_.SetAdmission([this](int, bool full) {
    if (full) clients_.HangUpOnIdlest();
    return clients_.size() < kMostClients;
  });
}

MetricsServer::~MetricsServer() {
  if (!path_.empty()) unlink(path_.c_str());
}

void MetricsServer::Poll(TimeNs now) {
  for (const SocketClients::Event& event : clients_.Poll(now)) {
    if (event.kind == SocketClients::Event::Kind::kReadable)
      Read(event.client);
    else
      Send(event.client);
  }
  std::erase_if(exchanges_, [this](const auto& entry) { return !clients_.Has(entry.first); });
}

// What comes behind the request is read and forgotten: closing a socket with unread bytes would
// take the answer back.
void MetricsServer::Read(int id) {
  const int fd = clients_.Descriptor(id);
  if (fd < 0) return;
  Exchange& exchange = exchanges_[id];
  char buffer[kLongestScrape];
  const ssize_t got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return clients_.HangUp(id);
  if (exchange.answered) return Send(id);
  exchange.input.append(buffer, static_cast<size_t>(got));
  const bool whole = exchange.input.find("\r\n\r\n") != std::string::npos ||
                     exchange.input.find("\n\n") != std::string::npos;
  if (!whole && exchange.input.size() < kLongestScrape) return;
  exchange.output = whole ? Answer(exchange.input)
                          : Response("400 Bad Request", "text/plain", "the request is too long\n");
  exchange.answered = true;
  Send(id);
}

std::string MetricsServer::Answer(const std::string& request) const {
  const std::string line = request.substr(0, request.find_first_of("\r\n"));
  const size_t first = line.find(' ');
  const size_t second = line.find(' ', first == std::string::npos ? first : first + 1);
  if (second == std::string::npos || !line.substr(second + 1).starts_with("HTTP/1."))
    return Response("400 Bad Request", "text/plain", "this is no HTTP/1 request\n");
  if (line.substr(0, first) != "GET")
    return Response("400 Bad Request", "text/plain", "only GET is answered\n");
  const std::string path = line.substr(first + 1, second - first - 1);
  if (path != "/metrics" && !path.starts_with("/metrics?"))
    return Response("404 Not Found", "text/plain", "there is /metrics\n");
  return Response("200 OK", "text/plain; version=0.0.4; charset=utf-8", metrics_());
}

void MetricsServer::Send(int id) {
  const int fd = clients_.Descriptor(id);
  if (fd < 0) return;
  std::string& output = exchanges_[id].output;
  const ssize_t sent = send(fd, output.data(), output.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) return clients_.HangUp(id);
  if (sent > 0) output.erase(0, static_cast<size_t>(sent));
  if (output.empty()) return clients_.HangUp(id);
  clients_.AwaitWriting(id);
}

}  // namespace hangscope
