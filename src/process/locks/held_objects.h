// Which objects a function has taken, and not given back, on every way that leads to a place in it:
// whoever stands there holds them, though the objects themselves do not record it.
#ifndef HANGSCOPE_PROCESS_LOCKS_HELD_OBJECTS_H
#define HANGSCOPE_PROCESS_LOCKS_HELD_OBJECTS_H

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "proc/process_memory.h"

namespace hangscope {

// What a function does with the objects that its arguments point to.
enum class LockCall {
  kNone,
  kTakesFirst,   // blocks until it has it
  kTakesSecond,  // likewise; the first is who will give it back
  kGivesFirst,
  kGaveFirst,  // its caller's code has given it back just before
  kGivesAny,   // one that is not known: a destructor of who took it
  // Of Go: waits for a semaphore, where what the caller did to the object was not enough.
  kWaitsForSemaphore,
};

// By its name in the source, arguments and all.
LockCall LockCallOf(std::string_view function);

// Which registers have a call's arguments, and which it leaves as they were.
enum class CallConvention {
  kSystemV,
  kGo,  // of its compiler, since 1.17: the stack's and the frame's pointer alone stay
};

// A call that a thread has not returned from.
struct CallPlace {
  uint64_t function = 0;  // where it begins
  uint64_t bytes = 0;
  uint64_t back = 0;  // where the call returns to
  uint64_t stack_pointer = 0;
  // at `back`, by DWARF's numbers; those that are not known are nothing
  std::array<std::optional<uint64_t>, 16> registers;
  CallConvention convention = CallConvention::kSystemV;
};

// Of the function at an address.
using LockCallOfTarget = std::function<LockCall(uint64_t)>;

// `read` reads the target's code and memory; `lock_call` tells of the function at an address, where
// a jump to another file's function has been followed, and `by_code`, which may be empty, of those
// of which it knows nothing. Understands x86-64, with capstone; else, and where the code is more
// than can be followed, nothing is held.
struct HeldObjectsAt {
  std::vector<uint64_t> held;
  // Given back on some way to the place, though it had not taken them: a caller may have.
  std::vector<uint64_t> given;
  bool gave_unknown = false;  // likewise, and which is not known
};
HeldObjectsAt HeldObjects(const CallPlace& place, const ReadMemory& read,
                          const LockCallOfTarget& lock_call, const LockCallOfTarget& by_code = {});

// What calls hold that have not returned, innermost first: what one of them gave back its callers
// do not hold.
class HeldByCalls {
 public:
  void Add(const HeldObjectsAt& call);
  const std::vector<uint64_t>& objects() const { return objects_; }

 private:
  std::vector<uint64_t> objects_;
  std::vector<uint64_t> given_;
  bool gave_unknown_ = false;
};

// What the function of so many bytes has done, when it returns, with the word that its first
// argument points to: it takes it if on every way it exchanged a 0 in it for another number; gives
// it if it changes it in another way. Of small functions alone.
LockCall LockCallByCode(uint64_t function, uint64_t bytes, const ReadMemory& read,
                        const LockCallOfTarget& lock_call, const LockCallOfTarget& by_code);

// Of a function of Go: kGivesAny where it may give back what it has not taken itself, else kNone.
LockCall GivesOfOthersInGo(uint64_t function, uint64_t bytes, const ReadMemory& read,
                           const LockCallOfTarget& lock_call, const LockCallOfTarget& by_code);

// The first argument of the call itself, where it is a pointer or number that can be told.
std::optional<uint64_t> FirstArgument(const CallPlace& place, const ReadMemory& read);

}  // namespace hangscope

#endif
