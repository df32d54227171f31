// One function per subcommand; each parses its own options.
#ifndef HANGSCOPE_CLI_COMMANDS_H
#define HANGSCOPE_CLI_COMMANDS_H

#include <string>
#include <vector>

#include "signals.h"

namespace hangscope::cli {

// This very program, whatever has become of its file.
constexpr char kOwnProgram[] = "/proc/self/exe";

// `words` are those after the subcommand. The result is the exit status.
int RunCommand(const std::vector<std::string>& words, const StartSignals& signals);
int TeeCommand(const std::vector<std::string>& words, const StartSignals& signals);
int CostCommand(const std::vector<std::string>& words, const StartSignals& signals);
int GuardCommand(const std::vector<std::string>& words);
int SnapCommand(const std::vector<std::string>& words);
int LsCommand(const std::vector<std::string>& words);
int CatCommand(const std::vector<std::string>& words);
int ShowCommand(const std::vector<std::string>& words);
int WatchCommand(const std::vector<std::string>& words, const StartSignals& signals);
int SetCommand(const std::vector<std::string>& words);
int ExportCommand(const std::vector<std::string>& words);
int DoctorCommand(const std::vector<std::string>& words);
int WhyCommand(const std::vector<std::string>& words);
int ReportCommand(const std::vector<std::string>& words);
int HelpCommand(const std::vector<std::string>& words);

// What `hangscope --help` prints.
std::string MainHelpText();
// That there is no command `name`, and which one may be meant.
std::string UnknownCommand(const std::string& name);

}  // namespace hangscope::cli

#endif
