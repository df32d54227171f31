// Keeps the last switches and wake-ups of each thread of a program, so that a hang's report says
// what led up to it: on by default, so it must cost next to nothing.
//
// Each thread has a ring of its own, of a few pages, that the kernel overwrites: what the others go
// on with does not push out what a thread did before it stopped. Nothing is inherited, so new
// threads and processes cost what they always cost; they are found in /proc when Follow looks, and
// what they did before that is not there. Nobody reads the rings until a hang is
// reported.
#ifndef HANGSCOPE_CPU_HISTORY_RECORDER_H
#define HANGSCOPE_CPU_HISTORY_RECORDER_H

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/perf_event.h"

namespace hangscope {

// One thread's.
struct ThreadRing {
  int process = 0;
  int thread = 0;
  std::string name;    // the newest that is known
  bool ended = false;  // the thread is no more
  // monotonic: since when it is not recorded, for it switched too often; 0: it is. What was
  // recorded before a pause is not kept.
  TimeNs paused_since = 0;
  PerfRing ring;
};

struct HistoryCapture {
  TimeNs time = 0;  // monotonic: when it was begun
  std::vector<PerfEvent> events;
  std::vector<ThreadRing> threads;
};

// One thread.
class HistoryRecorder {
 public:
  virtual ~HistoryRecorder() = default;
  // To be called a few times a second. `processes`: all of the program that live.
  virtual void Follow(const std::vector<int>& processes) = 0;
  // Reads all rings without stopping them.
  virtual HistoryCapture Take() = 0;
};

// Null where it is not permitted, or would take from the memory that the user's own `perf record`
// may lock: that is no error. Wake-ups are recorded only of programs that live for `wakes_after`:
// the kernel takes 10 ms to switch their tracepoint on, and 25 ms at the end to switch it off, for
// which hangscope's end waits.
std::unique_ptr<HistoryRecorder> StartHistoryRecorder(Clock& clock, TimeNs wakes_after);

}  // namespace hangscope

#endif
