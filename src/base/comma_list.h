// Lists as people and the kernel write them: "stdout,fd:3", "0-3,6".
#ifndef HANGSCOPE_BASE_COMMA_LIST_H
#define HANGSCOPE_BASE_COMMA_LIST_H

#include <algorithm>
#include <string>
#include <vector>

namespace hangscope {

// What stands between the commas, at least one part; a part may be empty.
inline std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace hangscope

#endif
