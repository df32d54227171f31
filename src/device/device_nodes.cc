#include "device/device_nodes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace hangscope {
namespace {

// A resource has 16 bits for its node, of which the uppermost are for what one memory alone knows.
constexpr size_t kMostNodes = 0x7ffe;

std::string PlaceText(const std::pair<uint16_t, uint16_t>& place) {
  return fmt::format("({},{})", place.first, place.second);
}

}  // namespace

uint32_t DeviceNodes::NumberAt(const Place& place) {
  const auto [at, is_new] = numbers_.emplace(place, static_cast<uint32_t>(all_.size()));
  if (is_new) all_.push_back({place.first, place.second, {}, 0});
  return at->second;
}

Result<std::vector<uint32_t>> DeviceNodes::Add(const NodesOfMemory& memory) {
  // A scope that was told nothing has zeros.
  const bool is_told = std::any_of(memory.table.begin(), memory.table.end(),
                                   [](const NodeSample& node) { return (node.x | node.y) != 0; });
  const auto own = std::count(memory.is_own.begin(), memory.is_own.end(), true);
  if (memory.node && own > 1) {
    return Status::Usage(fmt::format(
        "memory '{}': its cores are in {} nodes, so the file cannot say which one; leave \"node\" "
        "out",
        Printable(memory.name), own));
  }
  std::vector<uint32_t> numbers;
  for (size_t i = 0; i < memory.table.size(); ++i) {
    const NodeSample& node = memory.table[i];
    const bool is_own = i < memory.is_own.size() && memory.is_own[i];
    const Place said = {node.x, node.y};
    const bool by_file = is_own && memory.node;
    if (by_file && is_told && said != *memory.node) {
      return Status::Usage(fmt::format("memory '{}': the file says it is node {}, its scope {}",
                                       Printable(memory.name), PlaceText(*memory.node),
                                       PlaceText(said)));
    }
    if (!is_told && !by_file) {
      numbers.push_back(static_cast<uint32_t>(all_.size()));
      const std::string which = memory.table.size() == 1 ? "" : fmt::format(" node {}", i);
      all_.push_back({0, 0, {}, 0, memory.name + which});
    } else {
      const Place place = by_file ? *memory.node : said;
      numbers.push_back(NumberAt(place));
      if (is_own && !owners_.emplace(place, memory.name).second) {
        return Status::Usage(fmt::format("memories '{}' and '{}' both have cores at {}",
                                         Printable(owners_[place]), Printable(memory.name),
                                         PlaceText(place)));
      }
    }
    if (all_.size() > kMostNodes)
      return Status::Usage(fmt::format("the device has more than {} nodes", kMostNodes));
  }
  return numbers;
}

}  // namespace hangscope
