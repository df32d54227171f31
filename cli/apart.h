// Work that must not be cut off in the middle, in a process of its own.
#ifndef HANGSCOPE_CLI_APART_H
#define HANGSCOPE_CLI_APART_H

#include <functional>

#include "session/why.h"

namespace hangscope::cli {

// What `ask` says, called in a child process. A thread that is carried step by step dies of SIGTRAP when its tracer is
// killed between two steps, so neither Ctrl-C nor a signal to this process reaches the child: it finishes, and is
// heard by nobody. One thread only may run here.
Result<WhyReport> AskApart(const std::function<Result<WhyReport>()>& ask);

}  // namespace hangscope::cli

#endif
