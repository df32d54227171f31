// What a thread that sleeps in a system call waits for, as far as the call's number and arguments
// tell.
#ifndef HANGSCOPE_PROCESS_SYSTEM_CALL_H
#define HANGSCOPE_PROCESS_SYSTEM_CALL_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/process.h"
#include "proc/ipc/system_v.h"
#include "proc/proc_text.h"
#include "proc/process_memory.h"

namespace hangscope {

// kPriority: a lock whose word holds its owner's thread id
enum class FutexUse { kNone, kWait, kPriority };

// One futex that is waited on.
struct FutexWord {
  uint64_t address = 0;
  uint32_t expected = 0;  // it slept because the word held this
  bool is_private = true;
  bool is_32_bit = false;  // so are the objects of its program
};

enum class ChildChoice {
  kAny,
  kProcess,
  kGroup,
  kDescriptor,
  kOfVfork,  // the one that still has the caller's memory
};

struct CallMeaning {
  WaitKind kind = WaitKind::kNone;
  FutexUse futex_use = FutexUse::kNone;
  std::vector<FutexWord> futexes;  // of kFutex
  struct File {
    int fd = -1;
    bool wants_read = true;
  };
  std::vector<File> files;  // of kRead, kWrite, kPoll, kAccept, kConnect, kFileLock
  // Of kRead and kWrite where there is no descriptor: a queue of System V, a set of its semaphores.
  struct SystemV {
    int id = -1;
    bool is_queue = false;
    std::vector<SemaphoreWish> semaphores;  // that it takes from, all at once
  };
  std::optional<SystemV> system_v;
  // Of kOther: data goes from one descriptor to another; -1: from or to memory.
  struct Transfer {
    int from = -1;
    int to = -1;
  };
  std::optional<Transfer> moves;
  bool is_queue = false;   // of kRead and kWrite: the descriptor is one of mq_open
  std::string address;     // of kConnect: the sockaddr; empty: it could not be read
  bool files_cut = false;  // there are more than are listed
  int epoll = -1;          // of kPoll: its interest list is in this descriptor's fdinfo
  ChildChoice children = ChildChoice::kAny;
  int child = 0;  // process, group (0: the caller's) or descriptor
  // Of kSignal: the signals that it waits for; or those that it does not block, and that end it
  // where they have handlers.
  uint64_t signals = 0;
  bool needs_handlers = false;
  bool has_timeout = false;
  std::optional<TimeNs> timeout;  // from its beginning; not known where an instant was given
};

// The kernel's name: "futex"; "system call 999" where this table does not have it.
std::string SystemCallName(int number);

// The kernel goes on with an interrupted call under another number (restart_syscall). The number
// that the code before `pc` asked for; `number` itself where that is not so, or not to be seen.
int SystemCallAskedFor(int number, uint64_t pc, const ReadMemory& read);

// `call.number` is what SystemCallAskedFor has returned.
CallMeaning ExplainSystemCall(const TaskSystemCall& call, const ReadMemory& read);

}  // namespace hangscope

#endif
