#include "cpu_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace hangscope::cli {
namespace {

constexpr uint64_t kLeastRing = 16u << 10;
constexpr uint64_t kLargestRing = 1u << 30;

}  // namespace

void CpuWords::AddTo(OptionParser* options) {
  options->Flag("--cpu", &cpu);
  options->Flag("--all-cpus", &all_cpus);
  options->Flag("--call-stacks", &call_stacks);
  options->Options("--event", &events);
  options->Option("--filter", &filter);
  options->Option("--cpu-size", &size);
  options->Option("--window", &window);
}

Result<CpuRecordingOptions> CpuWords::Resolve() const {
  CpuRecordingOptions resolved;
  resolved.on = cpu;
  const std::string other = all_cpus          ? "--all-cpus"
                            : call_stacks     ? "--call-stacks"
                            : !events.empty() ? "--event"
                            : !filter.empty() ? "--filter"
                            : !size.empty()   ? "--cpu-size"
                            : !window.empty() ? "--window"
                                              : "";
  if (!cpu && !other.empty())
    return Status::Usage(fmt::format("{} is about what --cpu records, which is not given", other));
  resolved.recorder.whole_machine = all_cpus;
  resolved.recorder.call_stacks = call_stacks;
  resolved.recorder.events = events;
  resolved.recorder.filter = filter;
  const auto is_tracer = [](const std::string& event) {
    const size_t first = event.find_first_of(":@/");
    return first != std::string::npos && event[first] == '/';
  };
  if (!filter.empty() && std::none_of(events.begin(), events.end(), is_tracer))
    return Status::Usage(
        "--filter says which code a hardware tracer traces, and --event names none; for example "
        "-e intel_pt//u --filter 'filter main @ /usr/bin/server'");
  if (!size.empty()) {
    auto bytes = ParseSize("--cpu-size", size);
    if (!bytes.ok()) return bytes.status();
    if (*bytes < kLeastRing || *bytes > kLargestRing) {
      return Status::Usage(
          fmt::format("--cpu-size '{}': 16K to 1G for each CPU; for example --cpu-size 4M", size));
    }
    resolved.recorder.ring_bytes = *bytes;
  }
  if (!window.empty()) {
    auto choice = ParseWindowChoice("--window", window);
    if (!choice.ok()) return choice.status();
    resolved.window = *choice;
  }
  return resolved;
}

}  // namespace hangscope::cli
