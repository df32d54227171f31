// The --help of a command, for a terminal of 80 columns.
#ifndef HANGSCOPE_CLI_HELP_HELP_TEXT_H
#define HANGSCOPE_CLI_HELP_HELP_TEXT_H

#include <string>
#include <string_view>
#include <vector>

#include "help/command_help.h"

namespace hangscope::cli {

inline constexpr size_t kHelpColumns = 80;

// The words of `text` in lines of at most `columns`, each behind `indent` spaces; a word that is
// longer has a line of its own. The first line continues one that has `used` columns already.
std::string Wrap(std::string_view text, size_t indent, size_t used, size_t columns = kHelpColumns);

// The pieces between empty lines.
std::vector<std::string> Paragraphs(std::string_view text);

// "--output, -o FILE".
std::string NamesOf(const OptionHelp& option);

// "0 no hang; 1 a hang".
std::string StatusesOf(const CommandHelp& help);

// `all`: --help; else what -h shows, which fits a screen.
std::string HelpText(const CommandHelp& help, bool all);

}  // namespace hangscope::cli

#endif
