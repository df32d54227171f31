// For which signals a program of Node.js has handlers of its own: libuv keeps all of a process in a
// tree. Of libuv 1.x on 64-bit machines.
#ifndef HANGSCOPE_RUNTIME_V8_UV_SIGNALS_H
#define HANGSCOPE_RUNTIME_V8_UV_SIGNALS_H

#include <cstdint>
#include <optional>

#include "runtime/runtime_memory.h"

namespace hangscope {

// `tree`: the address of the variable that its root is in. Bit N-1: for signal N, with SIGCHLD
// where it waits for children. Nothing: it cannot be read, or is no such tree.
std::optional<uint64_t> SignalsOfLoops(uint64_t tree, const ReadMemory& read);

}  // namespace hangscope

#endif
