#include "base/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/file_lock.h"
#include "base/units.h"

namespace hangscope {
namespace {

class PosixFile final : public File {
 public:
  PosixFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~PosixFile() override { close(fd_); }
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  Status WriteAt(uint64_t offset, std::string_view bytes, size_t* written) override {
    *written = 0;
    while (*written < bytes.size()) {
      const std::string_view rest = bytes.substr(*written);
      ssize_t n = pwrite(fd_, rest.data(), rest.size(), static_cast<off_t>(offset + *written));
      if (n < 0 && errno == ESPIPE) n = write(fd_, rest.data(), rest.size());  // a terminal, a pipe
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return Status::FromErrno(n < 0 ? errno : ENOSPC, "write", path_);
      *written += static_cast<size_t>(n);
    }
    return {};
  }

  Result<size_t> ReadAt(uint64_t offset, std::span<char> buffer) override {
    size_t got = 0;
    while (got < buffer.size()) {
      const ssize_t n =
          pread(fd_, buffer.data() + got, buffer.size() - got, static_cast<off_t>(offset + got));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Status::FromErrno(errno, "read", path_);
      if (n == 0) break;
      got += static_cast<size_t>(n);
    }
    return got;
  }

  Status Truncate(uint64_t size_bytes) override {
    if (ftruncate(fd_, static_cast<off_t>(size_bytes)) == 0) return {};
    return Status::FromErrno(errno, "resize", path_);
  }

  Result<uint64_t> Size() override {
    struct stat info {};
    if (fstat(fd_, &info) != 0) return Status::FromErrno(errno, "examine", path_);
    return static_cast<uint64_t>(info.st_size);
  }

  uint64_t NextData(uint64_t offset) override {
    const off_t at = lseek(fd_, static_cast<off_t>(offset), SEEK_DATA);
    if (at >= 0) return static_cast<uint64_t>(at);
    return errno == ENXIO ? Size().value_or(offset) : offset;
  }
  Result<uint64_t> LinkCount() override {
    struct stat info {};
    if (fstat(fd_, &info) != 0) return Status::FromErrno(errno, "examine", path_);
    return static_cast<uint64_t>(info.st_nlink);
  }

  Status Lock() override {
    struct flock lock = WholeFile();
    if (fcntl(fd_, F_OFD_SETLK, &lock) == 0) return {};
    if (errno == EAGAIN || errno == EACCES)
      return Status::Busy("'" + path_ + "' is in use by a live recorder");
    return Status::FromErrno(errno, "lock", path_);
  }

