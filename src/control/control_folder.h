// The folder of the control sockets: private, or not used at all.
#ifndef HANGSCOPE_CONTROL_CONTROL_FOLDER_H
#define HANGSCOPE_CONTROL_CONTROL_FOLDER_H

#include <sys/types.h>
#include <sys/un.h>

#include <string>
#include <vector>

#include "base/status.h"

namespace hangscope {

// /tmp/hangscope-UID: for what has no place of its own.
std::string TemporaryFolder();
// Where recorders of this user have their sockets: $XDG_RUNTIME_DIR/hangscope, or
// /tmp/hangscope-UID where there is no such directory.
std::string ControlFolder();

// A folder held open, so that what was checked is what is used.
class ControlFolderHandle {
 public:
  // Fails unless it is a folder, no link, that its owner alone may use, and the
  // owner is this user. Where `make`, it is made if absent. Root may look into the folder
  // of another user, too, where that user also owns the folder that it lies in
  // (XDG_RUNTIME_DIR); in /tmp anybody may have made one under root's name.
  static Result<ControlFolderHandle> Open(const std::string& path, bool make);
  ControlFolderHandle(ControlFolderHandle&& other) noexcept;
  ControlFolderHandle& operator=(ControlFolderHandle&& other) noexcept;
  ControlFolderHandle(const ControlFolderHandle&) = delete;
  ControlFolderHandle& operator=(const ControlFolderHandle&) = delete;
  ~ControlFolderHandle();

  int fd() const { return fd_; }
  uid_t owner() const { return owner_; }
  // The address of a socket in it, however long the folder's path is.
  sockaddr_un Address(const std::string& name) const;
  // The processes that have a socket here, dead ones too; sorted.
  std::vector<int> Pids() const;
  void Remove(const std::string& name) const;

 private:
  ControlFolderHandle(int fd, uid_t owner) : fd_(fd), owner_(owner) {}
  int fd_;
  uid_t owner_;
};

std::string SocketName(int pid);  // "4711.sock"

// Whether the process at the other end runs as `owner`, whose the folder is, or as root.
bool PeerIsTrusted(int socket, uid_t owner);

}  // namespace hangscope

#endif
