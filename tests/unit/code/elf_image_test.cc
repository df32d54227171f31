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
