#include "process_names.h"

#include <unistd.h>

#include "base/file_system.h"
#include "proc/proc_folder.h"

namespace hangscope::cli {

std::vector<NamedProcess> ProcessesNamed(std::string_view name) {
  const ProcFolder folder("/proc");
  std::vector<NamedProcess> named;
  for (const int pid : folder.Processes()) {
    const auto stat = folder.Stat(pid);
    if (!stat || pid == getpid()) continue;
    const std::string command = folder.CommandLine(pid);
    if (stat->name == name || NameOf(command.substr(0, command.find(' '))) == name)
      named.push_back({pid, command.empty() ? stat->name : command});
  }
  return named;
}

}  // namespace hangscope::cli
