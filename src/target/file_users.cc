#include "target/file_users.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>

#include "base/file_system.h"
#include "base/numbers.h"

namespace hangscope {

namespace {

// As in /proc/PID/maps: "55d0-55e0 rw-s 00000000 08:01 42    /dev/shm/ram". Empty: there is no such
// file.
std::string Mapped(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return {};
  return fmt::format(" {:02x}:{:02x} {} ", major(info.st_dev), minor(info.st_dev), info.st_ino);
}

Result<std::string> MapsOf(int pid) {
  return ReadWholeFile(PosixFileSystem(), fmt::format("/proc/{}/maps", pid));
}

}  // namespace

std::vector<int> ProcessesThatMap(const std::string& path) {
  const std::string mapped = Mapped(path);
  std::vector<int> found;
  if (mapped.empty()) return found;
  for (const std::string& name : PosixFileSystem().List("/proc")) {
    const auto pid = ParseWhole<int>(name);
    if (!pid || *pid == getpid()) continue;
    const auto maps = MapsOf(*pid);
    if (maps.ok() && maps.value().find(mapped) != std::string::npos) found.push_back(*pid);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<bool> MapsFile(int pid, const std::string& path) {
  const std::string mapped = Mapped(path);
  const auto maps = MapsOf(pid);
  if (mapped.empty() || !maps.ok()) return std::nullopt;
  return maps.value().find(mapped) != std::string::npos;
}

}  // namespace hangscope
