// What debug information says of a place in the code: the functions that were compiled into one
// another there, and the line that each is at.
#ifndef HANGSCOPE_CODE_SOURCE_FRAMES_H
#define HANGSCOPE_CODE_SOURCE_FRAMES_H

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "code/units_by_address.h"

namespace hangscope {

struct SourceFrame {
  std::string function;  // readable; empty: not known
  std::string path;      // of the source; whole where that is known; empty: no line is
  int line = 0;          // from 1 on; 0: not known
  bool is_inlined = false;
  // From a header of the system's or of a compiler's library, from Rust's own libraries, or from a
  // crate that Cargo fetched.
  bool of_library = false;
};

// Whether such a source is a library's: a header of the system's or of a compiler's library, Rust's
// own libraries and Go's, or what Cargo or Go fetched.
bool IsLibrarySource(const std::string& path);

// With the namespaces, types and functions around it: "Pool::submit", "main::<lambda>".
std::string QualifiedName(Dwarf_Die* die);

// libdw's own search finds no units without .debug_aranges, which clang and rustc do not write, and
// no function that is in a namespace, where these put them. One thread; `module` outlives it.
class SourceFrames {
 public:
  explicit SourceFrames(Dwfl_Module* module) : units_(module) {}

  // The innermost first; the last is the function that was not inlined, where that is known. `pc`
  // is the module's. Empty: no unit has it.
  std::vector<SourceFrame> At(uint64_t pc);
  // For what else debug information has there.
  struct Place {
    Dwarf_Die unit;
    Dwarf_Die function;    // that was not inlined
    uint64_t address = 0;  // the unit's own: `pc` without `bias`
    uint64_t bias = 0;
  };
  // Nothing: it is in no function.
  std::optional<Place> PlaceAt(uint64_t pc);

 private:
  struct Function {
    uint64_t begin = 0;  // the unit's own
    uint64_t end = 0;
    Dwarf_Die die;
  };
  struct Unit {
    std::vector<Function> functions;  // by their begins
    bool has_nested = false;          // those within other functions, too
  };
  static void CollectFunctions(Dwarf_Die* root, bool nested, std::vector<Function>* into);
  const Function* FindFunction(Dwarf_Die* unit, uint64_t address);

  UnitsByAddress units_;
  std::unordered_map<Dwarf_Off, Unit> functions_;  // by where the unit begins
};

}  // namespace hangscope

#endif
