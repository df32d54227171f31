// Where a script of bash is, from the memory of the shell that runs it.
//
// The shell keeps the names of its variables in every build, for built-ins that it loads use them.
// What lies where is as bash 5.2 has it: variables.h, hashlib.h, array.h.
#ifndef HANGSCOPE_RUNTIME_BASH_BASH_READER_H
#define HANGSCOPE_RUNTIME_BASH_BASH_READER_H

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/process.h"
#include "proc/process_memory.h"
#include "runtime/runtime_memory.h"

namespace hangscope {

using FindBashSymbol = std::function<std::optional<uint64_t>(std::string_view)>;

struct BashFrame {
  std::string function;  // "main" outside of all functions, as FUNCNAME says
  std::string script;    // as the shell was told; "-c" of a command line
  int line = 0;          // of the script
  bool operator==(const BashFrame&) const = default;
};

class BashReader {
 public:
  // Fails where the version is another, or has not what is needed; a sentence.
  static Result<BashReader> Open(const FindBashSymbol& find, ReadMemory read);

  // Innermost first, at most `most`. Empty: it runs neither a script nor a function, as one that
  // somebody types to.
  std::vector<BashFrame> Frames(size_t most);
  static StackFrame Name(const BashFrame& frame);

 private:
  static constexpr size_t kArrays = 3;  // that tell where it is
  struct Addresses {
    uint64_t executing = 0, line = 0, script = 0, command = 0, variables = 0;
  };
  BashReader(const Addresses& at, ReadMemory read) : at_(at), memory_(std::move(read)) {}
  std::string TextAt(uint64_t pointer);
  std::array<uint64_t, kArrays> FindArrays(const std::array<std::string_view, kArrays>& names);
  std::vector<std::string> Elements(uint64_t array, size_t most);

  Addresses at_;
  RuntimeMemory memory_;
};

}  // namespace hangscope

#endif
