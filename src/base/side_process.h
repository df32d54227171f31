// Work on bytes that nobody vouches for (a program's ELF and DWARF), in a process of its own: what
// crashes, runs for ever or takes all memory there ends that process and not this one, which
// records.
//
// A fork without an exec: the work is a function of this program, and it answers over a socket.
// Locks of other threads may be held for ever in the new process, as fork leaves them; glibc cares
// for those of malloc, the work takes no others of ours, and whoever is late is killed.
#ifndef HANGSCOPE_BASE_SIDE_PROCESS_H
#define HANGSCOPE_BASE_SIDE_PROCESS_H

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace hangscope {

// One thread at a time.
class SideProcess {
 public:
  // From a request to its answer, in the side process.
  using Work = std::function<std::string(std::string_view request)>;

  static constexpr TimeNs kLongestAnswer = 10 * kSecond;
  static constexpr size_t kMostAnswerBytes = 256u << 20;

  // `name`: of the process, 15 characters at most. `files`: descriptors that it keeps; all others
  // are closed in it.
  static Result<std::unique_ptr<SideProcess>> Start(const std::string& name,
                                                    const std::vector<int>& files, Work work);
  // Ends it, and waits a second for that at most.
  ~SideProcess();
  SideProcess(const SideProcess&) = delete;
  SideProcess& operator=(const SideProcess&) = delete;

  // Fails where the process has ended or does not answer in time; it is ended then, and each
  // further request fails with the same status.
  Result<std::string> Ask(std::string_view request);
  const Status& status() const { return status_; }

  // Whether `pid` is such a process of ours. Any thread.
  static bool Is(pid_t pid);

 private:
  SideProcess(pid_t pid, int pidfd, int socket);
  // Kills and collects it; does not wait long for its end.
  void End();
  // The same of one that broke off: how it ended.
  Status WhatBefell();

  pid_t pid_;  // 0: it is ended
  int pidfd_;
  const int socket_;
  Status status_;
};

// One request, one answer.
Result<std::string> AskSideProcess(const std::string& name, const std::vector<int>& files,
                                   const std::function<std::string()>& work);

}  // namespace hangscope

#endif
