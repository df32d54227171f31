#include "perf/code/kernel_code.h"

#include <elfutils/libdwelf.h>
#include <fmt/format.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/bytes.h"
#include "base/file_system.h"
#include "base/json_text.h"
#include "base/numbers.h"
#include "base/utf8.h"
#include "code/open_elf.h"
#include "perf/code/build_id_cache.h"

namespace hangscope {
namespace {

constexpr size_t kMostKernelMappings = 20'000;
constexpr size_t kMostKernelSegments = 100'000;
constexpr size_t kMostSymbols = 2'000'000;
constexpr uint64_t kMostKallsyms = 256u << 20;
constexpr uint64_t kMostNotes = 1u << 20;
constexpr uint64_t kFarthestSymbol = 16u << 20;  // what is farther behind belongs to none
constexpr std::string_view kKernelName = "[kernel.kallsyms]";

// The build id among notes as /sys/kernel/notes has them; empty: there is none.
std::string BuildIdInNotes(std::string_view notes) {
  constexpr uint32_t kBuildId = 3;
  const auto padded = [](uint32_t size) { return (uint64_t{size} + 3) / 4 * 4; };
  constexpr ByteOrder kOwn =
      std::endian::native == std::endian::little ? ByteOrder::kLittle : ByteOrder::kBig;
  while (notes.size() >= 12) {
    const uint32_t name = Load32(notes.data(), kOwn);
    const uint32_t bytes = Load32(notes.data() + 4, kOwn);
    const uint32_t type = Load32(notes.data() + 8, kOwn);
    const uint64_t begin = 12 + padded(name);
    if (begin + bytes > notes.size()) return {};
    if (type == kBuildId && notes.substr(12, name) == std::string_view("GNU\0", 4))
      return std::string(notes.substr(begin, bytes));
    notes.remove_prefix(std::min<uint64_t>(begin + padded(bytes), notes.size()));
  }
  return {};
}

// What /proc and /sys have is read to its end: their sizes say nothing.
Result<std::string> ReadToEnd(const std::string& path, uint64_t most) {
  auto file = PosixFileSystem().Open(path, FileSystem::Mode::kRead);
  if (!file.ok()) return file.status();
  std::string all;
  std::string piece(size_t{1} << 16, '\0');
  while (all.size() < most) {
    auto got = (*file)->ReadAt(all.size(), piece);
    if (!got.ok()) return got.status();
    if (*got == 0) break;
    all.append(piece, 0, *got);
  }
  return all;
}

}  // namespace

bool KernelSymbols::Parse(std::string_view text) {
  bool any = false;
  while (!text.empty() && symbols_.size() < kMostSymbols) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos || line.size() < blank + 4) continue;
    const auto address = ParseHex<uint64_t>(line.substr(0, blank));
    // Symbols of data name no code; absolute ones are numbers.
    if (!address || std::string_view("tTwW").find(line[blank + 1]) == std::string_view::npos)
      continue;
    any = any || *address != 0;
    std::string name(line.substr(blank + 3));
    if (const size_t tab = name.find('\t'); tab != std::string::npos) name[tab] = ' ';
    symbols_.push_back({*address, std::move(name)});
  }
  if (!any) symbols_.clear();
  Sort();
  return any;
}

// Of several at one address the first that is told stays first.
void KernelSymbols::Sort() {
  std::stable_sort(symbols_.begin(), symbols_.end(),
                   [](const Symbol& a, const Symbol& b) { return a.address < b.address; });
}

const KernelSymbols::Symbol* KernelSymbols::Find(uint64_t address) const {
  auto next =
      std::upper_bound(symbols_.begin(), symbols_.end(), address,
                       [](uint64_t at, const Symbol& symbol) { return at < symbol.address; });
  if (next == symbols_.begin()) return nullptr;
  const uint64_t at = std::prev(next)->address;
  if (address - at > kFarthestSymbol) return nullptr;
  while (next != symbols_.begin() && std::prev(next)->address == at) --next;
  return &*next;
}

std::optional<uint64_t> KernelSymbols::AddressOf(std::string_view name) const {
  for (const Symbol& symbol : symbols_) {
    if (symbol.name == name) return symbol.address;
  }
  return std::nullopt;
}

