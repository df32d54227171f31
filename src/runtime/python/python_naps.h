// Whether a thread of Python that naps may wake anybody when it goes on: by the names that the code
// which it can come to uses. Of CPython 3.11.
#ifndef HANGSCOPE_RUNTIME_PYTHON_PYTHON_NAPS_H
#define HANGSCOPE_RUNTIME_PYTHON_PYTHON_NAPS_H

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/python/python_reader.h"

namespace hangscope {

// What it may do to others.
struct PythonEffect {
  bool wakes_nobody = false;  // who waits for a lock, a queue, an event or the like
  bool prints = false;        // to the standard output, or the standard error
  bool uses_files = false;    // others, too
};

class PythonNaps {
 public:
  explicit PythonNaps(PythonReader& reader) : reader_(reader) {}

  // Of a thread with these frames, the innermost first. Names that say nothing of what is behind
  // them, and functions of libraries that are not known, may wake anybody.
  PythonEffect EffectOf(const std::vector<PythonFrame>& frames);

 private:
  // Where code runs: what its names stand for.
  struct Scope {
    uint64_t globals = 0;  // the dictionary
    uint64_t frame = 0;    // with its variables; 0: it has not begun
    uint64_t self = 0;     // its first variable, where it is a method that has not; 0: not known
    int depth = 0;         // functions that call one another
  };
  void Follow(const PythonCode& code, uint64_t unit, const Scope& scope);
  void UseGlobal(uint64_t object, const std::string& name, bool is_called, const Scope& scope);
  void CallObject(uint64_t object, uint64_t self, const Scope& scope);
  void CallFunction(std::string_view name);
  // Of `object`; 0: of what is not known.
  void CallMethod(uint64_t object, const std::string& name, const Scope& scope);
  uint64_t VariableOf(const Scope& scope, uint64_t index);
  uint64_t ItemOf(uint64_t dictionary, const std::string& name);
  uint64_t ItemOfClass(uint64_t object, const std::string& name);
  bool LogsToFiles(uint64_t logger);
  bool NamesAFile(const PythonCode& code);

  PythonReader& reader_;
  std::map<uint64_t, std::map<std::string, uint64_t>> items_;  // by the dictionary
  std::set<std::pair<uint64_t, uint64_t>> seen_;               // code, and of whom it is a method
  uint64_t standard_file_ = 0;  // that was loaded from a module; 0: none
  bool is_known_ = true;
  PythonEffect effect_;
};

}  // namespace hangscope

#endif
