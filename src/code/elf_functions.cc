#include "code/elf_functions.h"

#include <cxxabi.h>
#include <gelf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "base/near_name.h"
#include "code/open_elf.h"

namespace hangscope {
namespace {

std::string Demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && text ? std::string(text.get()) : std::string();
}

// "net::Send(int) const" -> "net::Send"; parentheses that belong to the name stay:
// "operator()(int)".
std::string WithoutParameters(const std::string& demangled) {
  const size_t end = demangled.rfind(')');
  if (end == std::string::npos) return demangled;
  size_t depth = 0;
  for (size_t at = end + 1; at-- > 0;) {
    if (demangled[at] == ')') ++depth;
    if (demangled[at] == '(' && --depth == 0) return demangled.substr(0, at);
  }
  return demangled;
}

bool IsNamed(const char* symbol, const std::string& function) {
  if (function == symbol) return true;
  if (std::strncmp(symbol, "_Z", 2) != 0) return false;
  const std::string demangled = Demangled(symbol);
  return !demangled.empty() && (function == demangled || function == WithoutParameters(demangled));
}

// Bit 0 of a function's address on 32-bit ARM says that it is of Thumb instructions.
uint64_t ThumbBit(Elf* elf) {
  GElf_Ehdr header;
  return gelf_getehdr(elf, &header) != nullptr && header.e_machine == EM_ARM ? 1 : 0;
}

// Of an address that a segment of the file holds.
bool FileOffset(Elf* elf, uint64_t address, uint64_t* offset) {
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return false;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr || segment.p_type != PT_LOAD)
      continue;
    if (address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz) continue;
    *offset = segment.p_offset + (address - segment.p_vaddr);
    return true;
  }
  return false;
}

struct Search {
  const std::string& wanted;
  int type;                              // STT_FUNC or STT_OBJECT
  std::map<uint64_t, uint64_t> offsets;  // and the sizes there
  std::vector<std::string> names;        // of all functions, to suggest one
};

void SearchTable(Elf* elf, Elf_Scn* section, const GElf_Shdr& header, Search* search) {
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return;
  const size_t count = data->d_size / header.sh_entsize;
  const uint64_t thumb = search->type == STT_FUNC ? ThumbBit(elf) : 0;
  for (size_t i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) return;
    if (GELF_ST_TYPE(symbol.st_info) != search->type || symbol.st_shndx == SHN_UNDEF) continue;
    const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
    if (name == nullptr) continue;
    search->names.emplace_back(name);
    uint64_t offset = 0;
    if (IsNamed(name, search->wanted) && FileOffset(elf, symbol.st_value & ~thumb, &offset))
      search->offsets.emplace(offset, symbol.st_size);
  }
}

Status SearchFile(const std::string& path, Search* search) {
  const OpenElf file(path);
  if (!file.status().ok()) return file.status();
  if (file.get() == nullptr)
    return Status::Corrupt("'" + path + "' is no ELF file: it has no functions");
  for (Elf_Scn* section = elf_nextscn(file.get(), nullptr); section != nullptr;
       section = elf_nextscn(file.get(), section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    if (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM)
      SearchTable(file.get(), section, header, search);
  }
  return {};
}

// By their offsets, at least one.
Result<std::map<uint64_t, uint64_t>> FindFunctions(const std::string& path,
                                                   const std::string& function) {
  Search search{function, STT_FUNC, {}, {}};
  if (Status status = SearchFile(path, &search); !status.ok()) return status;
  if (!search.offsets.empty()) return std::move(search.offsets);
  if (search.names.empty())
    return Status::NotFound("'" + path + "' has no symbols: give a program that is not stripped");
  const std::vector<std::string> near = NearNames(function, std::move(search.names), 3, 1);
  return Status::NotFound(
      "'" + path + "' has no function '" + function + "'" +
      (near.empty() ? "; 'nm -C' lists those that it has" : ", did you mean '" + near[0] + "'?"));
}

}  // namespace

Result<std::vector<uint64_t>> FunctionOffsets(const std::string& path,
                                              const std::string& function) {
  auto found = FindFunctions(path, function);
  if (!found.ok()) return found.status();
  std::vector<uint64_t> offsets;
  for (const auto& [offset, bytes] : *found) offsets.push_back(offset);
  return offsets;
}

Result<FunctionExtent> FunctionExtentOf(const std::string& path, const std::string& function) {
  auto found = FindFunctions(path, function);
  if (!found.ok()) return found.status();
  if (found.value().size() > 1)
    return Status::Usage("'" + function + "' stands for " + std::to_string(found.value().size()) +
                         " functions of '" + path + "'; give one of 'nm' as it is");
  const auto [offset, bytes] = *found.value().begin();
  return FunctionExtent{offset, bytes};
}

Result<std::optional<uint64_t>> VariableOffset(const std::string& path, const std::string& name) {
  Search search{name, STT_OBJECT, {}, {}};
  if (Status status = SearchFile(path, &search); !status.ok()) return status;
  return search.offsets.empty() ? std::optional<uint64_t>() : search.offsets.begin()->first;
}

}  // namespace hangscope
