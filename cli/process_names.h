// Processes by their names, as pgrep -x finds them.
#ifndef HANGSCOPE_CLI_PROCESS_NAMES_H
#define HANGSCOPE_CLI_PROCESS_NAMES_H

#include <string>
#include <string_view>
#include <vector>

namespace hangscope::cli {

struct NamedProcess {
  int pid = 0;
  std::string command;  // the begin of its command line
};

// Those that are called `name`, or whose program's file is; ascending, this one left out.
std::vector<NamedProcess> ProcessesNamed(std::string_view name);

}  // namespace hangscope::cli

#endif
