// Whose the handler of SIGINT is in a process of CPython: the interpreter's own, which raises an
// exception, or the program's. CPython has its handlers in an array without a symbol, which is
// found by its form. Of 3.8 and later.
#ifndef HANGSCOPE_RUNTIME_PYTHON_PYTHON_SIGNALS_H
#define HANGSCOPE_RUNTIME_PYTHON_PYTHON_SIGNALS_H

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/python/python_reader.h"

namespace hangscope {

using MemoryRange = std::pair<uint64_t, uint64_t>;  // from the first byte to behind the last

// Whether SIGINT only interrupts what the main thread does, by an exception or as asyncio.run does,
// which cancels the task that it runs. `data`: where the interpreter's variables are. False: the
// program has another handler, or the handlers were not found.
bool OnlyInterrupts(const FindSymbol& find, const ReadMemory& read,
                    const std::vector<MemoryRange>& data);

}  // namespace hangscope

#endif
