// The compilation unit of a place in the code. libdw finds it by .debug_aranges, and takes two
// zeroes there for the end of a unit's list; RISC-V's linker leaves two for each function that
// --gc-sections drops, so that all behind the first would be of no unit; and clang and rustc write
// no such list.
#ifndef HANGSCOPE_CODE_UNITS_BY_ADDRESS_H
#define HANGSCOPE_CODE_UNITS_BY_ADDRESS_H

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace hangscope {

// One thread; `module` outlives it.
class UnitsByAddress {
 public:
  explicit UnitsByAddress(Dwfl_Module* module) : module_(module) {}

  // Null: of none. `pc` is the module's, *bias what it is more than the unit's own addresses. The
  // result is this object's, until the next call.
  Dwarf_Die* Find(uint64_t pc, Dwarf_Addr* bias);

 private:
  struct Range {
    uint64_t begin = 0;  // the unit's own
    uint64_t end = 0;
    Dwarf_Die unit;
  };
  void ReadRanges();

  Dwfl_Module* const module_;
  std::optional<std::vector<Range>> ranges_;  // by their begins, once they are needed
  Dwarf_Addr bias_ = 0;                       // of all that have ranges
  Dwarf_Die found_;
};

}  // namespace hangscope

#endif
