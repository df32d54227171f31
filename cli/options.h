// What subcommands share in reading options and talking to people.
#ifndef HANGSCOPE_CLI_OPTIONS_H
#define HANGSCOPE_CLI_OPTIONS_H

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "decode/elf_image.h"
#include "decode/place_rule.h"
#include "session/observer.h"

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

// The options that every recorder has, as text until Resolve.
struct RecorderWords {
  std::string prefix;
  std::string size = "500M";
  std::string keep = "3";
  std::string stall = "10";
  std::string heartbeat = "5";
  std::string elf;
  std::string log;
  std::string max_snapshots = "2";
  std::string compress;
  std::string memory = "64M";
  bool lossless = false;
  std::string place_regex;
  std::vector<std::string> triggers;
  std::string trigger_rate;
  std::string trigger_silence;
  std::string trigger_quiet = "1";
  std::string post;
  bool json = false;

  void AddTo(OptionParser* options);
};

// The resolved ones, and what they keep alive.
struct Recorder {
  RingGeometry geometry;
  StageOptions stages;
  ObserverOptions observer;
  std::unique_ptr<ElfImage> elf;
  std::unique_ptr<PlaceRule> place_rule;
  SystemClock clock;
  Environment environment;
  int log_fd = 2;
};

// Where a recorded stream goes on to, if wanted: traces are withheld from a
// terminal, and the live line there makes room.
PassthroughOptions PassTo(int fd, bool wanted, const NarratorOptions& narrator);

// `longest_name` is the longest file name a ring will have.
Status Resolve(const RecorderWords& words, size_t longest_name, Recorder* recorder);

}  // namespace hangscope::cli

#endif
