// hangscope: where did it stop, and what led up to that?
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/near_name.h"
#include "base/utf8.h"
#include "commands.h"
#include "help/all_helps.h"
#include "option_environment.h"
#include "options.h"
#include "run/run_session.h"
#include "signals.h"
#include "target/target_spec.h"
#include "target_words.h"
#include "version_text.h"

namespace hangscope::cli {
namespace {

std::string_view own_command;
std::terminate_handler library_terminate = std::abort;  // says what it was, and aborts

// Without memory of its own, of which there may be none. A guard's words would come after those of
// its recorder, which had no more than it has.
[[noreturn]] void EndFor(std::string_view sentence) {
  if (own_command != "guard") (void)!write(STDERR_FILENO, sentence.data(), sentence.size());
  _exit(own_command == "run" ? int{kRunFailed} : int{kExitFailed});
}

// For what is caught nowhere, in any thread: where this machine, or a limit of it, gives no more.
// Else it is a defect, and ends as one.
[[noreturn]] void EndUncaught() {
  try {
    if (const auto uncaught = std::current_exception()) std::rethrow_exception(uncaught);
  } catch (const std::bad_alloc&) {
    EndFor("hangscope: error: there is no memory left; ulimit -v or its container sets a limit\n");
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      EndFor(
          "hangscope: error: a thread cannot be started; ulimit -v, ulimit -u or its container "
          "sets a limit\n");
    }
  } catch (...) {
  }
  library_terminate();
  std::abort();
}

struct Command {
  std::string_view name;
  int (*run)(const std::vector<std::string>& words);
};

constexpr Command kCommands[] = {
    {"snap", SnapCommand},     {"ls", LsCommand},    {"cat", CatCommand}, {"show", ShowCommand},
    {"export", ExportCommand}, {"set", SetCommand},  {"why", WhyCommand}, {"report", ReportCommand},
    {"doctor", DoctorCommand}, {"help", HelpCommand}};

// These deal with signals themselves.
struct SignalCommand {
  std::string_view name;
  int (*run)(const std::vector<std::string>& words, const StartSignals& signals);
};

constexpr SignalCommand kSignalCommands[] = {
    {"run", RunCommand}, {"tee", TeeCommand}, {"cost", CostCommand}, {"watch", WatchCommand}};

// A variable that is no command's option would be taken for one that works.
void NoteUnknownVariables() {
  std::vector<std::string> known;
  for (const CommandHelp& help : AllHelps())
    for (const OptionGroup& group : help.groups)
      for (const OptionHelp& option : group.options) known.push_back(option.names[0]);
  for (const std::string& option : OptionsOfEnvironment()) {
    if (std::find(known.begin(), known.end(), option) != known.end()) continue;
    const std::vector<std::string> near = NearNames(option, known, 3, 1);
    PrintNote(fmt::format("{} has no effect: no command has an option {}{}", VariableOf(option),
                          option,
                          near.empty() ? "" : "; did you mean " + VariableOf(near[0]) + "?"));
  }
}

// `hangscope 4711`, `hangscope NAME`: why it hangs.
int OnProcess(const std::string& word, std::vector<std::string> words) {
  auto pid = FindProcess(word);
  if (!pid.ok()) return Fail(pid.status());
  words[0] = ProcessSpec(*pid);
  if (*pid != 0) {
    if (PosixFileSystem().Exists(word))
      PrintNote(fmt::format("'{}' is taken as {}; hangscope why {} reads the {} of that name",
                            Printable(word), words[0], Printable(word),
                            PosixFileSystem().IsFolder(word) ? "folder" : "file"));
    return WhyCommand(words);
  }
  PrintError(UnknownCommand(word));
  return kExitUsage;
}

int PrintVersion(const std::vector<std::string>& rest) {
  const bool verbose = rest.size() == 1 && (rest[0] == "-v" || rest[0] == "--verbose");
  if (!rest.empty() && !verbose) {
    PrintError(fmt::format("unexpected argument '{}'; see hangscope --help", rest[0]));
    return kExitUsage;
  }
  return Succeed(VersionText(verbose));
}

int Dispatch(const std::vector<std::string>& words, const StartSignals& signals) {
  const std::string command = words.empty() ? "" : words[0];
  const std::vector<std::string> rest(words.begin() + (words.empty() ? 0 : 1), words.end());
  if (command == "guard") return GuardCommand(rest);
  NoteUnknownVariables();
  for (const SignalCommand& one : kSignalCommands)
    if (command == one.name) return one.run(rest, signals);
  ReleaseSignals(signals);
  for (const Command& one : kCommands)
    if (command == one.name) return one.run(rest);
  if (command == "--version" || command == "-V" || command == "version") return PrintVersion(rest);
  if (command == "--help" || command == "-h") {
    WriteOut(MainHelpText());
    return kExitClean;
  }
  if (command.empty()) {
    WriteAll(STDERR_FILENO, MainHelpText());
    return kExitUsage;
  }
  return OnProcess(command, words);
}

}  // namespace

std::string UnknownCommand(const std::string& name) {
  std::vector<std::string> commands;
  for (const CommandHelp& help : AllHelps()) commands.push_back(help.name);
  const std::vector<std::string> near = NearNames(name, commands, 2, 1);
  return fmt::format("there is no command '{}', and no process of that name; {} hangscope --help",
                     Printable(name), near.empty() ? "see" : "did you mean '" + near[0] + "'? See");
}

}  // namespace hangscope::cli

int main(int argc, char** argv) {
  hangscope::cli::own_command = argc > 1 ? argv[1] : "";
  hangscope::cli::library_terminate = std::set_terminate(hangscope::cli::EndUncaught);
  // before all that follows
  const hangscope::cli::StartSignals signals = hangscope::cli::InstallSignals();
  hangscope::cli::TakeOptionsFromEnvironment();
  hangscope::cli::FillStandardDescriptors();
  return hangscope::cli::ConcludeOutput(hangscope::cli::Dispatch({argv + 1, argv + argc}, signals));
}
