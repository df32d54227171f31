// The help of each command, in the order in which they are listed.
#ifndef HANGSCOPE_CLI_HELP_ALL_HELPS_H
#define HANGSCOPE_CLI_HELP_ALL_HELPS_H

#include <vector>

#include "help/command_help.h"

namespace hangscope::cli {

CommandHelp RunHelp();
CommandHelp TeeHelp();
CommandHelp LsHelp();
CommandHelp SnapHelp();
CommandHelp CatHelp();
CommandHelp ShowHelp();
CommandHelp ExportHelp();
CommandHelp WatchHelp();
CommandHelp WhyHelp();
CommandHelp ReportHelp();
CommandHelp SetHelp();
CommandHelp DoctorHelp();
CommandHelp CostHelp();
CommandHelp HelpHelp();

// Of `hangscope` alone.
CommandHelp MainHelp();
// Of all commands that a user calls.
std::vector<CommandHelp> AllHelps();

}  // namespace hangscope::cli

#endif
