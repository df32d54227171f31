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
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "runtime/go/go_code.h"
#include "runtime/go/go_heap.h"
#include "runtime/go/go_reader.h"
#include "runtime/go/go_uses.h"

namespace hangscope {

// By number: who else is stranded, and has what it waits for.
using StrandedGoroutines = std::map<uint64_t, std::vector<uint64_t>>;

struct GoReachInput {
  std::vector<Goroutine> goroutines;     // all, the runtime's own among them
  std::map<uint64_t, uint64_t> held_by;  // of those that wait for a lock: who has it; by number
  std::vector<uint64_t> registers;       // what the threads have in theirs
  uint64_t semaphores = 0;               // the table of who waits for them
  uint64_t semaphores_end = 0;
  std::function<bool()> is_late;  // no more time for it
  // Where a variable of the program's own package begins that `address` is in; nothing: it is
  // another's, or not known. Others are in everybody's reach.
  std::function<std::optional<uint64_t>(uint64_t address)> own_variable;
  KindOfGoFunction kind_of;
};

class GoReach {
 public:
  // `heap` and `module`: where runtime.mheap_ and runtime.firstmoduledata lie.
  static Result<GoReach> Read(uint64_t heap, uint64_t module, const ReadMemory& read);

  // A sentence where not everything could be followed: then nobody is known.
  Result<StrandedGoroutines> Stranded(const GoReachInput& input);

 private:
  using Marks = std::unordered_set<uint64_t>;  // where objects begin
  struct Waiter {
    const Goroutine* goroutine = nullptr;
    std::vector<uint64_t> objects;  // one of which somebody has to come to
    bool never = false;             // it waits for nothing that there is
    bool goes_on = false;
    bool IsStranded() const { return !never && !goes_on; }
  };

  // A variable that only some functions use: what it leads to is in reach of whoever may run them.
  struct OwnVariable {
    uint64_t begin = 0;
    uint64_t end = 0;  // of what is known of it
    std::vector<uint64_t> pointers;
    bool is_in_reach = false;
    bool was_asked = false;
    std::optional<GoUsers> users;
    bool Has(uint64_t address) const { return address >= begin && address < end; }
  };

  GoReach(std::shared_ptr<GoMemory> memory, GoHeap heap, GoCode code, const ReadMemory& read)
      : memory_(std::move(memory)), heap_(std::move(heap)), code_(std::move(code)), read_(read) {}

  bool Begin(const GoReachInput& input);
  bool FindWhoGoesOn(const GoReachInput& input);
  bool LetGoOn(const Goroutine& goroutine);
  bool AddOthers(const GoReachInput& input, StrandedGoroutines* stranded);
  std::optional<Waiter> WaiterOf(const Goroutine& goroutine) const;
  std::optional<GoStack> StackOf(const Goroutine& goroutine) const;
  bool AddPointersOf(const Goroutine& goroutine, std::vector<uint64_t>* pointers);
  const std::vector<uint64_t>& FramesOf(const Goroutine& goroutine);
  bool Follow(std::vector<uint64_t> pointers, const Marks* known, Marks* marks);
  bool AddRootsOfVariables(const GoReachInput& input);
  bool ComesTo(const Goroutine& goroutine, const OwnVariable& variable);
  bool MayBeUsed(const GoReachInput& input, OwnVariable* variable);
  bool ReleaseVariables(const GoReachInput& input);
  bool MayBeComeTo(uint64_t object, const Goroutine& waiter) const;
  bool Fail(std::string trouble);
  bool IsLate() const { return is_late_ && is_late_(); }

  std::shared_ptr<GoMemory> memory_;
  GoHeap heap_;
  GoCode code_;
  const ReadMemory read_;
  std::optional<Result<GoUses>> uses_;
  // Of one question.
  std::function<bool()> is_late_;
  std::string trouble_;
  Marks goroutine_objects_;
  Marks marks_;                  // what those come to who go on
  std::vector<uint64_t> roots_;  // from which more is to be marked
  std::map<uint64_t, Waiter> waiters_;
  std::set<uint64_t> go_on_;
  std::vector<OwnVariable> own_variables_;
  std::set<uint64_t> values_of_functions_;            // that those have who go on
  std::map<uint64_t, std::vector<uint64_t>> frames_;  // by goroutine
};

}  // namespace hangscope

#endif
