// Which tasks of an event loop of asyncio its timers, or other tasks, could cancel. Who has a task
// may cancel it; what functions do with it is not read. Of CPython 3.11.
#ifndef HANGSCOPE_RUNTIME_PYTHON_PYTHON_CANCELS_H
#define HANGSCOPE_RUNTIME_PYTHON_PYTHON_CANCELS_H

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "runtime/python/python_waits.h"

namespace hangscope {

// Of the standard library's asyncio.
bool IsOfAsyncio(const PythonCode& code);

class PythonCancels {
 public:
  // `tasks`: by object, their indices.
  PythonCancels(PythonReader& reader, PythonWaits& waits, const std::map<uint64_t, size_t>& tasks)
      : reader_(reader), waits_(waits), tasks_(tasks) {}

  // Of a loop: those that its timers cancel, and those that they have, and could cancel.
  void FindByTimers(uint64_t loop, std::set<size_t>* surely, std::set<size_t>* perhaps);
  // Those that a task with these frames still has.
  std::set<size_t> HeldBy(const std::vector<PythonFrame>& frames);

 private:
  void Add(uint64_t object, int depth, std::set<size_t>* found);
  void AddContents(uint64_t object, int depth, std::set<size_t>* found);
  void AddAll(std::set<size_t>* found) const;
  void AddCallable(uint64_t object, int depth, std::set<size_t>* found);
  void AddFunction(uint64_t function, std::set<size_t>* found);
  void AddGlobals(uint64_t globals, std::set<size_t>* found);
  bool AsksForAll(const PythonCode& code);

  PythonReader& reader_;
  PythonWaits& waits_;
  const std::map<uint64_t, size_t>& tasks_;
  std::map<uint64_t, std::set<size_t>> of_globals_;  // by the dictionary of a module
  size_t objects_left_ = 4000;                       // that are looked into
};

}  // namespace hangscope

#endif
