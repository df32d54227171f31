// Whether what a stack was unwound to are calls indeed. A stack of which only a copy of a few
// registers tells where it begins may have been used for something else since.
#ifndef HANGSCOPE_CODE_CALL_CHECK_H
#define HANGSCOPE_CODE_CALL_CHECK_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "code/code_source.h"

namespace hangscope {

// How many of `places`, as CodeSource::Unwind has them, are linked by calls: each but the first is
// that of a call through a register, or of one to the function that the place before it is in, or
// to a function that jumps there. RISC-V.
size_t CountCalled(CodeSource& code, const std::vector<uint64_t>& places);

}  // namespace hangscope

#endif
