#include "target/process_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace hangscope {
namespace {

// "55d0-55e0 r-xp 00000000 08:01 42    /usr/bin/x"
std::optional<ProcessMapping> ParseMapping(std::string_view line) {
  ProcessMapping mapping;
  const char* end = line.data() + line.size();
  auto first = std::from_chars(line.data(), end, mapping.begin, 16);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') return std::nullopt;
  auto second = std::from_chars(first.ptr + 1, end, mapping.end, 16);
  if (second.ec != std::errc() || mapping.end <= mapping.begin) return std::nullopt;
  const size_t range_end = static_cast<size_t>(second.ptr - line.data());
  mapping.range = line.substr(0, range_end);
  const std::string_view rights = line.substr(std::min(range_end + 1, line.size()), 3);
  mapping.readable = rights.starts_with('r');
  mapping.writable = rights.find('w') != std::string_view::npos;
  mapping.executable = rights.ends_with('x');
  if (const size_t slash = line.find('/'); slash != std::string_view::npos)
    mapping.path = line.substr(slash);
  return mapping;
}

}  // namespace

Result<std::vector<ProcessMapping>> ReadMappings(FileSystem& files, int pid) {
  auto text = ReadWholeFile(files, fmt::format("/proc/{}/maps", pid));
  if (!text.ok()) return text.status();
  std::vector<ProcessMapping> mappings;
  for (std::string_view rest = *text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (auto mapping = ParseMapping(rest.substr(0, end))) mappings.push_back(std::move(*mapping));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return mappings;
}

}  // namespace hangscope
