// How hangscope's own caller left the signals: what a program that hangscope starts gets, too.
#ifndef HANGSCOPE_PROC_INHERITED_SIGNALS_H
#define HANGSCOPE_PROC_INHERITED_SIGNALS_H

#include <signal.h>

namespace hangscope {

struct InheritedSignals {
  sigset_t mask{};
  bool sigpipe_ignored = false;
  bool sigchld_ignored = false;
  bool sigxfsz_ignored = false;

  // For the new process, between fork and exec: async-signal-safe. hangscope ignores SIGPIPE and
  // SIGXFSZ, and waits for children, for itself only.
  void Restore() const {
    signal(SIGPIPE, sigpipe_ignored ? SIG_IGN : SIG_DFL);
    signal(SIGXFSZ, sigxfsz_ignored ? SIG_IGN : SIG_DFL);
    if (sigchld_ignored) signal(SIGCHLD, SIG_IGN);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
  }
};

}  // namespace hangscope

#endif
