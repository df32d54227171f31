// Processes of this machine, looked at through /proc, ptrace and their ELF files.
#ifndef HANGSCOPE_PROCESS_LINUX_INSPECTOR_H
#define HANGSCOPE_PROCESS_LINUX_INSPECTOR_H

#include <memory>
#include <string>

#include "proc/process_inspector.h"

namespace hangscope {

// Keeps the tables of the ELF files that it has read: a second look is quicker. `clock` outlives
// it.
Result<std::unique_ptr<ProcessInspector>> OpenLinuxInspector(
    Clock& clock, const std::string& proc_root = "/proc");

}  // namespace hangscope

#endif
