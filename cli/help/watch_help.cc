#include "help/all_helps.h"
#include "help/shared_options.h"

namespace hangscope::cli {

using Kind = Completion::Kind;

CommandHelp WatchHelp() {
  CommandHelp help;
  help.name = "watch";
  help.summary = "watch cores, tasks or threads: who hangs, who waits for whom";
  help.usages = {"hangscope watch [options] TARGET..."};
  help.about =
      "Watches targets that record with hangscope/hangscope.h, without stopping them, and says who "
      "hangs and who waits for whom: deadlocks, waits that never end, silence; faults, corruption. "
      "Of a process that does not record, it watches the threads.\n\n"
      "TARGET: pid:N, or N; a file with the scope or a guest's RAM, file:PATH[@OFFSET]; "
      "exec:COMMAND; gdb:HOST:PORT, which wants --intrusive.";
  help.examples = {{"hangscope watch 4711", ""},
                   {"hangscope watch --elf fw.elf --exit-on-hang /dev/shm/ram", ""}};
  help.operand_completion = OfKind(Kind::kProcess);
  help.groups = {
      {"watching",
       {{{"--elf"},
         "FILE",
         "the program: names, lines, where the scope is; one for all targets, or one for each in "
         "the same order",
         OfKind(Kind::kFile)},
        {{"--stall"}, "T", "hangscope looks into what waits or stands still for so long [5]", {}},
        {{"--for"}, "T", "end after this time; otherwise when the targets end", {}},
        {{"--exit-on-hang"}, "", "end at the first hang or fault", {}},
        {{"--on-hang"},
         "WHAT",
         "snapshot; kill: end the process, or the simulator of the file; exec:COMMAND; none "
         "[none; with --prefix snapshot]",
         OneOf({"snapshot", "kill", "exec:", "none"})},
        {{"--plain"}, "", "no live view on a terminal, but lines as into a pipe", {}},
        {{"--json"}, "", "JSON Lines on standard output, and in the log (json.md)", {}},
        {{"--intrusive"}, "", "the target may be stopped for a moment", {}}}},
      {"more about watching",
       {{{"--device"},
         "FILE",
         "several memories as one target: FILE lists nodes, memories and ELFs as JSON (format.md); "
         "no TARGET is needed then",
         OfKind(Kind::kFile)},
        {{"--interval"}, "T", "between polls [100ms]", {}},
        {{"--budget"},
         "S",
         "bytes that polls may read in a second; they slow down for it [64M]",
         {}},
        {{"--act-on"},
         "WHICH",
         "as for hangscope run [likely]",
         OneOf({"possible", "likely", "certain", "likely,partial", "certain,partial"})},
        {{"--prefix"},
         "P",
         "snapshots are P.snapshot-NNNN/ [~/.local/state/hangscope/...]",
         OfKind(Kind::kFile)},
        {{"--max-snapshots"},
         "M",
         "how many of each target are kept: the first and the newest [2]",
         {}},
        {{"--junit"},
         "FILE",
         "the outcome as JUnit XML, a case for each target",
         OfKind(Kind::kFile)},
        {{"--metrics"},
         "ADDR",
         "GET /metrics for Prometheus at HOST:PORT, or on the socket PATH",
         {}}},
       false},
      {"its log",
       {{{"--log"},
         "FILE",
         "what changes, line by line; FILE.1 ... are older",
         OfKind(Kind::kFile)},
        {{"--log-size"}, "S", "of a file of the log [10M]", {}},
        {{"--log-keep"}, "N", "files of the log; it takes S times N bytes at most [3]", {}},
        {{"--dump-every"},
         "T",
         "write all there is into the log each T; else only at the beginning, after findings and "
         "at the end",
         {}},
        {{"--dump-all"}, "", "dumps have all words of their own", {}},
        {{"--append"}, "", "append to the log that is there", {}}},
       false},
      {"what the kernel does with one process (as for hangscope run)",
       Joined({{{"--cpu"}, "", "record it; snapshots have it, beside threads and mailboxes", {}}},
              CpuOptionHelps()),
       false}};
  help.after =
      "On a terminal it shows the cores live; ? there says what keys do, q ends it, and what was "
      "found is printed then. Elsewhere findings are printed as they come, and which cores pause; "
      "ENTER resumes paused ones (in the view r does). SIGUSR1 prints the table of cores, SIGUSR2 "
      "and hangscope snap take a snapshot, SIGINT ends it.";
  help.statuses = {{"0", "clean"},
                   {"1", "a hang or a fault"},
                   {"2", "usage"},
                   {"3", "a target cannot be read, or has no scope"},
                   {"130", "interrupted, nothing found"}};
  return help;
}

}  // namespace hangscope::cli
