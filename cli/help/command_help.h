// What a command's --help, its manual page and its completions are made of; OptionParser takes
// the names of its options from here, too, so that none of them can be missing in the others.
#ifndef HANGSCOPE_CLI_HELP_COMMAND_HELP_H
#define HANGSCOPE_CLI_HELP_COMMAND_HELP_H

#include <string>
#include <utility>
#include <vector>

namespace hangscope::cli {

// What a shell completes in the place of a value.
struct Completion {
  enum class Kind { kNothing, kFile, kFolder, kProgram, kProcess, kRecorder, kCommand, kWord };
  Kind kind = Kind::kNothing;
  std::vector<std::string> words;  // of kWord
};

inline Completion OfKind(Completion::Kind kind) { return {kind, {}}; }
inline Completion OneOf(std::vector<std::string> words) {
  return {Completion::Kind::kWord, std::move(words)};
}

struct OptionHelp {
  std::vector<std::string> names;  // "--output" first, "-o" behind it
  std::string value;               // "FILE"; empty: a flag
  std::string text;                // no full stop; "[...]" at its end is the default
  Completion completion;
};

struct OptionGroup {
  std::string title;  // may be empty
  std::vector<OptionHelp> options;
  bool in_short_help = true;  // -h shows it; --help shows all
};

// A word and what it means.
struct HelpEntry {
  std::string name;
  std::string text;
};

struct CommandHelp {
  std::string name;                 // "snap"
  std::string summary;              // "ask a recorder for a snapshot"
  std::vector<std::string> usages;  // behind "usage: "
  std::string about;                // paragraphs, with an empty line between them
  std::vector<HelpEntry> examples;  // commands; one that needs no explanation has none
  std::vector<HelpEntry> operands;  // the forms of what has no dashes
  Completion operand_completion;
  std::vector<OptionGroup> groups;
  std::string after;  // paragraphs behind the options
  std::vector<HelpEntry> statuses;
};

}  // namespace hangscope::cli

#endif
