#include "cpu/process_tree.h"

#include <unistd.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

namespace hangscope {

std::map<pid_t, pid_t> ThreadsOfTree(FileSystem& files, pid_t pid) {
  std::map<pid_t, pid_t> threads;
  std::vector<pid_t> next = {pid};
  std::set<pid_t> seen = {pid, getpid()};
  while (!next.empty()) {
    const pid_t process = next.back();
    next.pop_back();
    const std::string tasks = "/proc/" + std::to_string(process) + "/task";
    for (const std::string& name : files.List(tasks)) {
      threads[std::atoi(name.c_str())] = process;
      auto children = ReadWholeFile(files, tasks + "/" + name + "/children");
      if (!children.ok()) continue;  // it has ended
      char* at = children->data();
      for (char* end = at;; at = end) {
        const auto child = static_cast<pid_t>(std::strtol(at, &end, 10));
        if (end == at) break;
        if (seen.insert(child).second) next.push_back(child);
      }
    }
  }
  return threads;
}

}  // namespace hangscope
