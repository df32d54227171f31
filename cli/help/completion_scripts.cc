#include "help/completion_scripts.h"

#include <fmt/format.h>

#include "help/help_text.h"

namespace hangscope::cli {
namespace {

using Kind = Completion::Kind;

// What a shell runs to list recorders that run, by process and name.
constexpr std::string_view kListRecorders =
    "hangscope ls 2>/dev/null | awk 'NR > 1 {print $1; print $3}'";
constexpr std::string_view kListProcesses = "ps -eo pid= 2>/dev/null | tr -d ' '";

// Between apostrophes of a shell.
std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string CommandNames(const std::vector<CommandHelp>& commands) {
  std::string names;
  for (const CommandHelp& command : commands) names += (names.empty() ? "" : " ") + command.name;
  return names;
}

// All options of a command.
std::vector<OptionHelp> OptionsOf(const CommandHelp& command) {
  std::vector<OptionHelp> options;
  for (const OptionGroup& group : command.groups)
    options.insert(options.end(), group.options.begin(), group.options.end());
  options.push_back({{"--help", "-h"}, "", "print the help", {}});
  return options;
}

bool RunsProgram(const CommandHelp& command) {
  return command.operand_completion.kind == Kind::kProgram;
}

// ---- bash ----

std::string BashReply(const Completion& completion, const std::string& commands) {
  switch (completion.kind) {
    case Kind::kFile:
      return "_hangscope_files -f";
    case Kind::kFolder:
      return "_hangscope_files -d";
    case Kind::kProgram:
      return "_hangscope_files -c";
    case Kind::kProcess:
      return fmt::format("_hangscope_words \"$({})\"; _hangscope_files -f", kListProcesses);
    case Kind::kRecorder:
      return fmt::format("_hangscope_words \"$({})\"", kListRecorders);
    case Kind::kCommand:
      return fmt::format("_hangscope_words '{}'", commands);
    case Kind::kWord:
      return fmt::format("_hangscope_words '{}'", fmt::join(completion.words, " "));
    case Kind::kNothing:
      break;
  }
  return ":";
}

constexpr std::string_view kBashHead = R"(# bash completion of hangscope.
_hangscope_words() { mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "$1" -- "$cur"); }
_hangscope_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen "$1" -- "$cur")
}
_hangscope() {
  local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} i
  COMPREPLY=()
)";

std::string BashProgram(const std::vector<CommandHelp>& commands) {
  std::string names;
  for (const CommandHelp& command : commands)
    if (RunsProgram(command)) names += (names.empty() ? "" : "|") + command.name;
  return fmt::format(R"(  case $command in
    {})
      for ((i = 2; i < COMP_CWORD; i++)); do
        [ "${{COMP_WORDS[i]}}" = -- ] || continue
        if declare -F _command_offset >/dev/null; then
          _command_offset $((i + 1))
        elif [ $((i + 1)) = "$COMP_CWORD" ]; then
          _hangscope_files -c
        else
          _hangscope_files -f
        fi
        return
      done ;;
  esac
)",
                     names);
}

std::string BashScript(const std::vector<CommandHelp>& commands) {
  const std::string names = CommandNames(commands);
  std::string script(kBashHead);
  script += fmt::format(
      "  if [ \"$COMP_CWORD\" = 1 ]; then\n    _hangscope_words '{} --help --version'\n    "
      "return\n  fi\n",
      names);
  script += BashProgram(commands) + "  case \"$command $before\" in\n";
  for (const CommandHelp& command : commands) {
    for (const OptionHelp& option : OptionsOf(command)) {
      if (option.value.empty()) continue;
      std::string patterns;
      for (const std::string& name : option.names)
        patterns += fmt::format("{}'{} {}'", patterns.empty() ? "" : "|", command.name, name);
      script +=
          fmt::format("    {}) {}; return ;;\n", patterns, BashReply(option.completion, names));
    }
  }
  script += "  esac\n  case \"$command $cur\" in\n";
  for (const CommandHelp& command : commands) {
    std::string options;
    for (const OptionHelp& option : OptionsOf(command))
      for (const std::string& name : option.names) options += (options.empty() ? "" : " ") + name;
    if (RunsProgram(command)) options += " --";
    script += fmt::format("    '{0} '-*) _hangscope_words '{1}' ;;\n    '{0} '*) {2} ;;\n",
                          command.name, options, BashReply(command.operand_completion, names));
  }
  return script + "  esac\n}\ncomplete -F _hangscope hangscope\n";
}

// ---- zsh ----

