// The variables of a Python frame, and the context managers whose blocks it stands in.
#ifndef HANGSCOPE_RUNTIME_PYTHON_PYTHON_FRAME_VALUES_H
#define HANGSCOPE_RUNTIME_PYTHON_PYTHON_FRAME_VALUES_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/python/python_reader.h"

namespace hangscope {

// How many values a frame had below a handler of exceptions that guards its `unit`-th code unit:
// those are whole. `table` is co_exceptiontable, which CPython's Objects/exception_handling_notes
// describes. Nothing: no handler guards it, or the table is damaged.
std::optional<size_t> DepthOfHandler(std::string_view table, uint64_t unit);

class PythonFrameValues {
 public:
  explicit PythonFrameValues(PythonReader& reader) : reader_(reader) {}

  // Named local variables that have a value, cells and closures included.
  std::vector<PythonObjects::Entry> Variables(const PythonFrame& frame);
  // The values of those variables that the code which the frame can still come to uses; all of
  // them where that cannot be told.
  std::vector<uint64_t> UsedLater(const PythonFrame& frame);
  // The first argument, if it is called self; 0: it has none.
  uint64_t Self(const PythonFrame& frame);
  // The objects of whose `with` blocks (`exit` is "__exit__") or `async with` blocks ("__aexit__")
  // the frame stands inside of: those that it still enters or already leaves are not among them.
  std::vector<uint64_t> Entered(const PythonFrame& frame, std::string_view exit);
  std::vector<PythonObjects::Entry> Globals(const PythonFrame& frame);
  // Its function gives back some lock by itself, so that what it has entered it may not have.
  bool MayRelease(const PythonFrame& frame);
  // That of a generator or coroutine, running or not; none: `object` is no such.
  std::vector<PythonFrame> FrameOf(uint64_t object) const;

 private:
  const std::string& HandlersOf(const PythonCode& code);

  PythonReader& reader_;
  std::map<uint64_t, std::string> handlers_;  // tables, by their address
  std::map<uint64_t, bool> releases_;         // by code
};

}  // namespace hangscope

#endif
