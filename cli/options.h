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
// Prints "hangscope: error: MESSAGE" on stderr.
void PrintError(const std::string& message);
// The same without "error".
void PrintNote(const std::string& message);
// Prints the error and returns the exit status of a command that it ends.
int Fail(const Status& status);
// Writes `text` to standard output and returns the exit status of a command that ends well with it.
int Succeed(std::string_view text);

// Where nobody said which, `target` becomes the newest `what` ("recording"), and that is said.
Status ChooseNewest(const char* what, Result<std::string> (*newest)(FileSystem&),
                    std::string* target);

// Of the terminal `fd`; 80 where that cannot be told.
int TerminalColumns(int fd);

// The options of one subcommand. (A wrapper, so that one file alone compiles the
// large header of the library behind it.)
class OptionParser {
 public:
  OptionParser(const std::string& command, const std::string& help);
  ~OptionParser();
  OptionParser(const OptionParser&) = delete;
  OptionParser& operator=(const OptionParser&) = delete;

  // Names as in "--follow,-f"; the targets outlive Parse.
  void Option(const std::string& names, std::string* target);
  // One that may be given several times.
  void Options(const std::string& names, std::vector<std::string>* target);
  void Flag(const std::string& names, bool* target);
  // A word without dashes.
  void Positional(const std::string& name, std::string* target);
  // All of them.
  void Positionals(const std::string& name, std::vector<std::string>* target);

  // Returns the exit status of a command that ends here: after -h, which prints the help, or after
  // an error, which is one sentence with the nearest option there is.
  std::optional<int> Parse(const std::vector<std::string>& words, int error_status = kExitUsage);
  // After Parse: the option `name`, one of those above, was among the words.
  bool IsGiven(const std::string& name) const;

 private:
  struct Library;
  const std::string command_;
  const std::string help_;
  std::unique_ptr<Library> library_;
};

}  // namespace hangscope::cli

#endif
