// The recorders that run now, for the subcommands that ask them.
#ifndef HANGSCOPE_CLI_RECORDERS_H
#define HANGSCOPE_CLI_RECORDERS_H

#include <vector>

#include "control/control_client.h"

namespace hangscope::cli {

// This user's. Where their folder is not looked into, a warning on stderr says why.
std::vector<LiveRecorder> FindLiveRecorders();

std::vector<RecorderStatus> StatusesOf(const std::vector<LiveRecorder>& recorders);

}  // namespace hangscope::cli

#endif
