#include "help/shared_options.h"

namespace hangscope::cli {

using Kind = Completion::Kind;

OptionGroup CodeOptionGroup(const std::vector<OptionHelp>& more) {
  return {"of a perf.data, also a snapshot's",
          Joined({{{"--binaries"},
                   "DIR",
                   "a folder with the recorded programs, by path or by name",
                   OfKind(Kind::kFolder)},
                  {{"--vmlinux"},
                   "FILE",
                   "the recorded kernel, or a kcore, or a folder with one",
                   OfKind(Kind::kFile)},
                  {{"--kallsyms"},
                   "FILE",
                   "names of the kernel's functions, as /proc/kallsyms has them",
                   OfKind(Kind::kFile)}},
                 more),
          false};
}

std::vector<OptionHelp> CpuOptionHelps() {
  return {{{"--event", "-e"},
           "EVENT",
           "record this, too: as perf names it, or probe:FUNCTION@BINARY; repeatable",
           {}},
          {{"--all-cpus", "-a"}, "", "of all processes", {}},
          {{"--call-stacks", "-g"}, "", "call stacks of events", {}},
          {{"--filter"}, "F", "code that a tracer traces: 'filter main @ /bin/x'", {}},
          {{"--cpu-size"}, "S", "of the ring of each CPU [4M]", {}},
          {{"--window"},
           "W",
           "what a snapshot covers: 2s, 16M, since-last, all, coherent [coherent]",
           OneOf({"coherent", "since-last", "all"})}};
}

std::vector<OptionHelp> TriggerOptionHelps() {
  return {{{"--trigger"}, "RE", "take one for a line that matches RE (RE2); repeatable", {}},
          {{"--trigger-rate"},
           "P%[/T]",
           "take one when less than P % of the usual rate comes, over T [5] seconds",
           {}},
          {{"--trigger-silence"}, "T", "take one when nothing comes for T", {}},
          {{"--trigger-quiet"}, "T", "each trigger rests so long after it fired [1]", {}}};
}

std::vector<OptionHelp> SnapshotOptionHelps() {
  return {{{"--post"}, "T|S", "record on for a time (2s) or a size (16M) before taking one", {}},
          {{"--max-snapshots"}, "M", "how many are kept: the first and the newest [2]", {}}};
}

std::vector<OptionHelp> Joined(std::vector<OptionHelp> rows, const std::vector<OptionHelp>& more,
                               const std::vector<OptionHelp>& last) {
  for (const auto* next : {&more, &last}) rows.insert(rows.end(), next->begin(), next->end());
  return rows;
}

}  // namespace hangscope::cli
