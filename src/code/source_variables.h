// What the source of a program calls a place in its memory: "cache.accounts[1].lock" where that is
// a part of a variable, "this->queue.lock" where a function has a pointer to it. From debug
// information (DWARF 5, sections 2.5, 2.6 and 4.1), which is the target's: whatever is in it, this
// comes to an end. A name is for people; nothing is to be concluded from it.
#ifndef HANGSCOPE_CODE_SOURCE_VARIABLES_H
#define HANGSCOPE_CODE_SOURCE_VARIABLES_H

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "code/call_depth.h"
#include "code/source_frames.h"

namespace hangscope {

// A function's frame on a stack. `pc` is in the instruction that is being carried out.
struct VariableFrame {
  uint64_t pc = 0;
  std::span<const std::optional<uint64_t>> registers;  // by DWARF's numbers; nothing: not known
  std::optional<uint64_t> frame_address;               // DWARF's canonical frame address
};

// What the symbols of a file know of a variable.
struct VariableSymbol {
  uint64_t begin = 0;
  std::string_view name;  // as it is there: "_ZN4bank5cacheE"
};

struct SourceVariable {
  std::string path;        // "savings.lock", "to->lock"
  std::string function;    // whose variable or parameter that is; empty: of none
  bool is_within = false;  // it is a part of the variable; else a pointer leads there
};

// One thread; `frames` outlives it.
class SourceVariables {
 public:
  // `read` reads the memory of the program.
  SourceVariables(SourceFrames& frames, ReadCode read);
  ~SourceVariables();

  // By the functions at `frame`, without those of libraries.
  std::optional<SourceVariable> OfFrame(const VariableFrame& frame, uint64_t address);
  // By the variables outside of functions that the sources of `pcs` have, and by the one that they
  // only declare, if that is `symbol`.
  std::optional<SourceVariable> OfUnits(std::span<const uint64_t> pcs, uint64_t address,
                                        const std::optional<VariableSymbol>& symbol);

 private:
  struct Known;
  std::optional<SourceVariable> OfUnit(const SourceFrames::Place& place, uint64_t address,
                                       const std::optional<VariableSymbol>& symbol);
  SourceFrames& frames_;
  const ReadCode read_;
  const std::unique_ptr<Known> known_;
};

}  // namespace hangscope

#endif
