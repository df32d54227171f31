// Which functions a core is in, from the places where an instruction trace saw it, and the
// program's symbols.
//
// A place in another function than before is a call where it is that function's beginning; a return
// where the function is open already. What the code says of the way there (RISC-V: jal and jalr
// with a link register call, jalr without one through the link register returns, others jump)
// decides where places alone do not: a tail call takes the place of the caller, a function that
// calls itself is open twice. An interrupt is a call by nobody, and mret its return. A jump into
// the middle of a function that is not open (longjmp, another task's stack, what was not traced)
// closes all and opens that one.
#ifndef HANGSCOPE_STREAM_FUNCTION_TRACKER_H
#define HANGSCOPE_STREAM_FUNCTION_TRACKER_H

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "code/code_source.h"
#include "model/verdict.h"
#include "stream/program_code.h"
#include "stream/step_reader.h"

namespace hangscope {

struct TrackedFunction {
  std::string name;
  uint64_t begin = 0;  // its first address; 0: not known
};

// One core. One thread.
class FunctionTracker {
 public:
  // Deeper calls than anybody means to look at: what is deeper belongs to the innermost that is
  // told.
  static constexpr size_t kDeepest = 128;

  // `enter` is told the function and where in it the core is; `leave` is of the innermost one.
  using Enter = std::function<void(const TrackedFunction& function, uint64_t pc)>;
  using Leave = std::function<void()>;

  // `code` outlives this.
  FunctionTracker(CodeSource& code, Enter enter, Leave leave)
      : code_(code), enter_(std::move(enter)), leave_(std::move(leave)) {}

  void Take(const Step& step);
  // What the core did meanwhile is lost: nothing is known to be open.
  void Forget() { open_.clear(), sites_.clear(), has_previous_ = false; }

  // The places of the calls that led into the innermost function, that one's first; as far as each
  // was seen to be a call.
  std::vector<uint64_t> CallSites() const;

  size_t depth() const { return open_.size(); }
  // Steps at places that no symbol covers; they belong to the function before.
  uint64_t nameless() const { return nameless_; }

 private:
  enum class Way { kUnknown, kCall, kReturn, kJump, kReturnFromTrap };

  const TrackedFunction* FunctionAt(uint64_t pc);
  struct Exit {
    Way way = Way::kUnknown;
    uint64_t pc = 0;  // of the instruction that leaves
  };

  Exit ExitOf(const Step& step);
  // `site`: of the call; 0: nobody is known to have called it.
  void Open(const TrackedFunction& function, uint64_t pc, uint64_t site);
  void CloseTo(size_t depth);
  void Move(const TrackedFunction& function, const Step& step);
  void Stay(const TrackedFunction& function, const Step& step);

  CodeSource& code_;
  const Enter enter_;
  const Leave leave_;
  std::unordered_map<uint64_t, TrackedFunction> functions_;  // by place
  std::vector<TrackedFunction> open_;                        // the innermost last
  std::vector<uint64_t> sites_;                              // where each was called; 0: not known
  Step previous_;
  bool has_previous_ = false;
  uint64_t nameless_ = 0;
};

// The last `most` functions that a core entered on the way through `steps`, the oldest first: each
// chain of callers once, where it was last. The last one is where it was at the end. Where no
// function has a name, its last places.
std::vector<WayStep> FindWay(std::span<const Step> steps, ProgramCode& code, size_t most);

}  // namespace hangscope

#endif
