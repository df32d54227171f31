// `hangscope cost`: what pieces of a target's code cost, counted by QEMU with our plugin.
#ifndef HANGSCOPE_TOOLS_COUNT_COST_H
#define HANGSCOPE_TOOLS_COUNT_COST_H

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "code/elf_image.h"
#include "model/cost.h"
#include "proc/inherited_signals.h"

namespace hangscope {

struct CostOptions {
  std::vector<std::string> symbols;
  std::vector<std::string> marks;
  std::vector<std::string> command;  // of QEMU; words before it (timeout 5) are fine
  std::string plugin_path;
  uint64_t events_per_entry = 1;
  TimeNs time_limit = 0;  // 0: QEMU ends by itself
  InheritedSignals signals;
};

struct CostEnvironment {
  Clock* clock = nullptr;
  int signal_fd = -1;  // a signalfd: what comes goes on to QEMU
  std::function<void(std::string_view)> pass_stderr;
};

// Where the plugin is, seen from the folder of the executable: beside it, in the build tree, where
// it was installed. NotFound names the places.
Result<std::string> FindCountPlugin(const std::string& executable);

// Of the symbols and marks that are asked for; says which there are where one is not there.
Result<std::vector<CostSubject>> FindSubjects(const ElfImage& elf, const CostOptions& options);

// `command` with the plugin behind the name of QEMU. `fd`: where it writes to.
Result<std::vector<std::string>> AddPlugin(const std::vector<std::string>& command,
                                           const std::string& plugin_path, int fd,
                                           const std::vector<CostSubject>& subjects);

// What the plugin wrote.
Status ReadCounts(std::string_view text, CostReport* report);

// Runs QEMU to its end and counts.
Result<CostReport> MeasureCost(const CostEnvironment& environment, const ElfImage& elf,
                               const CostOptions& options);

}  // namespace hangscope

#endif