  bool IsLocked() override {
    struct flock lock = WholeFile();
    return fcntl(fd_, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  }

  bool IsRegular() {
    struct stat info {};
    return fstat(fd_, &info) == 0 && S_ISREG(info.st_mode);
  }

  bool IsOursAlone() override {
    struct stat info {};
    return fstat(fd_, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
           info.st_nlink == 1;
  }

 private:
  int fd_;
  std::string path_;
};

class PosixFiles final : public FileSystem {
 public:
  Result<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override {
    const bool recorded = mode == Mode::kRecorded || mode == Mode::kRecordedNew;
    int flags = O_CLOEXEC | O_NOCTTY | (mode == Mode::kRead ? O_RDONLY : O_RDWR);
    if (mode == Mode::kCreate) flags |= O_CREAT;
    if (mode != Mode::kCreate) flags |= O_NONBLOCK;
    if (mode == Mode::kNew || mode == Mode::kRecordedNew) flags |= O_CREAT | O_EXCL;
    if (recorded) flags |= O_NOFOLLOW;
    const int fd = open(path.c_str(), flags, recorded ? 0600 : 0644);
    if (fd < 0 && errno == ELOOP && recorded)
      return Status::Io("'" + path + "' is a link, and a recording is not written through one; " +
                        "remove it, or record elsewhere with --prefix");
    if (fd < 0) return Status::FromErrno(errno, "open", path);
    auto file = std::make_unique<PosixFile>(fd, path);
    if (mode != Mode::kCreate && !file->IsRegular())
      return Status::Io("'" + path + "' is no file: a folder, a pipe, a terminal or a device");
    return std::unique_ptr<File>(std::move(file));
  }

  Status Link(const std::string& from, const std::string& to) override {
    return Check(link(from.c_str(), to.c_str()), "link", to);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    if (IsDevice(to))
      return Status::Io("'" + to + "' is a device, a pipe or a socket, and is not replaced");
    return Check(rename(from.c_str(), to.c_str()), "rename to", to);
  }
  Status Remove(const std::string& path) override {
    if (unlink(path.c_str()) == 0 || errno == ENOENT) return {};
    return Status::FromErrno(errno, "remove", path);
  }
  Status RemoveFolder(const std::string& path) override {
    const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return {};
    if (fd < 0) return Status::FromErrno(errno, "open", path);
    Status status = RemoveFilesIn(fd, path);
    close(fd);
    if (status.ok()) status = Check(rmdir(path.c_str()), "remove", path);
    return status;
  }
  Status MakeFolders(const std::string& path) override {
    struct stat info {};
    if (stat(path.c_str(), &info) == 0) {
      return S_ISDIR(info.st_mode) ? Status()
                                   : Status::FromErrno(ENOTDIR, "create the folder", path);
    }
    if (Status status = MakeFolders(FolderOf(path)); !status.ok()) return status;
    if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
    return Status::FromErrno(errno, "create the folder", path);
  }
  Status MakeFolder(const std::string& path, Mode mode) override {
    return Check(mkdir(path.c_str(), mode == Mode::kRecordedNew ? 0700 : 0777), "create the folder",
                 path);
  }
  Status PointLink(const std::string& path, const std::string& target) override {
    const std::string fresh = path + "~";
    for (const std::string& name : {fresh, path}) {
      struct stat info {};
      if (lstat(name.c_str(), &info) == 0 && !S_ISLNK(info.st_mode))
        return Status::FromErrno(EEXIST, "create the link", name);
    }
    unlink(fresh.c_str());
    if (symlink(target.c_str(), fresh.c_str()) != 0) {
      return Status::FromErrno(errno, "create the link", fresh);
    }
    return Rename(fresh, path);
  }

  std::vector<std::string> List(const std::string& folder) override {
    std::vector<std::string> names;
    DIR* stream = opendir(folder.c_str());
    if (stream == nullptr) return names;
    while (const dirent* entry = readdir(stream)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    closedir(stream);
    return names;
  }

  bool IsDevice(const std::string& path) override {
    struct stat info {};
    return stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
  }

  bool IsFolder(const std::string& path) override {
    struct stat info {};
    return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  }
  bool Exists(const std::string& path) override {
    struct stat info {};
    return lstat(path.c_str(), &info) == 0;
  }

  Status Sync(const std::string& path) override {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return Status::FromErrno(errno, "open", path);
    const int result = fsync(fd);
    const int error = errno;
    close(fd);
    return result == 0 ? Status() : Status::FromErrno(error, "sync", path);
  }

 private:
  static bool IsFolderIn(int fd, const std::string& name) {
    struct stat info {};
    return fstatat(fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode);
  }
  Status RemoveFilesIn(int fd, const std::string& path) {
    const std::vector<std::string> names = List("/proc/self/fd/" + std::to_string(fd));
    for (const std::string& name : names) {
      if (IsFolderIn(fd, name))
        return Status::Io("'" + path + "' is not removed: it has a folder, '" + name +
                          "', which is not hangscope's");
    }
    for (const std::string& name : names) {
      if (unlinkat(fd, name.c_str(), 0) != 0 && errno != ENOENT)
        return Status::FromErrno(errno, "remove", path + "/" + name);
    }
    return {};
  }
  static Status Check(int result, const char* what, const std::string& path) {
    return result == 0 ? Status() : Status::FromErrno(errno, what, path);
  }
};

}  // namespace

FileSystem& PosixFileSystem() {
  static PosixFiles files;
  return files;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string NameOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

Result<std::string> ReadWholeFile(FileSystem& files, const std::string& path, uint64_t most_bytes) {
  auto file = files.Open(path, FileSystem::Mode::kRead);
  if (!file.ok()) return file.status();
  std::string text;
  char buffer[65536];
  for (;;) {
    auto n = (*file)->ReadAt(text.size(), buffer);
    if (!n.ok()) return n.status();
    if (*n == 0) return text;
    text.append(buffer, *n);
    if (text.size() > most_bytes)
      return Status::Corrupt("'" + path + "' has more than " + FormatSize(most_bytes) +
                             ", more than it can have: it is damaged");
  }
}

Status WriteWholeFile(FileSystem& files, const std::string& path, std::string_view text,
                      FileSystem::Mode mode) {
  auto file = files.Open(path, mode);
  if (!file.ok()) return file.status();
  if (Status status = (*file)->Truncate(0); !status.ok()) return status;
  size_t written = 0;
  return (*file)->WriteAt(0, text, &written);
}

}  // namespace hangscope
