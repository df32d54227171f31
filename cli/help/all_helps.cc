#include "help/all_helps.h"

namespace hangscope::cli {

CommandHelp HelpHelp() {
  CommandHelp help;
  help.name = "help";
  help.summary = "print the help of a command, its manual page, or completions";
  help.usages = {"hangscope help [COMMAND]", "hangscope help --man [COMMAND]",
                 "hangscope help --completion SHELL"};
  help.about = "Prints the help of COMMAND, or what commands there are.";
  help.examples = {{"hangscope help --man run | man -l -", ""},
                   {"eval \"$(hangscope help --completion bash)\"", ""}};
  help.operand_completion = OfKind(Completion::Kind::kCommand);
  help.groups = {{"",
                  {{{"--man"}, "", "the manual page, for man -l", {}},
                   {{"--completion"},
                    "SHELL",
                    "completions for bash, zsh or fish",
                    OneOf({"bash", "zsh", "fish"})}}}};
  help.statuses = {{"0", ""}, {"2", "usage"}};
  return help;
}

CommandHelp MainHelp() {
  CommandHelp help;
  help.name = "";
  help.summary = "say why a program hangs, and what led up to it";
  help.usages = {"hangscope COMMAND [options]", "hangscope PID|NAME"};
  help.about =
      "hangscope says why a program hangs: which threads or cores wait for each other, on what "
      "lock, at which line of the source, and what led up to it.";
  help.examples = {{"hangscope 4711", "why this process hangs; the same as hangscope why 4711"},
                   {"hangscope run --on-hang kill -- make test",
                    "ends the tests when they hang, and says where"}};
  help.groups = {
      {"",
       {{{"--help", "-h"}, "", "print this; hangscope COMMAND --help: the options of one", {}},
        {{"--version", "-V"}, "", "print the version; with -v what it was built with", {}}}}};
  help.statuses = {{"0 to 3", "as the command says"}, {"2", "usage"}};
  return help;
}

std::vector<CommandHelp> AllHelps() {
  return {WhyHelp(), RunHelp(),  WatchHelp(),  TeeHelp(), ReportHelp(), LsHelp(),     SnapHelp(),
          CatHelp(), ShowHelp(), ExportHelp(), SetHelp(), CostHelp(),   DoctorHelp(), HelpHelp()};
}

}  // namespace hangscope::cli
