#include "control/control_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/numbers.h"

namespace hangscope {
namespace {

constexpr std::string_view kSuffix = ".sock";

bool IsFolder(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool OwnerHasParent(int fd, uid_t owner) {
  struct stat parent {};
  return fstatat(fd, "..", &parent, 0) == 0 && parent.st_uid == owner;
}

Status CheckPrivate(int fd, const std::string& path, bool make, uid_t* owner) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return Status::FromErrno(errno, "examine", path);
  *owner = info.st_uid;
  const bool is_ours = info.st_uid == geteuid();
  if (!is_ours && (make || geteuid() != 0 || !OwnerHasParent(fd, info.st_uid)))
    return Status::Io(fmt::format("'{}' belongs to another user; remove it", path));
  if ((info.st_mode & 077) != 0) {
    return Status::Io(
        fmt::format("'{}' is open to other users (mode {:03o}); chmod 700 it, or remove it", path,
                    info.st_mode & 0777));
  }
  return {};
}

}  // namespace

std::string TemporaryFolder() { return fmt::format("/tmp/hangscope-{}", geteuid()); }

std::string ControlFolder() {
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && runtime[0] == '/' && IsFolder(runtime))
    return std::string(runtime) + "/hangscope";
  return TemporaryFolder();
}

Result<ControlFolderHandle> ControlFolderHandle::Open(const std::string& path, bool make) {
  if (make && mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return Status::FromErrno(errno, "create the folder", path);
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
    return Status::Io(fmt::format("'{}' is no folder", path));
  if (fd < 0) return Status::FromErrno(errno, "open", path);
  ControlFolderHandle folder(fd, 0);
  if (Status status = CheckPrivate(fd, path, make, &folder.owner_); !status.ok()) return status;
  return folder;
}

ControlFolderHandle::ControlFolderHandle(ControlFolderHandle&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), owner_(other.owner_) {}
ControlFolderHandle& ControlFolderHandle::operator=(ControlFolderHandle&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(owner_, other.owner_);
  return *this;
}
ControlFolderHandle::~ControlFolderHandle() {
  if (fd_ >= 0) close(fd_);
}

sockaddr_un ControlFolderHandle::Address(const std::string& name) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", fd_, name);
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

std::vector<int> ControlFolderHandle::Pids() const {
  std::vector<int> pids;
  const int fd = openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* stream = fd < 0 ? nullptr : fdopendir(fd);
  if (stream == nullptr) return pids;
  while (const dirent* entry = readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (!name.ends_with(kSuffix)) continue;
    const auto pid = ParseWhole<int>(name.substr(0, name.size() - kSuffix.size()), 1);
    if (pid && SocketName(*pid) == name) pids.push_back(*pid);
  }
  closedir(stream);
  std::sort(pids.begin(), pids.end());
  return pids;
}

void ControlFolderHandle::Remove(const std::string& name) const { unlinkat(fd_, name.c_str(), 0); }

std::string SocketName(int pid) { return std::to_string(pid) + std::string(kSuffix); }

bool PeerIsTrusted(int socket, uid_t owner) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == owner || peer.uid == 0;
}

}  // namespace hangscope
