#include "code/units_by_address.h"

#include <algorithm>

namespace hangscope {

void UnitsByAddress::ReadRanges() {
  ranges_.emplace();
  Dwarf_Addr bias = 0;
  for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(module_, unit, &bias)) != nullptr;) {
    bias_ = bias;
    Dwarf_Addr base = 0, begin = 0, end = 0;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &begin, &end)) > 0;) {
      // Of a function that was dropped both are 0, or it begins there.
      if (begin != 0 && begin < end) ranges_->push_back({begin, end, *unit});
    }
  }
  std::sort(ranges_->begin(), ranges_->end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
}

Dwarf_Die* UnitsByAddress::Find(uint64_t pc, Dwarf_Addr* bias) {
  // What is of no unit libdw counts to the one before.
  Dwarf_Die* const unit = dwfl_module_addrdie(module_, pc, bias);
  if (unit != nullptr && dwarf_haspc(unit, pc - *bias) > 0) return unit;
  if (!ranges_) ReadRanges();
  *bias = bias_;
  const auto behind =
      std::upper_bound(ranges_->begin(), ranges_->end(), pc - bias_,
                       [](uint64_t address, const Range& range) { return address < range.begin; });
  if (behind == ranges_->begin() || pc - bias_ >= std::prev(behind)->end) return nullptr;
  found_ = std::prev(behind)->unit;
  return &found_;
}

}  // namespace hangscope
