#include "code/elf_image.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fmt/format.h>
#include <gelf.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "code/debug_info.h"

namespace hangscope {
namespace {

constexpr uint64_t kMostCode = 256u << 20;  // kept of all segments together

// Where separate debug files are looked for; libdw wants it to outlive the Dwfl.
char* debug_info_path = nullptr;

const Dwfl_Callbacks kCallbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = CopyDebugInfo,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = &debug_info_path,
};

// hangscope's functions for targets are compiled into their callers.
bool IsHangscopeHeader(std::string_view path) {
  return path.find("hangscope/target/") != std::string_view::npos ||
         path.find("hangscope/port/") != std::string_view::npos;
}

struct CodeLine {
  std::string path;
  uint32_t line = 0;
};

CodeLine LineOfCall(Dwarf_Die* unit, Dwarf_Die* inlined) {
  Dwarf_Attribute attribute;
  Dwarf_Word file = 0;
  Dwarf_Word line = 0;
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) != 0 ||
      dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) != 0 ||
      dwarf_getsrcfiles(unit, &files, &count) != 0 || file >= count || line > INT_MAX)
    return {};
  const char* const path = dwarf_filesrc(files, file, nullptr, nullptr);
  return path == nullptr ? CodeLine() : CodeLine{path, static_cast<uint32_t>(line)};
}

// Where the program calls the function of hangscope's that `pc` is in; an empty path: not known.
CodeLine LineOfProgram(UnitsByAddress& units, uint64_t pc) {
  CodeLine line;
  Dwarf_Addr bias = 0;
  Dwarf_Die* const unit = units.Find(pc, &bias);
  Dwarf_Die* scopes = nullptr;
  if (unit == nullptr || dwarf_getscopes(unit, pc - bias, &scopes) <= 0) return line;
  // dwarf_getscopes leaves out whom an inlined function was put into.
  Dwarf_Die* inner = nullptr;
  const int count = dwarf_getscopes_die(&scopes[0], &inner);
  for (int i = 0; i < count && dwarf_tag(&inner[i]) != DW_TAG_subprogram; ++i) {
    if (dwarf_tag(&inner[i]) != DW_TAG_inlined_subroutine) continue;
    line = LineOfCall(unit, &inner[i]);
    if (!IsHangscopeHeader(line.path)) break;
  }
  free(inner);
  free(scopes);
  return IsHangscopeHeader(line.path) ? CodeLine() : line;
}

// By the line table.
struct SourceLine : CodeLine {
  const char* folder = nullptr;  // that the unit was compiled in; null: not known
};

SourceLine LineAt(Dwfl_Module* module, UnitsByAddress& units, uint64_t pc) {
  SourceLine found;
  int number = 0;
  const char* file = nullptr;
  if (Dwfl_Line* const line = dwfl_module_getsrc(module, pc); line != nullptr) {
    file = dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr);
    found.folder = dwfl_line_comp_dir(line);
  } else {
    Dwarf_Addr bias = 0;
    Dwarf_Die* const unit = units.Find(pc, &bias);
    Dwarf_Line* const of_unit = unit == nullptr ? nullptr : dwarf_getsrc_die(unit, pc - bias);
    if (of_unit == nullptr || dwarf_lineno(of_unit, &number) != 0) return found;
    Dwarf_Attribute folder;
    file = dwarf_linesrc(of_unit, nullptr, nullptr);
    found.folder = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &folder));
  }
  if (file == nullptr || number <= 0) return found;
  found.path = file;
  found.line = static_cast<uint32_t>(number);
  return found;
}

// Assemblers mark with '$' where code of a kind begins ("$xrv32i2p1_m2p0"): the marks are no names,
// and have no size, so the closest label of the same section is it.
const char* NameBefore(Dwfl_Module* module, GElf_Addr address, GElf_Off* offset) {
  GElf_Addr in_section = address;
  Dwarf_Addr ignored = 0;
  const Elf_Scn* const section = dwfl_module_address_section(module, &in_section, &ignored);
  const char* best = nullptr;
  GElf_Addr best_at = 0;
  const int count = dwfl_module_getsymtab(module);
  for (int i = 1; section != nullptr && i < count; ++i) {
    GElf_Sym symbol;
    GElf_Addr at = 0;
    GElf_Word of = 0;
    const char* const name =
        dwfl_module_getsym_info(module, i, &symbol, &at, &of, nullptr, nullptr);
    const int type = GELF_ST_TYPE(symbol.st_info);
    if (name == nullptr || name[0] == '$' || name[0] == '\0' || at > address || at < best_at ||
        of != elf_ndxscn(const_cast<Elf_Scn*>(section)) || (type != STT_FUNC && type != STT_NOTYPE))
      continue;
    best = name;
    best_at = at;
  }
  *offset = address - best_at;
  return best;
}

}  // namespace

