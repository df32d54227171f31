// A program's file as it was when it was opened: a copy in memory, so that a rebuild that writes to
// the file in place (cp, strip, objcopy) changes neither what is read of it nor, by cutting it
// short, ends who has it mapped (SIGBUS).
#ifndef HANGSCOPE_CODE_PROGRAM_FILE_H
#define HANGSCOPE_CODE_PROGRAM_FILE_H

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "base/status.h"

namespace hangscope {

class ProgramFile {
 public:
  // More than this is not copied but refused.
  static constexpr uint64_t kMostBytes = uint64_t{1} << 30;

  // Never waits: what is no regular file (a pipe, a terminal) is refused.
  static Result<ProgramFile> Copy(const std::string& path);
  // The same of an open file, which is closed in any case. `path` names it in errors.
  static Result<ProgramFile> CopyOpen(int fd, const std::string& path);

  ProgramFile(ProgramFile&& other) noexcept;
  ProgramFile& operator=(ProgramFile&&) = delete;
  ~ProgramFile();

  // Close-on-exec; this object's. Position: anywhere.
  int fd() const { return fd_; }
  uint64_t size_bytes() const { return static_cast<uint64_t>(original_.st_size); }
  // A descriptor of the same copy that the caller owns; negative: errno says why.
  int Duplicate() const;
  // The same copy, for another owner.
  ProgramFile Share() const { return {Duplicate(), path_, original_}; }
  // Whether another file, or other contents, lie at the path now. Removed is not changed.
  bool HasChanged() const;

 private:
  ProgramFile(int fd, std::string path, const struct stat& original)
      : fd_(fd), path_(std::move(path)), original_(original) {}

  int fd_;
  std::string path_;
  struct stat original_;
};

// Whether both are of one file, and nobody wrote to it between them.
bool IsSameFile(const struct stat& a, const struct stat& b);

// Opens a regular file for reading, close-on-exec, without ever waiting for somebody at the other
// end of it; the caller closes it.
Result<int> OpenRegularFile(const std::string& path);

}  // namespace hangscope

#endif
