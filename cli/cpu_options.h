// The options with which `run` and `watch` record what the kernel does with a program.
#ifndef HANGSCOPE_CLI_CPU_OPTIONS_H
#define HANGSCOPE_CLI_CPU_OPTIONS_H

#include <string>
#include <vector>

#include "options.h"
#include "snapshot/cpu_recording.h"

namespace hangscope::cli {

// As text until Resolve.
struct CpuWords {
  bool cpu = false;
  bool all_cpus = false;
  bool call_stacks = false;
  std::vector<std::string> events;
  std::string filter;
  std::string size;
  std::string window;

  void AddTo(OptionParser* options);
  Result<CpuRecordingOptions> Resolve() const;
};

}  // namespace hangscope::cli

#endif
