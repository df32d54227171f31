// Clients of a listening socket, none of whom is ever waited for: who comes, who can be read or
// written, who has gone, and who takes too long.
#ifndef HANGSCOPE_CONTROL_SOCKET_CLIENTS_H
#define HANGSCOPE_CONTROL_SOCKET_CLIENTS_H

#include <functional>
#include <map>
#include <vector>

#include "base/clock.h"

namespace hangscope {

// One thread.
class SocketClients {
 public:
  struct Event {
    enum class Kind { kReadable, kWritable };
    int client = 0;  // ids are never used again
    Kind kind = Kind::kReadable;
  };

  // `listener` listens and does not block; it is closed with this. More than `most` at once, and
  // who has not been excused after `patience`, are hung up on.
  SocketClients(int listener, size_t most, TimeNs patience);
  ~SocketClients();
  SocketClients(const SocketClients&) = delete;
  SocketClients& operator=(const SocketClients&) = delete;

  // Whether a new one may stay, asked before it is taken in; `full`: there is no room for it. It
  // may be written to, and is closed if not. By default all may for whom there is room.
  void SetAdmission(std::function<bool(int fd, bool full)> admit) { admit_ = std::move(admit); }

  // Polls as readable when there is something to do.
  int event_fd() const { return epoll_; }
  // Takes in who came, forgets who has gone or is late. A client may be gone by the time its event
  // is looked at.
  std::vector<Event> Poll(TimeNs now);
  // -1: there is no such client any more.
  int Descriptor(int client) const;
  size_t size() const { return clients_.size(); }
  bool Has(int client) const { return clients_.count(client) != 0; }
  void AwaitWriting(int client);  // and go on reading
  // It is not late from now on, and not read; that it goes is still noticed.
  void Excuse(int client);
  void HangUp(int client);
  // On who has waited longest and asked nothing; makes room for somebody who may.
  void HangUpOnIdlest();

 private:
  struct Client {
    int fd = -1;
    TimeNs since = 0;
    bool excused = false;
    bool asked = false;
  };

  void Accept(TimeNs now);
  void Follow(int fd, int id, int operation, uint32_t events);

  const int listener_;
  const int epoll_;
  const size_t most_;
  const TimeNs patience_;
  std::function<bool(int fd, bool full)> admit_;
  std::map<int, Client> clients_;
  int last_id_ = 0;
};

}  // namespace hangscope

#endif
