// An ElfImage in a process of its own (base/side_process.h): for who must go on whatever an ELF
// does to libdw. When that process breaks off, no more names are known, and status() says why.
#ifndef HANGSCOPE_CODE_ELF_READER_H
#define HANGSCOPE_CODE_ELF_READER_H

#include <memory>
#include <string>

#include "base/generations.h"
#include "base/side_process.h"
#include "code/code_source.h"
#include "code/program_file.h"

namespace hangscope {

class ElfReader final : public CodeSource {
 public:
  static Result<std::unique_ptr<ElfReader>> Open(const std::string& path);

  std::optional<uint32_t> InsnAt(uint64_t pc) override;
  Location Locate(uint64_t pc) override;
  bool InMemory(uint64_t address) override;
  std::string Variable(uint64_t address) override;
  std::vector<uint64_t> Unwind(const CoreRegisters& registers, std::string_view stack) override;
  int xlen() const override { return xlen_; }
  bool HasChangedOnDisk() const override { return file_.HasChanged(); }
  Status status() const override { return side_->status(); }
  // Where the file lies as it was when it was opened, for this process.
  std::string copy_path() const;

 private:
  ElfReader(ProgramFile file, std::unique_ptr<SideProcess> side)
      : file_(std::move(file)), side_(std::move(side)) {}
  std::string Ask(char what, uint64_t address);

  ProgramFile file_;
  std::unique_ptr<SideProcess> side_;
  int xlen_ = 64;
  Generations<uint64_t, std::optional<uint32_t>, 65536> insns_;
  Generations<uint64_t, Location, 16384> locations_;
};

}  // namespace hangscope

#endif
