#include "target/target_spec.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <utility>

namespace hangscope {
namespace {

constexpr std::string_view kProcessPrefix = "pid:";
constexpr std::string_view kFilePrefix = "file:";
constexpr std::pair<std::string_view, TargetSpec::Kind> kPrefixes[] = {
    {kFilePrefix, TargetSpec::Kind::kFile},
    {kProcessPrefix, TargetSpec::Kind::kProcess},
    {"core:", TargetSpec::Kind::kCore},
    {"gdb:", TargetSpec::Kind::kServer},
    {"exec:", TargetSpec::Kind::kHelper}};

// "0x1000", "4096"; nothing where it is no number.
std::optional<uint64_t> ParseNumber(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || stop != text.data() + text.size())
    return std::nullopt;
  return value;
}

// PATH[@OFFSET].
void ParseFile(FileSystem& files, TargetSpec* spec) {
  const size_t at = spec->name.rfind('@');
  if (at == std::string::npos || files.Exists(spec->name)) return;
  spec->where = spec->name.substr(0, at);
  spec->offset = ParseNumber(std::string_view(spec->name).substr(at + 1));
  if (!spec->offset)
    spec->status = Status::Usage(fmt::format(
        "'{}': behind @ stands where the scope begins, in bytes; for example file:ram.bin@0x1000",
        spec->name));
}

void ParseProcess(const std::string& text, TargetSpec* spec) {
  const size_t at = spec->where.find('@');
  if (at != std::string::npos) {
    std::string_view place = std::string_view(spec->where).substr(at + 1);
    const size_t base = place.find('/');
    const size_t header = base == std::string_view::npos ? base : place.find('/', base + 1);
    if (header != std::string_view::npos) {
      const auto first = ParseNumber(place.substr(base + 1, header - base - 1));
      const auto second = ParseNumber(place.substr(header + 1));
      if (first && second) spec->pages = PagedRam{*first, *second};
      if (spec->pages) place = place.substr(0, base);
    }
    spec->offset = ParseNumber(place);
    if (spec->offset) spec->where.resize(at);
  }
  spec->name = "process " + spec->where;
  const auto pid = ParseNumber(spec->where);
  if (pid && *pid != 0 && *pid <= INT32_MAX)
    spec->pid = static_cast<int>(*pid);
  else
    spec->status = Status::Usage(fmt::format("{}: a process's number; for example pid:4711", text));
}

}  // namespace

TargetSpec ParseTargetSpec(FileSystem& files, const std::string& text) {
  TargetSpec spec;
  spec.where = text;
  for (const auto& [prefix, kind] : kPrefixes) {
    if (!text.starts_with(prefix)) continue;
    spec.kind = kind;
    spec.where = text.substr(prefix.size());
    break;
  }
  spec.name = spec.kind == TargetSpec::Kind::kFile ? spec.where : text;
  if (spec.kind == TargetSpec::Kind::kFile) ParseFile(files, &spec);
  if (spec.kind == TargetSpec::Kind::kProcess) ParseProcess(text, &spec);
  if (spec.kind == TargetSpec::Kind::kHelper && spec.where.empty())
    spec.status = Status::Usage(
        "exec: wants a command that reaches the target's memory; for example 'exec:./jtag_helper "
        "--port 3'");
  return spec;
}

std::string ProcessSpec(int pid) { return fmt::format("{}{}", kProcessPrefix, pid); }

std::string GuestSpec(int pid, uint64_t address) {
  return fmt::format("{}{}@{:#x}", kProcessPrefix, pid, address);
}

std::string GuestSpec(int pid, uint64_t address, const PagedRam& pages) {
  return fmt::format("{}/{:#x}/{:#x}", GuestSpec(pid, address), pages.base, pages.header);
}

std::string FileSpec(const std::string& path) { return fmt::format("{}{}", kFilePrefix, path); }

std::string SpecOfWord(FileSystem& files, const std::string& word) {
  const bool number = !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
  return number && !files.Exists(word) ? fmt::format("{}{}", kProcessPrefix, word) : word;
}

ScopePlace ParseScopePlace(const std::string& text) {
  if (text == kProcessPrefix || text == kProcessPrefix.substr(0, kProcessPrefix.size() - 1))
    return {true, ""};
  if (text == "none") return {};
  return {false, text, text.empty()};
}

}  // namespace hangscope
