// What a futex belongs to: a mutex, a condition variable, the end of a thread, and so on, and who
// holds it. The names on the stack tell, and the layouts of glibc's objects around the word, which
// are believed only where all of what they say fits.
#ifndef HANGSCOPE_PROCESS_FUTEX_KIND_H
#define HANGSCOPE_PROCESS_FUTEX_KIND_H

#include <functional>
#include <optional>
#include <vector>

#include "model/process.h"
#include "process/system_call.h"

namespace hangscope {

struct FutexMeaning {
  WaitKind kind = WaitKind::kFutex;
  // where the mutex (...) begins; the word itself where it is nothing known
  uint64_t object = 0;
  std::optional<int> owner;   // as the target counts its threads
  bool owner_died = false;    // there is no such thread, or the kernel says that it died
  std::optional<int> joined;  // of kJoin: the thread
};

// Whether the thread waits for a lock of libc that it has itself: a handler interrupted a function
// that had taken it, and calls the same function. `stack`: of one that waits in a futex.
bool InterruptedItself(const std::vector<StackFrame>& stack);

// Who has the mutex with priority inheritance at `address`, as the target counts its threads;
// nothing where there is none, or nobody has it.
std::optional<int> OwnerOfPriorityMutex(uint64_t address, const ReadMemory& read);

// `is_thread`: whether a thread, as the target counts them, is there and can have this word in its
// memory.
FutexMeaning ExplainFutexWord(const FutexWord& word, FutexUse use,
                              const std::vector<StackFrame>& stack, const ReadMemory& read,
                              const std::function<bool(int)>& is_thread);

}  // namespace hangscope

#endif
