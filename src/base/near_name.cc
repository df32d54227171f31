#include "base/near_name.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hangscope {

// Levenshtein's.
size_t NameDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

std::vector<std::string> NearNames(std::string_view word, std::vector<std::string> names,
                                   size_t distance, size_t count) {
  std::vector<std::pair<size_t, std::string>> near;
  for (std::string& name : names) {
    // Longer by more than that, it cannot be near.
    if (name.size() > word.size() + distance || word.size() > name.size() + distance) continue;
    if (const size_t found = NameDistance(word, name); found <= distance)
      near.emplace_back(found, std::move(name));
  }
  std::sort(near.begin(), near.end());
  near.erase(std::unique(near.begin(), near.end()), near.end());
  std::vector<std::string> nearest;
  for (size_t i = 0; i < std::min(count, near.size()); ++i) nearest.push_back(near[i].second);
  return nearest;
}

}  // namespace hangscope
