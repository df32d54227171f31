// What a thread of Python waits for, as the program has it: the lock, queue, event, future or
// thread, its name, and who holds it.
//
// A threading.Lock does not record its holder. That a frame stands inside of `with lock:` tells,
// unless the program releases it there by other means.
#ifndef HANGSCOPE_RUNTIME_PYTHON_PYTHON_WAITS_H
#define HANGSCOPE_RUNTIME_PYTHON_PYTHON_WAITS_H

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/python/python_frame_values.h"
#include "runtime/python/python_reader.h"

namespace hangscope {

struct PythonWait {
  uint64_t object = 0;  // 0: nothing is known
  std::string type;     // "lock", "queue", "future"; of a class of the program its name
  std::string name;     // "account_b", "balance_lock of Account at 0x7f1c"; empty: none
  // Threads by the numbers that the process has for them.
  std::optional<int> owner;
  bool owner_by_frames = false;  // from the `with` block that it is in
  std::optional<int> thread;     // whose end ends the wait
  bool is_signal = false;        // nobody holds it: others signal it, fill it, finish it
};

// A thread with these frames, innermost first, waits for the next job of a pool of processes: as a
// worker, or as the thread of the pool that hands jobs on. Their locks, which one of them has while
// it reads, say nothing.
bool IsIdleInPool(const std::vector<StackFrame>& frames);

class PythonWaits {
 public:
  explicit PythonWaits(PythonReader& reader) : reader_(reader), values_(reader) {}

  // Of the thread that waits for the semaphore at `semaphore`, with its frames and its stack from
  // the innermost word on.
  PythonWait Explain(uint64_t semaphore, std::string_view stack,
                     const std::vector<PythonFrame>& frames);
  // By which the program knows an object: a global variable, an attribute, an element, a local
  // variable. Empty: it was not found.
  std::string NameOf(uint64_t object, const std::vector<PythonFrame>& frames);
  // The objects in whose blocks these frames are, innermost first, without those that may have been
  // given back in there: by one of the functions, or by an object of an inner block.
  std::vector<uint64_t> Kept(const std::vector<PythonFrame>& frames, std::string_view exit);
  PythonFrameValues& values() { return values_; }

 private:
  uint64_t FindWaited(uint64_t semaphore, std::string_view stack);
  std::optional<int> ThreadThatEnds(uint64_t lock);
  void ExplainObject(const std::vector<PythonFrame>& frames, PythonWait* wait);
  void FindOwner(const std::vector<PythonFrame>& frames, PythonWait* wait);
  void FindHeldLocks();
  void AddHeldBy(const PythonThread& thread, const std::vector<PythonFrame>& frames);
  std::string FindName(uint64_t object, const std::vector<PythonFrame>& frames);
  std::string Global(uint64_t object, const PythonFrame& frame);
  std::string Attribute(uint64_t object, const PythonFrame& frame);
  std::string Local(uint64_t object, const PythonFrame& frame);
  const PythonCode* CodeOf(const PythonFrame& frame);
  bool IsConditionWait(const PythonFrame& frame);

  PythonReader& reader_;
  PythonFrameValues values_;
  std::optional<std::map<uint64_t, std::set<int>>> held_;  // locks, by whom
  std::optional<std::map<uint64_t, int>> ends_;  // locks that threads release when they end
  std::map<uint64_t, std::string> names_;        // of objects, those that were found
};

}  // namespace hangscope

#endif