// An ELF file with the kernel's memory by virtual address, read piece by piece: a kcore is as large
// as the address space.
class KernelCode::Image {
 public:
  static std::unique_ptr<Image> Open(const std::string& path) {
    auto image = std::make_unique<Image>(path);
    return image->ReadSegments() ? std::move(image) : nullptr;
  }
  explicit Image(const std::string& path) : file_(path) {}

  // Of a kcore; a vmlinux is a program.
  bool is_memory() const { return is_memory_; }
  std::string BuildId() const {
    const void* bytes = nullptr;
    const ssize_t size = dwelf_elf_gnu_build_id(file_.get(), &bytes);
    return size > 0 ? std::string(static_cast<const char*>(bytes), static_cast<size_t>(size))
                    : std::string();
  }

  size_t Read(uint64_t address, std::span<char> bytes) {
    size_t got = 0;
    while (got < bytes.size()) {
      const size_t more = ReadInPage(address + got, bytes.subspan(got));
      if (more == 0) break;
      got += more;
    }
    return got;
  }

  void AddFunctions(KernelSymbols* symbols) const {
    Elf_Scn* section = nullptr;
    while ((section = elf_nextscn(file_.get(), section)) != nullptr) {
      GElf_Shdr header;
      if (gelf_getshdr(section, &header) != nullptr && header.sh_type == SHT_SYMTAB &&
          header.sh_entsize != 0)
        AddFunctionsOf(section, header, symbols);
    }
    symbols->Sort();
  }

 private:
  static constexpr uint64_t kPage = 4096;
  struct Segment {
    uint64_t address = 0;
    uint64_t bytes = 0;
    uint64_t offset = 0;
  };
  struct Page {
    uint64_t address = 0;
    size_t bytes = 0;  // 0: there is none
    std::array<char, kPage> data;
  };

  bool ReadSegments() {
    Elf* const elf = file_.get();
    GElf_Ehdr header;
    size_t count = 0;
    if (elf == nullptr || gelf_getehdr(elf, &header) == nullptr || elf_getphdrnum(elf, &count) != 0)
      return false;
    is_memory_ = header.e_type == ET_CORE;
    for (size_t i = 0; i < std::min(count, kMostKernelSegments); ++i) {
      GElf_Phdr program;
      if (gelf_getphdr(elf, static_cast<int>(i), &program) != nullptr &&
          program.p_type == PT_LOAD && program.p_vaddr + program.p_filesz >= program.p_vaddr)
        segments_.push_back({program.p_vaddr, program.p_filesz, program.p_offset});
    }
    std::sort(segments_.begin(), segments_.end(),
              [](const Segment& a, const Segment& b) { return a.address < b.address; });
    return !segments_.empty();
  }

  const Segment* FindSegment(uint64_t address) const {
    const auto next =
        std::upper_bound(segments_.begin(), segments_.end(), address,
                         [](uint64_t at, const Segment& one) { return at < one.address; });
    if (next == segments_.begin()) return nullptr;
    const Segment& segment = *std::prev(next);
    return address - segment.address < segment.bytes ? &segment : nullptr;
  }

  // The same few pages are read again and again.
  size_t ReadInPage(uint64_t address, std::span<char> bytes) {
    const Segment* segment = FindSegment(address);
    if (segment == nullptr) return 0;
    const uint64_t begin = std::max(address & ~(kPage - 1), segment->address);
    Page& page = pages_[(begin / kPage) % pages_.size()];
    if (page.address != begin || page.bytes == 0) {
      const uint64_t into = begin - segment->address;
      const ssize_t got =
          pread(file_.fd(), page.data.data(),
                static_cast<size_t>(std::min(kPage - begin % kPage, segment->bytes - into)),
                static_cast<off_t>(segment->offset + into));
      page.address = begin;
      page.bytes = got > 0 ? static_cast<size_t>(got) : 0;
    }
    const uint64_t at = address - begin;
    if (at >= page.bytes) return 0;
    const size_t count = std::min<size_t>(bytes.size(), page.bytes - at);
    std::memcpy(bytes.data(), page.data.data() + at, count);
    return count;
  }

