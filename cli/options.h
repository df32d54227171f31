// What subcommands share in reading options and talking to people.
#ifndef HANGSCOPE_CLI_OPTIONS_H
#define HANGSCOPE_CLI_OPTIONS_H

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "help/command_help.h"

namespace hangscope::cli {

// Exit statuses of all commands but `run`, which follows timeout(1).
enum Exit {
  kExitClean = 0,
  kExitHang = 1,
  kExitMissing = 1,  // of doctor
  kExitUsage = 2,
  kExitFailed = 3,
  kExitInterrupted = 130,
};

// Writes all of `text`; false where nobody listens any more.
bool WriteAll(int fd, std::string_view text);
// To standard output. False: it cannot be written to any more, or nobody listens.
bool WriteOut(std::string_view text);
// The status to exit with: `status`, unless standard output could not be written (a full disk);
// that is said then. Where nobody listened any more, nothing is.
int ConcludeOutput(int status);
// MESSAGE, and which variable set the option that it begins with, if one did.
std::string ErrorText(const std::string& message);
// Prints "hangscope: error: " and that text on stderr.
void PrintError(const std::string& message);
// The same without "error"; nothing after SilenceNotes.
void PrintNote(const std::string& message);
void SilenceNotes();
// Prints the error and returns the exit status of a command that it ends.
int Fail(const Status& status);
// Writes `text` to standard output and returns the exit status of a command that ends well with it.
int Succeed(std::string_view text);

// Where nobody said which, `target` becomes the newest `what` ("recording"), and that is said.
Status ChooseNewest(const char* what, Result<std::string> (*newest)(FileSystem&),
                    std::string* target);

// Of the terminal `fd`; 80 where that cannot be told.
int TerminalColumns(int fd);

// `fd` is a terminal that shows colours, and NO_COLOR (no-color.org) does not forbid them.
bool WantsColour(int fd);

// The options of one subcommand. (A wrapper, so that one file alone compiles the
// large header of the library behind it.)
class OptionParser {
 public:
  // What its options are called, `help` says.
  explicit OptionParser(CommandHelp help);
  ~OptionParser();
  OptionParser(const OptionParser&) = delete;
  OptionParser& operator=(const OptionParser&) = delete;

  // `name`: one of those that the help has; the targets outlive Parse.
  void Option(const std::string& name, std::string* target);
  // One that may be given several times.
  void Options(const std::string& name, std::vector<std::string>* target);
  void Flag(const std::string& name, bool* target);
  // A word without dashes.
  void Positional(const std::string& name, std::string* target);
  // All of them.
  void Positionals(const std::string& name, std::vector<std::string>* target);

  // How many of `words` come before the program that they start: behind "--", else from the first
  // word that is neither an option nor an option's value.
  size_t WordsBeforeProgram(const std::vector<std::string>& words) const;

  // Returns the exit status of a command that ends here: after -h or --help, which print the help,
  // or after an error, which is one sentence with the nearest option there is. Options that the
  // words have not are taken from the environment (option_environment.h).
  std::optional<int> Parse(const std::vector<std::string>& words, int error_status = kExitUsage);
  // After Parse: the error that it printed; empty: none.
  const std::string& error() const { return error_; }
  // After Parse: the option `name`, one of those above, was among the words.
  bool IsGiven(const std::string& name) const;

 private:
  struct Library;
  const OptionHelp& HelpOf(const std::string& name);
  // Of an option that `name` names; null: there is none.
  const OptionHelp* Find(const std::string& name) const;
  Status TakeFromEnvironment();

  const CommandHelp help_;
  std::vector<std::string> in_code_;  // the names by which options were asked for
  std::string error_;
  std::unique_ptr<Library> library_;
};

}  // namespace hangscope::cli

#endif
