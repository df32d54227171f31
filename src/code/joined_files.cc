#include "code/joined_files.h"

#include <fmt/format.h>

#include <algorithm>

namespace hangscope {

Status JoinedFiles::Add(FileSystem& files, const std::string& path, const std::string& name) {
  auto file = files.Open(path, FileSystem::Mode::kRead);
  if (!file.ok()) return file.status();
  auto size = (*file)->Size();
  if (!size.ok()) return size.status();
  const uint64_t begin = parts_.empty() ? 0 : parts_.back().end;
  parts_.push_back({name, begin, begin + *size, std::move(*file)});
  return {};
}

std::string JoinedFiles::Where(uint64_t offset) const {
  if (parts_.size() == 1) return fmt::format("offset {}", offset);
  for (const Part& part : parts_) {
    if (offset < part.end || &part == &parts_.back())
      return fmt::format("offset {} of '{}'", offset - part.begin, part.name);
  }
  return {};
}

Result<size_t> JoinedFiles::ReadAt(uint64_t offset, std::span<char> buffer) {
  size_t got = 0;
  for (Part& part : parts_) {
    const uint64_t at = offset + got;
    if (at < part.begin || at >= part.end || got == buffer.size()) continue;
    const size_t here = static_cast<size_t>(std::min<uint64_t>(buffer.size() - got, part.end - at));
    auto read = part.file->ReadAt(at - part.begin, buffer.subspan(got, here));
    if (!read.ok()) return read.status();
    got += *read;
    if (*read < here) break;  // it became shorter
  }
  return got;
}

}  // namespace hangscope
