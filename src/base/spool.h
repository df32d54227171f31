// What comes through a pipe, as a file: readers here go back and forth in what they read.
#ifndef HANGSCOPE_BASE_SPOOL_H
#define HANGSCOPE_BASE_SPOOL_H

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/file_system.h"

namespace hangscope {

struct SpoolOptions {
  std::string name;                          // of the pipe, as the user says it
  std::string folder = "/tmp";               // of the temporary file
  uint64_t most_bytes = uint64_t{64} << 30;  // and never more than most of the folder's free room
  // Asked at least every 100 ms, also while no byte comes; false: what came so far is all.
  std::function<bool(uint64_t bytes)> go_on = nullptr;
};

// Reads `fd` to its end into a temporary file that has no name and that only this user may read.
// Returns its descriptor, to be closed by the caller; -1 with *status set: it cannot be read, there
// is no room, or it is longer than it may be.
int SpoolPipe(int fd, const SpoolOptions& options, Status* status);

// Those of `files`, with one more: the descriptor `fd`, for reading only, by the name `name`. Both
// outlive it.
class FilesWithOneMore final : public FileSystem {
 public:
  FilesWithOneMore(FileSystem& files, std::string name, int fd)
      : files_(files), name_(std::move(name)), fd_(fd) {}

  Result<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override {
    if (path != name_ || mode != Mode::kRead) return files_.Open(path, mode);
    return files_.Open("/proc/self/fd/" + std::to_string(fd_), mode);
  }
  bool IsFolder(const std::string& path) override { return path != name_ && files_.IsFolder(path); }
  bool Exists(const std::string& path) override { return path == name_ || files_.Exists(path); }
  bool IsDevice(const std::string& path) override { return path != name_ && files_.IsDevice(path); }

  Status Link(const std::string& from, const std::string& to) override {
    return files_.Link(from, to);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return files_.Rename(from, to);
  }
  Status Remove(const std::string& path) override { return files_.Remove(path); }
  Status RemoveFolder(const std::string& path) override { return files_.RemoveFolder(path); }
  Status MakeFolders(const std::string& path) override { return files_.MakeFolders(path); }
  Status MakeFolder(const std::string& path, Mode mode) override {
    return files_.MakeFolder(path, mode);
  }
  Status PointLink(const std::string& path, const std::string& target) override {
    return files_.PointLink(path, target);
  }
  std::vector<std::string> List(const std::string& folder) override { return files_.List(folder); }
  Status Sync(const std::string& path) override { return files_.Sync(path); }

 private:
  FileSystem& files_;
  const std::string name_;
  const int fd_;
};

// The program that made a file smaller, by its first bytes: "gzip"; empty: none that is known.
std::string CompressorOf(FileSystem& files, const std::string& path);

}  // namespace hangscope

#endif