  void AddFunctionsOf(Elf_Scn* section, const GElf_Shdr& header, KernelSymbols* symbols) const {
    Elf_Data* const data = elf_getdata(section, nullptr);
    const size_t count = std::min<size_t>(header.sh_size / header.sh_entsize, kMostSymbols);
    for (size_t i = 0; data != nullptr && i < count; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
      const int type = GELF_ST_TYPE(symbol.st_info);
      const char* name = elf_strptr(file_.get(), header.sh_link, symbol.st_name);
      // What is written in assembler has no type; Arm's marks of code and data begin with '$'.
      if (name == nullptr || *name == '\0' || *name == '$' || symbol.st_shndx == SHN_UNDEF ||
          symbol.st_shndx >= SHN_LORESERVE || (type != STT_FUNC && type != STT_NOTYPE))
        continue;
      symbols->Add({symbol.st_value, name});
    }
  }

  const OpenElf file_;
  bool is_memory_ = false;
  std::vector<Segment> segments_;
  std::vector<Page> pages_ = std::vector<Page>(64);
};

KernelCode::KernelCode(const PerfFileFacts& facts, KernelPlaces places)
    : facts_(facts), places_(std::move(places)) {}
KernelCode::~KernelCode() = default;

void KernelCode::Add(const PerfMap& map) {
  if (mappings_.size() == kMostKernelMappings || map.begin + map.bytes < map.begin) return;
  mappings_.push_back({map.begin, map.bytes, std::string(map.path)});
  if (!map.path.starts_with(kKernelName)) return;
  build_id_ = map.build_id;
  reference_ = map.path.substr(kKernelName.size());
  if (reference_.empty()) reference_ = "_text";
  // perf puts the symbol's address where files have their offset; others begin the mapping there.
  reference_address_ = map.file_offset != 0 ? map.file_offset : map.begin;
}

bool KernelCode::Covers(uint64_t address) {
  const auto covers = [&](const Mapping& mapping) {
    return address >= mapping.begin && address - mapping.begin < mapping.bytes;
  };
  if (covered_ < mappings_.size() && covers(mappings_[covered_])) return true;
  const auto found = std::find_if(mappings_.begin(), mappings_.end(), covers);
  if (found == mappings_.end()) return false;
  covered_ = static_cast<size_t>(found - mappings_.begin());
  return true;
}

std::string KernelCode::RecordedId() const {
  if (!build_id_.empty()) return build_id_;
  for (const auto& [path, id] : facts_.build_ids) {
    if (path.starts_with(kKernelName)) return id;
  }
  return {};
}

// False: it is another kernel's, and a warning says so. Without a recorded id what was named is
// believed.
bool KernelCode::TakeVmlinux(std::unique_ptr<Image> image, const std::string& path) {
  const std::string recorded = RecordedId();
  const std::string here = image->BuildId();
  if (!recorded.empty() && !IsSameBuildId(here, recorded)) {
    warnings_.push_back(fmt::format(
        "'{}' is not the kernel that was recorded: its build id is {}, and {} was recorded",
        Printable(path), here.empty() ? "not known" : HexText(here), HexText(Unpadded(recorded))));
    return false;
  }
  KernelSymbols symbols;
  image->AddFunctions(&symbols);
  const auto linked = symbols.AddressOf(reference_);
  if (!linked || !reference_address_) {
    warnings_.push_back(
        fmt::format("'{}' has no symbol {}, so where the kernel lay is not known: its code is not "
                    "taken",
                    Printable(path), Printable(reference_.empty() ? "_text" : reference_, 40)));
    return false;
  }
  image_shift_ = *reference_address_ - *linked;
  image_ = std::move(image);
  if (symbols_.empty()) {
    symbols_ = std::move(symbols);
    symbol_shift_ = image_shift_;
  }
  return true;
}

bool KernelCode::TakeSymbols(const std::string& path) {
  auto text = ReadToEnd(path, kMostKallsyms);
  KernelSymbols symbols;
  if (!text.ok()) {
    warnings_.push_back(text.status().message());
    return false;
  }
  if (!symbols.Parse(*text)) {
    warnings_.push_back(
        fmt::format("'{}' has no addresses of functions: CAP_SYSLOG lets see them, or "
                    "kernel.kptr_restrict=0",
                    Printable(path)));
    return false;
  }
  // Of another boot it lay elsewhere.
  const auto there = symbols.AddressOf(reference_);
  symbol_shift_ = there && reference_address_ ? *reference_address_ - *there : 0;
  symbols_ = std::move(symbols);
  return true;
}

