// The marks that a program's source sets round a piece of code (include/hangscope/target/mark.h).
#ifndef HANGSCOPE_CODE_COST_MARKS_H
#define HANGSCOPE_CODE_COST_MARKS_H

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/cost.h"

namespace hangscope {

constexpr char kMarkSection[] = ".hangscope_marks";

// The marks of each name, from the bytes of the section kMarkSection. Corrupt: an entry is damaged.
Result<std::map<std::string, MarkedCode>> ReadCostMarks(std::string_view bytes, int xlen,
                                                        bool big_endian);

}  // namespace hangscope

#endif
