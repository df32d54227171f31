// Of the commands that write what others open: report and export.
#include "help/all_helps.h"
#include "help/shared_options.h"

namespace hangscope::cli {

using Kind = Completion::Kind;

CommandHelp ExportHelp() {
  CommandHelp help;
  help.name = "export";
  help.summary = "write what was recorded in the formats of other programs";
  help.usages = {"hangscope export [options] [--to FORMAT] SNAPSHOT|TARGET"};
  help.about =
      "Writes what was recorded, of all cores and CPUs in the order of time, for other programs. "
      "FORMAT is chrome, ctf, jsonl, perfetto or text; without --to, the ending of -o chooses: "
      ".json chrome, .jsonl, .pftrace perfetto, .txt. What can be exported: a snapshot, whatever "
      "hangscope show takes (a scope file, pid:N, core:FILE, gdb:HOST:PORT, exec:COMMAND), a "
      "perf.data, - for one that comes through a pipe.";
  help.examples = {
      {"hangscope export -o hang.pftrace trace/fw.snapshot-0001", "for ui.perfetto.dev"},
      {"hangscope export --to text --last 100 pid:4711", ""}};
  help.operand_completion = OfKind(Kind::kFile);
  help.groups = {
      {"",
       {{{"--to", "-t"},
         "FORMAT",
         "see above",
         OneOf({"chrome", "ctf", "jsonl", "perfetto", "text"})},
        {{"--output", "-o"}, "PATH", "where to [-, standard output]", OfKind(Kind::kFile)},
        {{"--force"}, "", "replace what is there", {}},
        {{"--from"},
         "T",
         "only from then on: seconds of the recording's clock, or back from its end, as in "
         "--from=-2s",
         {}},
        {{"--until"}, "T", "only until then", {}},
        {{"--core"}, "N|A-B|NAME", "only of these cores and CPUs", {}},
        {{"--task"}, "N|NAME", "only of this task or thread", {}},
        {{"--event"}, "NAME", "only events of this name", {}},
        {{"--last"}, "N", "only the newest N", {}},
        {{"--no-streams"},
         "",
         "without instruction traces in streams, and hardware traces not decoded",
         {}},
        {{"--branches"}, "N", "of each hardware trace only the newest N branches [10000]", {}},
        {{"--elf"},
         "FILE",
         "the program: names of its events, and where the scope is",
         OfKind(Kind::kFile)},
        {{"--intrusive"}, "", "the target may be stopped for a moment", {}},
        {{"--quiet", "-q"}, "", "no progress, and no last line on stderr that sums up", {}}}},
      CodeOptionGroup()};
  help.after = "What is missing is part of what is written.";
  help.statuses = {{"0", ""},
                   {"2", "usage"},
                   {"3", "nothing can be read, or not written"},
                   {"130", "interrupted"}};
  return help;
}

CommandHelp ReportHelp() {
  CommandHelp help;
  help.name = "report";
  help.summary = "write one page about a hang, for a browser";
  help.usages = {"hangscope report [options] [SNAPSHOT|PID]"};
  help.about =
      "Writes one page about a hang: the verdict, who waits for whom, what happened when, faults, "
      "threads, the last lines. It is one HTML file that needs no network. SNAPSHOT is a "
      "snapshot's folder; or, as for hangscope why, a process by its number or name, a scope's "
      "file, a core dump, a perf.data, - for one that comes through a pipe. Without it, hangscope "
      "takes the newest snapshot that "
      "hangscope run took without --prefix.";
  help.examples = {
      {"hangscope report trace/fw.snapshot-0001", ""},
      {"hangscope report 4711", "of a process that runs"},
      {"hangscope report --against trace/ok.snapshot-0001 trace/fw.snapshot-0001", ""}};
  help.operand_completion = OfKind(Kind::kFile);
  help.groups = {
      {"",
       {{{"--output", "-o"},
         "FILE",
         "where the page goes [SNAPSHOT/report.html; ./pid-4711.report.html of a process, "
         "./NAME.report.html of any other]; - is standard output",
         OfKind(Kind::kFile)},
        {{"--force"}, "", "also where there is one already", {}},
        {{"--data"}, "", "the page's data alone, as JSON, on standard output (report-data.md)", {}},
        {{"--against"},
         "HEALTHY",
         "compare with a run that did not hang, and show where this one left its way; the "
         "page is "
         "SNAPSHOT/report.against.html then, and always written anew",
         OfKind(Kind::kFile)},
        {{"--elf"},
         "FILE",
         "the program: names, files and lines [as the snapshot says]",
         OfKind(Kind::kFile)},
        {{"--events"}, "N", "of what happened, at most the newest N [200000]", {}},
        {{"--quiet", "-q"}, "", "no progress and no notes on stderr: errors alone", {}}}},
      CodeOptionGroup()};
  help.statuses = {{"0", "the page is there"},
                   {"2", "usage"},
                   {"3", "the snapshot cannot be read, or the page not written"}};
  return help;
}

}  // namespace hangscope::cli
