// How far above the stack pointer a function's return address lies, from its instructions: for code
// without unwind tables, and where the tables ask for a frame pointer that nobody knows. x86-64,
// with capstone.
#ifndef HANGSCOPE_CODE_CALL_DEPTH_H
#define HANGSCOPE_CODE_CALL_DEPTH_H

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

namespace hangscope {

// Reads `bytes` of a program's memory; false where not all of it is there.
using ReadCode = std::function<bool(uint64_t address, void* into, size_t bytes)>;

// Of the instruction that a thread is in, before it is carried out.
struct CallDepth {
  uint64_t to_return = 0;  // bytes from the stack pointer to where the return address is
  // Bytes from there down to where the frame pointer points; nothing: it is something else.
  std::optional<uint64_t> frame_pointer;
  // Bytes from there down to where the caller's frame pointer was saved; nothing: nowhere.
  std::optional<uint64_t> saved_frame_pointer;
  bool keeps_frame_pointer = false;  // the register still has the caller's
  // Of the other registers that a call leaves as they were, by DWARF's numbers: bytes from there
  // down to where the caller's was saved; nothing: nowhere. And whether it has something else in
  // it.
  std::array<std::optional<uint64_t>, 16> saved = {};
  std::array<bool, 16> changed = {};
};

// Follows the instructions of the function that begins at `begin` to the one that `pc` is in or
// just behind of a system call. Nothing: they do not lead there, or what they do to the stack is
// not known from them alone, as where room of a variable size is made.
std::optional<CallDepth> DepthAt(uint64_t begin, uint64_t pc, const ReadCode& read);

// Where a stub of the linker leads, which jumps through a word that the loader has filled in; `at`
// itself where there is none.
uint64_t BehindStub(uint64_t at, const ReadCode& read);

// Where the call whose return address is `back` leads, through a stub that jumps on if need be.
struct CallTarget {
  bool is_call = false;  // an instruction before `back` is a call
  uint64_t address = 0;  // 0: a register says, or memory that may have changed since
};
CallTarget TargetOfCall(uint64_t back, const ReadCode& read);

}  // namespace hangscope

#endif
