#include "help/all_helps.h"
#include "help/shared_options.h"

namespace hangscope::cli {

using Kind = Completion::Kind;

CommandHelp WhyHelp() {
  CommandHelp help;
  help.name = "why";
  help.summary = "say why a process or a target hangs, or died";
  help.usages = {"hangscope why [options] [TARGET]", "hangscope why --all-hung",
                 "hangscope PID|NAME"};
  help.about =
      "Says why a target hangs or died: who waits for whom, who stopped first and what it did "
      "then, faults, what is corrupt. A Linux process needs nothing for that; any other TARGET "
      "records with hangscope/hangscope.h, and may be live or dead.";
  help.examples = {{"hangscope why 4711", ""},
                   {"hangscope why trace/fw.snapshot-0001", ""},
                   {"perf record -o - make | hangscope why -", ""}};
  help.operands = {
      {"pid:N", "a process; its number alone will do, or its name"},
      {"file:PATH[@OFFSET]",
       "a scope file, a dump of memory, guest RAM; or a console's log with a dump in it; file: may "
       "be left out"},
      {"SNAPSHOT",
       "a snapshot's folder: its verdict, scope and CPU rings; without any TARGET, the newest that "
       "hangscope run took without --prefix"},
      {"core:FILE", "a core dump"},
      {"gdb:HOST:PORT",
       "a debug server, or gdb:PATH for its socket; it stops the target for a moment, so this "
       "wants --intrusive"},
      {"exec:COMMAND", "a helper that reaches the target's memory (probes.md)"},
      {"PERF.DATA",
       "what perf recorded: who ran last, what it covers (perf-data.md); - is standard input"},
      {"FOLDER", "with snapshot.ini: what a debugger took of a board (instruction-traces.md)"}};
  help.operand_completion = OfKind(Kind::kProcess);
  help.groups = {
      {"",
       {{{"--elf"},
         "FILE",
         "the program: names, lines, and where the scope is",
         OfKind(Kind::kFile)},
        {{"--stall"},
         "T",
         "how long what is alive must stand still to be a hang [1]; of an ordinary process, the "
         "time "
         "between the two looks at it [0.05]",
         {}},
        {{"--all"}, "", "all threads of pid:N, not as many as fit on the screen", {}},
        {{"--stacks"}, "", "all their stacks", {}},
        {{"--all-hung"}, "", "of all processes of this machine, those that hang", {}},
        {{"--json"}, "", "JSON Lines (json.md)", {}}}},
      {"of live targets",
       {{{"--intrusive"}, "", "the target may be stopped for a moment", {}},
        {{"--no-stop"}, "", "stop no thread of pid:N; less is known of those that run then", {}},
        {{"--ask"},
         "",
         "ask a machine of Java that cannot be read for its threads; it halts them for that",
         {}},
        {{"--with"},
         "FILE",
         "of pid:N: what why --json said on another host, or a snapshot of there; who waits for a "
         "connection to it waits for those who hold its other end",
         OfKind(Kind::kFile)},
        {{"--debuginfod"},
         "",
         "ask the servers of $DEBUGINFOD_URLS for what is not on this machine",
         {}},
        {{"--device"},
         "FILE",
         "several memories as one target, instead of TARGET: FILE lists nodes, memories and ELFs "
         "as JSON (format.md)",
         OfKind(Kind::kFile)}},
       false},
      CodeOptionGroup(
          {{{"--branches"}, "N", "of hardware traces, the last N branches of each [0]", {}}})};
  help.statuses = {{"0", "neither hang nor fault"},
                   {"1", "a hang or a fault"},
                   {"2", "usage"},
                   {"3", "the target cannot be read"}};
  return help;
}

}  // namespace hangscope::cli
