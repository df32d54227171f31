#include "help/all_helps.h"
#include "help/shared_options.h"

namespace hangscope::cli {
namespace {

using Kind = Completion::Kind;

OptionGroup Watching() {
  return {
      "watching",
      {{{"--elf"},
        "FILE",
        "the program on the target: functions, files, lines",
        OfKind(Kind::kFile)},
       {{"--stall"},
        "T",
        "how long all must stand still to be a hang, as 2.5, 500ms or 2m; silence alone is none "
        "[10]",
        {}},
       {{"--on-hang"},
        "WHAT",
        "snapshot; kill: end PROGRAM, status 124; exec:COMMAND of a shell; none [snapshot]",
        OneOf({"snapshot", "kill", "exec:", "none"})},
       {{"--act-on"},
        "WHICH",
        "how sure a verdict must be for --on-hang to act: possible, likely, certain; with ,partial "
        "behind it also where only some threads hang [likely]",
        OneOf({"possible", "likely", "certain", "likely,partial", "certain,partial"})},
       {{"--timeout"},
        "T",
        "end PROGRAM after T, as 10m, hang or not, with the report of a hang; status 124",
        {}},
       {{"--junit"}, "FILE", "the outcome as JUnit XML", OfKind(Kind::kFile)},
       {{"--prefix"},
        "P",
        "rings are P.STREAM.*, snapshots P.snapshot-NNNN/ [~/.local/state/hangscope/...]",
        OfKind(Kind::kFile)},
       {{"--quiet", "-q"},
        "",
        "say nothing unless PROGRAM hangs, fails or dies; its output passes on",
        {}},
       {{"--cpu"}, "", "record what the kernel does with PROGRAM, for snapshots", {}}}};
}

OptionGroup MoreWatching() {
  return {
      "more about watching",
      {{{"--place-regex"},
        "RE",
        "how to read a log: the group (?P<place>...) says where the program is, (?P<core>...) "
        "which "
        "core says so",
        {}},
       {{"--scope"},
        "TARGET",
        "where the memory is that an instrumented PROGRAM or its guest records into: pid:, "
        "file:PATH of RAM, none [found by itself]",
        OfKind(Kind::kFile)},
       {{"--expect-output"}, "T", "silence of T is a hang, whatever PROGRAM waits for", {}},
       {{"--closed"}, "", "nobody outside will come: a wait for somebody outside is a hang", {}},
       {{"--history"},
        "HOW",
        "auto: keep the threads' last switches and wake-ups where permitted; none [auto]",
        OneOf({"auto", "none"})}},
      false};
}

OptionGroup Recording() {
  return {
      "recording",
      {{{"--keep-rings"}, "", "without --prefix: keep the rings also where nothing happened", {}},
       {{"--size"}, "S", "of a file of a ring [500M]", {}},
       {{"--keep"}, "N", "files of a ring; it takes S times N bytes at most [3]", {}},
       {{"--compress"},
        "HOW",
        "zstd, none, or auto: zstd as long as it keeps up [auto]",
        OneOf({"auto", "zstd", "none"})},
       {{"--memory"}, "S", "what may wait for a slow disk or reader, each stream [64M]", {}},
       {{"--lossless"},
        "",
        "PROGRAM waits for a slow reader of its output instead of losing it",
        {}},
       {{"--capture"},
        "STREAMS",
        "of stdout, stderr and fd:N, PROGRAM's descriptor N [stdout,stderr]",
        OneOf({"stdout", "stderr", "stdout,stderr"})},
       {{"--no-passthrough"}, "", "do not pass the output on", {}},
       {{"--pty"}, "", "PROGRAM's stdout and stderr are one terminal: lines at once, colours", {}},
       {{"--line-buffered"},
        "",
        "lines at once where PROGRAM uses C stdio, without a terminal",
        {}}},
      false};
}

OptionGroup OfKernel() {
  return {"what the kernel does with it (hangscope doctor says what is permitted)",
          CpuOptionHelps(), false};
}

OptionGroup Snapshots() {
  return {"snapshots",
          Joined(TriggerOptionHelps(),
                 {{{"--on-exit"},
                   "WHAT",
                   "snapshot: if PROGRAM dies or its status is not 0; unless-stopped: not "
                   "if it was sent a "
                   "signal to end; always; none [snapshot]",
                   OneOf({"snapshot", "unless-stopped", "always", "none"})}},
                 SnapshotOptionHelps()),
          false};
}

OptionGroup Reporting() {
  return {"reporting",
          {{{"--junit-name"}, "NAME", "of the test case of --junit [PROGRAM ARGUMENT...]", {}},
           {{"--heartbeat"}, "T", "a sign of life on stderr every T seconds, 0: none [5]", {}},
           {{"--json"}, "", "JSON Lines instead of text (json.md)", {}},
           {{"--log"}, "FILE", "to FILE instead of stderr", OfKind(Kind::kFile)}},
          false};
}

}  // namespace

CommandHelp RunHelp() {
  CommandHelp help;
  help.name = "run";
  help.summary = "start a program, and say where it hangs";
  help.usages = {"hangscope run [options] [--] PROGRAM [ARGUMENT...]"};
  help.about =
      "Starts PROGRAM, records what it prints into bounded rings on disk, passes it on, and "
      "watches. When its threads, or all cores of its trace, are stuck, or its log repeats itself, "
      "for the stall time, hangscope says where, and takes a snapshot. A program that waits for "
      "the outside, as a server does, is left alone.";
  help.examples = {{"hangscope run make test", ""},
                   {"hangscope run --on-hang kill --junit hang.xml -- ctest --test-dir build", ""},
                   {"hangscope run --elf fw.elf -- qemu-system-riscv32 ... -d exec,nochain", ""}};
  help.operand_completion = OfKind(Kind::kProgram);
  help.groups = {Watching(), MoreWatching(), Recording(), OfKernel(), Snapshots(), Reporting()};
  help.after =
      "hangscope snap, SIGUSR1 and SIGUSR2 take a snapshot, too. SIGINT, SIGTERM and SIGHUP go to "
      "PROGRAM. With -- behind the options, all that follows is PROGRAM's; without, PROGRAM is the "
      "first word that is no option.";
  help.statuses = {{"PROGRAM's own", ""},
                   {"124", "hangscope ended it for a hang or --timeout"},
                   {"125", "hangscope failed"},
                   {"126, 127", "PROGRAM could not be started"},
                   {"128+N", "it died of signal N"}};
  return help;
}

}  // namespace hangscope::cli
