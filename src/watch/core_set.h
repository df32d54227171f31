// Which cores somebody means.
//
//   all            every core
//   0  1-3         cores by number
//   x,y  (x,y)     all cores of the node at these coordinates; without brackets only where the
//                  target has several nodes and the word holds just two numbers, else these are
//                  cores: 1,2
//   (x1,y1)-(x2,y2) all cores of the nodes in the rectangle
//   writer         a role, or a thread, by its name
//   writer@(0,0)   those of them that are of these nodes; any of the above before the @, a node or
//                  a rectangle of them behind it; without brackets where that is the whole word
//
// and lists of these, with commas or spaces: all that any part of the list names.
#ifndef HANGSCOPE_WATCH_CORE_SET_H
#define HANGSCOPE_WATCH_CORE_SET_H

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace hangscope {

// What sets are resolved against: by core.
struct CoreIdentity {
  bool in_use = true;
  uint32_t node = 0;
  std::string role;  // empty: it has no name
  std::string name;  // of a thread; may be empty
};
struct NodePlace {
  uint32_t x = 0;
  uint32_t y = 0;
};

// `words`: one for each the shell made. The cores in ascending order, each once; at least one.
// Fails with kUsage, naming the part that is wrong and what would be right. Of `all`, roles and
// nodes only cores that are in use are meant, where any is.
Result<std::vector<uint32_t>> ParseCoreSet(const std::vector<std::string>& words,
                                           const std::vector<CoreIdentity>& cores,
                                           const std::vector<NodePlace>& nodes);

// The shortest list of these numbers, which ascend, with spaces, since 2,5 may be a node: "0-2 5".
std::string CoreNumbersText(const std::vector<uint32_t>& cores);

}  // namespace hangscope

#endif
