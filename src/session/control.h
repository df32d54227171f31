// The recorder's end of the control socket. It never waits: a client that is
// slow, silent, too long or one too many is hung up on.
#ifndef HANGSCOPE_SESSION_CONTROL_H
#define HANGSCOPE_SESSION_CONTROL_H

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "session/control_folder.h"
#include "session/control_protocol.h"

namespace hangscope {

// One thread.
class ControlServer {
 public:
  struct Call {
    int client = 0;
    ControlRequest request;
  };

  // Makes FOLDER/PID.sock for this process.
  static Result<std::unique_ptr<ControlServer>> Open(const std::string& folder);
  ~ControlServer();  // removes it
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  // Polls as readable when there is something to do.
  int event_fd() const { return epoll_; }
  // Requests that are complete; each client has one, and is owed one Answer.
  std::vector<Call> Poll(TimeNs now);
  // Answers with a line and hangs up. A client that has gone is no matter.
  void Answer(int client, const std::string& line);

 private:
  struct Client {
    int fd = -1;
    TimeNs since = 0;
    std::string input;
    bool asked = false;  // its request is complete
  };

  ControlServer(ControlFolderHandle folder, int listener, int epoll);
  void Accept(TimeNs now);
  void Read(int id, std::vector<Call>* calls);
  void HangUp(int id);
  void HangUpOnTheSlow(TimeNs now);

  const ControlFolderHandle folder_;
  const int listener_;
  const int epoll_;
  std::map<int, Client> clients_;  // by ids that are never used again
  int last_id_ = 0;
};

}  // namespace hangscope

#endif
