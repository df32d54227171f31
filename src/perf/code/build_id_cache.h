// Build ids as perf has them, and its cache of files by build id: what perf record keeps in
// ~/.debug of the programs that it recorded.
#ifndef HANGSCOPE_PERF_CODE_BUILD_ID_CACHE_H
#define HANGSCOPE_PERF_CODE_BUILD_ID_CACHE_H

#include <algorithm>
#include <string>
#include <vector>

#include "base/json_text.h"

namespace hangscope {

// perf pads shorter ids with zeros.
inline bool IsSameBuildId(std::string a, std::string b) {
  for (std::string* id : {&a, &b}) id->resize(std::max<size_t>(20, id->size()));
  return a == b;
}

inline std::string Unpadded(std::string id) {
  while (!id.empty() && id.back() == '\0') id.pop_back();
  return id;
}

// Where the file `name` ("elf", "kallsyms", "vdso") of the build `id` may lie below `cache`. perf
// keeps a folder for each id, older ones the ELF file itself; the names of shorter ids may have the
// zeros that pad them.
inline std::vector<std::string> CachedFiles(const std::string& cache, const std::string& id,
                                            const std::string& name) {
  std::vector<std::string> paths;
  for (const std::string& one : {id, Unpadded(id)}) {
    if (one.size() < 2) continue;
    const std::string hex = HexText(one);
    const std::string path = cache + "/.build-id/" + hex.substr(0, 2) + "/" + hex.substr(2);
    if (paths.empty() || id != Unpadded(id)) {
      paths.push_back(path + "/" + name);
      if (name == "elf") paths.push_back(path);
    }
  }
  return paths;
}

}  // namespace hangscope

#endif
