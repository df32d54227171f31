// GET /metrics over HTTP/1, on a TCP port or a Unix socket. It never waits: a client that is slow,
// silent, too long or one too many is hung up on, and who asks for anything else is told so. One
// thread.
#ifndef HANGSCOPE_WATCH_METRICS_SERVER_H
#define HANGSCOPE_WATCH_METRICS_SERVER_H

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "control/socket_clients.h"

namespace hangscope {

class MetricsServer {
 public:
  // `where`: HOST:PORT ([::1]:9100, :9100 for all of IPv4) or, with a slash in it, the path of a
  // socket to make. Port 0: any that is free. `metrics`: the text to answer with.
  static Result<std::unique_ptr<MetricsServer>> Open(const std::string& where,
                                                     std::function<std::string()> metrics);
  ~MetricsServer();  // removes the socket
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // Polls as readable when there is something to do.
  int event_fd() const { return clients_.event_fd(); }
  void Poll(TimeNs now);
  // "http://127.0.0.1:9100/metrics", with the port it got; or the path.
  const std::string& address() const { return address_; }

 private:
  struct Exchange {
    std::string input;
    std::string output;  // not sent yet
    bool answered = false;
  };

  MetricsServer(int listener, std::string address, std::string path,
                std::function<std::string()> metrics);
  void Read(int id);
  void Send(int id);
  std::string Answer(const std::string& request) const;

  const std::string address_;
  const std::string path_;  // of the socket; empty: TCP
  const std::function<std::string()> metrics_;
  SocketClients clients_;
  std::map<int, Exchange> exchanges_;  // by client
};

}  // namespace hangscope

#endif
