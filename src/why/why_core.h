// `hangscope why core.4711`: why a process hung that has left a core dump.
#ifndef HANGSCOPE_WHY_WHY_CORE_H
#define HANGSCOPE_WHY_WHY_CORE_H

#include <string>

#include "why/why_process.h"

namespace hangscope {

// As AskWhyProcess, of one look: nobody can tell who would have moved. Fails where the dump cannot
// be read, or is of another machine.
Result<WhyReport> AskWhyCore(Clock& clock, const std::string& path, WhyProcessOptions options);

}  // namespace hangscope

#endif
