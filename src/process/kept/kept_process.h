// A process as a file has kept it, at one instant: what a look at it has instead of a live one.
#ifndef HANGSCOPE_PROCESS_KEPT_KEPT_PROCESS_H
#define HANGSCOPE_PROCESS_KEPT_KEPT_PROCESS_H

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "proc/process_memory.h"
#include "proc/thread_image.h"

namespace hangscope {

struct KeptProcess {
  int pid = 0;
  std::map<std::string, std::string> texts;  // by path below /proc, as the kernel would give them
  ReadMemory read;
  // Of a file that it has mapped, where this machine has the same: a descriptor that the caller
  // closes; below 0: it has not.
  std::function<int(const std::string& path)> open_file;
  std::map<int, ThreadRegisters> registers;  // by thread
  std::vector<std::string> warnings;         // what is not known of it; a sentence each
};

}  // namespace hangscope

#endif
