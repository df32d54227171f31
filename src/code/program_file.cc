#include "code/program_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/units.h"

namespace hangscope {
namespace {

constexpr int kTries = 3;  // a linker may be writing it

// Whether `bytes` arrived; fewer: the file was cut short meanwhile.
Result<bool> CopyBytes(int from, int to, uint64_t bytes, const std::string& path) {
  off_t offset = 0;
  while (static_cast<uint64_t>(offset) < bytes) {
    const ssize_t sent = sendfile(to, from, &offset, bytes - static_cast<uint64_t>(offset));
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return Status::FromErrno(errno, "copy", path);
    if (sent == 0) return false;
  }
  return true;
}

// Until it was not written to while it was copied. `into` is empty, and has the copy afterwards.
Status CopySettled(int from, int into, const std::string& path, struct stat* original) {
  for (int i = 0; i < kTries; ++i) {
    if (fstat(from, original) != 0) return Status::FromErrno(errno, "examine", path);
    const uint64_t bytes = static_cast<uint64_t>(original->st_size);
    if (bytes > ProgramFile::kMostBytes)
      return Status::Corrupt(fmt::format(
          "'{}' has {}, and {} at most is read of a program's file; strip what is not needed", path,
          FormatSize(bytes), FormatSize(ProgramFile::kMostBytes)));
    if (ftruncate(into, 0) != 0 || lseek(into, 0, SEEK_SET) != 0)
      return Status::FromErrno(errno, "copy", path);
    auto whole = CopyBytes(from, into, bytes, path);
    if (!whole.ok()) return whole.status();
    struct stat after {};
    if (fstat(from, &after) != 0) return Status::FromErrno(errno, "examine", path);
    if (*whole && IsSameFile(*original, after)) return {};
  }
  return Status::Busy(
      fmt::format("'{}' is being written to; try again when its build has ended", path));
}

}  // namespace

bool IsSameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

Result<int> OpenRegularFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return Status::FromErrno(errno, "open", path);
  struct stat about {};
  if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) return fd;
  const bool folder = S_ISDIR(about.st_mode);
  close(fd);
  return Status::Corrupt(fmt::format("'{}' is {}, not a file", path,
                                     folder ? "a folder" : "a device, a pipe or a terminal"));
}

Result<ProgramFile> ProgramFile::Copy(const std::string& path) {
  auto fd = OpenRegularFile(path);
  if (!fd.ok()) return fd.status();
  return CopyOpen(*fd, path);
}

Result<ProgramFile> ProgramFile::CopyOpen(int fd, const std::string& path) {
  struct stat original {};
  const int copy = memfd_create("hangscope-program", MFD_CLOEXEC);
  const Status status = copy < 0 ? Status::FromErrno(errno, "make room for a copy of", path)
                                 : CopySettled(fd, copy, path, &original);
  close(fd);
  if (!status.ok()) {
    if (copy >= 0) close(copy);
    return status;
  }
  return ProgramFile(copy, path, original);
}

ProgramFile::ProgramFile(ProgramFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      original_(other.original_) {}

ProgramFile::~ProgramFile() {
  if (fd_ >= 0) close(fd_);
}

int ProgramFile::Duplicate() const { return fcntl(fd_, F_DUPFD_CLOEXEC, 3); }

bool ProgramFile::HasChanged() const {
  struct stat now {};
  return stat(path_.c_str(), &now) == 0 && !IsSameFile(original_, now);
}

}  // namespace hangscope
