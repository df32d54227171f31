// Of the commands that read a target's memory or set something in it: show, set and cost.
#include "help/all_helps.h"

namespace hangscope::cli {

using Kind = Completion::Kind;

CommandHelp ShowHelp() {
  CommandHelp help;
  help.name = "show";
  help.summary = "print the events that a program recorded in its memory";
  help.usages = {"hangscope show [options] TARGET"};
  help.about =
      "Prints the events that a program recorded with hangscope/hangscope.h, oldest first, and "
      "what its tasks wait for. TARGET may be live, hung, or long dead.";
  help.examples = {{"hangscope show --last 100 pid:4711", ""},
                   {"hangscope show --elf fw.elf --stats /dev/shm/ram", ""}};
  help.operands = {
      {"file:PATH[@OFFSET]",
       "a scope file, a dump of memory, guest RAM; or a console's log with a dump in it; file: may "
       "be left out"},
      {"SNAPSHOT", "a snapshot's folder"},
      {"pid:N", "a process; pid: may be left out"},
      {"core:FILE", "a core dump"},
      {"gdb:HOST:PORT",
       "a debug server, or gdb:PATH for its socket; it stops the target for a moment, so this "
       "wants --intrusive"},
      {"exec:COMMAND", "a helper that reaches the target's memory (probes.md)"}};
  help.operand_completion = OfKind(Kind::kFile);
  help.groups = {
      {"",
       {{{"--elf"},
         "FILE",
         "the program: names of its events, and where the scope is",
         OfKind(Kind::kFile)},
        {{"--core"}, "N|A-B|NAME", "only of these cores", {}},
        {{"--task"}, "N", "only while this task ran, and what it waits for", {}},
        {{"--event"}, "NAME", "only events of this name", {}},
        {{"--last"}, "N", "only the newest N", {}},
        {{"--stats"}, "", "numbers, no events: run times, load, wake-ups, interrupts, mutexes", {}},
        {{"--follow", "-f"}, "", "go on as they come, until the target ends", {}},
        {{"--json"}, "", "JSON Lines (json.md)", {}},
        {{"--intrusive"}, "", "the target may be stopped for a moment", {}}}}};
  help.statuses = {{"0", ""},
                   {"2", "usage"},
                   {"3", "the target cannot be read, or has no scope"},
                   {"130", "interrupted"}};
  return help;
}

CommandHelp SetHelp() {
  CommandHelp help;
  help.name = "set";
  help.summary = "pause, resume, delay, mask or freeze cores of a target";
  help.usages = {"hangscope set WHAT [options] TARGET CORES... [SETTING=VALUE...]"};
  help.about =
      "Changes what a target that runs does, by writing into its scope; the target is not stopped "
      "for it. WHAT is one of pause to features, TARGET is as for hangscope watch, CORES is a list "
      "of the others.";
  help.examples = {
      {"hangscope set pause pid:4711 1-3", ""},
      {"hangscope set delay /dev/shm/ram 'writer@(0,0)-(1,1)' write=random:500 seed=7", ""},
      {"hangscope set delay --start slow.elf fw.elf 4 write=random:500 seed=7", ""}};
  help.operands = {
      {"pause", "the cores stop at their next HANGSCOPE_PAUSE()"},
      {"resume", "paused cores go on, also those that the code itself paused"},
      {"delay",
       "before accesses of the bus: read= write= atomic=N rounds, or random:N for 0 to N of them; "
       "seed=N. Prints which ran at once; without any, prints what is set and ran so far"},
      {"mask", "which events are recorded: classes=all, classes=task,sync"},
      {"freeze", "recording stops; after=N: after so many more events"},
      {"features",
       "for the whole target, without CORES: waypoints, waits, asserts, pauses, debug, delays, "
       "bus, stacks, guards, or all =0 or =1; without any, prints what is on"},
      {"all, 0, 1-3", "cores by number"},
      {"(x,y), (x1,y1)-(x2,y2)",
       "those of a node, of all nodes in a rectangle; x,y where there are several nodes"},
      {"NAME", "those of a role, or a thread"},
      {"NAME@(x,y)",
       "of these only those of the node, or of (x1,y1)-(x2,y2); a list is all that any part of it "
       "names"}};
  help.operand_completion =
      OneOf({"pause", "resume", "delay", "mask", "freeze", "features", "all"});
  help.groups = {
      {"",
       {{{"--elf"},
         "FILE",
         "the program: names of roles, and where the scope is",
         OfKind(Kind::kFile)},
        {{"--intrusive"}, "", "the target may be stopped for a moment (gdb:)", {}},
        {{"--start"},
         "FILE",
         "TARGET is a program's ELF: FILE becomes a copy of it that begins with these delays or "
         "features. Built with HANGSCOPE_START_SETTINGS",
         OfKind(Kind::kFile)},
        {{"--cores-of"},
         "TARGET",
         "with --start: roles and nodes are as in this run or snapshot",
         OfKind(Kind::kFile)}}}};
  help.after = "0 and off switch off.";
  help.statuses = {{"0", ""}, {"2", "usage"}, {"3", "the target cannot be read or written"}};
  return help;
}

CommandHelp CostHelp() {
  CommandHelp help;
  help.name = "cost";
  help.summary = "count what pieces of a target's code cost, under QEMU";
  help.usages = {"hangscope cost [options] [--] qemu-system-ARCH [ARGUMENT...]"};
  help.about =
      "Runs QEMU with a plugin that counts, and prints what pieces of the program on the target "
      "cost for each hart and event: instructions, loads, stores; an AMO is one store.";
  help.examples = {
      {"hangscope cost --elf fw.elf --symbol tick qemu-system-riscv32 -kernel fw.elf", ""}};
  help.operand_completion = OfKind(Kind::kProgram);
  help.groups = {
      {"",
       {{{"--elf"}, "FILE", "the program on the target, with its symbols", OfKind(Kind::kFile)},
        {{"--symbol"},
         "NAME",
         "count inside this function; what it calls does not count; repeatable",
         {}},
        {{"--mark"},
         "NAME",
         "count between HANGSCOPE_MARK_BEGIN(NAME) and HANGSCOPE_MARK_END(NAME) of "
         "hangscope/target/mark.h; repeatable",
         {}},
        {{"--per"},
         "N|calls",
         "an event is one N-th of each time entered, or each time entered [calls]",
         {}},
        {{"--seconds"}, "T", "end QEMU after T, if it does not end by itself", {}},
        {{"--json"}, "", "one JSON object instead of the table (hangscope-cost.md)", {}}}}};
  help.statuses = {
      {"0", ""}, {"2", "usage"}, {"3", "nothing was counted, or something was never entered"}};
  return help;
}

}  // namespace hangscope::cli
