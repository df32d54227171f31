// The tasks of an event loop of asyncio: where each stands, what it awaits, and which task could
// end that. Of CPython 3.11, whose tasks are objects of C.
#ifndef HANGSCOPE_RUNTIME_PYTHON_PYTHON_TASKS_H
#define HANGSCOPE_RUNTIME_PYTHON_PYTHON_TASKS_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/process.h"
#include "runtime/python/python_waits.h"

namespace hangscope {

class PythonTasks {
 public:
  PythonTasks(PythonReader& reader, PythonWaits& waits) : reader_(reader), waits_(waits) {}

  // Of the loop that a thread with these frames runs; none where it runs none. A task that could
  // run at once is among them, and waits for nothing. `may_be_cancelled`: some wait for each other,
  // and a timer of the loop, or another task that goes on, has one of these, or may have it, and
  // could cancel it.
  std::vector<TaskFacts> TasksOf(const std::vector<PythonFrame>& frames, bool* may_be_cancelled);

 private:
  struct Task {
    uint64_t object = 0;
    std::vector<PythonFrame> frames;  // innermost first
    std::vector<uint64_t> entered;    // objects in whose blocks it is
    std::vector<uint64_t> kept;       // those of `async with` that it has not given back
  };
  using Indices = std::map<uint64_t, size_t>;  // by object

  std::vector<Task> FindTasks(uint64_t loop, const PythonFrame& loop_frame);
  std::vector<PythonFrame> FramesOf(uint64_t coroutine);
  uint64_t AwaitedBy(const PythonFrame& frame);
  void ExplainTask(const std::vector<Task>& tasks, const Indices& indices, size_t which,
                   std::vector<TaskFacts>* facts);
  void ExplainFuture(const std::vector<Task>& tasks, size_t which, std::vector<TaskFacts>* facts);
  std::vector<size_t> CancelledWith(const Task& task, const Indices& indices, bool limited_only);
  std::vector<size_t> WaitedTogether(const Task& task, const Indices& indices);
  std::vector<bool> FindCancels(uint64_t loop, const std::vector<Task>& tasks,
                                const Indices& indices, std::vector<TaskFacts>* facts);
  void EndWhatTheyWaitFor(const std::vector<Task>& tasks, const Indices& indices,
                          const std::vector<TaskFacts>& facts, std::vector<bool>* end);
  const PythonCode* CodeOf(const PythonFrame& frame);

  PythonReader& reader_;
  PythonWaits& waits_;
};

}  // namespace hangscope

#endif
