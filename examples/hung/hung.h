// What the small programs that hang share.
#ifndef EXAMPLES_HUNG_HUNG_H
#define EXAMPLES_HUNG_HUNG_H

#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

// Says that the program has come so far; whoever started it may wait for the line.
inline void say(const char* what) {
  puts(what);
  fflush(stdout);
}

// The examples have nothing to recover from: what fails ends them.
inline void must(int ok, const char* what) {
  if (ok) return;
  perror(what);
  exit(2);
}

// In a child: it ends with whoever started it, so that a killed example leaves nothing behind.
inline void end_with_parent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

#endif
