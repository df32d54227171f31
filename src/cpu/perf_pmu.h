// Events of a PMU, the kernel's name for what counts or traces: "cs_etm/@tmc_etr0/u", "intel_pt//",
// "arm_spe/ts_enable=1/". Which there are, and what their terms mean, sysfs says.
#ifndef HANGSCOPE_CPU_PERF_PMU_H
#define HANGSCOPE_CPU_PERF_PMU_H

#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "cpu/perf_events.h"

namespace hangscope {

// Whether `name` has the form NAME/TERMS/MODIFIERS.
bool IsPmuEvent(const std::string& name);

// `pmus`: the folder of all PMUs. A name that stands for several ("arm_spe" for "arm_spe_0") gives
// an event each.
Result<std::vector<PerfEventSpec>> FindPmuEvents(FileSystem& files, const std::string& pmus,
                                                 const std::string& name);

// Sets `value` in the bits of `attr` that a format file names: "config:0-7,32-35", "config2:0-31".
Status SetPmuBits(const std::string& format, uint64_t value, perf_event_attr* attr);

// "u", "k", "uk": which side is recorded; empty: both. Also H, G, p and P, which change nothing
// here.
Status SetModifiers(const std::string& event, const std::string& modifiers, perf_event_attr* attr);

}  // namespace hangscope

#endif
