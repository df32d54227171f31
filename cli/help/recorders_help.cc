// Of ls, snap, cat and doctor.
#include "help/all_helps.h"

namespace hangscope::cli {

using Kind = Completion::Kind;

CommandHelp LsHelp() {
  CommandHelp help;
  help.name = "ls";
  help.summary = "list the recorders that run now, and their verdicts";
  help.usages = {"hangscope ls [options]"};
  help.about =
      "Lists the recorders (hangscope run, tee and watch) that run now as this user, by name: "
      "process, program, age, bytes so far and lately, snapshots taken, and the verdict of each.";
  help.groups = {{"", {{{"--json"}, "", "one JSON object a line (hangscope-ls.md)", {}}}}};
  help.statuses = {{"0", "also where none runs"}, {"2", "usage"}};
  return help;
}

CommandHelp SnapHelp() {
  CommandHelp help;
  help.name = "snap";
  help.summary = "ask a recorder that runs for a snapshot";
  help.usages = {"hangscope snap [options] PID|NAME|DIR"};
  help.about =
      "Asks a recorder that runs now (hangscope ls) for a snapshot and prints its absolute path "
      "once it is safely on the disk. The recorder is named by its process, its program's process, "
      "its name (the last part of its prefix), its prefix, its ring, or the folder that it writes "
      "to.";
  help.examples = {{"hangscope snap fw", ""}};
  help.operand_completion = OfKind(Kind::kRecorder);
  help.groups = {{"",
                  {{{"--now"}, "", "do not wait for what the recorder's --post asks for", {}},
                   {{"--since-last"}, "", "only what came since the snapshot before", {}}}}};
  help.statuses = {
      {"0", ""}, {"2", "usage, or several recorders are meant"}, {"3", "none is, or it failed"}};
  return help;
}

CommandHelp CatHelp() {
  CommandHelp help;
  help.name = "cat";
  help.summary = "print what a ring or a snapshot holds, oldest first";
  help.usages = {"hangscope cat [options] [RING|SNAPSHOT]"};
  help.about =
      "Prints what a ring or a snapshot holds: oldest first, whole lines. RING is a recorder's "
      "prefix (trace/fw), one of its streams (trace/fw.stdout) or one of its files; it may be "
      "live, finished or left behind by a recorder that was killed. Without it, hangscope takes "
      "the newest of your recordings that has no place of its own (hangscope run without "
      "--prefix).";
  help.examples = {{"hangscope cat trace/fw | tail", ""},
                   {"hangscope cat --follow --stream stderr trace/fw", ""}};
  help.operand_completion = OfKind(Kind::kFile);
  help.groups = {{"",
                  {{{"--follow", "-f"}, "", "go on as the recorder does, until it ends", {}},
                   {{"--stream"},
                    "NAME",
                    "stdout, stderr or fdN, where there are several",
                    OneOf({"stdout", "stderr"})}}}};
  help.after = "What is missing is said on stderr.";
  help.statuses = {{"0", ""}, {"2", "usage"}, {"3", "nothing could be read"}};
  return help;
}

CommandHelp DoctorHelp() {
  CommandHelp help;
  help.name = "doctor";
  help.summary = "check what this machine permits, and how to enable the rest";
  help.usages = {"hangscope doctor [options]"};
  help.about =
      "Says what this machine lets this user record and look into, what is missing for what, and "
      "the command that grants it. Changes nothing.";
  help.groups = {{"", {{{"--json"}, "", "one JSON object (json.md)", {}}}}};
  help.statuses = {
      {"0", "all that is needed works"}, {"1", "something is missing"}, {"2", "usage"}};
  return help;
}

}  // namespace hangscope::cli
