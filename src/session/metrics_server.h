// GET /metrics over HTTP/1, on a TCP port or a Unix socket. It never waits: a client that is slow, silent, too
// long or one too many is hung up on, and who asks for anything else is told so. One thread.
#ifndef HANGSCOPE_SESSION_METRICS_SERVER_H
#define HANGSCOPE_SESSION_METRICS_SERVER_H

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace hangscope {

class MetricsServer {
 public:
  // `where`: HOST:PORT ([::1]:9100, :9100 for all of IPv4) or, with a slash in it, the path of a socket to make.
  // Port 0: any that is free. `metrics`: the text to answer with.
  static Result<std::unique_ptr<MetricsServer>> Open(const std::string& where, std::function<std::string()> metrics);
  ~MetricsServer();  // removes the socket
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // Polls as readable when there is something to do.
  int event_fd() const { return epoll_; }
  void Poll(TimeNs now);
  // "http://127.0.0.1:9100/metrics", with the port it got; or the path.
  const std::string& address() const { return address_; }

 private:
  struct Client {
    int fd = -1;
    TimeNs since = 0;
    std::string input;
    std::string output;  // not sent yet
    bool answered = false;
  };

  MetricsServer(int listener, int epoll, std::string address, std::string path, std::function<std::string()> metrics);
  void Accept(TimeNs now);
  void Read(int id);
  void Send(int id);
  void HangUp(int id);
  void HangUpOnTheSlow(TimeNs now);
  std::string Answer(const std::string& request) const;

  const int listener_;
  const int epoll_;
  const std::string address_;
  const std::string path_;  // of the socket; empty: TCP
  const std::function<std::string()> metrics_;
  std::map<int, Client> clients_;  // by ids that are never used again
  int last_id_ = 0;
};

}  // namespace hangscope

#endif
