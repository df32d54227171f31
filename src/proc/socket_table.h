// The sockets of a network namespace, and which of them are connected with one another.
#ifndef HANGSCOPE_PROC_SOCKET_TABLE_H
#define HANGSCOPE_PROC_SOCKET_TABLE_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "proc/proc_folder.h"

namespace hangscope {

struct SocketFacts {
  std::string name;           // "unix '/run/x.sock'", "tcp 127.0.0.1:80 - 127.0.0.1:4242"
  std::string local, remote;  // of tcp: "127.0.0.1:80"; else empty
  bool listening = false;
  // the inode of the other end's socket, where it is one of this machine
  std::optional<uint64_t> peer;
  bool outside = false;  // the other end is on another machine, or whoever knows its name
};

class SocketTable {
 public:
  // Of the namespace that process `pid` is in. The kernel names the peers of unix sockets only to
  // those in the same.
  static SocketTable Read(const ProcFolder& proc, int pid);

  // By inode; null: a socket of another kind.
  const SocketFacts* Find(uint64_t inode) const;

  // For tests: from texts.
  void AddTcp(std::string_view table, std::string_view family);

 private:
  void ReadUnix();
  void LinkTcp();

  std::map<uint64_t, SocketFacts> sockets_;
  std::map<std::string, uint64_t> tcp_ends_;  // "local remote" to inode
};

}  // namespace hangscope

#endif
