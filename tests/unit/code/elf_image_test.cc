// ELF files that contradict themselves. What a sound one says is in
// tests/system/test_qemu.py.
#include "code/elf_image.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <vector>

namespace hangscope {
namespace {

class ElfImageTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kNop = 0x00000013;

  // A RISC-V program of one nop, with `segments`.
  std::unique_ptr<ElfImage> Open(const std::vector<Elf64_Phdr>& segments) {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_EXEC;
    header.e_machine = EM_RISCV;
    header.e_version = EV_CURRENT;
    header.e_phoff = sizeof header;
    header.e_ehsize = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = static_cast<uint16_t>(segments.size());
    const std::string path = ::testing::TempDir() + "elf_image_test." + std::to_string(getpid());
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&header), sizeof header);
    file.write(reinterpret_cast<const char*>(segments.data()),
               segments.size() * sizeof(Elf64_Phdr));
    file.write(reinterpret_cast<const char*>(&kNop), sizeof kNop);
    file.close();
    auto image = ElfImage::Open(path);
    unlink(path.c_str());
    EXPECT_TRUE(image.ok()) << image.status().message();
    return image.ok() ? std::move(*image) : nullptr;
  }
  static Elf64_Phdr Code(uint64_t address, size_t segments) {
    Elf64_Phdr program{};
    program.p_type = PT_LOAD;
    program.p_flags = PF_R | PF_X;
    program.p_offset = sizeof(Elf64_Ehdr) + segments * sizeof(Elf64_Phdr);
    program.p_vaddr = program.p_paddr = address;
    program.p_filesz = program.p_memsz = sizeof kNop;
    return program;
  }
};

TEST_F(ElfImageTest, NoAddressOfATraceLeadsOutOfTheCode) {
  const auto image = Open({Code(0, 1)});
  ASSERT_NE(image, nullptr);
  EXPECT_EQ(image->InsnAt(0), kNop);
  for (const uint64_t pc : {uint64_t{3}, uint64_t{4}, UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 3}) {
    EXPECT_EQ(image->InsnAt(pc), std::nullopt) << pc;
  }
}

// Each claims to be large, and all are the same 4 bytes.
// This test, which lies wherever the kernel put it: an address minus that is what its ELF calls it.
extern "C" [[gnu::noinline]] void elf_image_test_function() { __asm__(""); }
extern "C" int elf_image_test_variable;
int elf_image_test_variable = 1;

uint64_t WhereThisProgramLies() {
  uint64_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* result) {
        *static_cast<uint64_t*>(result) = info->dlpi_addr;
        return 1;  // the program comes first
      },
      &base);
  return base;
}

TEST_F(ElfImageTest, NamesWhatLiesInAProgramThatCanLieAnywhere) {
  auto image = ElfImage::Open("/proc/self/exe");
  ASSERT_TRUE(image.ok()) << image.status().message();
  const uint64_t base = WhereThisProgramLies();
  const Location location =
      (*image)->Locate(reinterpret_cast<uint64_t>(&elf_image_test_function) - base);
  EXPECT_EQ(location.function, "elf_image_test_function");
  EXPECT_EQ(location.file, "elf_image_test.cc");
  EXPECT_EQ((*image)->Variable(reinterpret_cast<uint64_t>(&elf_image_test_variable) - base),
            "elf_image_test_variable");
}

struct NamedValue {
  const char* name;
  uint32_t value;
  unsigned char type;
  uint32_t bytes;
};