Result<std::unique_ptr<ElfImage>> ElfImage::Open(const std::string& path) {
  auto file = ProgramFile::Copy(path);
  if (!file.ok()) return file.status();
  return OpenCopy(std::move(*file), path);
}

Result<std::unique_ptr<ElfImage>> ElfImage::OpenCopy(ProgramFile file, const std::string& path) {
  std::unique_ptr<ElfImage> image(new ElfImage(path, std::move(file)));
  if (Status status = image->ReadSegments(); !status.ok()) return status;
  if (Status symbols = image->ReadSymbols(); !symbols.ok()) return symbols;
  return image;
}

ElfImage::~ElfImage() {
  if (dwfl_ != nullptr) dwfl_end(dwfl_);
}

Status ElfImage::ReadSegments() {
  const int fd = file_.fd();
  elf_version(EV_CURRENT);
  Elf* elf = elf_begin(fd, ELF_C_READ, nullptr);
  GElf_Ehdr header;
  if (elf == nullptr || elf_kind(elf) != ELF_K_ELF || gelf_getehdr(elf, &header) == nullptr) {
    elf_end(elf);
    return Status::Corrupt(fmt::format(
        "'{}' is not an ELF file; --elf wants the program that runs on the target", path_));
  }
  xlen_ = gelf_getclass(elf) == ELFCLASS32 ? 32 : 64;
  riscv_ = header.e_machine == EM_RISCV;
  arm_ = header.e_machine == EM_ARM;
  big_endian_ = header.e_ident[EI_DATA] == ELFDATA2MSB;
  size_t count = 0;
  elf_getphdrnum(elf, &count);
  const uint64_t file_bytes = file_.size_bytes();
  uint64_t room = kMostCode;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr program;
    if (gelf_getphdr(elf, static_cast<int>(i), &program) == nullptr) continue;
    if (program.p_type != PT_LOAD) continue;
    Segment segment;
    segment.address = program.p_vaddr;
    segment.memory_bytes = program.p_memsz;
    segment.executable = (program.p_flags & PF_X) != 0;
    if (segment.executable) {
      // What the header says is no reason to take more memory than the file has bytes.
      const uint64_t there = file_bytes - std::min(file_bytes, program.p_offset);
      const uint64_t code_bytes = std::min(program.p_filesz, there);
      if (code_bytes > room) continue;
      room -= code_bytes;
      segment.bytes.resize(code_bytes);
      const ssize_t got = pread(fd, segment.bytes.data(), segment.bytes.size(),
                                static_cast<off_t>(program.p_offset));
      segment.bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
    }
    segments_.push_back(std::move(segment));
  }
  const bool any = !segments_.empty();
  // A linker script may leave sections that nothing is loaded into without a segment.
  for (Elf_Scn* section = nullptr; any && (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr said;
    if (gelf_getshdr(section, &said) == nullptr || said.sh_type != SHT_NOBITS ||
        (said.sh_flags & SHF_ALLOC) == 0 || (said.sh_flags & SHF_TLS) != 0 ||
        InMemory(said.sh_addr))
      continue;
    Segment segment;
    segment.address = said.sh_addr;
    segment.memory_bytes = said.sh_size;
    segments_.push_back(std::move(segment));
  }
  elf_end(elf);
  if (segments_.empty()) {
    return Status::Corrupt(fmt::format(
        "'{}' has nothing to load (an object file?); --elf wants a linked program", path_));
  }
  return {};
}

Status ElfImage::ReadSymbols() {
  dwfl_ = dwfl_begin(&kCallbacks);
  if (dwfl_ == nullptr) return Status::Io("cannot start libdw");
  dwfl_report_begin(dwfl_);
  const int fd = file_.Duplicate();
  if (fd < 0) return Status::FromErrno(errno, "open", path_);
  module_ = dwfl_report_offline(dwfl_, "", path_.c_str(), fd);
  dwfl_report_end(dwfl_, nullptr, nullptr);
  if (module_ == nullptr) {
    close(fd);
    return Status::Corrupt(fmt::format("cannot read '{}': {}", path_, dwfl_errmsg(-1)));
  }
  if (dwfl_module_getelf(module_, &bias_) == nullptr) {
    return Status::Corrupt(fmt::format("cannot read '{}': {}", path_, dwfl_errmsg(-1)));
  }
  return {};
}

std::optional<uint32_t> ElfImage::InsnAt(uint64_t pc) {
  if (!riscv_) return std::nullopt;
  for (const Segment& segment : segments_) {
    const uint64_t at = pc - segment.address;
    // `at` may be next to 2^64: a trace names any address.
    if (pc < segment.address || at >= segment.bytes.size() || segment.bytes.size() - at < 2)
      continue;
    uint16_t low = 0;
    std::memcpy(&low, segment.bytes.data() + at, 2);
    if ((low & 3) != 3) return low;
    if (segment.bytes.size() - at < 4) return std::nullopt;
    uint32_t bits = 0;
    std::memcpy(&bits, segment.bytes.data() + at, 4);
    return bits;
  }
  return std::nullopt;
}

