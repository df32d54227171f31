// The threads of a process and of its descendants, as /proc has them now.
#ifndef HANGSCOPE_CPU_PROCESS_TREE_H
#define HANGSCOPE_CPU_PROCESS_TREE_H

#include <sys/types.h>

#include <map>

#include "base/file_system.h"

namespace hangscope {

// The process of each thread, by thread. Without this process and what descends from it: whoever
// records does not record itself. Empty: `pid` has ended.
std::map<pid_t, pid_t> ThreadsOfTree(FileSystem& files, pid_t pid);

}  // namespace hangscope

#endif
