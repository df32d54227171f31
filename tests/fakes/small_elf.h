// ELF files of 64 bits with little in them: memory, functions, a build id.
#ifndef HANGSCOPE_TESTS_FAKES_SMALL_ELF_H
#define HANGSCOPE_TESTS_FAKES_SMALL_ELF_H

#include <elf.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hangscope {

struct SmallElf {
  uint16_t type = ET_EXEC;
  std::string build_id;                                     // empty: it has none
  std::vector<std::pair<uint64_t, std::string>> segments;   // by address
  std::vector<std::pair<std::string, uint64_t>> functions;  // with theirs

  std::string File() const {
    std::string names(1, '\0');
    std::string symbols(sizeof(Elf64_Sym), '\0');
    for (const auto& [name, address] : functions) {
      Elf64_Sym symbol{};
      symbol.st_name = static_cast<uint32_t>(names.size());
      symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
      symbol.st_shndx = 1;
      symbol.st_value = address;
      symbols += Bytes(symbol);
      names += name + std::string(1, '\0');
    }
    std::string note;
    if (!build_id.empty())
      note = Bytes(Elf64_Nhdr{4, static_cast<uint32_t>(build_id.size()), NT_GNU_BUILD_ID}) +
             std::string("GNU\0", 4) + build_id;
    const size_t programs = segments.size() + 1;
    std::string file(sizeof(Elf64_Ehdr) + programs * sizeof(Elf64_Phdr), '\0');
    std::string heads;
    Elf64_Shdr text = Section(SHT_PROGBITS, 0, 0, 0, 0);
    for (const auto& [address, bytes] : segments) {
      const uint64_t at = Append(bytes, &file);
      heads += Bytes(Program(PT_LOAD, address, at, bytes.size()));
      if (text.sh_size != 0) continue;
      text.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
      text.sh_addr = address, text.sh_offset = at, text.sh_size = bytes.size();
    }
    const uint64_t note_at = Append(note, &file);
    heads += Bytes(Program(PT_NOTE, 0, note_at, note.size()));
    file.replace(sizeof(Elf64_Ehdr), heads.size(), heads);
    std::string sections = Bytes(Elf64_Shdr{});
    sections += Bytes(text);
    sections +=
        Bytes(Section(SHT_SYMTAB, Append(symbols, &file), symbols.size(), 3, sizeof(Elf64_Sym)));
    sections += Bytes(Section(SHT_STRTAB, Append(names, &file), names.size(), 0, 0));
    if (!note.empty()) sections += Bytes(Section(SHT_NOTE, note_at, note.size(), 0, 0));
    Elf64_Ehdr head{};
    head.e_ident[EI_MAG0] = 0x7f, head.e_ident[EI_MAG1] = 'E';
    head.e_ident[EI_MAG2] = 'L', head.e_ident[EI_MAG3] = 'F';
    head.e_ident[EI_CLASS] = ELFCLASS64, head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_ident[EI_VERSION] = EV_CURRENT;
    head.e_type = type, head.e_machine = EM_AARCH64, head.e_version = EV_CURRENT;
    head.e_ehsize = sizeof head, head.e_phoff = sizeof head;
    head.e_phentsize = sizeof(Elf64_Phdr), head.e_phnum = static_cast<uint16_t>(programs);
    head.e_shentsize = sizeof(Elf64_Shdr), head.e_shnum = note.empty() ? 4 : 5;
    head.e_shstrndx = 3;
    head.e_shoff = Append(sections, &file);
    file.replace(0, sizeof head, Bytes(head));
    return file;
  }

 private:
  template <typename T>
  static std::string Bytes(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }
  // At a word; where it lies then.
  static uint64_t Append(const std::string& bytes, std::string* file) {
    file->resize((file->size() + 7) / 8 * 8);
    const uint64_t at = file->size();
    *file += bytes;
    return at;
  }
  static Elf64_Phdr Program(uint32_t type, uint64_t address, uint64_t offset, uint64_t bytes) {
    return {type, PF_R | PF_X, offset, address, address, bytes, bytes, 4};
  }
  static Elf64_Shdr Section(uint32_t type, uint64_t offset, uint64_t bytes, uint32_t link,
                            uint64_t entry) {
    return {0, type, 0, 0, offset, bytes, link, 0, type == SHT_NOTE ? 4u : 8u, entry};
  }
};

}  // namespace hangscope

#endif
