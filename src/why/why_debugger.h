// `hangscope why FOLDER` of a debugger's snapshot: what its traces hold, and where each core was
// last.
#ifndef HANGSCOPE_WHY_WHY_DEBUGGER_H
#define HANGSCOPE_WHY_WHY_DEBUGGER_H

#include <string>

#include "base/clock.h"
#include "base/file_system.h"
#include "why/why.h"

namespace hangscope {

struct WhyDebuggerOptions {
  std::string folder;
  std::string elf;  // the program, for names of addresses; may be empty
  bool json = false;
  size_t branches = 0;  // the last ones of each trace unit to be told
};

// Fails where nothing of its traces can be read; what is missing is a note.
Result<WhyReport> AskWhyDebugger(FileSystem& files, Clock& clock,
                                 const WhyDebuggerOptions& options);

}  // namespace hangscope

#endif
