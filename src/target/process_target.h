// pid:N: a live process of Linux. Its scope is a file that it has mapped (target/linux.h), which is
// read as a file, and so outlives it; or, for other ports, a symbol in its memory. pid:N@ADDRESS: a
// simulator, and where the scope of its guest begins in its memory (target/guest_ram.h).
#ifndef HANGSCOPE_TARGET_PROCESS_TARGET_H
#define HANGSCOPE_TARGET_PROCESS_TARGET_H

#include "base/file_system.h"
#include "target/target.h"

namespace hangscope {

// Whether a process of this number runs. Another one may have got it.
Life LifeOfProcess(int pid);

class ProcessTarget final : public Target {
 public:
  static Result<std::unique_ptr<Target>> Open(FileSystem& files, int pid,
                                              const TargetOptions& options);
  static Result<std::unique_ptr<Target>> OpenAt(FileSystem& files, int pid, uint64_t address);

  const std::string& name() const override { return name_; }
  Status Read(uint64_t address, std::span<char> bytes) override;
  Status Write(uint64_t address, std::string_view bytes) override;
  Life life() override;
  const std::vector<MemoryRange>& ranges() const override { return ranges_; }
  std::optional<uint64_t> scope_address() const override;
  std::optional<uint64_t> AddressOf(uint64_t elf_address) const override;
  std::string elf_path() const override;
  bool may_simulate() const override { return may_simulate_; }
  std::string guest_spec() const override;

 private:
  ProcessTarget(int pid, std::string name) : pid_(pid), name_(std::move(name)) {}

  const int pid_;
  const std::string name_;
  std::unique_ptr<File> file_;  // null: it is read from the process's memory
  uint64_t moved_by_ = 0;       // from the ELF's addresses
  bool may_simulate_ = false;
  std::optional<uint64_t> guest_scope_;  // where it begins
  std::vector<MemoryRange> ranges_;
};

}  // namespace hangscope

#endif
