#include "target/target.h"

#include <fmt/format.h>

#include <algorithm>

namespace hangscope {

Status Target::CheckRange(uint64_t address, uint64_t size_bytes) const {
  const auto holds = [&](const MemoryRange& range) { return range.Contains(address, size_bytes); };
  if (std::any_of(ranges().begin(), ranges().end(), holds)) return {};
  return Status::NotFound(fmt::format("{} has no {} bytes at {:#x}", name(), size_bytes, address));
}

}  // namespace hangscope
