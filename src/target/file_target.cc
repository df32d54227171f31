#include "target/file_target.h"

#include <fmt/format.h>

#include "target/hex_dump.h"

namespace hangscope {
namespace {

constexpr size_t kLookedAt = 4096;

// Memory has zero bytes at once; a log of a console has none.
bool LooksLikeText(File& file) {
  char bytes[kLookedAt];
  auto got = file.ReadAt(0, bytes);
  if (!got.ok() || *got == 0) return false;
  return std::string_view(bytes, *got).find('\0') == std::string_view::npos;
}

}  // namespace

FileTarget::FileTarget(std::string path, std::unique_ptr<File> file, uint64_t size_bytes,
                       std::optional<uint64_t> scope_offset)
    : name_("file '" + path + "'"),
      file_(std::move(file)),
      ranges_{{0, size_bytes}},
      scope_offset_(scope_offset) {}

Result<std::unique_ptr<Target>> FileTarget::Open(FileSystem& files, const std::string& path,
                                                 std::optional<uint64_t> scope_offset) {
  // For writing, too, where that is allowed: a scope's mask is set through it.
  auto file = files.Open(path, FileSystem::Mode::kReadWrite);
  if (!file.ok()) file = files.Open(path, FileSystem::Mode::kRead);
  if (!file.ok()) return file.status();
  if (LooksLikeText(**file)) {
    auto text = ReadWholeFile(files, path);
    if (!text.ok()) return text.status();
    auto dump = HexDumpTarget::Parse("file '" + path + "'", *text);
    if (!dump.ok()) return dump.status();
    return std::unique_ptr<Target>(std::move(*dump));
  }
  auto size = (*file)->Size();
  if (!size.ok()) return size.status();
  if (scope_offset && *scope_offset >= *size) {
    return Status::Usage(fmt::format("file '{}' has {} bytes, so there is nothing at offset {}",
                                     path, *size, *scope_offset));
  }
  return std::unique_ptr<Target>(new FileTarget(path, std::move(*file), *size, scope_offset));
}

Status FileTarget::Read(uint64_t address, std::span<char> bytes) {
  if (Status status = CheckRange(address, bytes.size()); !status.ok()) return status;
  auto got = file_->ReadAt(address, bytes);
  if (!got.ok()) return got.status();
  if (*got == bytes.size()) return {};
  return Status::Io(fmt::format("{} ends at {}: it has become shorter", name_, address + *got));
}

Status FileTarget::Write(uint64_t address, std::string_view bytes) {
  if (Status status = CheckRange(address, bytes.size()); !status.ok()) return status;
  size_t written = 0;
  return file_->WriteAt(address, bytes, &written);
}

}  // namespace hangscope
