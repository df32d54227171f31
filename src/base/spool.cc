#include "base/spool.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "base/units.h"

namespace hangscope {
namespace {

constexpr size_t kReadBytes = 256 << 10;
constexpr int kPipeBytes = 1 << 20;  // so that its writer waits less
constexpr int kBetweenQuestionsMs = 100;

int OpenTemporary(const std::string& folder) {
  const int fd = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  // Not every file system has files without a name.
  std::string name = folder + "/hangscope-XXXXXX";
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) unlink(name.c_str());
  return named;
}

// A tenth of it stays free for others.
uint64_t RoomIn(int fd) {
  struct statvfs room {};
  if (fstatvfs(fd, &room) != 0) return UINT64_MAX;
  return static_cast<uint64_t>(room.f_bavail) * room.f_frsize / 10 * 9;
}

Status WriteAllTo(int fd, std::string_view bytes, const std::string& folder) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Status::FromErrno(errno, "write to a temporary file in", folder);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

// False: nothing came for a while, or a signal did.
bool HasMore(int fd) {
  pollfd wanted{fd, POLLIN, 0};
  return poll(&wanted, 1, kBetweenQuestionsMs) > 0;
}

Status Copy(int from, int to, const SpoolOptions& options) {
  const uint64_t most = std::min(options.most_bytes, RoomIn(to));
  std::string piece(kReadBytes, '\0');
  uint64_t bytes = 0;
  while (!options.go_on || options.go_on(bytes)) {
    if (!HasMore(from)) continue;
    const ssize_t n = read(from, piece.data(), piece.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return Status::FromErrno(errno, "read", options.name);
    if (n == 0) return {};
    bytes += static_cast<uint64_t>(n);
    if (bytes > most)
      return Status::Io("'" + options.name + "' has more than " + FormatSize(most) +
                        ", which is all that may be taken of " + options.folder +
                        "; write it to a file and name that, or set TMPDIR to a larger folder");
    if (Status status = WriteAllTo(to, std::string_view(piece).substr(0, static_cast<size_t>(n)),
                                   options.folder);
        !status.ok())
      return status;
  }
  return {};
}

}  // namespace

int SpoolPipe(int fd, const SpoolOptions& options, Status* status) {
  const int to = OpenTemporary(options.folder);
  if (to < 0) {
    *status = Status::FromErrno(errno, "make a temporary file in", options.folder);
    return -1;
  }
  (void)fcntl(fd, F_SETPIPE_SZ, kPipeBytes);
  *status = Copy(fd, to, options);
  if (status->ok()) return to;
  close(to);
  return -1;
}

std::string CompressorOf(FileSystem& files, const std::string& path) {
  using std::string_view_literals::operator""sv;
  constexpr std::pair<std::string_view, const char*> kMagics[] = {{"\x1f\x8b\x08"sv, "gzip"},
                                                                  {"\x28\xb5\x2f\xfd"sv, "zstd"},
                                                                  {"\xfd"
                                                                   "7zXZ\0"sv,
                                                                   "xz"},
                                                                  {"BZh"sv, "bzip2"}};
  if (files.IsFolder(path) || !files.Exists(path)) return {};
  auto file = files.Open(path, FileSystem::Mode::kRead);
  char begin[8];
  auto got = file.ok() ? (*file)->ReadAt(0, begin) : Result<size_t>(file.status());
  if (!got.ok()) return {};
  for (const auto& [magic, program] : kMagics) {
    if (std::string_view(begin, *got).starts_with(magic)) return program;
  }
  return {};
}

}  // namespace hangscope
