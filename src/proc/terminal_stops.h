// The signals by which a terminal stops a process (Ctrl-Z, and its use from the background).
#ifndef HANGSCOPE_PROC_TERMINAL_STOPS_H
#define HANGSCOPE_PROC_TERMINAL_STOPS_H

#include <signal.h>

namespace hangscope {

inline sigset_t TerminalStops() {
  sigset_t stops;
  sigemptyset(&stops);
  for (const int number : {SIGTSTP, SIGTTIN, SIGTTOU}) sigaddset(&stops, number);
  return stops;
}

}  // namespace hangscope

#endif
