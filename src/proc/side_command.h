// A shell command of the user's that hangscope starts beside the observed program.
#ifndef HANGSCOPE_PROC_SIDE_COMMAND_H
#define HANGSCOPE_PROC_SIDE_COMMAND_H

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "proc/inherited_signals.h"

namespace hangscope {

struct SideCommandOptions {
  std::string command;                   // for sh -c
  std::vector<std::string> environment;  // "NAME=value", besides our own
  InheritedSignals signals;
};

// The command and all that descends from it, be it orphaned, stays below one process of ours: so
// nothing of it is taken for the observed program. One thread.
class SideCommand {
 public:
  // Starts it with /dev/null as standard input and our standard error as output. It goes on when
  // this object ends, or this process.
  static Result<std::unique_ptr<SideCommand>> Start(const SideCommandOptions& options);

  // Whether it or what it has started still runs. To be called now and then, as it collects it.
  bool Runs();
  // Of the process that all of it descends from; 0: it has ended.
  pid_t pid() const { return pid_; }

 private:
  explicit SideCommand(pid_t pid) : pid_(pid) {}

  pid_t pid_;
};

}  // namespace hangscope

#endif
