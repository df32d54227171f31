#include "options.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "base/near_name.h"

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

void PrintError(const std::string& message) {
  WriteAll(STDERR_FILENO, "hangscope: error: " + message + "\n");
}

void PrintNote(const std::string& message) {
  WriteAll(STDERR_FILENO, "hangscope: " + message + "\n");
}

int Fail(const Status& status) {
  PrintError(status.message());
  return status.code() == Status::Code::kUsage ? kExitUsage : kExitFailed;
}

struct OptionParser::Library {
  CLI::App app;
  bool wants_help = false;
};

OptionParser::OptionParser(const std::string& command, const std::string& help)
    : command_(command), help_(help), library_(std::make_unique<Library>()) {
  library_->app.set_help_flag();
  library_->app.add_flag("-h,--help", library_->wants_help);
  library_->app.allow_extras();
}

OptionParser::~OptionParser() = default;

void OptionParser::Option(const std::string& names, std::string* target) {
  library_->app.add_option(names, *target);
}
void OptionParser::Options(const std::string& names, std::vector<std::string>* target) {
  library_->app.add_option(names, *target)->allow_extra_args(false);
}
void OptionParser::Flag(const std::string& names, bool* target) {
  library_->app.add_flag(names, *target);
}
void OptionParser::Positionals(const std::string& name, std::vector<std::string>* target) {
  library_->app.add_option(name, *target);
}
void OptionParser::Positional(const std::string& name, std::string* target) {
  library_->app.add_option(name, *target);
}

std::optional<int> OptionParser::Parse(const std::vector<std::string>& words, int error_status) {
  const auto refuse = [&](const std::string& why) {
    PrintError(fmt::format("{}; see hangscope {} --help", why, command_));
    return error_status;
  };
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    library_->app.parse(reversed);
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();  // "--stall: 1 required TEXT missing"
    return refuse(text.substr(0, text.find(':')) + " wants a value");
  } catch (const CLI::ParseError& error) {
    std::string message = error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    return refuse(message);
  }
  if (library_->wants_help) {
    WriteOut(help_);
    return kExitClean;
  }
  const auto extras = library_->app.remaining();
  if (extras.empty()) return std::nullopt;
  return refuse(extras[0].starts_with("-") ? UnknownOption(library_->app, extras[0])
                                           : fmt::format("unexpected argument '{}'", extras[0]));
}

bool OptionParser::IsGiven(const std::string& name) const { return library_->app.count(name) > 0; }

}  // namespace hangscope::cli