// Of a description or a message, where brackets and colons mean something.
std::string ZshEscaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string ZshAction(const Completion& completion) {
  switch (completion.kind) {
    case Kind::kFile:
      return "_files";
    case Kind::kFolder:
      return "_files -/";
    case Kind::kProgram:
      return "_normal";
    case Kind::kProcess:
      return "_alternative \"processes:process:_pids\" \"files:file:_files\"";
    case Kind::kRecorder:
      return fmt::format("compadd -- $({})", kListRecorders);
    case Kind::kCommand:
      return "compadd -- $commands_of_hangscope";
    case Kind::kWord:
      return fmt::format("compadd -- {}", fmt::join(completion.words, " "));
    case Kind::kNothing:
      break;
  }
  return " ";
}

std::string ZshOption(const OptionHelp& option) {
  const std::string value =
      option.value.empty() ? ""
                           : ":" + ZshEscaped(option.value) + ":" + ZshAction(option.completion);
  std::string specs;
  for (const std::string& name : option.names) {
    specs +=
        "        " +
        Quoted(fmt::format("*{}[{}]{}", name, ZshEscaped(Wrap(option.text, 0, 0, 1000)), value)) +
        " \\\n";
  }
  return specs;
}

std::string ZshScript(const std::vector<CommandHelp>& commands) {
  std::string script =
      "#compdef hangscope\n_hangscope() {\n  local -a commands_of_hangscope described\n";
  script += fmt::format("  commands_of_hangscope=({})\n  described=(\n", CommandNames(commands));
  for (const CommandHelp& command : commands)
    script += "    " + Quoted(command.name + ":" + ZshEscaped(command.summary)) + "\n";
  script +=
      "  )\n  if (( CURRENT == 2 )); then\n    _describe command described\n    return\n  fi\n"
      "  shift words\n  (( CURRENT-- ))\n  case $words[1] in\n";
  for (const CommandHelp& command : commands) {
    script += fmt::format("    {})\n      _arguments \\\n", command.name);
    for (const OptionHelp& option : OptionsOf(command)) script += ZshOption(option);
    script += "        " +
              Quoted(fmt::format("{}:{}", RunsProgram(command) ? "*::program" : "*:what",
                                 ZshAction(command.operand_completion))) +
              " ;;\n";
  }
  return script +
         "  esac\n}\nif [ \"$funcstack[1]\" = _hangscope ]; then\n  _hangscope \"$@\"\n"
         "else\n  compdef _hangscope hangscope\nfi\n";
}

// ---- fish ----

std::string FishArguments(const Completion& completion, const std::string& commands) {
  switch (completion.kind) {
    case Kind::kFile:
      return " -F";
    case Kind::kFolder:
      return " -fa '(__fish_complete_directories)'";
    case Kind::kProgram:
      return " -fa '(__fish_complete_command)'";
    case Kind::kProcess:
      return " -Fa '(__fish_complete_pids)'";
    case Kind::kRecorder:
      return " -fa " + Quoted(fmt::format("({})", kListRecorders));
    case Kind::kCommand:
      return " -fa " + Quoted(commands);
    case Kind::kWord:
      return " -fa " + Quoted(fmt::format("{}", fmt::join(completion.words, " ")));
    case Kind::kNothing:
      break;
  }
  return " -f";
}

std::string FishOption(const std::string& command, const OptionHelp& option,
                       const std::string& commands) {
  std::string line =
      fmt::format("complete -c hangscope -n '__fish_seen_subcommand_from {}'", command);
  for (const std::string& name : option.names)
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!option.value.empty()) line += " -r" + FishArguments(option.completion, commands);
  return line + " -d " + Quoted(Wrap(option.text, 0, 0, 1000)) + "\n";
}

std::string FishScript(const std::vector<CommandHelp>& commands) {
  const std::string names = CommandNames(commands);
  std::string script = "# fish completion of hangscope.\ncomplete -c hangscope -f\n";
  for (const CommandHelp& command : commands)
    script += fmt::format("complete -c hangscope -n __fish_use_subcommand -a {} -d {}\n",
                          command.name, Quoted(command.summary));
  for (const CommandHelp& command : commands) {
    for (const OptionHelp& option : OptionsOf(command))
      script += FishOption(command.name, option, names);
    script += fmt::format("complete -c hangscope -n '__fish_seen_subcommand_from {}'{}\n",
                          command.name, FishArguments(command.operand_completion, names));
  }
  return script;
}

}  // namespace

std::optional<std::string> CompletionScript(std::string_view shell,
                                            const std::vector<CommandHelp>& commands) {
  if (shell == "bash") return BashScript(commands);
  if (shell == "zsh") return ZshScript(commands);
  if (shell == "fish") return FishScript(commands);
  return std::nullopt;
}

}  // namespace hangscope::cli
