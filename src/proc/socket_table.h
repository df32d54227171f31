// The sockets of a network namespace, and which of them are connected with one another.
#ifndef HANGSCOPE_PROC_SOCKET_TABLE_H
#define HANGSCOPE_PROC_SOCKET_TABLE_H

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "proc/proc_folder.h"

namespace hangscope {

struct SocketFacts {
  std::string name;           // "unix '/run/x.sock'", "tcp 127.0.0.1:80 - 127.0.0.1:4242"
  std::string local, remote;  // of tcp: "127.0.0.1:80"; else empty
  bool listening = false;
  uint32_t queued = 0;  // of tcp, listening: connections that nobody has accepted yet
  uint32_t unread = 0;  // of tcp: bytes that have come and that nobody has read yet
  // of unix, where it has a name in the file system: of that file
  std::string file_device;  // "fe:00"
  uint64_t file_inode = 0;
  // the inode of the other end's socket, where it is one of this machine
  std::optional<uint64_t> peer;
  // Nobody has accepted the connection yet: the sockets that listen for it.
  std::vector<uint64_t> acceptors;
  bool outside = false;  // the other end is on another machine, or whoever knows its name
};

class SocketTable {
 public:
  // Of the namespace that process `pid` is in. The kernel names the peers of unix sockets only to
  // those in the same.
  static SocketTable Read(const ProcFolder& proc, int pid);

  // By inode; null: a socket of another kind.
  const SocketFacts* Find(uint64_t inode) const;

  // The unix socket that listens at an abstract name, which begins with a zero byte; at a file.
  std::optional<uint64_t> ListenerAt(std::string_view name) const;
  std::optional<uint64_t> ListenerAt(const std::optional<ProcFolder::FileIdentity>& file) const;
  // The socket of this machine that listens where the tcp socket `inode` connects to, if
  // connections wait there already.
  std::optional<uint64_t> BusyListenerFor(uint64_t inode) const;

  // For tests: from texts.
  void AddTcp(std::string_view table, std::string_view family);

 private:
  void ReadUnix();
  void LinkTcp();
  void FindAcceptors(const std::string& local, SocketFacts* facts) const;
  std::optional<uint64_t> Listener(const std::function<bool(const SocketFacts&)>& is_wanted) const;

  std::map<uint64_t, SocketFacts> sockets_;
  std::map<std::string, uint64_t> tcp_ends_;  // "local remote" to inode
  std::set<std::string> unaccepted_;          // the same, of ends that wait to be accepted
  std::map<uint32_t, std::vector<uint64_t>> unix_acceptors_;  // by the other end's inode
};

}  // namespace hangscope

#endif
