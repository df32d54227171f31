// hangscope guard BATON RECORDER STREAM...: started by recorders only, see
// src/observe/standby.h; not in the help.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>

#include <cstdlib>

#include "commands.h"
#include "observe/standby.h"
#include "options.h"

namespace hangscope::cli {

int GuardCommand(const std::vector<std::string>& words) {
  if (words.size() < 3)
    return Fail(
        Status::Usage("guard is started by run and tee; there is nothing to do for it here"));
  for (const int number :
       {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGTTOU, SIGTTIN, SIGTSTP}) {
    signal(number, SIG_IGN);
  }
  // So that `killall hangscope` finds the recorders.
  prctl(PR_SET_NAME, "hs-guard");
  std::vector<StandbyStream> streams;
  for (size_t i = 2; i < words.size(); ++i) {
    auto stream = ParseGuardedStream(words[i]);
    if (!stream.ok()) return Fail(stream.status());
    streams.push_back(*stream);
  }
  SystemClock clock;
  StandGuard(PosixFileSystem(), clock, kOwnProgram, atoi(words[0].c_str()), atoi(words[1].c_str()),
             streams, PrintNote);
  return kExitClean;
}

}  // namespace hangscope::cli
