// What subcommands share in reading options and talking to people.
#ifndef HANGSCOPE_CLI_OPTIONS_H
#define HANGSCOPE_CLI_OPTIONS_H

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hangscope::cli {

// Writes all of `text`; false where nobody listens any more.
bool WriteAll(int fd, std::string_view text);
// Prints "hangscope: error: MESSAGE" on stderr.
void PrintError(const std::string& message);
// The same without "error".
void PrintNote(const std::string& message);

// Of the terminal `fd`; 80 where that cannot be told.
int TerminalColumns(int fd);

// The options of one subcommand. (A wrapper, so that one file alone compiles the
// large header of the library behind it.)
class OptionParser {
 public:
  enum class Outcome { kGo, kHelp, kError };

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

  // -h prints the help. Errors are told in one sentence, with the nearest option
  // there is.
  Outcome Parse(const std::vector<std::string>& words);
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