// With kcore and kallsyms of the kernel as it ran.
bool KernelCode::TakeFolder(const std::string& folder) {
  if (!PosixFileSystem().Exists(folder + "/kcore")) return false;
  image_ = Image::Open(folder + "/kcore");
  if (image_ == nullptr) {
    warnings_.push_back(
        fmt::format("'{}/kcore' is no image of a kernel's memory", Printable(folder)));
    return false;
  }
  if (symbols_.empty() && PosixFileSystem().Exists(folder + "/kallsyms"))
    (void)TakeSymbols(folder + "/kallsyms");
  return true;
}

void KernelCode::FindNamed() {
  const std::string& named = places_.vmlinux;
  if (PosixFileSystem().IsFolder(named)) {
    if (!TakeFolder(named))
      warnings_.push_back(fmt::format("'{}' has no kcore in it", Printable(named)));
    return;
  }
  auto image = Image::Open(named);
  if (image == nullptr)
    warnings_.push_back(fmt::format("'{}' is no vmlinux, and no kcore", Printable(named)));
  else if (image->is_memory())
    image_ = std::move(image);
  else
    (void)TakeVmlinux(std::move(image), named);
}

// In perf's cache. What is wrong with files there is no warning: nobody named them.
void KernelCode::FindCached(const std::string& id) {
  if (places_.cache.empty() || id.empty()) return;
  const std::string folder = places_.cache + "/[kernel.kcore]/" + HexText(Unpadded(id));
  for (const std::string& name : PosixFileSystem().List(folder)) {
    if (image_ == nullptr) (void)TakeFolder(folder + "/" + name);
  }
  const size_t known = warnings_.size();
  for (const std::string& path : CachedFiles(places_.cache, id, "elf")) {
    auto image = image_ == nullptr ? Image::Open(path) : nullptr;
    if (image != nullptr && !image->is_memory()) (void)TakeVmlinux(std::move(image), path);
  }
  for (const std::string& path : CachedFiles(places_.cache, id, "kallsyms")) {
    if (symbols_.empty()) (void)TakeSymbols(path);
  }
  warnings_.resize(known);
}

// Where its kernel is the recorded one. Its memory is taken only as it lay then: of the same boot.
void KernelCode::FindOwn() {
  const std::string recorded = RecordedId();
  auto notes = ReadToEnd(places_.notes, kMostNotes);
  if (recorded.empty() || !notes.ok() || !IsSameBuildId(BuildIdInNotes(*notes), recorded)) return;
  if (symbols_.empty()) (void)TakeSymbols(places_.own_kallsyms);
  const bool same_boot = !symbols_.empty() && symbol_shift_ == 0 &&
                         symbols_.AddressOf(reference_) == reference_address_;
  if (same_boot && image_ == nullptr) image_ = Image::Open(places_.own_kcore);
}

void KernelCode::Find() {
  looked_for_ = true;
  if (!places_.kallsyms.empty()) (void)TakeSymbols(places_.kallsyms);
  if (!places_.vmlinux.empty()) FindNamed();
  if (image_ == nullptr && !places_.beside.empty()) (void)TakeFolder(places_.beside + "/kcore_dir");
  FindCached(RecordedId());
  if (image_ == nullptr || symbols_.empty()) FindOwn();
}

size_t KernelCode::Read(uint64_t address, std::span<char> bytes) {
  if (!looked_for_) Find();
  return image_ == nullptr ? 0 : image_->Read(address - image_shift_, bytes);
}

Location KernelCode::Locate(uint64_t address) {
  if (!looked_for_) Find();
  Location location;
  const KernelSymbols::Symbol* symbol = symbols_.Find(address - symbol_shift_);
  if (symbol == nullptr) return location;
  location.function = symbol->name;
  location.function_begin = symbol->address + symbol_shift_;
  return location;
}

std::string KernelCode::PlaceOf(uint64_t address) {
  const Location location = Locate(address);
  if (!location.function.empty())
    return fmt::format("{}+{:#x}", Printable(location.function), address - location.function_begin);
  for (const Mapping& mapping : mappings_) {
    if (address >= mapping.begin && address - mapping.begin < mapping.bytes)
      return fmt::format("{}+{:#x}", Printable(mapping.path.substr(mapping.path.rfind('/') + 1)),
                         address - mapping.begin);
  }
  return {};
}

}  // namespace hangscope
