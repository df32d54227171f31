#include "proc/side_command.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace hangscope {
namespace {

// In a fork of a process of several threads: only async-signal-safe calls, here and below.
[[noreturn]] void BecomeShell(const SideCommandOptions& options, char** environment) {
  options.signals.Restore();
  char* const arguments[] = {const_cast<char*>("sh"), const_cast<char*>("-c"),
                             const_cast<char*>(options.command.c_str()), nullptr};
  execve("/bin/sh", arguments, environment);
  _exit(127);
}

// Waits for the shell and for all orphans that it leaves. Nothing of the recording stays open here:
// a program whose recorder was killed would wait for this one, too.
[[noreturn]] void BeKeeper(const SideCommandOptions& options, char** environment) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_NAME, "on-hang");
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  close_range(STDERR_FILENO + 1, ~0u, 0);
  const pid_t shell = _Fork();
  if (shell == 0) BecomeShell(options, environment);
  while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
  _exit(0);
}

}  // namespace

Result<std::unique_ptr<SideCommand>> SideCommand::Start(const SideCommandOptions& options) {
  std::vector<char*> environment;
  for (char** at = environ; *at != nullptr; ++at) environment.push_back(*at);
  for (const std::string& variable : options.environment)
    environment.push_back(const_cast<char*>(variable.c_str()));
  environment.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) return Status::FromErrno(errno, "start", "/bin/sh");
  if (pid == 0) BeKeeper(options, environment.data());
  return std::unique_ptr<SideCommand>(new SideCommand(pid));
}

bool SideCommand::Runs() {
  // ECHILD: whoever waits for all children has collected it.
  if (pid_ != 0 && waitpid(pid_, nullptr, WNOHANG) != 0) pid_ = 0;
  return pid_ != 0;
}

}  // namespace hangscope