std::vector<ElfSymbol> ElfImage::Symbols() const {
  std::vector<ElfSymbol> symbols;
  const int count = dwfl_module_getsymtab(module_);
  for (int i = 1; i < count; ++i) {
    GElf_Sym symbol;
    GElf_Addr address = 0;
    const char* name =
        dwfl_module_getsym_info(module_, i, &symbol, &address, nullptr, nullptr, nullptr);
    if (name == nullptr || *name == '\0' || symbol.st_shndx == SHN_UNDEF) continue;
    const int type = GELF_ST_TYPE(symbol.st_info);
    if (type == STT_SECTION || type == STT_FILE || type == STT_TLS) continue;
    const bool is_data = type == STT_OBJECT;
    const uint64_t thumb = arm_ && type == STT_FUNC ? 1 : 0;
    // libdw takes bit 0 away from the address of data there.
    const uint64_t at = arm_ && is_data ? symbol.st_value : (address - bias_) & ~thumb;
    symbols.push_back({name, at, symbol.st_size, is_data});
  }
  return symbols;
}

std::string ElfImage::Variable(uint64_t address) {
  if (!variables_) {
    variables_ = Symbols();
    std::erase_if(*variables_, [](const ElfSymbol& symbol) { return !symbol.is_data; });
    std::stable_sort(variables_->begin(), variables_->end(),
                     [](const ElfSymbol& a, const ElfSymbol& b) { return a.address < b.address; });
  }
  const auto behind =
      std::upper_bound(variables_->begin(), variables_->end(), address,
                       [](uint64_t at, const ElfSymbol& symbol) { return at < symbol.address; });
  if (behind == variables_->begin()) return {};
  const ElfSymbol& symbol = *std::prev(behind);
  const uint64_t offset = address - symbol.address;
  if (offset == 0) return symbol.name;
  return offset < symbol.bytes ? fmt::format("{}+{}", symbol.name, offset) : std::string();
}

std::string ElfImage::Section(const std::string& name) const {
  GElf_Addr bias = 0;
  Elf* elf = dwfl_module_getelf(module_, &bias);
  size_t names = 0;
  if (elf == nullptr || elf_getshdrstrndx(elf, &names) != 0) return {};
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
    const char* found = elf_strptr(elf, names, header.sh_name);
    if (found == nullptr || name != found) continue;
    const Elf_Data* data = elf_rawdata(section, nullptr);
    if (data == nullptr || data->d_buf == nullptr) return {};
    return std::string(static_cast<const char*>(data->d_buf), data->d_size);
  }
  return {};
}

bool ElfImage::InMemory(uint64_t address) {
  for (const Segment& segment : segments_) {
    if (address >= segment.address && address - segment.address < segment.memory_bytes) return true;
  }
  return false;
}

Location ElfImage::Locate(uint64_t pc) {
  if (const Location* known = known_.Find(pc)) return *known;
  Location found;
  GElf_Off offset = 0;
  GElf_Sym symbol;
  // Of Thumb code the symbol's value has bit 0 set, and libdw takes it as it is.
  const uint64_t thumb = arm_ ? 1 : 0;
  const uint64_t marked = pc | thumb;
  const char* name =
      dwfl_module_addrinfo(module_, marked + bias_, &offset, &symbol, nullptr, nullptr, nullptr);
  if (name != nullptr && name[0] == '$') name = NameBefore(module_, marked + bias_, &offset);
  if (name != nullptr && InMemory(pc)) {
    found.function = name;
    found.function_begin = (marked - offset) & ~thumb;
  }
  if (units_ == nullptr) units_ = std::make_unique<UnitsByAddress>(module_);
  if (const SourceLine line = LineAt(module_, *units_, pc + bias_); !line.path.empty()) {
    CodeLine place = line;
    if (IsHangscopeHeader(place.path)) {
      CodeLine of_program = LineOfProgram(*units_, pc + bias_);
      if (!of_program.path.empty()) place = std::move(of_program);
    }
    found.file = place.path.substr(place.path.rfind('/') + 1);
    found.line = place.line;
    const char* const folder = place.path[0] == '/' ? nullptr : line.folder;
    found.path = folder == nullptr ? place.path : folder + ("/" + place.path);
  }
  known_.Put(pc, found);
  return found;
}

std::vector<uint64_t> ElfImage::Unwind(const CoreRegisters& registers, std::string_view stack) {
  if (!riscv_ || big_endian_) return {};
  if (unwinder_ == nullptr) unwinder_ = std::make_unique<StackUnwinder>(dwfl_, bias_, xlen_);
  return unwinder_->Unwind(registers, stack);
}

}  // namespace hangscope
