// Manual pages: roff with the macros of man(7), as groff and mandoc read them.
#ifndef HANGSCOPE_CLI_HELP_MANUAL_PAGE_H
#define HANGSCOPE_CLI_HELP_MANUAL_PAGE_H

#include <string>
#include <vector>

#include "help/command_help.h"

namespace hangscope::cli {

// hangscope-NAME(1).
std::string ManualPage(const CommandHelp& help);

// hangscope(1): what there is, of all `commands`.
std::string MainManualPage(const CommandHelp& main, const std::vector<CommandHelp>& commands);

}  // namespace hangscope::cli

#endif
