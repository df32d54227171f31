// PERF_RECORD_AUXTRACE_INFO: which hardware tracer perf recorded with, and how it was set. Nothing
// in it is trusted. Source of the format: cs_etm and intel_pt of Linux's tools/perf/util.
//
//   u32 type (TracerKind; 2 is intel_bts), u32 reserved, then words of 64 bits.
//
// CoreSight: header version (0, 1 or 2), PMU type << 32 | number of CPUs, snapshot mode; then for
// each CPU
//
//   magic, CPU, from version 1 on the number of registers that follow, registers
//
//   ETMv3, PTM (kEtmV3Magic): ETMCR, ETMTRACEIDR, ETMCCER, ETMIDR
//   ETMv4      (kEtmV4Magic): TRCCONFIGR, TRCTRACEIDR, TRCIDR0, 1, 2 and 8,
//              TRCAUTHSTATUS; newer ones: source of the time stamps
//   ETE        (kEteMagic):   as ETMv4 up to TRCAUTHSTATUS, then TRCDEVARCH; source of the time
//              stamps
//
// Intel PT: PMU type, time shift, multiplier and zero, whether those are right, bits of the event's
// `config` (TSC, no return compression), whether switches are recorded, snapshot mode, whether a
// ring belongs to a CPU; newer ones go on with the MTC bit and frequency bits, and the ratio of TSC
// and crystal clock.
#ifndef HANGSCOPE_HWTRACE_AUXTRACE_INFO_H
#define HANGSCOPE_HWTRACE_AUXTRACE_INFO_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hangscope {

enum class TracerKind : uint32_t { kIntelPt = 1, kCoreSight = 3, kArmSpe = 4 };

constexpr uint64_t kEtmV3Magic = 0x3030303030303030;
constexpr uint64_t kEtmV4Magic = 0x4040404040404040;
constexpr uint64_t kEteMagic = 0x5050505050505050;

enum class EtmKind { kEtmV3, kPtm, kEtmV4, kEte };

// How one CPU's trace unit was set: registers by their names in the architecture.
struct EtmSetting {
  EtmKind kind = EtmKind::kEtmV4;
  int cpu = 0;
  uint8_t trace_id = 0;  // 0: the file does not say it here
  uint32_t control = 0;  // TRCCONFIGR, ETMCR
  uint32_t id0 = 0;      // TRCIDR0; ETMIDR
  uint32_t id1 = 0;
  uint32_t id2 = 0;
  uint32_t id8 = 0;
  uint32_t code_extension = 0;  // ETMCCER
  uint32_t architecture = 0;    // TRCDEVARCH
  bool virtual_time = false;    // its time stamps count as CNTVCT does, by which perf has its time
};

// From counts of a CPU's counter to perf's time: ns = zero + (count * multiplier >> shift). Of a
// counter with fewer bits only those of `mask` count, from `since` on; 0: all.
struct CounterConversion {
  uint16_t shift = 0;
  uint32_t multiplier = 0;
  uint64_t zero = 0;
  uint64_t since = 0;
  uint64_t mask = 0;
};

struct IntelPtSetting {
  std::optional<CounterConversion> time;  // nothing: perf's time does not follow the counter
  bool snapshot = false;
  uint64_t mtc_frequency_bits = 0;  // of the event's `config`; 0: none
  uint32_t tsc_per_crystal = 0;     // ratio: numerator and denominator; 0: not known
  uint32_t crystal = 0;
};

struct AuxTraceInfo {
  TracerKind kind = TracerKind::kCoreSight;
  uint32_t pmu_type = 0;         // of the event that traced: perf_event_attr::type
  std::vector<EtmSetting> cpus;  // CoreSight; each CPU once
  IntelPtSetting intel_pt;
};

// `body`: of the record, behind its header. Fails with a sentence where the kind is not known or
// the body damaged.
Result<AuxTraceInfo> ParseAuxTraceInfo(std::string_view body);

// CoreSight's record, with other trace ids: by CPU; 0: it has none. What it does not name stays,
// and so does a body that is damaged.
std::string WithTraceIds(std::string body, const std::map<int, uint8_t>& ids);

// PERF_RECORD_AUX_OUTPUT_HW_ID of CoreSight (Linux 6.2): which id a CPU's trace has from now on.
//
//   bits 0 to 7: trace id; 8 to 39: sink (minor version 1, Linux 6.12): ids are its own, so that
//   CPUs of different sinks may have the same; 56 to 59: minor version; 60 to 63: version, 0
struct HardwareTraceId {
  uint8_t trace_id = 0;
  std::optional<uint32_t> sink;
};
// Nothing where the version is not known or the id cannot be.
std::optional<HardwareTraceId> ParseHardwareTraceId(uint64_t hardware_id);

// As perf converts it; nothing where the result does not fit.
std::optional<int64_t> PerfTimeOfCount(const CounterConversion& conversion, uint64_t count);

}  // namespace hangscope

#endif
