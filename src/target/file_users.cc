#include "target/file_users.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string_view>

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

// `mapped` after the range, the rights and the offset, not in a name.
bool HasLine(const std::string& maps, const std::string& mapped,
             const std::function<bool(std::string_view line)>& is_meant) {
  for (size_t at = 0; (at = maps.find(mapped, at)) != std::string::npos; at += mapped.size()) {
    const size_t begin = maps.rfind('\n', at) + 1;  // 0 of the first line
    const std::string_view line(maps.data() + begin,
                                std::min(maps.find('\n', at), maps.size()) - begin);
    const std::string_view before = line.substr(0, at - begin);
    if (std::count(before.begin(), before.end(), ' ') == 2 && is_meant(line)) return true;
  }
  return false;
}

// Those with a line of their maps that says `mapped`, and is as `is_meant` wants it.
std::vector<int> ProcessesWith(const std::string& mapped,
                               const std::function<bool(std::string_view line)>& is_meant) {
  std::vector<int> found;
  if (mapped.empty()) return found;
  for (const std::string& name : PosixFileSystem().List("/proc")) {
    const auto pid = ParseWhole<int>(name);
    if (!pid || *pid == getpid()) continue;
    const auto maps = MapsOf(*pid);
    if (maps.ok() && HasLine(maps.value(), mapped, is_meant)) found.push_back(*pid);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::vector<int> ProcessesThatMap(const std::string& path) {
  return ProcessesWith(Mapped(path), [](std::string_view) { return true; });
}

std::vector<int> ProcessesThatWrite(const std::string& path) {
  return ProcessesWith(Mapped(path), [](std::string_view line) {
    const size_t rights = line.find(' ');  // "rw-s"
    return rights != std::string_view::npos && line.size() > rights + 4 &&
           line[rights + 2] == 'w' && line[rights + 4] == 's';
  });
}

std::optional<bool> MapsFile(int pid, const std::string& path) {
  const std::string mapped = Mapped(path);
  const auto maps = MapsOf(pid);
  if (mapped.empty() || !maps.ok()) return std::nullopt;
  return maps.value().find(mapped) != std::string::npos;
}

}  // namespace hangscope
