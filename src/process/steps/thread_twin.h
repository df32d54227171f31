// A copy of a thread of another process as it was at one moment, in a process of its own, which can
// be carried step by step for as long as one likes: the thread itself is held for that moment only,
// and goes on.
//
//   the thread      --hold--copy--let go-------------------------------->
//   its twin                      one step, one step, one step, ...
//
// The twin has the moment's registers and the pages of memory that were copied then. Other pages
// are read from the process when the twin comes to them. It can make no system call; what those of
// the thread told is given to it.
#ifndef HANGSCOPE_PROCESS_STEPS_THREAD_TWIN_H
#define HANGSCOPE_PROCESS_STEPS_THREAD_TWIN_H

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "proc/proc_text.h"
#include "proc/process_memory.h"
#include "proc/steps/step_trace.h"
#include "proc/steps/thread_moment.h"

namespace hangscope {

struct StepLimits {
  size_t most = 0;   // steps
  TimeNs until = 0;  // monotonic; ends the steps whatever else is said
  // Asked after `most` steps, and when as many as it said are done: how many are worth while in
  // all. No more than are done ends the steps. May be empty.
  std::function<size_t(const StepTrace&)> longer;
};

class ThreadTwin {
 public:
  static constexpr size_t kMostPages = 4096;
  static constexpr size_t kFileBytes = kMostPages * kMomentPageBytes;  // of its memory

  // `mappings`: of the process; `source` reads its memory as it is then. Both live as long as this.
  static Result<std::unique_ptr<ThreadTwin>> Make(Clock& clock,
                                                  const std::vector<MemoryMapping>& mappings,
                                                  const ReadMemory& source);
  // Ends it. If this process is killed, the kernel does.
  ~ThreadTwin();
  ThreadTwin(const ThreadTwin&) = delete;
  ThreadTwin& operator=(const ThreadTwin&) = delete;

  // Makes it what the thread was at that moment. `moment` lives until the next one. False: that
  // cannot be.
  bool BeAt(const ThreadMoment& moment);
  // Of its memory; false where the process has none there, or none that can be read.
  bool Read(uint64_t address, void* into, size_t bytes);
  // Pages that may be written to, which were read after the moment.
  const std::set<uint64_t>& late_pages() const { return late_; }

  // Carries out one instruction after another, until its state comes back, or as long as `limits`
  // allow. Ends before what must not be carried out in steps, and before a system call whose result
  // the moment does not have.
  StepTrace Step(const StepLimits& limits, StepMemory& memory);
  // As many steps more as the trace's period, from the state that it ended in: whether it is in
  // that state again, its floating point and vector registers included.
  bool StepsBackInto(const StepTrace& trace, TimeNs until, StepMemory& memory);
  // The steps have ended before a call of which more of the thread's calls would tell.
  bool wants_calls() const { return wants_calls_; }

 private:
  enum class StepKind { kPlain, kKernel, kNever };
  struct Page {
    size_t slot = 0;
    bool is_constant = false;  // nobody writes to it
  };

  ThreadTwin(Clock& clock, const std::vector<MemoryMapping>& mappings, const ReadMemory& source)
      : clock_(clock), mappings_(mappings), source_(source) {}
  Status Begin();
  Status MakeRoom(uint64_t stub);
  bool MoveClockCode(uint64_t spare);
  int64_t Call(int64_t number, const std::vector<uint64_t>& arguments);
  bool WaitForStop(int* status);
  const Page* PageAt(uint64_t page);
  bool Fill(uint64_t page, Page* into);
  void Put(uint64_t address, const std::string& bytes);
  bool ReadState(StepState* state) const;
  bool StepOnce();
  const NotedCall* NextLike(const StepCall& call);
  bool Answer(StepCall* call);
  StepKind KindAt(uint64_t pc);
  bool StepOn(StepMemory& memory, StepState* state, StepTrace* trace);
  std::string VectorRegisters() const;

  Clock& clock_;
  const std::vector<MemoryMapping>& mappings_;
  const ReadMemory& source_;
  pid_t pid_ = -1;
  bool is_alive_ = false;
  int file_ = -1;
  uint8_t* arena_ = nullptr;  // what the pages hold, shared with the twin
  uint64_t stub_ = 0;         // where it makes the system calls that are made for it
  std::unordered_map<uint64_t, Page> pages_;
  std::unordered_map<uint64_t, StepKind> kinds_;
  std::set<uint64_t> late_;
  const ThreadMoment* moment_ = nullptr;
  size_t next_call_ = 0;  // of the moment's
  bool wants_calls_ = false;
};

}  // namespace hangscope

#endif
