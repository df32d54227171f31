// Looks at processes of Linux from outside, without their help: which threads they have, where
// these are, what they wait for. An interface, so that judging and showing are tested on looks that
// nobody had to hang for (tests/fakes/fake_process_inspector.h); the real one is OpenLinuxInspector
// (process/linux_inspector.h).
#ifndef HANGSCOPE_PROC_PROCESS_INSPECTOR_H
#define HANGSCOPE_PROC_PROCESS_INSPECTOR_H

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "model/process.h"

namespace hangscope {

struct InspectOptions {
  // Threads may be stopped for a moment. Those that run are, for their registers; those that sleep
  // only where their stack cannot be followed without, and never in a system call that a stop would
  // end with EINTR.
  bool stop = true;
  bool stop_asleep = true;  // else who sleeps is left to sleep: a stop ends that sleep
  bool stacks = true;
  size_t most_frames = 64;  // of a stack; 1 or more
  bool follow = true;       // look at the processes, too, that waits lead to
  // Ask all processes that descend from it, too, and from `also`: those whose parents have ended
  // descend from whoever collects them now.
  bool descendants = false;
  std::vector<int> also;
  size_t most_asked = 256;  // processes; how many are left out, the look says
  std::vector<int> with;    // processes to look at as if a wait led to them
  // Find out, too, which of their connections lead to other machines.
  bool remote_ends = false;
  // Step a twin of what runs, to see whether it goes in circles; needs `stop`. Nobody stands still
  // for the time that this takes.
  bool step_running = true;
  TimeNs step_time = 500 * kMillisecond;  // at most, for each of at most `most_stepped` threads
  size_t most_stepped = 4;
  // of one look, for those among them that may be in a circle of many steps
  TimeNs long_step_time = 2 * kSecond;
  // Of those who sleep for a time again and again: find out what they do in between. Each of at
  // most `most_stepped` is followed from the end of such a sleep, which is waited for for so long,
  // to the begin of the next one.
  std::vector<int> nappers;
  TimeNs longest_nap = 60 * kMillisecond;
  // What machines of Java have printed of their threads, asked for that (proc/java_attach.h), by
  // process.
  std::map<int, std::string> java_threads;
  // after that, stacks and names are left out, and `troubles` say so
  TimeNs budget = 2 * kSecond;
};

// One thread: the one that looks is the one that traces.
class ProcessInspector {
 public:
  virtual ~ProcessInspector() = default;
  // What process `pid` and those that its waits lead to were doing. Whatever is said to wait did so
  // all through one instant of the look: a cycle in it was there.
  //
  // Fails where there is no such process. What of it may not be looked at is in
  // ProcessFacts::troubles.
  virtual Result<SystemSample> Inspect(int pid, const InspectOptions& options) = 0;
};

}  // namespace hangscope

#endif
