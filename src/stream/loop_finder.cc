#include "stream/loop_finder.h"

#include <algorithm>
#include <vector>

namespace hangscope {

std::optional<Period> FindPeriod(std::span<const uint64_t> tokens) {
  constexpr size_t kLeastRounds = 3;
  const size_t n = tokens.size();
  const auto at = [&](size_t i) { return tokens[n - 1 - i]; };  // from the end backwards

  // matches[p]: how far the sequence, read backwards, equals itself shifted by p.
  std::vector<size_t> matches(n, 0);
  size_t left = 0;
  size_t right = 0;
  std::optional<Period> best;
  for (size_t p = 1; p < n; ++p) {
    size_t length = p < right ? std::min(right - p, matches[p - left]) : 0;
    while (p + length < n && at(length) == at(p + length)) ++length;
    matches[p] = length;
    if (p + length > right) {
      left = p;
      right = p + length;
    }
    const Period period{p, p + length};
    if (period.rounds() >= kLeastRounds && (!best || period.covered > best->covered)) best = period;
  }
  return best;
}

}  // namespace hangscope
