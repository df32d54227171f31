// What a program of Go that was stripped still says of itself: in the tables that its runtime
// prints stacks from, its functions and lines; by the code of the runtime's functions, where the
// runtime keeps its variables. Of Go 1.19 on x86-64.
//
// All that is read may be anything, and is bounded.
#ifndef HANGSCOPE_RUNTIME_GO_GO_SYMBOLS_H
#define HANGSCOPE_RUNTIME_GO_GO_SYMBOLS_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "code/source_frames.h"
#include "proc/process_memory.h"
#include "runtime/go/go_code.h"

namespace hangscope {

// Which version of Go has made the program, "go1.19.8": `bytes` are those with which its data
// begin. Nothing: it is no program of Go, or does not say.
std::optional<std::string> GoVersionIn(std::string_view bytes, const ReadMemory& read);

class GoSymbols {
 public:
  struct Range {
    uint64_t begin = 0, end = 0;
  };
  struct Symbol {
    uint64_t address = 0;
    uint64_t bytes = 0;
    std::string name;
  };

  // `data`: what of the program's file is in memory and is no code. A sentence where the tables are
  // not found there.
  static Result<GoSymbols> Read(const std::vector<Range>& data, const ReadMemory& read);

  // By address; once.
  std::vector<Symbol> TakeFunctions() { return std::move(functions_); }
  // Of the runtime's, those that GoReader asks for, as far as they were found.
  const std::vector<Symbol>& variables() const { return variables_; }
  // The innermost first; the last was not inlined. Empty: nothing is known of the place.
  std::vector<SourceFrame> At(uint64_t pc) const;

 private:
  explicit GoSymbols(GoCode code) : code_(std::move(code)) {}
  void FindVariables(uint64_t module, const ReadMemory& read);

  GoCode code_;
  std::vector<Symbol> functions_, variables_;
};

}  // namespace hangscope

#endif
