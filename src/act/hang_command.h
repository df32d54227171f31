// The shell command of --on-hang exec:COMMAND.
#ifndef HANGSCOPE_ACT_HANG_COMMAND_H
#define HANGSCOPE_ACT_HANG_COMMAND_H

#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "proc/side_command.h"

namespace hangscope {

// What it is told, in its environment.
struct HangNews {
  std::string snapshot;     // the folder; empty: there is none
  int pid = 0;              // of who hangs; 0: none, or not known
  std::string summary;      // of the verdict
  std::string target = {};  // as people call it; empty: the program that is run
};

// One thread.
class HangCommand {
 public:
  HangCommand(std::string command, const InheritedSignals& signals)
      : command_(std::move(command)), signals_(signals) {}

  // Beside whoever hangs. Fails with one sentence where it cannot be started, or that of an earlier
  // hang, or what that started, still runs.
  Status Start(const HangNews& news);
  // To be called now and then: collects one that has ended.
  void Collect() {
    if (running_ != nullptr) (void)running_->Runs();
  }
  // Of the process that all of the latest one descends from; 0: none runs.
  pid_t pid() const { return running_ != nullptr ? running_->pid() : 0; }

 private:
  const std::string command_;
  const InheritedSignals signals_;
  std::unique_ptr<SideCommand> running_;  // of the last hang; null: there was none
};

}  // namespace hangscope

#endif
