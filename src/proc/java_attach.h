// Asks a machine of Java, over the socket that it opens for that, to print its threads: as jstack
// does, without a JDK. The protocol is that of HotSpot since Java 6 (attachListener_posix.cpp):
//
//   /tmp/.attach_pidN, in the process's own root, and SIGQUIT: open /tmp/.java_pidN
//   over that:  "1" 0 "threaddump" 0 "-l" 0 0 0
//   from it:    a status, decimal, a newline, then what was asked for, until it closes
//
// The machine stops its threads for that, as long as printing takes, and starts one more thread
// the first time: this is done only where somebody has asked for it.
#ifndef HANGSCOPE_PROC_JAVA_ATTACH_H
#define HANGSCOPE_PROC_JAVA_ATTACH_H

#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace hangscope {

struct JavaAttachTimes {
  TimeNs opens = 3 * kSecond;    // at most, until the machine opens its socket
  TimeNs answers = 5 * kSecond;  // at most, until it has printed all of them
};

// What it prints. In a process of its own, as the user of `pid`. Fails where `pid` does not handle
// SIGQUIT, which would end it, belongs to another user, or does not answer in time.
Result<std::string> AskJavaThreads(int pid, const JavaAttachTimes& times = {});

}  // namespace hangscope

#endif
