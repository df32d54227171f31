#include "target/process_maps.h"

#include <fmt/format.h>

namespace hangscope {

Result<std::vector<MemoryMapping>> ReadMappings(FileSystem& files, int pid) {
  auto text = ReadWholeFile(files, fmt::format("/proc/{}/maps", pid));
  if (!text.ok()) return text.status();
  return ParseMemoryMappings(*text);
}

}  // namespace hangscope
