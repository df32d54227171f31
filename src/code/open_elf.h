// A file that libelf reads, piece by piece: nothing of it is mapped, since who cuts it short
// meanwhile would end who has it mapped.
#ifndef HANGSCOPE_CODE_OPEN_ELF_H
#define HANGSCOPE_CODE_OPEN_ELF_H

#include <libelf.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "code/program_file.h"

namespace hangscope {

class OpenElf {
 public:
  explicit OpenElf(const std::string& path) : OpenElf(OpenRegularFile(path)) {}
  // Of an open file, whose owner it becomes.
  explicit OpenElf(Result<int> fd) : fd_(std::move(fd)) {
    if (!fd_.ok()) return;
    elf_version(EV_CURRENT);
    elf_ = elf_begin(*fd_, ELF_C_READ, nullptr);
    if (elf_kind(elf_) == ELF_K_ELF) return;
    elf_end(elf_);
    elf_ = nullptr;
  }
  ~OpenElf() {
    elf_end(elf_);
    if (fd_.ok()) close(*fd_);
  }
  OpenElf(const OpenElf&) = delete;
  OpenElf& operator=(const OpenElf&) = delete;

  const Status& status() const { return fd_.status(); }  // of opening the file
  int fd() const { return fd_.value(); }                 // where that is ok
  Elf* get() const { return elf_; }                      // null: it is no ELF file

 private:
  Result<int> fd_;
  Elf* elf_ = nullptr;
};

}  // namespace hangscope

#endif
