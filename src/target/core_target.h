// core:FILE: the memory in an ELF core dump, 32 or 64 bits, of either byte order.
#ifndef HANGSCOPE_TARGET_CORE_TARGET_H
#define HANGSCOPE_TARGET_CORE_TARGET_H

#include "base/file_system.h"
#include "target/target.h"

namespace hangscope {

class CoreTarget final : public Target {
 public:
  static Result<std::unique_ptr<Target>> Open(FileSystem& files, const std::string& path);

  const std::string& name() const override { return name_; }
  Status Read(uint64_t address, std::span<char> bytes) override;
  Status Write(uint64_t address, std::string_view bytes) override;
  Life life() override { return Life::kDead; }
  const std::vector<MemoryRange>& ranges() const override { return ranges_; }
  std::optional<uint64_t> AddressOf(uint64_t elf_address) const override { return elf_address; }

 private:
  struct Segment {
    MemoryRange memory;
    uint64_t file_offset = 0;
  };

  CoreTarget(std::string name, std::unique_ptr<File> file)
      : name_(std::move(name)), file_(std::move(file)) {}
  Status ReadHeaders(uint64_t file_bytes);

  const std::string name_;
  std::unique_ptr<File> file_;
  std::vector<Segment> segments_;  // ascending, not overlapping
  std::vector<MemoryRange> ranges_;
};

}  // namespace hangscope

#endif
