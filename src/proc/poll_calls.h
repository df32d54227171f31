// System calls that wait for several files: which these are, and for what files one waits.
#ifndef HANGSCOPE_PROC_POLL_CALLS_H
#define HANGSCOPE_PROC_POLL_CALLS_H

#include <sys/syscall.h>

#include <vector>

#include "proc/proc_text.h"
#include "proc/process_memory.h"

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

namespace hangscope {

// By its number, as 64-bit programs of this machine have it.
constexpr bool IsEpollCall(int number) {
  switch (number) {
#if defined(__x86_64__)
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
      return true;
    default:
      return false;
  }
}

constexpr bool IsPollCall(int number) {
  switch (number) {
#if defined(__x86_64__)
    case SYS_poll:
    case SYS_select:
#endif
    case SYS_ppoll:
    case SYS_pselect6:
      return true;
    default:
      return IsEpollCall(number);
  }
}

struct PolledFiles {
  struct File {
    int fd = -1;
    bool wants_read = true;
  };
  std::vector<File> files;
  bool cut = false;  // there are more
};

// Of poll, ppoll, select and pselect6. What cannot be read is not there.
PolledFiles ReadPolledFiles(const TaskSystemCall& call, const ReadMemory& read);

}  // namespace hangscope

#endif
