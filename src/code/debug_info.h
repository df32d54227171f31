// Where libdw finds the debug information that a program's file lacks: beside the file, or under
// /usr/lib/debug. Servers (debuginfod) are asked only where the user wants it: a question tells
// them what is looked at, and one that does not answer holds everything up.
#ifndef HANGSCOPE_CODE_DEBUG_INFO_H
#define HANGSCOPE_CODE_DEBUG_INFO_H

#include <elfutils/libdwfl.h>

namespace hangscope {

// As Dwfl_Callbacks::find_debuginfo. The descriptor is close-on-exec.
int FindDebugInfo(Dwfl_Module* module, void** user, const char* name, Dwarf_Addr base,
                  const char* file, const char* link, GElf_Word checksum, char** found);
// The same, of a copy in memory (code/program_file.h).
int CopyDebugInfo(Dwfl_Module* module, void** user, const char* name, Dwarf_Addr base,
                  const char* file, const char* link, GElf_Word checksum, char** found);

// From now on servers are asked for what is not on this machine, as $DEBUGINFOD_URLS says. Called
// before there are other threads.
void AskDebugInfoServers();

}  // namespace hangscope

#endif
