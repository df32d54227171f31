// The ELF of the observed program, damaged in any way.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "code/cost_marks.h"
#include "code/elf_image.h"
#include "fuzz.h"

namespace hangscope::fuzz {
namespace {

constexpr size_t kMostAddressesTried = 256;

// A file without a place on any disk.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : fd_(memfd_create("elf", MFD_CLOEXEC)) {
    FUZZ_REQUIRE(fd_ >= 0);
    FUZZ_REQUIRE(write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

void Ask(ElfImage* image, uint64_t address) {
  for (const uint64_t pc : {address - 1, address, address + 1}) {
    const auto bits = image->InsnAt(pc);
    FUZZ_REQUIRE(!bits || (*bits & 3) == 3 || *bits >> 16 == 0);
    (void)image->InMemory(pc);
  }
  const Location where = image->Locate(address);
  FUZZ_REQUIRE(where.file.empty() || where.line > 0);
}

// What hangscope cost reads; and the whole file as if it were marks.
void AskForCosts(const ElfImage& image, std::string_view input) {
  for (const ElfSymbol& symbol : image.Symbols()) FUZZ_REQUIRE(!symbol.name.empty());
  for (const std::string& bytes : {image.Section(kMarkSection), std::string(input)}) {
    auto marks = ReadCostMarks(bytes, image.xlen(), image.big_endian());
    FUZZ_REQUIRE(marks.ok() || !marks.status().message().empty());
    if (!marks.ok()) continue;
    for (const auto& [name, code] : *marks)
      FUZZ_REQUIRE(code.begins.size() + code.ends.size() <= bytes.size() / 8);
  }
}

}  // namespace

// The input is the file. What it says itself about addresses is asked for.
void FuzzElf(std::string_view input) {
  const MemoryFile file(input);
  auto image = ElfImage::Open(file.path());
  FUZZ_REQUIRE(image.ok() || !image.status().message().empty());
  if (!image.ok()) return;
  Ask(image->get(), 0);
  AskForCosts(**image, input);
  const bool wide = (*image)->xlen() == 64;
  Choices words(input);
  for (size_t i = 0; i < kMostAddressesTried && !words.empty(); ++i) {
    Ask(image->get(), wide ? words.Take<uint64_t>() : words.Take<uint32_t>());
  }
}

}  // namespace hangscope::fuzz
