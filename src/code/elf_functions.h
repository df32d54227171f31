// Where in a program's file a function begins, as its symbol tables say, which is what a uprobe is
// set on; and a variable.
#ifndef HANGSCOPE_CODE_ELF_FUNCTIONS_H
#define HANGSCOPE_CODE_ELF_FUNCTIONS_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace hangscope {

// Offsets in the file of all functions named `function`: as the linker calls it ("_ZN3net4SendEi"),
// as C++ does
// ("net::Send(int)"), or without its parameters ("net::Send"). Ascending, at least one. Fails where
// there is none, or the file is no ELF or contradicts itself.
Result<std::vector<uint64_t>> FunctionOffsets(const std::string& path, const std::string& function);
struct FunctionExtent {  // in the file
  uint64_t offset = 0;
  uint64_t bytes = 0;  // 0: the symbol does not say
};
// Likewise, of the only function of that name; fails where there are several.
Result<FunctionExtent> FunctionExtentOf(const std::string& path, const std::string& function);
// Likewise, of the variable of that name that has its value in the file; nothing: there is none.
Result<std::optional<uint64_t>> VariableOffset(const std::string& path, const std::string& name);

}  // namespace hangscope

#endif
