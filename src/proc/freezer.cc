#include "proc/freezer.h"

#include <sstream>

namespace hangscope {
namespace {

constexpr std::string_view kSecondVersion = "0::";
constexpr std::string_view kFreezer = ":freezer:";

}  // namespace

std::string Freezer::WhatHolds(int pid) {
  const auto text = proc_.Read(std::to_string(pid) + "/cgroup");
  if (!text) return "";
  const auto [at, is_new] = known_.emplace(*text, "");
  if (!is_new) return at->second;
  std::istringstream lines(*text);
  for (std::string line; at->second.empty() && std::getline(lines, line);) {
    if (line.starts_with(kSecondVersion)) {
      const std::string group = line.substr(kSecondVersion.size());
      at->second = WhatHasFrozen("", group);
      if (at->second.empty()) at->second = WhatHasFrozen("/unified", group);
    } else if (const size_t name = line.find(kFreezer); name != std::string::npos) {
      at->second = WhatHasFrozen("/freezer", line.substr(name + kFreezer.size()));
    }
  }
  return at->second;
}

// The group itself, or one that it is in: of those, only what is asked for can be read at once.
std::string Freezer::WhatHasFrozen(const std::string& hierarchy, const std::string& group) const {
  const ProcFolder groups(groups_ + hierarchy);
  const auto says = [&](const std::string& folder, const char* file, const char* what) {
    const auto text = groups.Read(folder + "/" + file);
    return text && text->find(what) != std::string::npos;
  };
  const auto path = [&](const std::string& folder, const char* file) {
    return groups_ + hierarchy + (folder == "/" ? "" : folder) + "/" + file;
  };
  for (std::string folder = group; folder.size() > 1; folder.resize(folder.rfind('/'))) {
    if (says(folder, "cgroup.freeze", "1")) return path(folder, "cgroup.freeze");
    if (says(folder, "freezer.self_freezing", "1")) return path(folder, "freezer.state");
  }
  if (says(group, "cgroup.events", "frozen 1")) return path(group, "cgroup.freeze");
  return says(group, "freezer.state", "FR") ? path(group, "freezer.state") : "";
}

}  // namespace hangscope
