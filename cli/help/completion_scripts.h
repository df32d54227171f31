// Scripts by which a shell completes hangscope's commands, options and values.
#ifndef HANGSCOPE_CLI_HELP_COMPLETION_SCRIPTS_H
#define HANGSCOPE_CLI_HELP_COMPLETION_SCRIPTS_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "help/command_help.h"

namespace hangscope::cli {

// `shell`: bash, zsh or fish; nothing of others.
std::optional<std::string> CompletionScript(std::string_view shell,
                                            const std::vector<CommandHelp>& commands);

}  // namespace hangscope::cli

#endif
