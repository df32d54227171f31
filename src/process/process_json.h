// What why says about processes without instrumentation, as JSON Lines (docs/json.md).
#ifndef HANGSCOPE_PROCESS_PROCESS_JSON_H
#define HANGSCOPE_PROCESS_PROCESS_JSON_H

#include <string>

#include "base/clock.h"
#include "process/process_text.h"

namespace hangscope {

// How it was looked at, then each process and each thread; one line each, with its newline. `wall`
// and `monotonic`: the same instant, that of the look.
std::string ProcessJson(const ProcessScene& scene, TimeNs wall, TimeNs monotonic);

}  // namespace hangscope

#endif
