// The recorder's end of the control socket. It never waits: a client that is
// slow, silent, too long or one too many is hung up on.
#ifndef HANGSCOPE_CONTROL_CONTROL_H
#define HANGSCOPE_CONTROL_CONTROL_H

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "control/control_folder.h"
#include "control/control_protocol.h"
#include "control/socket_clients.h"

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
  int event_fd() const { return clients_.event_fd(); }
  // Requests that are complete; each client has one, and is owed one Answer.
  std::vector<Call> Poll(TimeNs now);
  // Answers with a line and hangs up. A client that has gone is no matter.
  void Answer(int client, const std::string& line);

 private:
  ControlServer(ControlFolderHandle folder, int listener);
  void Read(int id, std::vector<Call>* calls);

  const ControlFolderHandle folder_;
  SocketClients clients_;
  std::map<int, std::string> input_;  // of those whose request is not complete
};

}  // namespace hangscope

#endif
