// PERF_RECORD_AUXTRACE_INFO as perf writes it for the tracers that are recorded: by it a trace is
// decoded, and without it perf takes a file with a trace for damaged. hwtrace/auxtrace_info.h
// describes the words of CoreSight and Intel PT.
#ifndef HANGSCOPE_CPU_TRACER_INFO_H
#define HANGSCOPE_CPU_TRACER_INFO_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "cpu/tracer_port.h"
#include "hwtrace/auxtrace_info.h"

namespace hangscope {

// `pmu`: "cs_etm", "arm_spe_0"; nothing: no tracer that hangscope records.
std::optional<TracerKind> TracerKindOf(std::string_view pmu);

// How perf is told who ran when: by sched:sched_switch, by PERF_RECORD_SWITCH, or by the latter of
// everybody.
enum class ReportedSwitches : uint64_t {
  kNone = 0,
  kTracepoint = 1,
  kRecords = 2,
  kRecordsOfAll = 3
};

// One thread.
class TracerInfo {
 public:
  // `folder`: of the PMU in sysfs; `attr`: its event's; `cpus`: those that are traced. All that
  // sysfs says is read here. Fails where it does not say what the trace cannot be decoded without.
  static Result<TracerInfo> Read(FileSystem& files, const std::string& folder, TracerKind kind,
                                 const perf_event_attr& attr, const std::vector<int>& cpus);

  // CoreSight, from PERF_RECORD_AUX_OUTPUT_HW_ID: which id a CPU's trace has. Older kernels do not
  // tell: 0x10 + 2 * cpu.
  void StoreHardwareId(int cpu, uint64_t hardware_id);
  // Intel PT.
  void SetTime(const CounterTime& time);
  void SetSwitches(ReportedSwitches switches);

  // With its header.
  std::string Record() const;

 private:
  explicit TracerInfo(TracerKind kind) : kind_(kind) {}
  Status AddCoreSight(FileSystem& files, const std::string& folder, const perf_event_attr& attr,
                      const std::vector<int>& cpus);
  Status AddEtm(FileSystem& files, const std::string& folder, uint64_t config, int cpu);
  void AddIntelPt(FileSystem& files, const std::string& folder, const perf_event_attr& attr);

  TracerKind kind_;
  std::vector<uint64_t> words_;            // behind the type
  std::map<int, size_t> trace_id_of_cpu_;  // where in the words
};

}  // namespace hangscope

#endif
