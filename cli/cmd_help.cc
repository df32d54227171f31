// hangscope help: the help of a command, its manual page, completions for shells.
#include <fmt/format.h>

#include "commands.h"
#include "help/all_helps.h"
#include "help/completion_scripts.h"
#include "help/help_text.h"
#include "help/manual_page.h"
#include "options.h"

namespace hangscope::cli {
namespace {

const CommandHelp* Find(const std::vector<CommandHelp>& helps, const std::string& name) {
  for (const CommandHelp& help : helps)
    if (help.name == name) return &help;
  return nullptr;
}

}  // namespace

std::string MainHelpText() {
  const CommandHelp main = MainHelp();
  std::string text = "usage: hangscope COMMAND [options]\n       hangscope PID|NAME\n\n" +
                     Wrap(main.about, 0, 0) + "\n\n";
  for (const CommandHelp& help : AllHelps())
    text += fmt::format("  {:<8} {}\n", help.name, help.summary);
  text +=
      "\n  hangscope COMMAND -h       its most used options; --help: all of them\n"
      "  hangscope --version, -V    the version; with -v what it was built with\n"
      "  HANGSCOPE_OPT_ON_HANG=kill in the environment is --on-hang kill, and so on;\n"
      "  NO_COLOR=1 there: no colours\n\nexamples\n";
  for (const HelpEntry& example : main.examples)
    text += fmt::format("  {}\n      {}\n", example.name, example.text);
  return text;
}

int HelpCommand(const std::vector<std::string>& words) {
  OptionParser parser(HelpHelp());
  bool man = false;
  std::string shell;
  std::string name;
  parser.Flag("--man", &man);
  parser.Option("--completion", &shell);
  parser.Positional("command", &name);
  if (const auto exit = parser.Parse(words)) return *exit;
  const std::vector<CommandHelp> helps = AllHelps();
  if (!shell.empty()) {
    const auto script = CompletionScript(shell, helps);
    if (!script)
      return Fail(Status::Usage(fmt::format(
          "--completion '{}': bash, zsh or fish; for example --completion bash", shell)));
    return Succeed(*script);
  }
  if (name.empty() || name == "hangscope")
    return Succeed(man ? MainManualPage(MainHelp(), helps) : MainHelpText());
  const CommandHelp* help = Find(helps, name);
  if (help == nullptr) return Fail(Status::Usage(UnknownCommand(name)));
  return Succeed(man ? ManualPage(*help) : HelpText(*help, true));
}

}  // namespace hangscope::cli
