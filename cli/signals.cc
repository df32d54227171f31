#include "signals.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <initializer_list>

namespace hangscope::cli {
namespace {

bool IsIgnored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

StartSignals With(int number, StartSignals signals) {
  sigset_t added;
  sigemptyset(&added);
  sigaddset(&added, number);
  sigprocmask(SIG_BLOCK, &added, nullptr);
  sigaddset(&signals.ours, number);
  return signals;
}

}  // namespace

StartSignals InstallSignals() {
  StartSignals signals;
  sigprocmask(SIG_BLOCK, nullptr, &signals.inherited.mask);
  sigemptyset(&signals.ours);
  for (const int number : {SIGUSR1, SIGUSR2, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    if (sigismember(&signals.inherited.mask, number) == 0 && !IsIgnored(number))
      sigaddset(&signals.ours, number);
  }
  sigaddset(&signals.ours, SIGCHLD);
  sigset_t blocked = signals.ours;
  sigaddset(&blocked, SIGTTOU);  // giving the terminal to the child and taking it back
  sigprocmask(SIG_BLOCK, &blocked, nullptr);
  signals.inherited.sigpipe_ignored = IsIgnored(SIGPIPE);
  signal(SIGPIPE, SIG_IGN);
  // A limit of file sizes is an error of a write, as a full disk is.
  signals.inherited.sigxfsz_ignored = IsIgnored(SIGXFSZ);
  signal(SIGXFSZ, SIG_IGN);
  signals.inherited.sigchld_ignored = IsIgnored(SIGCHLD);
  // Else the child's status would be lost.
  if (signals.inherited.sigchld_ignored) signal(SIGCHLD, SIG_DFL);
  return signals;
}

void FillStandardDescriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // The lowest free number is what open returns.
    if (fcntl(fd, F_GETFD) == -1) (void)open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY);
  }
}

void EndBySignal(int number) {
  const rlimit no_core = {0, 0};
  (void)setrlimit(RLIMIT_CORE, &no_core);
  signal(number, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  sigprocmask(SIG_UNBLOCK, &one, nullptr);
  kill(getpid(), number);
}

void ReleaseSignals(const StartSignals& signals) {
  sigprocmask(SIG_SETMASK, &signals.inherited.mask, nullptr);
}

StartSignals WithTerminalSize(StartSignals signals) { return With(SIGWINCH, signals); }

StartSignals WithTerminalView(StartSignals signals) {
  if (!IsIgnored(SIGTSTP)) signals = With(SIGTSTP, signals);
  return With(SIGCONT, With(SIGWINCH, signals));
}

int OpenSignalFd(const StartSignals& signals) {
  return signalfd(-1, &signals.ours, SFD_CLOEXEC | SFD_NONBLOCK);
}

}  // namespace hangscope::cli
