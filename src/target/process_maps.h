// The mappings of a process, as /proc/PID/maps lists them.
#ifndef HANGSCOPE_TARGET_PROCESS_MAPS_H
#define HANGSCOPE_TARGET_PROCESS_MAPS_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"

namespace hangscope {

struct ProcessMapping {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  std::string path;   // empty: no file's
  std::string range;  // as in /proc/PID/map_files

  uint64_t size_bytes() const { return end - begin; }
};

// In ascending order. Fails where there is no such process, or it may not be looked into.
Result<std::vector<ProcessMapping>> ReadMappings(FileSystem& files, int pid);

}  // namespace hangscope

#endif
