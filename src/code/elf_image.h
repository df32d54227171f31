// The ELF of the observed program: its code, functions, files and lines.
// Reads symbols and DWARF through elfutils' libdw.
#ifndef HANGSCOPE_CODE_ELF_IMAGE_H
#define HANGSCOPE_CODE_ELF_IMAGE_H

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/generations.h"
#include "base/status.h"
#include "code/code_source.h"
#include "code/program_file.h"
#include "code/stack_unwind.h"
#include "code/units_by_address.h"

struct Dwfl;
struct Dwfl_Module;

namespace hangscope {

struct ElfSymbol {
  std::string name;
  uint64_t address = 0;
  uint64_t bytes = 0;  // 0: the symbol does not say
  bool is_data = false;
};

class ElfImage final : public CodeSource {
 public:
  static Result<std::unique_ptr<ElfImage>> Open(const std::string& path);
  // Of a copy that was made of `path` before.
  static Result<std::unique_ptr<ElfImage>> OpenCopy(ProgramFile file, const std::string& path);
  ~ElfImage() override;
  ElfImage(const ElfImage&) = delete;
  ElfImage& operator=(const ElfImage&) = delete;

  std::optional<uint32_t> InsnAt(uint64_t pc) override;
  Location Locate(uint64_t pc) override;
  bool InMemory(uint64_t address) override;
  std::string Variable(uint64_t address) override;
  std::vector<uint64_t> Unwind(const CoreRegisters& registers, std::string_view stack) override;
  int xlen() const override { return xlen_; }
  bool HasChangedOnDisk() const override { return file_.HasChanged(); }

  // Of the symbol table, those with a name and a place in memory.
  std::vector<ElfSymbol> Symbols() const;
  // The bytes of a section, loaded or not; empty where there is none.
  std::string Section(const std::string& name) const;

  const std::string& path() const { return path_; }
  bool big_endian() const { return big_endian_; }
  bool riscv() const { return riscv_; }

 private:
  struct Segment {
    uint64_t address = 0;
    uint64_t memory_bytes = 0;
    bool executable = false;
    std::string bytes;
  };

  ElfImage(std::string path, ProgramFile file) : path_(std::move(path)), file_(std::move(file)) {}
  Status ReadSegments();
  Status ReadSymbols();

  std::string path_;
  ProgramFile file_;
  int xlen_ = 64;
  bool riscv_ = false;
  bool arm_ = false;
  bool big_endian_ = false;
  std::vector<Segment> segments_;
  Dwfl* dwfl_ = nullptr;
  Dwfl_Module* module_ = nullptr;
  // libdw gives a file that can lie anywhere (PIE) a place, and counts addresses from there
  uint64_t bias_ = 0;
  Generations<uint64_t, Location, 16384> known_;
  std::unique_ptr<UnitsByAddress> units_;    // likewise
  std::unique_ptr<StackUnwinder> unwinder_;  // once it is asked for
  // by address; read when they are first asked for
  std::optional<std::vector<ElfSymbol>> variables_;
};

}  // namespace hangscope

#endif
