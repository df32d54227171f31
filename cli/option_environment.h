// Options from the environment: HANGSCOPE_OPT_ON_HANG=kill is --on-hang kill where the words of a
// command do not say otherwise.
#ifndef HANGSCOPE_CLI_OPTION_ENVIRONMENT_H
#define HANGSCOPE_CLI_OPTION_ENVIRONMENT_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangscope::cli {

// Takes them out of this process's environment, so that no program that hangscope starts has them.
// To be called once, before anything reads options.
void TakeOptionsFromEnvironment();

// "HANGSCOPE_OPT_ON_HANG" of "--on-hang".
std::string VariableOf(std::string_view option);

// What the environment said of "--on-hang"; nothing where it said nothing, or no more than a name.
std::optional<std::string> OptionOfEnvironment(std::string_view option);

// The options that the environment named, as "--on-hang".
std::vector<std::string> OptionsOfEnvironment();

}  // namespace hangscope::cli

#endif
