// The end of a process that is not a child of ours: that it came, and how, as far as the kernel
// tells.
#ifndef HANGSCOPE_PROC_PROCESS_END_H
#define HANGSCOPE_PROC_PROCESS_END_H

#include <memory>
#include <optional>

#include "base/status.h"

namespace hangscope {

// One thread.
class ProcessEnd {
 public:
  struct How {
    bool known = false;
    int exit_status = 0;
    int signal_number = 0;  // 0: it ended by itself
  };

  // Null: there is no such process.
  static std::unique_ptr<ProcessEnd> Watch(int pid);
  ~ProcessEnd();
  ProcessEnd(const ProcessEnd&) = delete;
  ProcessEnd& operator=(const ProcessEnd&) = delete;

  int pid() const { return pid_; }
  // Does not wait. Another process that got its number is not mistaken for it.
  bool HasEnded();
  // Since Linux 6.15 of every process; before, only until its parent has asked, and of one's own.
  How how();
  // To this process, never to another one with its number. Fails where it has been collected, or
  // may not be signalled.
  Status Signal(int number);

 private:
  ProcessEnd(int pid, int fd) : pid_(pid), fd_(fd) {}

  const int pid_;
  const int fd_;
};

}  // namespace hangscope

#endif
