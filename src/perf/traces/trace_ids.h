// Which CPU's trace has which CoreSight trace id: AUXTRACE_INFO says it, and since Linux 6.2 the
// kernel, in PERF_RECORD_AUX_OUTPUT_HW_ID, which counts where there is one.
#ifndef HANGSCOPE_PERF_TRACE_IDS_H
#define HANGSCOPE_PERF_TRACE_IDS_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hwtrace/auxtrace_info.h"
#include "model/perf_event.h"
#include "perf/perf_record.h"

namespace hangscope {

class TraceIds {
 public:
  // Takes a file's records in their order.
  void Add(const PerfRecord& record);
  // To be called once, after all records. `auxtrace_info`: the record's body.
  void Finish(const std::string& auxtrace_info);

  // Whether the traces are CoreSight's, whose bytes may be in frames.
  bool any() const { return !cpus_.empty(); }
  // Of an id in frames that the sink of `carrier` wrote; nothing: no CPU has it.
  std::optional<int> CpuOf(uint8_t id, int carrier) const;
  // Of AUXTRACE_INFO's CPUs.
  const std::vector<int>& cpus() const { return cpus_; }
  // Which sink a CPU writes into, where the kernel said it.
  std::optional<uint32_t> SinkOf(int cpu) const;
  // Whether all of them write into one sink, as the event that traces names it.
  bool NamesOneSink(const std::vector<PerfEvent>& events) const;
  // AUXTRACE_INFO for what `carrier`'s sink wrote.
  std::string InfoFor(int carrier) const;

 private:
  std::map<int, uint8_t> IdsIn(int carrier) const;

  std::map<int, HardwareTraceId> told_;  // by CPU, by the kernel
  std::string info_;
  uint32_t pmu_type_ = 0;
  std::vector<int> cpus_;
  std::map<int, uint8_t> ids_;  // by CPU, whichever sink it writes into
};

}  // namespace hangscope

#endif