// A program of 64 bytes of code at 0x8000 with these symbols, behind whose code its tables lie.
std::unique_ptr<ElfImage> OpenNamed(uint16_t machine, const std::vector<NamedValue>& named) {
  constexpr uint32_t kText = 0x8000;
  const std::string sections("\0.text\0.symtab\0.strtab\0.shstrtab\0", 33);
  std::string names(1, '\0');
  std::vector<Elf32_Sym> symbols(1);
  for (const NamedValue& each : named) {
    Elf32_Sym symbol{};
    symbol.st_name = static_cast<Elf32_Word>(names.size());
    symbol.st_value = each.value;
    symbol.st_size = each.bytes;
    symbol.st_info = ELF32_ST_INFO(STB_LOCAL, each.type);
    symbol.st_shndx = 1;
    symbols.push_back(symbol);
    names += each.name + std::string(1, '\0');
  }
  std::string content(64, '\0');
  const auto add = [&](const void* bytes, size_t count) {
    const size_t at = sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr) + content.size();
    content.append(static_cast<const char*>(bytes), count);
    content.resize((content.size() + 3) / 4 * 4);
    return static_cast<Elf32_Off>(at);
  };
  const Elf32_Off text_at = sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr);
  const size_t symbol_bytes = symbols.size() * sizeof(Elf32_Sym);
  const Elf32_Off symbols_at = add(symbols.data(), symbol_bytes);
  const Elf32_Off names_at = add(names.data(), names.size());
  const Elf32_Off sections_at = add(sections.data(), sections.size());
  Elf32_Shdr headers[5] = {};
  headers[1] = {1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, kText, text_at, 64, 0, 0, 4, 0};
  headers[2] = {7,          SHT_SYMTAB,
                0,          0,
                symbols_at, static_cast<Elf32_Word>(symbol_bytes),
                3,          static_cast<Elf32_Word>(symbols.size()),
                4,          sizeof(Elf32_Sym)};
  headers[3] = {15, SHT_STRTAB, 0, 0, names_at, static_cast<Elf32_Word>(names.size()), 0, 0, 1, 0};
  headers[4] = {23, SHT_STRTAB, 0, 0, sections_at, static_cast<Elf32_Word>(sections.size()),
                0,  0,          1, 0};
  Elf32_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS32;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;
  header.e_machine = machine;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof header;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf32_Phdr);
  header.e_phnum = 1;
  header.e_shoff = add(headers, sizeof headers);
  header.e_shentsize = sizeof(Elf32_Shdr);
  header.e_shnum = 5;
  header.e_shstrndx = 4;
  const Elf32_Phdr program{PT_LOAD, text_at, kText, kText, 64, 64, PF_R | PF_X, 4};
  const std::string path = ::testing::TempDir() + "elf_image_test." + std::to_string(getpid());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(&header), sizeof header)
      .write(reinterpret_cast<const char*>(&program), sizeof program)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
  auto image = ElfImage::Open(path);
  unlink(path.c_str());
  EXPECT_TRUE(image.ok()) << image.status().message();
  return image.ok() ? std::move(*image) : nullptr;
}

// Bit 0 of a function's value says that it is Thumb code; a label in assembly has none.
TEST_F(ElfImageTest, AThumbFunctionBeginsAtItsFirstInstruction) {
  const auto image = OpenNamed(EM_ARM, {{"$t", 0x8000, STT_NOTYPE, 0},
                                        {"first", 0x8001, STT_FUNC, 16},
                                        {"second", 0x8011, STT_FUNC, 16},
                                        {"$d", 0x8020, STT_NOTYPE, 0},
                                        {"odd", 0x8021, STT_OBJECT, 1}});
  ASSERT_NE(image, nullptr);
  for (const uint64_t pc : {0x8000, 0x8002, 0x800e}) {
    EXPECT_EQ(image->Locate(pc).function, "first") << pc;
    EXPECT_EQ(image->Locate(pc).function_begin, 0x8000u) << pc;
  }
  for (const uint64_t pc : {0x8010, 0x8012, 0x801e}) {
    EXPECT_EQ(image->Locate(pc).function, "second") << pc;
    EXPECT_EQ(image->Locate(pc).function_begin, 0x8010u) << pc;
  }
  for (const ElfSymbol& symbol : image->Symbols()) {
    const uint64_t wanted = symbol.name == "second" ? 0x8010
                            : symbol.name == "odd"  ? 0x8021
                                                    : symbol.address;
    EXPECT_EQ(symbol.address, wanted) << symbol.name;
  }
}

// Of no other machine does it say that.
TEST_F(ElfImageTest, MarksOfTheAssemblerAreNoFunctions) {
  const auto image = OpenNamed(EM_RISCV, {{"start", 0x8000, STT_NOTYPE, 0},
                                          {"$xrv32i2p1_m2p0", 0x8008, STT_NOTYPE, 0},
                                          {"next", 0x8012, STT_FUNC, 8},
                                          {"$d", 0x801a, STT_NOTYPE, 0}});
  ASSERT_NE(image, nullptr);
  EXPECT_EQ(image->Locate(0x800c).function, "start");
  EXPECT_EQ(image->Locate(0x8012).function, "next");
  EXPECT_EQ(image->Locate(0x8012).function_begin, 0x8012u);
}

TEST_F(ElfImageTest, TakesNoMoreMemoryThanTheFileHasBytes) {
  constexpr size_t kSegments = 5;
  std::vector<Elf64_Phdr> segments(kSegments, Code(0x1000, kSegments));
  for (Elf64_Phdr& segment : segments) segment.p_filesz = segment.p_memsz = 100u << 20;
  rusage before{};
  rusage after{};
  getrusage(RUSAGE_SELF, &before);
  const auto image = Open(segments);
  getrusage(RUSAGE_SELF, &after);
  ASSERT_NE(image, nullptr);
  EXPECT_EQ(image->InsnAt(0x1000), kNop);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 100 * 1024) << "KiB";
}

}  // namespace
}  // namespace hangscope
