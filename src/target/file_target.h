// file:PATH[@OFFSET]: a scope file, a raw dump of memory, guest RAM that a simulator maps.
// Addresses are offsets in the file.
#ifndef HANGSCOPE_TARGET_FILE_TARGET_H
#define HANGSCOPE_TARGET_FILE_TARGET_H

#include "base/file_system.h"
#include "target/target.h"

namespace hangscope {

class FileTarget final : public Target {
 public:
  // `scope_offset`: where the scope begins, if known.
  static Result<std::unique_ptr<Target>> Open(FileSystem& files, const std::string& path,
                                              std::optional<uint64_t> scope_offset);

  const std::string& name() const override { return name_; }
  Status Read(uint64_t address, std::span<char> bytes) override;
  Status Write(uint64_t address, std::string_view bytes) override;
  Life life() override { return Life::kUnknown; }
  const std::vector<MemoryRange>& ranges() const override { return ranges_; }
  uint64_t NextData(uint64_t address) override { return file_->NextData(address); }
  std::optional<uint64_t> scope_address() const override { return scope_offset_; }

 private:
  FileTarget(std::string path, std::unique_ptr<File> file, uint64_t size_bytes,
             std::optional<uint64_t> scope_offset);

  const std::string name_;
  std::unique_ptr<File> file_;
  const std::vector<MemoryRange> ranges_;
  const std::optional<uint64_t> scope_offset_;
};

}  // namespace hangscope

#endif
