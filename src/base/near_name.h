// Which name somebody meant.
#ifndef HANGSCOPE_BASE_NEAR_NAME_H
#define HANGSCOPE_BASE_NEAR_NAME_H

#include <string>
#include <string_view>
#include <vector>

namespace hangscope {

// How many letters must be put in, taken out or changed to make the one of the other.
size_t NameDistance(std::string_view a, std::string_view b);

// Those of `names` that are nearest to `word`, the nearest first, at most `count`; none that is
// farther than `distance`.
std::vector<std::string> NearNames(std::string_view word, std::vector<std::string> names,
                                   size_t distance, size_t count);

}  // namespace hangscope

#endif
