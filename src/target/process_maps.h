// The mappings of a process that lives.
#ifndef HANGSCOPE_TARGET_PROCESS_MAPS_H
#define HANGSCOPE_TARGET_PROCESS_MAPS_H

#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "proc/proc_text.h"

namespace hangscope {

// In ascending order. Fails where there is no such process, or it may not be looked into.
Result<std::vector<MemoryMapping>> ReadMappings(FileSystem& files, int pid);

}  // namespace hangscope

#endif
