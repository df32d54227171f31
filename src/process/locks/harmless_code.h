// Whether a thread that naps may wake anybody when it goes on: by all the code that it can come to.
#ifndef HANGSCOPE_PROCESS_LOCKS_HARMLESS_CODE_H
#define HANGSCOPE_PROCESS_LOCKS_HARMLESS_CODE_H

#include <cstdint>
#include <functional>
#include <set>
#include <string_view>
#include <vector>

#include "proc/process_memory.h"
#include "process/locks/held_objects.h"

namespace hangscope {

// What comes of a call to a function.
enum class CalledCode {
  kUnknown,    // it may wake somebody
  kHarmless,   // it does not, and returns
  kOfFiles,    // likewise, but it uses a file
  kOfStreams,  // likewise, but only streams of the C library
  kOfNumber,   // likewise, but only the file whose descriptor is its first argument
  kOpens,      // likewise, but it opens a file by its name
  kGivesFile,  // kHarmless, and its result is a file that nobody else has
  kCloses,     // kOfFiles, unless it is such a file that it closes
  kNoReturn,   // the program does not go on behind it, and that would be an error
  kFollowed,   // its code tells
};

// Of a library of the system, by the function's name; never kFollowed. Harmless is what wakes
// nobody who waits for a condition, a semaphore, a barrier or a word: whom it could move through a
// lock waits for that.
CalledCode CalledCodeOf(std::string_view function);

struct CodeTarget {
  CalledCode code = CalledCode::kUnknown;
  uint64_t begin = 0;  // of kFollowed
  uint64_t bytes = 0;
};
// Of the address that a call or jump leads to.
using TargetOfCode = std::function<CodeTarget(uint64_t)>;

// What code may do to others.
enum class CodeEffect {
  kUnknown,
  kFiles,      // it wakes nobody but through files
  kSomeFiles,  // likewise, and only through those of UsedFiles
  kNone,
};
struct UsedFiles {
  bool streams = false;  // any that the C library has
  bool opens = false;    // others by their names
  std::set<int> descriptors;
};

// `places`: the calls that the thread has not returned from, innermost first, of which only those
// behind are looked at from where the one before returns; `gives_file`: the innermost returns a
// file that nobody else has. Known if none of the ways from there leads to the end of the last of
// them, to a call that is not known, or into the kernel. `is_constant`: nobody can write to the
// address any more. Understands x86-64, with capstone; else, and where the code is more than can be
// followed, it is unknown.
CodeEffect EffectOfCode(const std::vector<CallPlace>& places, bool gives_file,
                        const ReadMemory& read, const TargetOfCode& target,
                        const std::function<bool(uint64_t)>& is_constant, UsedFiles* files);

}  // namespace hangscope

#endif
