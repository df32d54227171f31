#include "target/core_target.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/bytes.h"

namespace hangscope {
namespace {

constexpr size_t kMostCoreSegments = 1u << 20;

// Where the fields lie in an ELF of 32 and of 64 bits.
struct ElfShape {
  size_t header_bytes;
  size_t table_at;  // in the header: offset of the table of segments
  size_t entry_at;  // size of one
  size_t count_at;  // how many
  size_t entry_bytes;
  size_t offset;  // in a segment's entry
  size_t address;
  size_t file_bytes;
};
constexpr ElfShape kElf32 = {sizeof(Elf32_Ehdr),
                             offsetof(Elf32_Ehdr, e_phoff),
                             offsetof(Elf32_Ehdr, e_phentsize),
                             offsetof(Elf32_Ehdr, e_phnum),
                             sizeof(Elf32_Phdr),
                             offsetof(Elf32_Phdr, p_offset),
                             offsetof(Elf32_Phdr, p_vaddr),
                             offsetof(Elf32_Phdr, p_filesz)};
constexpr ElfShape kElf64 = {sizeof(Elf64_Ehdr),
                             offsetof(Elf64_Ehdr, e_phoff),
                             offsetof(Elf64_Ehdr, e_phentsize),
                             offsetof(Elf64_Ehdr, e_phnum),
                             sizeof(Elf64_Phdr),
                             offsetof(Elf64_Phdr, p_offset),
                             offsetof(Elf64_Phdr, p_vaddr),
                             offsetof(Elf64_Phdr, p_filesz)};

}  // namespace

Result<std::unique_ptr<Target>> CoreTarget::Open(FileSystem& files, const std::string& path) {
  auto file = files.Open(path, FileSystem::Mode::kRead);
  if (!file.ok()) return file.status();
  auto size = (*file)->Size();
  if (!size.ok()) return size.status();
  std::unique_ptr<CoreTarget> target(new CoreTarget("core dump '" + path + "'", std::move(*file)));
  if (Status status = target->ReadHeaders(*size); !status.ok()) return status;
  return std::unique_ptr<Target>(std::move(target));
}

Status CoreTarget::ReadHeaders(uint64_t file_bytes) {
  char header[sizeof(Elf64_Ehdr)] = {};
  auto got = file_->ReadAt(0, header);
  if (!got.ok()) return got.status();
  const std::string_view start(header, *got);
  if (!start.starts_with("\177ELF"))
    return Status::Corrupt(
        fmt::format("{} is no ELF file; file: takes a plain dump of memory", name_));
  const bool wide = header[EI_CLASS] == ELFCLASS64;
  const ElfShape& shape = wide ? kElf64 : kElf32;
  if (*got < shape.header_bytes)
    return Status::Corrupt(fmt::format("{} ends in its header", name_));
  const ByteOrder order = header[EI_DATA] == ELFDATA2MSB ? ByteOrder::kBig : ByteOrder::kLittle;
  const auto word = [&](const char* at) { return wide ? Load64(at, order) : Load32(at, order); };
  const uint64_t table = word(header + shape.table_at);
  const size_t entry = Load16(header + shape.entry_at, order);
  uint64_t count = Load16(header + shape.count_at, order);
  if (count == PN_XNUM) count = kMostCoreSegments;  // more than 65534: as many as the file has
  if (entry < shape.entry_bytes)
    return Status::Corrupt(fmt::format("{} has segment headers of {} bytes", name_, entry));
  std::vector<char> bytes(entry);
  for (uint64_t i = 0; i < count; ++i) {
    if (table > file_bytes || (file_bytes - table) / entry <= i) break;
    auto read = file_->ReadAt(table + i * entry, bytes);
    if (!read.ok()) return read.status();
    if (*read < entry || Load32(bytes.data(), order) != PT_LOAD) continue;
    Segment segment;
    segment.file_offset = word(bytes.data() + shape.offset);
    segment.memory.begin = word(bytes.data() + shape.address);
    // Only what the file has: a dump that was cut off is read as far as it goes.
    const uint64_t there = file_bytes - std::min(file_bytes, segment.file_offset);
    segment.memory.size_bytes =
        std::min({word(bytes.data() + shape.file_bytes), there, UINT64_MAX - segment.memory.begin});
    if (segment.memory.size_bytes > 0) segments_.push_back(segment);
  }
  std::sort(segments_.begin(), segments_.end(),
            [](const Segment& a, const Segment& b) { return a.memory.begin < b.memory.begin; });
  uint64_t end = 0;
  std::erase_if(segments_, [&](const Segment& segment) {
    if (segment.memory.begin < end) return true;
    end = segment.memory.begin + segment.memory.size_bytes;
    return false;
  });
  for (const Segment& segment : segments_) {
    if (!ranges_.empty() &&
        ranges_.back().begin + ranges_.back().size_bytes == segment.memory.begin)
      ranges_.back().size_bytes += segment.memory.size_bytes;
    else
      ranges_.push_back(segment.memory);
  }
  if (!ranges_.empty()) return {};
  return Status::Corrupt(fmt::format("{} has no memory in it; was it cut off?", name_));
}

Status CoreTarget::Read(uint64_t address, std::span<char> bytes) {
  if (Status status = CheckRange(address, bytes.size()); !status.ok()) return status;
  auto segment = std::upper_bound(segments_.begin(), segments_.end(), address,
                                  [](uint64_t a, const Segment& s) { return a < s.memory.begin; });
  for (--segment; !bytes.empty(); ++segment) {
    const uint64_t at = address - segment->memory.begin;
    const size_t here =
        static_cast<size_t>(std::min<uint64_t>(bytes.size(), segment->memory.size_bytes - at));
    auto got = file_->ReadAt(segment->file_offset + at, bytes.first(here));
    if (!got.ok()) return got.status();
    if (*got != here) return Status::Io(name_ + " has become shorter");
    bytes = bytes.subspan(here);
    address += here;
  }
  return {};
}

Status CoreTarget::Write(uint64_t, std::string_view) {
  return Status::Usage(name_ + " is of a program that ended, and is not written to");
}

}  // namespace hangscope
