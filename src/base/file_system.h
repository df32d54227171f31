// Files, behind an interface so that full disks, rotation and races are tested
// without a disk. Paths are as the operating system takes them.
#ifndef HANGSCOPE_BASE_FILE_SYSTEM_H
#define HANGSCOPE_BASE_FILE_SYSTEM_H

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hangscope {

// An open file. One thread at a time, except that ReadAt may run beside WriteAt.
class File {
 public:
  virtual ~File() = default;
  // Writes all of `bytes` at `offset`. On failure *written tells how many bytes
  // did arrive (they count).
  virtual Status WriteAt(uint64_t offset, std::string_view bytes, size_t* written) = 0;
  // Reads up to `buffer.size()` bytes; fewer only at the end of the file.
  virtual Result<size_t> ReadAt(uint64_t offset, std::span<char> buffer) = 0;
  virtual Status Truncate(uint64_t size_bytes) = 0;
  virtual Result<uint64_t> Size() = 0;
  // The first byte from `offset` on that is in no hole of the file; its size where there is none.
  virtual uint64_t NextData(uint64_t offset) { return offset; }
  // How many names the file has: more than one means that a snapshot holds it.
  virtual Result<uint64_t> LinkCount() = 0;
  // Takes the advisory lock that marks a live writer; kBusy when another has it.
  virtual Status Lock() = 0;
  // Whether another has it; takes nothing.
  virtual bool IsLocked() = 0;
  // Whether it is a plain file that belongs to this user and has one name.
  virtual bool IsOursAlone() = 0;
};

// Any thread may call.
class FileSystem {
 public:
  // What a user named follows links and is as open to others as the umask says. What hangscope
  // named itself, recordings, is for this user alone and never a link: in a folder where others may
  // write, the name may be theirs.
  enum class Mode {
    kRead,
    kReadWrite,
    kCreate,      // read-write, made if absent, kept if not
    kNew,         // read-write; fails where anything has the name
    kRecorded,    // a recording's file, read-write, that is there
    kRecordedNew  // one that is made; fails where anything has the name
  };

  virtual ~FileSystem() = default;
  // What is no regular file (a pipe, a terminal, a device) is refused and never waited for, unless
  // the user names it as an output (kCreate).
  virtual Result<std::unique_ptr<File>> Open(const std::string& path, Mode mode) = 0;
  virtual Status Link(const std::string& from, const std::string& to) = 0;
  // Replaces a file or a link; a device is refused.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  virtual Status Remove(const std::string& path) = 0;  // a file or a link; absent is ok
  // A folder and the files in it; absent is ok. One with a folder inside, and a link, stay as they
  // are, and it fails: nothing that hangscope writes has one.
  virtual Status RemoveFolder(const std::string& path) = 0;
  // Those that are absent, for this user alone.
  virtual Status MakeFolders(const std::string& path) = 0;
  // kNew or kRecordedNew; fails where anything has the name.
  virtual Status MakeFolder(const std::string& path, Mode mode) = 0;
  // Points the symbolic link `path` at `target`, replacing an older one at once. Fails where the
  // name is taken by anything else.
  virtual Status PointLink(const std::string& path, const std::string& target) = 0;
  // The names in a folder, unsorted; empty where there is none.
  virtual std::vector<std::string> List(const std::string& folder) = 0;
  virtual bool IsFolder(const std::string& path) = 0;
  virtual bool Exists(const std::string& path) = 0;
  // Whether a device, a pipe or a socket is there: written into, and never replaced.
  virtual bool IsDevice(const std::string& path) {
    (void)path;
    return false;
  }
  // Forces a file's or folder's contents to the disk.
  virtual Status Sync(const std::string& path) = 0;
};

// The real one. Descriptors are close-on-exec.
FileSystem& PosixFileSystem();

// "a/b/c" -> "a/b" and "c"; "c" -> "." and "c".
std::string FolderOf(const std::string& path);
std::string NameOf(const std::string& path);

// `most_bytes`: a larger file is refused.
Result<std::string> ReadWholeFile(FileSystem& files, const std::string& path,
                                  uint64_t most_bytes = uint64_t{1} << 30);
// Writes `path` anew; the folder must exist. `mode`: one that creates.
Status WriteWholeFile(FileSystem& files, const std::string& path, std::string_view text,
                      FileSystem::Mode mode = FileSystem::Mode::kCreate);

}  // namespace hangscope

#endif
