// Several files, one behind the other, as one.
#ifndef HANGSCOPE_CODE_JOINED_FILES_H
#define HANGSCOPE_CODE_JOINED_FILES_H

#include <memory>
#include <string>
#include <vector>

#include "base/file_system.h"

namespace hangscope {

// For reading only. Offsets count through all parts. One thread.
class JoinedFiles final : public File {
 public:
  struct Part {
    std::string name;  // for people
    uint64_t begin = 0;
    uint64_t end = 0;
    std::unique_ptr<File> file;
  };

  // Behind those that are there; of as many bytes as it has now.
  Status Add(FileSystem& files, const std::string& path, const std::string& name);

  const std::vector<Part>& parts() const { return parts_; }
  // "offset 12", or of several "offset 12 of 'data.3'".
  std::string Where(uint64_t offset) const;

  Result<size_t> ReadAt(uint64_t offset, std::span<char> buffer) override;
  Result<uint64_t> Size() override { return parts_.empty() ? 0 : parts_.back().end; }

  Status WriteAt(uint64_t, std::string_view, size_t*) override { return Refuse(); }
  Status Truncate(uint64_t) override { return Refuse(); }
  Result<uint64_t> LinkCount() override { return Refuse(); }
  Status Lock() override { return Refuse(); }
  bool IsLocked() override { return false; }
  bool IsOursAlone() override { return false; }

 private:
  static Status Refuse() {
    return Status::Io("several files that are read as one are not written");
  }

  std::vector<Part> parts_;
};

}  // namespace hangscope

#endif
