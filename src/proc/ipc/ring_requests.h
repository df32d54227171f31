// What an io_uring waits for: the kernel tells how many requests it has taken and of which kinds
// some are, the program's memory which files they ask for.
#ifndef HANGSCOPE_PROC_IPC_RING_REQUESTS_H
#define HANGSCOPE_PROC_IPC_RING_REQUESTS_H

#include <optional>
#include <vector>

#include "proc/proc_text.h"
#include "proc/process_memory.h"

namespace hangscope {

struct RingRequest {
  int fd = -1;
  bool reads = true;  // or accepts; else it writes
};

// Whether the ring was never given anything: it completes nothing and uses no file.
bool WasGivenNothing(const RingCounts& ring);

// The files that requests which are not completed may wait for, of those that are still in the
// memory of process `pid`, whose mappings these are; there may be too many, but none is missing.
// Nothing where that is not known: of requests that wait for something else, such as time, or whose
// places have been used again.
std::optional<std::vector<RingRequest>> OpenRequests(const RingCounts& ring,
                                                     const std::vector<MemoryMapping>& mappings,
                                                     const ReadMemory& read);

}  // namespace hangscope

#endif
