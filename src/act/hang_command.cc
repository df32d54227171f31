#include "act/hang_command.h"

#include <fmt/format.h>

namespace hangscope {

Status HangCommand::Start(const HangNews& news) {
  if (running_ != nullptr && running_->Runs()) {
    return Status::Busy(
        fmt::format("the --on-hang command of an earlier hang still runs below process {}, so it "
                    "is not started again",
                    running_->pid()));
  }
  SideCommandOptions options;
  options.command = command_;
  options.environment = {
      "HANGSCOPE_SNAPSHOT=" + news.snapshot,
      "HANGSCOPE_PID=" + (news.pid > 0 ? std::to_string(news.pid) : ""),
      "HANGSCOPE_VERDICT=" + news.summary,
      "HANGSCOPE_TARGET=" + news.target,
  };
  options.signals = signals_;
  auto started = SideCommand::Start(options);
  if (!started.ok())
    return Status::Io("cannot start the --on-hang command: " + started.status().message());
  running_ = std::move(*started);
  return {};
}

}  // namespace hangscope
