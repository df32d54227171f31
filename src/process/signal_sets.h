// Sets of signals as /proc and the kernel write them: bit N-1 stands for signal N.
#ifndef HANGSCOPE_PROCESS_SIGNAL_SETS_H
#define HANGSCOPE_PROCESS_SIGNAL_SETS_H

#include <signal.h>

#include <cstdint>

namespace hangscope {

constexpr uint64_t SignalBit(int number) { return uint64_t{1} << (number - 1); }

// glibc's own, for cancelling threads and changing their user.
constexpr uint64_t kLibrarySignals = SignalBit(32) | SignalBit(33);

// What a thread does itself raises them, so a thread that waits gets none, and a handler for them
// ends no wait. The runtimes of Rust, Java and Go catch some of them in every program.
constexpr uint64_t kOwnFaults = SignalBit(SIGSEGV) | SignalBit(SIGBUS) | SignalBit(SIGFPE) |
                                SignalBit(SIGILL) | SignalBit(SIGTRAP) | SignalBit(SIGSYS) |
                                SignalBit(SIGABRT) | SignalBit(SIGPIPE) | SignalBit(SIGXFSZ);

}  // namespace hangscope

#endif
