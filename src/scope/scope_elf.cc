#include "scope/scope_elf.h"

#include <fmt/format.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <limits>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "base/side_process.h"
#include "code/open_elf.h"
#include "code/program_file.h"
#include "hangscope/abi/catalog.h"

namespace hangscope {
namespace {

constexpr size_t kMostSymbols = 16u << 20;

std::optional<uint64_t> FindSymbol(Elf_Scn* section, const GElf_Shdr& header, Elf* elf) {
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return std::nullopt;
  const size_t count = std::min<size_t>(data->d_size / header.sh_entsize, kMostSymbols);
  for (size_t i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
    if (symbol.st_shndx == SHN_UNDEF) continue;
    const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
    if (name != nullptr && std::string_view(name) == "hangscope_scope") return symbol.st_value;
  }
  return std::nullopt;
}

std::string BuildId(Elf_Scn* section) {
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr) return {};
  GElf_Nhdr note;
  size_t name_at = 0;
  size_t text_at = 0;
  for (size_t at = 0; (at = gelf_getnote(data, at, &note, &name_at, &text_at)) != 0;) {
    const char* bytes = static_cast<const char*>(data->d_buf);
    if (note.n_type == NT_GNU_BUILD_ID &&
        std::string_view(bytes + name_at, note.n_namesz) == std::string_view("GNU\0", 4)) {
      return {bytes + text_at, note.n_descsz};
    }
  }
  return {};
}

// `path` is named in errors.
Result<ScopeElf> ReadHere(const OpenElf& file, const std::string& path) {
  Elf* elf = file.get();
  GElf_Ehdr header;
  if (elf == nullptr || gelf_getehdr(elf, &header) == nullptr) {
    return Status::Corrupt(fmt::format(
        "'{}' is not an ELF file; --elf wants the program that runs on the target", path));
  }
  ScopeElf found;
  found.moves = header.e_type == ET_DYN;
  size_t segments = 0;
  elf_getphdrnum(elf, &segments);
  found.first_address = std::numeric_limits<uint64_t>::max();
  for (size_t i = 0; i < segments; ++i) {
    GElf_Phdr program;
    if (gelf_getphdr(elf, static_cast<int>(i), &program) == nullptr || program.p_type != PT_LOAD)
      continue;
    found.first_address = std::min(found.first_address, program.p_vaddr);
  }
  if (found.first_address == std::numeric_limits<uint64_t>::max()) found.first_address = 0;
  size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return found;
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr info;
    if (gelf_getshdr(section, &info) == nullptr) continue;
    const char* name = elf_strptr(elf, names, info.sh_name);
    if (info.sh_type == SHT_SYMTAB || info.sh_type == SHT_DYNSYM) {
      if (!found.symbol) found.symbol = FindSymbol(section, info, elf);
    } else if (info.sh_type == SHT_NOTE && found.build_id.empty()) {
      found.build_id = BuildId(section);
    } else if (info.sh_type == SHT_PROGBITS && name != nullptr &&
               (std::string_view(name) == HANGSCOPE_CATALOG_SECTION ||
                std::string_view(name) == HANGSCOPE_PLACES_SECTION)) {
      const Elf_Data* data =
          info.sh_size <= kMostCatalogBytes ? elf_rawdata(section, nullptr) : nullptr;
      if (data != nullptr && data->d_buf != nullptr)
        found.catalog.append(static_cast<const char*>(data->d_buf), data->d_size);
    }
  }
  return found;
}

// What a side process answers: this, then the build id, the catalog or, where it was not read, why.
struct Packed {
  uint64_t symbol;
  uint64_t first_address;
  uint32_t build_id_bytes;
  bool is_read;
  bool has_symbol;
  bool moves;
};

std::string Pack(const Result<ScopeElf>& read) {
  Packed head = {};
  if (!read.ok()) return BytesOf(head) + read.status().message();
  const ScopeElf& elf = read.value();
  head = {
      elf.symbol.value_or(0), elf.first_address, static_cast<uint32_t>(elf.build_id.size()), true,
      elf.symbol.has_value(), elf.moves};
  return BytesOf(head) + elf.build_id + elf.catalog;
}

Result<ScopeElf> Unpack(const std::string& path, std::string_view bytes) {
  const auto head = ValueOf<Packed>(bytes);
  if (!head) return Status::Corrupt("'" + path + "' cannot be read");
  bytes.remove_prefix(sizeof *head);
  if (!head->is_read) return Status::Corrupt(std::string(bytes));
  ScopeElf elf;
  if (head->has_symbol) elf.symbol = head->symbol;
  elf.first_address = head->first_address;
  elf.moves = head->moves;
  elf.build_id = bytes.substr(0, head->build_id_bytes);
  elf.catalog = bytes.substr(elf.build_id.size());
  return elf;
}

Result<ScopeElf> ReadBeside(int fd, const std::string& path) {
  const auto bytes =
      AskSideProcess("elf-reader", {fd}, [&] { return Pack(ReadHere(OpenElf(fd), path)); });
  if (!bytes.ok())
    return Status::Corrupt(fmt::format("'{}' cannot be read: {}", path, bytes.status().message()));
  return Unpack(path, bytes.value());
}

// The programs that were read last, the newest first: a recorder asks several times a second until
// its program has a scope, and each reading is a process of its own. Any thread.
class KnownElfs {
 public:
  std::optional<ScopeElf> Find(const struct stat& file) {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, elf] : known_) {
      if (IsSameFile(known, file)) return elf;
    }
    return std::nullopt;
  }

  void Add(const struct stat& file, const ScopeElf& elf) {
    const std::lock_guard lock(mutex_);
    known_.emplace_front(file, elf);
    if (known_.size() > kMostKnown) known_.pop_back();
  }

 private:
  static constexpr size_t kMostKnown = 4;

  std::mutex mutex_;
  std::deque<std::pair<struct stat, ScopeElf>> known_;
};

Result<ScopeElf> ReadUnlessKnown(int fd, const std::string& path) {
  static KnownElfs known;
  struct stat file {};
  if (fstat(fd, &file) != 0) return Status::FromErrno(errno, "examine", path);
  if (auto elf = known.Find(file)) return *std::move(elf);
  auto elf = ReadBeside(fd, path);
  if (elf.ok()) known.Add(file, *elf);
  return elf;
}

}  // namespace

Result<ScopeElf> ScopeElf::Read(const std::string& path) {
  auto fd = OpenRegularFile(path);
  if (!fd.ok()) return fd.status();
  auto elf = ReadUnlessKnown(*fd, path);
  close(*fd);
  return elf;
}

std::string ProgramId(FileSystem& files, const std::string& elf) {
  const auto read = ScopeElf::Read(elf);
  if (!read.ok()) return {};
  if (!read->build_id.empty()) return HexText(read->build_id);
  const auto bytes = ReadWholeFile(files, elf);
  return bytes.ok() ? fmt::format("fnv1a:{:016x}", HashBytes(bytes.value())) : std::string();
}

}  // namespace hangscope
