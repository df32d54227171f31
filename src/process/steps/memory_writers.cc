#include "process/steps/memory_writers.h"

#include <gelf.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "code/open_elf.h"

namespace hangscope {
namespace {

bool WritesElsewhere(std::string_view function) {
  constexpr std::string_view kFunctions[] = {"process_vm_writev", "ptrace"};
  function = function.substr(0, function.find('@'));
  return std::find(std::begin(kFunctions), std::end(kFunctions), function) != std::end(kFunctions);
}

bool NamesOne(Elf* elf, Elf_Scn* section, const GElf_Shdr& header) {
  Elf_Data* const data = elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return false;
  for (size_t i = 0; i < data->d_size / header.sh_entsize; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) return false;
    const int type = GELF_ST_TYPE(symbol.st_info);
    if (type != STT_FUNC && type != STT_NOTYPE) continue;
    const char* const name = elf_strptr(elf, header.sh_link, symbol.st_name);
    if (name != nullptr && WritesElsewhere(name)) return true;
  }
  return false;
}

}  // namespace

// What is taken from libraries is in the smaller table; a static program has the other one alone.
bool CallsWhatWritesElsewhere(const std::string& path) {
  const OpenElf file(path);
  if (!file.status().ok() || file.get() == nullptr) return false;
  for (const unsigned type : {SHT_DYNSYM, SHT_SYMTAB}) {
    for (Elf_Scn* section = elf_nextscn(file.get(), nullptr); section != nullptr;
         section = elf_nextscn(file.get(), section)) {
      GElf_Shdr header;
      if (gelf_getshdr(section, &header) != nullptr && header.sh_type == type)
        return NamesOne(file.get(), section, header);
    }
  }
  return false;
}

bool WritingPrograms::Has(const std::string& path, const std::string& identity) {
  const auto known = known_.find(identity);
  if (known != known_.end()) return known->second;
  return known_[identity] = CallsWhatWritesElsewhere(path);
}

}  // namespace hangscope
