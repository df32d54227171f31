#include "help/all_helps.h"
#include "help/shared_options.h"

namespace hangscope::cli {

using Kind = Completion::Kind;

CommandHelp TeeHelp() {
  CommandHelp help;
  help.name = "tee";
  help.summary = "record standard input, and say where what writes it hangs";
  help.usages = {"PROGRAM | hangscope tee [options]"};
  help.about =
      "Records standard input into a bounded ring on disk and watches it as run does. It cannot "
      "see the program that writes; where you can, use hangscope run.";
  help.examples = {{"make simulate 2>&1 | hangscope tee --passthrough --prefix trace/sim", ""}};
  help.groups = {
      {"",
       {{{"--prefix"},
         "P",
         "the ring is P.*, snapshots P.snapshot-NNNN/ [~/.local/state/hangscope/...]",
         OfKind(Kind::kFile)},
        {{"--passthrough"}, "", "copy standard input to standard output", {}},
        {{"--elf"},
         "FILE",
         "the program on the target: functions, files, lines",
         OfKind(Kind::kFile)},
        {{"--stall"}, "T", "time without progress that makes a hang [10]", {}},
        {{"--on-hang"}, "WHAT", "snapshot or none [snapshot]", OneOf({"snapshot", "none"})},
        {{"--quiet", "-q"}, "", "say nothing unless what writes it hangs", {}}}},
      {"recording",
       {{{"--keep-rings"}, "", "without --prefix: keep the ring also where nothing happened", {}},
        {{"--size"}, "S", "of a file of the ring [500M]", {}},
        {{"--keep"}, "N", "files of the ring; it takes S times N bytes at most [3]", {}},
        {{"--compress"},
         "HOW",
         "none, zstd, or auto: zstd as long as it keeps up [none]",
         OneOf({"auto", "zstd", "none"})},
        {{"--memory"}, "S", "what may wait for a slow disk or reader [64M]", {}},
        {{"--lossless"}, "", "wait for a slow reader instead of losing what it does not take", {}},
        {{"--place-regex"}, "RE", "what a place of a log is, as for run", {}}},
       false},
      {"snapshots", Joined(TriggerOptionHelps(), SnapshotOptionHelps()), false},
      {"reporting",
       {{{"--heartbeat"}, "T", "a sign of life on stderr every T seconds, 0: none [5]", {}},
        {{"--json"}, "", "JSON Lines instead of text (json.md)", {}},
        {{"--log"}, "FILE", "to FILE instead of stderr", OfKind(Kind::kFile)}},
       false}};
  help.after =
      "hangscope snap, SIGUSR1 and SIGUSR2 take a snapshot. SIGINT, SIGTERM and SIGHUP end it; "
      "what is in the pipe by then is recorded.";
  help.statuses = {
      {"0", "no hang"}, {"1", "a hang"}, {"2", "usage"}, {"3", "failed"}, {"130", "interrupted"}};
  return help;
}

}  // namespace hangscope::cli
