// The line of an instruction, from the location table of a code object of Python 3.11 and later
// (`co_linetable`); CPython's Objects/locations.md describes its format.
#ifndef HANGSCOPE_RUNTIME_PYTHON_PYTHON_LINES_H
#define HANGSCOPE_RUNTIME_PYTHON_PYTHON_LINES_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace hangscope {

// The line of the `unit`-th code unit (two bytes each). 0: the table says that it has none.
// Nothing: the table is damaged, or ends before that unit.
std::optional<int> LineOfUnit(std::string_view table, int first_line, uint64_t unit);

}  // namespace hangscope

#endif
