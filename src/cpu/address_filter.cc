#include "cpu/address_filter.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/comma_list.h"
#include "base/numbers.h"
#include "code/elf_functions.h"

namespace hangscope {
namespace {

std::string WithoutSpaces(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? std::string()
                                    : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// Before and behind the first `mark`; without one, nothing is behind.
std::pair<std::string, std::string> SplitAt(const std::string& text, char mark) {
  const size_t at = text.find(mark);
  if (at == std::string::npos) return {WithoutSpaces(text), ""};
  return {WithoutSpaces(text.substr(0, at)), WithoutSpaces(text.substr(at + 1))};
}

std::optional<uint64_t> HexOf(const std::string& text) {
  return text.starts_with("0x") ? ParseHex<uint64_t>(text) : std::nullopt;
}

Status NoFilter(const std::string& filter) {
  return Status::Usage("'" + filter +
                       "' is no address filter: filter, start or stop, a function or an address, "
                       "and '@ FILE'; for example 'filter main @ /usr/bin/server'");
}

Status AddFilter(const std::string& filter, AddressFilters* filters) {
  const auto [action, what] = SplitAt(filter, ' ');
  const bool is_range = action == "filter";
  if (what.empty() || (!is_range && action != "start" && action != "stop")) return NoFilter(filter);
  const auto [place, path] = SplitAt(what, '@');
  const auto [begin, size] = SplitAt(place, '/');
  FunctionExtent extent;
  if (const auto address = HexOf(begin)) {
    const auto bytes = HexOf(size);
    if (is_range != bytes.has_value()) return NoFilter(filter);
    extent = {*address, bytes.value_or(0)};
  } else {
    if (begin.empty() || !size.empty()) return NoFilter(filter);
    if (path.empty())
      return Status::Usage("'" + filter + "': which file has '" + begin +
                           "'? '@ FILE' says it; code of the kernel is given by its address");
    auto found = FunctionExtentOf(path, begin);
    if (!found.ok()) return found.status();
    extent = *found;
    if (is_range && extent.bytes == 0)
      return Status::Usage("'" + path + "' does not say how long '" + begin +
                           "' is; OFFSET/BYTES in place of it, in hexadecimal, do");
  }
  if (filters->count++ > 0) filters->text += ",";
  filters->text += fmt::format("{} {:#x}", action, extent.offset);
  if (is_range) filters->text += fmt::format("/{:#x}", extent.bytes);
  if (!path.empty()) filters->text += "@" + path;
  filters->of_files = filters->of_files || !path.empty();
  return {};
}

}  // namespace

Result<AddressFilters> ParseAddressFilters(const std::string& filter) {
  AddressFilters filters;
  for (const std::string& one : SplitAtCommas(filter)) {
    if (Status status = AddFilter(WithoutSpaces(one), &filters); !status.ok()) return status;
  }
  if (filters.count == 0) return NoFilter(filter);
  return filters;
}

}  // namespace hangscope
