// The signals hangscope acts on, taken over in main's first act.
#ifndef HANGSCOPE_CLI_SIGNALS_H
#define HANGSCOPE_CLI_SIGNALS_H

#include <signal.h>

#include "proc/inherited_signals.h"

namespace hangscope::cli {

struct StartSignals {
  InheritedSignals inherited;
  sigset_t ours{};  // those that are read from the signalfd
};

// Blocks the signals, so that from here on none of them kills: they wait for the
// signalfd. A signal that the caller had blocked or ignored (nohup) stays so.
StartSignals InstallSignals();

// Opens /dev/null in place of a standard descriptor that the caller closed, so
// that no file of ours takes its number and is mistaken for it.
void FillStandardDescriptors();

// Ends this process as that signal ends a program: a shell that waits for it gives up its loop or
// script then. Returns where it is ignored.
void EndBySignal(int number);

// Gives the caller's mask back; for commands that watch nothing. SIGPIPE stays ignored: whoever
// stops listening (head) does not change the status.
void ReleaseSignals(const StartSignals& signals);

// With SIGWINCH, which is blocked by this.
StartSignals WithTerminalSize(StartSignals signals);

// With SIGWINCH, SIGCONT and, unless the caller ignores it, SIGTSTP, which are blocked by this:
// whoever reads them gives the terminal back before it stops.
StartSignals WithTerminalView(StartSignals signals);

// A signalfd for `signals.ours`, or -1.
int OpenSignalFd(const StartSignals& signals);

}  // namespace hangscope::cli

#endif
