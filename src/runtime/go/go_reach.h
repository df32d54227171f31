// Which goroutines wait for ever: those that wait for a channel, a wait group or a condition that
// nobody who may go on can come to, over any pointers. Read from outside. Of Go 1.19 on x86-64.
//
// Source: G.-V. Saioc, I.-T. A. Lee, A. Møller and M. Chabbi, "Dynamic Partial Deadlock Detection
// and Recovery via Garbage Collection", ASPLOS 2025: the collector's marking begins with the
// goroutines that may go on, and takes in those that wait once it has come to what they wait for.
//
// The program goes on meanwhile, so a pointer may be carried past what was looked at already: only
// who is found at several times is known.
#ifndef HANGSCOPE_RUNTIME_GO_GO_REACH_H
#define HANGSCOPE_RUNTIME_GO_GO_REACH_H

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/go/go_code.h"
#include "runtime/go/go_heap.h"
#include "runtime/go/go_reader.h"

namespace hangscope {

struct StrandedGoroutine {
  std::vector<uint64_t> others;  // stranded, too, that have what it waits for; by number
  // It waits for what lies on its own stack, which nobody else ever had.
  bool waits_for_own = false;
  bool operator==(const StrandedGoroutine&) const = default;
};

struct GoReachInput {
  std::vector<Goroutine> goroutines;     // all, the runtime's own among them
  std::map<uint64_t, uint64_t> held_by;  // of those that wait for a lock: who has it; by number
  std::vector<uint64_t> registers;       // what the threads have in theirs
  uint64_t semaphores = 0;               // the table of who waits for them
  uint64_t semaphores_end = 0;
  std::function<bool()> is_late;  // no more time for it
};

class GoReach {
 public:
  // `heap` and `module`: where runtime.mheap_ and runtime.firstmoduledata lie.
  static Result<GoReach> Read(uint64_t heap, uint64_t module, ReadMemory read);

  // By their numbers. A sentence where not everything could be followed: then nobody is known.
  Result<std::map<uint64_t, StrandedGoroutine>> Stranded(const GoReachInput& input);

 private:
  using Marks = std::set<uint64_t>;
  struct Waiter {
    const Goroutine* goroutine = nullptr;
    std::vector<uint64_t> objects;  // one of which somebody has to come to
    bool never = false;             // it waits for nothing that there is
    bool goes_on = false;
  };

  GoReach(std::shared_ptr<GoMemory> memory, GoHeap heap, GoCode code)
      : memory_(std::move(memory)), heap_(std::move(heap)), code_(std::move(code)) {}
  std::optional<Waiter> WaiterOf(const Goroutine& goroutine) const;
  std::vector<uint64_t> PointersOf(const Goroutine& goroutine, bool precisely) const;
  GoStack StackOf(const Goroutine& goroutine) const;
  bool Follow(std::vector<uint64_t> pointers, const Marks* known, Marks* marks);
  bool IsMarked(uint64_t address, const Marks& marks) const;

  std::shared_ptr<GoMemory> memory_;
  GoHeap heap_;
  GoCode code_;
  Marks goroutine_objects_;
  std::function<bool()> is_late_;
  std::string trouble_;
};

}  // namespace hangscope

#endif
