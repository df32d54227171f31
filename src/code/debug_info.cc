#include "code/debug_info.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/hash.h"
#include "code/program_file.h"

namespace hangscope {
namespace {

bool asks_servers = false;

bool HasChecksum(int fd, uint32_t wanted) {
  std::vector<char> buffer(1 << 16);
  uint32_t crc = 0;
  for (off_t at = 0;;) {
    const ssize_t got = pread(fd, buffer.data(), buffer.size(), at);
    if (got < 0) return false;
    if (got == 0) return crc == wanted;
    crc = Crc32({buffer.data(), static_cast<size_t>(got)}, crc);
    at += got;
  }
}

// By the name that the program's file gives, where gdb looks for it, too.
int FindByLink(const std::string& file, const std::string& link, uint32_t checksum, char** found) {
  const std::string folder = FolderOf(file);
  for (const std::string& path :
       {folder + "/" + link, folder + "/.debug/" + link, "/usr/lib/debug" + folder + "/" + link}) {
    const int fd = path == file ? -1 : OpenRegularFile(path).value_or(-1);
    if (fd >= 0 && HasChecksum(fd, checksum)) {
      *found = strdup(path.c_str());
      return fd;
    }
    if (fd >= 0) close(fd);
  }
  return -1;
}

// libdw opens without O_CLOEXEC.
int CloseOnExec(int fd) {
  if (fd >= 0) (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
  return fd;
}

}  // namespace

int FindDebugInfo(Dwfl_Module* module, void** user, const char* name, Dwarf_Addr base,
                  const char* file, const char* link, GElf_Word checksum, char** found) {
  const int known =
      dwfl_build_id_find_debuginfo(module, user, name, base, file, link, checksum, found);
  if (known >= 0) return CloseOnExec(known);
  if (file != nullptr && link != nullptr && *link != '\0') {
    const int linked = FindByLink(file, link, checksum, found);
    if (linked >= 0) return linked;
  }
  if (!asks_servers) return -1;
  return CloseOnExec(
      dwfl_standard_find_debuginfo(module, user, name, base, file, link, checksum, found));
}

int CopyDebugInfo(Dwfl_Module* module, void** user, const char* name, Dwarf_Addr base,
                  const char* file, const char* link, GElf_Word checksum, char** found) {
  const int fd = FindDebugInfo(module, user, name, base, file, link, checksum, found);
  if (fd < 0) return fd;
  auto copy = ProgramFile::CopyOpen(fd, *found == nullptr ? "" : *found);
  return copy.ok() ? copy->Duplicate() : -1;
}

void AskDebugInfoServers() { asks_servers = true; }

}  // namespace hangscope
