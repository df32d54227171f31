// Files of which it is counted how many bytes are read.
#ifndef HANGSCOPE_TESTS_FAKES_COUNTED_FILES_H
#define HANGSCOPE_TESTS_FAKES_COUNTED_FILES_H

#include <memory>
#include <string>
#include <utility>

#include "fakes/fake_file_system.h"

namespace hangscope {

// Holds one file, `name`, of `bytes`; there is nothing else.
class CountedFiles final : public FileSystem {
 public:
  CountedFiles(std::string name, std::string bytes)
      : name_(std::move(name)), bytes_(std::move(bytes)) {}

  uint64_t bytes_read() const { return bytes_read_; }

  Result<std::unique_ptr<File>> Open(const std::string& path, Mode) override {
    if (path != name_) return Status::NotFound(path);
    return std::unique_ptr<File>(std::make_unique<Counted>(this));
  }
  bool IsFolder(const std::string&) override { return false; }
  bool Exists(const std::string& path) override { return path == name_; }
  std::vector<std::string> List(const std::string&) override { return {}; }
  Status Link(const std::string&, const std::string&) override { return Refuse(); }
  Status Rename(const std::string&, const std::string&) override { return Refuse(); }
  Status Remove(const std::string&) override { return Refuse(); }
  Status RemoveFolder(const std::string&) override { return Refuse(); }
  Status MakeFolders(const std::string&) override { return Refuse(); }
  Status MakeFolder(const std::string&, Mode) override { return Refuse(); }
  Status PointLink(const std::string&, const std::string&) override { return Refuse(); }
  Status Sync(const std::string&) override { return Refuse(); }

 private:
  class Counted final : public File {
   public:
    explicit Counted(CountedFiles* files) : files_(files) {}
    Result<size_t> ReadAt(uint64_t offset, std::span<char> buffer) override {
      if (offset >= files_->bytes_.size()) return size_t{0};
      const size_t got = files_->bytes_.copy(buffer.data(), buffer.size(), offset);
      files_->bytes_read_ += got;
      return got;
    }
    Result<uint64_t> Size() override { return uint64_t{files_->bytes_.size()}; }
    Status WriteAt(uint64_t, std::string_view, size_t*) override { return Refuse(); }
    Status Truncate(uint64_t) override { return Refuse(); }
    Result<uint64_t> LinkCount() override { return uint64_t{1}; }
    Status Lock() override { return Refuse(); }
    bool IsLocked() override { return false; }
    bool IsOursAlone() override { return true; }

   private:
    CountedFiles* files_;
  };
  static Status Refuse() { return Status::Io("it is only read"); }

  const std::string name_;
  const std::string bytes_;
  uint64_t bytes_read_ = 0;
};

}  // namespace hangscope

#endif
