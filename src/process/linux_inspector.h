// Processes of this machine, looked at through /proc, ptrace and their ELF files.
#ifndef HANGSCOPE_PROCESS_LINUX_INSPECTOR_H
#define HANGSCOPE_PROCESS_LINUX_INSPECTOR_H

#include <memory>
#include <string>

#include "proc/process_inspector.h"
#include "process/kept/kept_process.h"

namespace hangscope {

// Keeps the tables of the ELF files that it has read: a second look is quicker. `clock` outlives
// it.
Result<std::unique_ptr<ProcessInspector>> OpenLinuxInspector(
    Clock& clock, const std::string& proc_root = "/proc");

// A process as a file has kept it: whatever may be asked for, nobody is stopped, and it is looked
// at alone. Every look is the same.
std::unique_ptr<ProcessInspector> OpenKeptInspector(Clock& clock, KeptProcess process);

}  // namespace hangscope

#endif
