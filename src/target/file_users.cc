#include "target/file_users.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>

#include "base/file_system.h"
#include "base/numbers.h"

namespace hangscope {

std::vector<int> ProcessesThatMap(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return {};
  // As in /proc/PID/maps: "55d0-55e0 rw-s 00000000 08:01 42    /dev/shm/ram".
  const std::string mapped =
      fmt::format(" {:02x}:{:02x} {} ", major(info.st_dev), minor(info.st_dev), info.st_ino);
  FileSystem& files = PosixFileSystem();
  std::vector<int> found;
  for (const std::string& name : files.List("/proc")) {
    const auto pid = ParseWhole<int>(name);
    if (!pid || *pid == getpid()) continue;
    auto maps = ReadWholeFile(files, "/proc/" + name + "/maps");
    if (maps.ok() && maps->find(mapped) != std::string::npos) found.push_back(*pid);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace hangscope
