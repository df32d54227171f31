// Rows of help tables that several commands have, word for word.
#ifndef HANGSCOPE_CLI_HELP_SHARED_OPTIONS_H
#define HANGSCOPE_CLI_HELP_SHARED_OPTIONS_H

#include <vector>

#include "help/command_help.h"

namespace hangscope::cli {

// Where the code of a perf.data is, and `more` of one: of why, export and report.
OptionGroup CodeOptionGroup(const std::vector<OptionHelp>& more = {});
// What is recorded of CPUs, beside --cpu: of run and watch.
std::vector<OptionHelp> CpuOptionHelps();
// When a snapshot is taken of its own accord: of run and tee.
std::vector<OptionHelp> TriggerOptionHelps();
// How much a snapshot waits for, and how many stay: of run and tee.
std::vector<OptionHelp> SnapshotOptionHelps();

// All of these, in this order.
std::vector<OptionHelp> Joined(std::vector<OptionHelp> rows, const std::vector<OptionHelp>& more,
                               const std::vector<OptionHelp>& last = {});

}  // namespace hangscope::cli

#endif
