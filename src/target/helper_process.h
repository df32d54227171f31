// A helper that runs a command of the user's: its standard input and output are a channel, its
// standard error is kept. It is in a process group of its own, and ends with this at the latest.
#ifndef HANGSCOPE_TARGET_HELPER_PROCESS_H
#define HANGSCOPE_TARGET_HELPER_PROCESS_H

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "target/byte_channel.h"

namespace hangscope {

class HelperProcess final : public DescriptorChannel {
 public:
  // With `sh -c`.
  static Result<std::unique_ptr<HelperProcess>> Start(const std::string& command);
  // Closes its input, waits a moment for it to end, and kills its group.
  ~HelperProcess() override;

  // How it ended, or what it said last, for a message: " (status 1: 'no device')"; empty: nothing
  // is known. Kills it, if it runs.
  std::string LastWords();

 private:
  HelperProcess(pid_t pid, int out, int in, int errors);
  void DrainAside() override;
  // Whether it ended, waiting until `deadline`.
  bool HasEnded(TimeNs deadline);
  void KillAndReap();

  const pid_t pid_;
  std::optional<int> status_;  // of waitpid, once it was reaped here
  bool reaped_ = false;
  std::string said_;  // the end of what it printed on its standard error
};

}  // namespace hangscope

#endif
