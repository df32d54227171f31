#include "options.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/near_name.h"
#include "help/help_text.h"
#include "option_environment.h"

namespace hangscope::cli {
namespace {

std::string UnknownOption(const CLI::App& app, std::string word) {
  word = word.substr(0, word.find('='));
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::vector<std::string> near = NearNames(word, names, 3, 1);
  return fmt::format("unknown option '{}'{}", word,
                     near.empty() ? "" : fmt::format(", did you mean '{}'?", near[0]));
}

}  // namespace

Status ChooseNewest(const char* what, Result<std::string> (*newest)(FileSystem&),
                    std::string* target) {
  if (!target->empty()) return {};
  auto found = newest(PosixFileSystem());
  if (!found.ok()) return found.status();
  *target = *found;
  PrintNote(fmt::format("the newest {}: {}", what, *found));
  return {};
}

int TerminalColumns(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool WantsColour(int fd) {
  const char* const refused = getenv("NO_COLOR");
  const char* const terminal = getenv("TERM");
  return isatty(fd) != 0 && (refused == nullptr || *refused == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

namespace {
bool printed = false;
bool notes_are_silent = false;
int output_error = 0;  // errno of the write to standard output that failed, EPIPE included
}  // namespace

bool WriteOut(std::string_view text) {
  if (output_error != 0) return false;
  printed = true;
  if (!WriteAll(STDOUT_FILENO, text)) output_error = errno;
  return output_error == 0;
}

int Succeed(std::string_view text) {
  WriteOut(text);
  return kExitClean;
}

int ConcludeOutput(int status) {
  // Where the last bytes wait for a server's disk, closing tells.
  if (printed && output_error == 0 && close(STDOUT_FILENO) != 0) output_error = errno;
  if (output_error == 0 || output_error == EPIPE) return status;
  return Fail(Status::FromErrno(output_error, "write", "standard output"));
}

namespace {

// Options that the environment gave. An error that names one says where it comes from.
std::vector<std::string> from_environment;

std::string WhereFrom(const std::string& message) {
  for (const std::string& name : from_environment) {
    if (message.starts_with(name + " ") || message.starts_with(name + ":"))
      return fmt::format(" ({} sets it)", VariableOf(name));
  }
  return "";
}

}  // namespace

std::string ErrorText(const std::string& message) { return message + WhereFrom(message); }

void PrintError(const std::string& message) {
  WriteAll(STDERR_FILENO, "hangscope: error: " + ErrorText(message) + "\n");
}

void SilenceNotes() { notes_are_silent = true; }

void PrintNote(const std::string& message) {
  if (!notes_are_silent) WriteAll(STDERR_FILENO, "hangscope: " + message + "\n");
}

int Fail(const Status& status) {
  PrintError(status.message());
  return status.code() == Status::Code::kUsage ? kExitUsage : kExitFailed;
}

struct OptionParser::Library {
  CLI::App app;
  bool wants_help = false;
  bool wants_short_help = false;
  std::map<std::string, CLI::Option*> of_name;  // the first name of each
};

OptionParser::OptionParser(CommandHelp help)
    : help_(std::move(help)), library_(std::make_unique<Library>()) {
  library_->app.set_help_flag();
  library_->app.add_flag("--help", library_->wants_help);
  library_->app.add_flag("-h", library_->wants_short_help);
  library_->app.allow_extras();
}

OptionParser::~OptionParser() = default;

const OptionHelp* OptionParser::Find(const std::string& name) const {
  for (const OptionGroup& group : help_.groups) {
    for (const OptionHelp& option : group.options) {
      if (std::find(option.names.begin(), option.names.end(), name) != option.names.end())
        return &option;
    }
  }
  return nullptr;
}

// An option without a help is a defect of this program, which each call of the command shows.
const OptionHelp& OptionParser::HelpOf(const std::string& name) {
  const OptionHelp* option = Find(name);
  if (option == nullptr) {
    PrintError(fmt::format("hangscope {} has no help of its option {}", help_.name, name));
    std::abort();
  }
  in_code_.push_back(option->names[0]);
  return *option;
}

void OptionParser::Option(const std::string& name, std::string* target) {
  const OptionHelp& help = HelpOf(name);
  library_->of_name[help.names[0]] =
      library_->app.add_option(fmt::format("{}", fmt::join(help.names, ",")), *target);
}
void OptionParser::Options(const std::string& name, std::vector<std::string>* target) {
  const OptionHelp& help = HelpOf(name);
  library_->of_name[help.names[0]] =
      library_->app.add_option(fmt::format("{}", fmt::join(help.names, ",")), *target)
          ->allow_extra_args(false);
}
void OptionParser::Flag(const std::string& name, bool* target) {
  const OptionHelp& help = HelpOf(name);
  library_->of_name[help.names[0]] =
      library_->app.add_flag(fmt::format("{}", fmt::join(help.names, ",")), *target);
}
void OptionParser::Positionals(const std::string& name, std::vector<std::string>* target) {
  library_->app.add_option(name, *target);
}
void OptionParser::Positional(const std::string& name, std::string* target) {
  library_->app.add_option(name, *target);
}

size_t OptionParser::WordsBeforeProgram(const std::vector<std::string>& words) const {
  size_t at = 0;
  while (at < words.size()) {
    const std::string& word = words[at];
    if (word == "--" || !word.starts_with("-") || word == "-") break;
    ++at;
    if (word.starts_with("--")) {
      const OptionHelp* option = Find(word);  // of --name=value there is none
      if (option != nullptr && !option->value.empty() && at < words.size() && words[at] != "--")
        ++at;
      continue;
    }
    // -ag, -eEVENT, -e EVENT
    for (size_t letter = 1; letter < word.size(); ++letter) {
      const OptionHelp* option = Find(std::string("-") + word[letter]);
      if (option == nullptr || option->value.empty()) continue;
      if (letter + 1 == word.size()) ++at;
      break;
    }
  }
  return std::min(at, words.size());
}

Status OptionParser::TakeFromEnvironment() {
  for (const auto& [name, option] : library_->of_name) {
    const auto value = OptionOfEnvironment(name);
    if (!value || option->count() > 0) continue;
    if (Find(name)->value.empty()) {
      const bool on = *value == "1" || *value == "yes" || *value == "true" || *value == "on";
      const bool off = *value == "0" || *value == "no" || *value == "false" || *value == "off";
      if (!on && !off)
        return Status::Usage(
            fmt::format("{}='{}': {} is a flag, 1 or 0", VariableOf(name), *value, name));
      if (off) continue;
    }
    option->add_result(Find(name)->value.empty() ? "true" : *value);
    option->run_callback();
    from_environment.push_back(name);
  }
  return {};
}

std::optional<int> OptionParser::Parse(const std::vector<std::string>& words, int error_status) {
  const auto refuse = [&](const std::string& why) {
    error_ = fmt::format("{} hangscope {} --help",
                         why.ends_with('?') ? why + " See" : why + "; see", help_.name);
    PrintError(error_);
    return error_status;
  };
  for (const OptionGroup& group : help_.groups) {
    for (const OptionHelp& option : group.options) {
      if (std::find(in_code_.begin(), in_code_.end(), option.names[0]) != in_code_.end()) continue;
      PrintError(fmt::format("hangscope {} has no option {}", help_.name, option.names[0]));
      std::abort();
    }
  }
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    library_->app.parse(reversed);
  } catch (const CLI::ArgumentMismatch& error) {
    // "--stall: 1 required TEXT missing", "--stall: At Most 1 required but received 2"
    const std::string text = error.what();
    return refuse(text.substr(0, text.find(':')) +
                  (text.ends_with(" missing") ? " wants a value" : " is given more than once"));
  } catch (const CLI::ParseError& error) {
    std::string message = error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    return refuse(message);
  }
  if (library_->wants_help || library_->wants_short_help) {
    WriteOut(HelpText(help_, library_->wants_help));
    return kExitClean;
  }
  const auto extras = library_->app.remaining();
  if (!extras.empty())
    return refuse(extras[0].starts_with("-") ? UnknownOption(library_->app, extras[0])
                                             : fmt::format("unexpected argument '{}'", extras[0]));
  if (Status status = TakeFromEnvironment(); !status.ok()) return refuse(status.message());
  return std::nullopt;
}

bool OptionParser::IsGiven(const std::string& name) const { return library_->app.count(name) > 0; }

}  // namespace hangscope::cli
