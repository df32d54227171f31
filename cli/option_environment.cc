#include "option_environment.h"

#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <map>

namespace hangscope::cli {
namespace {

constexpr std::string_view kPrefix = "HANGSCOPE_OPT_";

std::map<std::string, std::string, std::less<>> taken;  // by variable

}  // namespace

void TakeOptionsFromEnvironment() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (text.starts_with(kPrefix) && equals != std::string_view::npos)
      taken[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  for (const auto& [variable, value] : taken) unsetenv(variable.c_str());
}

std::string VariableOf(std::string_view option) {
  std::string variable(kPrefix);
  for (const char c : option.substr(std::min(option.find_first_not_of('-'), option.size())))
    variable += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return variable;
}

std::optional<std::string> OptionOfEnvironment(std::string_view option) {
  const auto found = taken.find(VariableOf(option));
  if (found == taken.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::vector<std::string> OptionsOfEnvironment() {
  std::vector<std::string> options;
  for (const auto& [variable, value] : taken) {
    std::string option = "--";
    for (const char c : std::string_view(variable).substr(kPrefix.size()))
      option += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    options.push_back(option);
  }
  return options;
}

}  // namespace hangscope::cli
