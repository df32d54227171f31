// ProcessLook's threads of Python: who writes to the pipe of a queue of multiprocessing, and whom
// those may wake that nap.
#include <unistd.h>

#include <algorithm>

#include "process/process_look.h"
#include "runtime/python/python_naps.h"

namespace hangscope {
namespace {

constexpr std::string_view kFeeds = "Queue._feed";

bool IsIn(const std::vector<StackFrame>& stack, std::string_view begin) {
  return std::any_of(stack.begin(), stack.end(), [begin](const StackFrame& frame) {
    return frame.language == FrameLanguage::kPython && frame.function.starts_with(begin);
  });
}

bool IsAtWork(const ThreadFacts& thread) {
  return thread.wait.kind == WaitKind::kWrite && IsIn(thread.stack, kFeeds) &&
         IsIn(thread.stack, "Connection._send");
}

}  // namespace

// Each process that puts something into a queue has a thread that writes it to the queue's pipe,
// one at a time: the lock of that is a semaphore, which does not say who has it. It is whoever
// writes, where only one of those who share the semaphore does.
void ProcessLook::FindFeeders(const std::vector<std::unique_ptr<ProcessLook>>& all) {
  for (ThreadFacts& thread : facts_.threads) {
    ThreadWait& wait = thread.wait;
    if (wait.kind != WaitKind::kSemaphore || !wait.shared || wait.sharers.empty() ||
        !wait.object_type.starts_with("SemLock") || !IsIn(thread.stack, kFeeds))
      continue;
    std::vector<int> writers;
    for (const auto& other : all) {
      if (std::count(wait.sharers.begin(), wait.sharers.end(), other->pid_) == 0) continue;
      for (const ThreadFacts& each : other->facts_.threads) {
        if (IsAtWork(each)) writers.push_back(each.tid);
      }
    }
    if (writers.size() != 1) continue;
    wait.kind = WaitKind::kMutex;
    wait.owner = writers[0];
    wait.owner_by_code = true;
    wait.sharers.clear();
  }
}

void ProcessLook::FollowNapOfPython(const Work& work, ThreadFacts* thread) {
  const PythonEffect effect = PythonNaps(*python_).EffectOf(work.python.frames);
  thread->wakes_nobody = effect.wakes_nobody;
  if (!effect.wakes_nobody || effect.uses_files) return;
  thread->uses_no_files = !effect.prints;
  if (effect.prints) thread->uses_descriptors = {STDOUT_FILENO, STDERR_FILENO};
}

}  // namespace hangscope
