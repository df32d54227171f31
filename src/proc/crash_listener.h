// Which processes of the machine crash, as the kernel's process connector tells root: each message
// comes from the kernel, and no process is touched, traced or waited for.
//
// The kernel says that a process got a signal that ends it with a core dump (PROC_EVENT_COREDUMP)
// before it writes the dump, so that its name, its folder and its ancestors can still be read; and
// that it has ended (PROC_EVENT_EXIT) after the dump is written. A filter in the kernel drops all
// other messages.
#ifndef HANGSCOPE_PROC_CRASH_LISTENER_H
#define HANGSCOPE_PROC_CRASH_LISTENER_H

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

struct proc_event;  // <linux/cn_proc.h>

namespace hangscope {

struct ProcessCrash {
  int pid = 0;
  int signal = 0;
  bool wrote_core = false;
  std::string name;     // empty: it had ended before it could be read; likewise the others
  std::string command;  // its words
  std::string folder;   // its current one
};

// One thread.
class CrashListener {
 public:
  // Null where the kernel does not tell: it wants CAP_NET_ADMIN before Linux 6.6, and tells nobody
  // in a container with process numbers of its own. With a network of its own it hears nothing.
  static std::unique_ptr<CrashListener> Open();
  ~CrashListener();
  CrashListener(const CrashListener&) = delete;
  CrashListener& operator=(const CrashListener&) = delete;

  int fd() const { return fd_; }  // can be read when there is something to drain
  // Those that ended since, of processes whose parents `is_wanted` accepts.
  std::vector<ProcessCrash> Drain(const std::function<bool(int)>& is_wanted);

 private:
  struct Dying {
    bool is_wanted = false;
    std::string name, command, folder;
  };

  explicit CrashListener(int fd) : fd_(fd) {}
  void NoteDying(const proc_event& event, const std::function<bool(int)>& is_wanted);
  void NoteEnd(const proc_event& event, std::vector<ProcessCrash>* crashes);

  const int fd_;
  std::map<int, Dying> dying_;
};

}  // namespace hangscope

#endif
