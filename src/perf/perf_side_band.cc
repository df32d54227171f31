#include "perf/perf_side_band.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace hangscope {
namespace {

constexpr uint64_t kMostBuildIdBytes = 20;

template <typename Number>
Number At(const PerfRecord& record, size_t offset) {
  Number number;
  std::memcpy(&number, record.body.data() + offset, sizeof number);
  return number;
}

bool Is(const PerfRecord& record, uint32_t type, size_t least_bytes) {
  return record.type == type && record.body.size() >= least_bytes;
}

// The trailer behind it begins at a word, after at least one NUL.
std::string_view TextAt(const PerfRecord& record, size_t offset) {
  const std::string_view rest = record.body.substr(offset);
  return rest.substr(0, rest.find('\0'));
}

// What MMAP and MMAP2 begin with.
PerfMap BeginOfMap(const PerfRecord& record) {
  PerfMap map;
  map.pid = At<int>(record, 0);
  map.tid = At<int>(record, 4);
  map.begin = At<uint64_t>(record, 8);
  map.bytes = At<uint64_t>(record, 16);
  map.file_offset = At<uint64_t>(record, 24);
  return map;
}

std::optional<PerfMap> ParseMap(const PerfRecord& record) {
  if (!Is(record, PERF_RECORD_MMAP, 33)) return std::nullopt;
  PerfMap map = BeginOfMap(record);
  map.executable = (record.misc & PERF_RECORD_MISC_MMAP_DATA) == 0;
  map.path = TextAt(record, 32);
  return map;
}

bool IsLostSamples(const PerfRecord& record) {
  constexpr uint16_t kFiltered = 1 << 15;  // PERF_RECORD_MISC_LOST_SAMPLES_BPF: left out by wish
  return Is(record, PERF_RECORD_LOST_SAMPLES, 8) && (record.misc & kFiltered) == 0;
}

}  // namespace

std::optional<PerfComm> ParsePerfComm(const PerfRecord& record) {
  if (!Is(record, PERF_RECORD_COMM, 9)) return std::nullopt;
  return PerfComm{At<int>(record, 0), At<int>(record, 4), TextAt(record, 8),
                  (record.misc & PERF_RECORD_MISC_COMM_EXEC) != 0};
}

std::optional<PerfTask> ParsePerfTask(const PerfRecord& record) {
  if (!Is(record, PERF_RECORD_FORK, 24) && !Is(record, PERF_RECORD_EXIT, 24)) return std::nullopt;
  return PerfTask{At<int>(record, 0), At<int>(record, 4), At<int>(record, 8), At<int>(record, 12),
                  At<TimeNs>(record, 16)};
}

std::optional<PerfMap> ParsePerfMap(const PerfRecord& record) {
  if (record.type == PERF_RECORD_MMAP) return ParseMap(record);
  if (!Is(record, PERF_RECORD_MMAP2, 65)) return std::nullopt;
  PerfMap map = BeginOfMap(record);
  if ((record.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0) {
    map.build_id =
        record.body.substr(36, std::min<uint64_t>(At<uint8_t>(record, 32), kMostBuildIdBytes));
  }
  map.executable = (At<uint32_t>(record, 56) & PROT_EXEC) != 0;
  map.path = TextAt(record, 64);
  return map;
}

std::optional<PerfSwitch> ParsePerfSwitch(const PerfRecord& record) {
  const bool wide = Is(record, PERF_RECORD_SWITCH_CPU_WIDE, 8);
  if (!wide && record.type != PERF_RECORD_SWITCH) return std::nullopt;
  PerfSwitch change;
  change.out = (record.misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
  change.preempted = change.out && (record.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
  if (wide) change.other_pid = At<int>(record, 0);
  if (wide) change.other_tid = At<int>(record, 4);
  return change;
}

std::optional<PerfAux> ParsePerfAux(const PerfRecord& record) {
  if (!Is(record, PERF_RECORD_AUX, 24)) return std::nullopt;
  PerfAux aux{At<uint64_t>(record, 0), At<uint64_t>(record, 8), At<uint64_t>(record, 16)};
  if ((aux.flags & PERF_AUX_FLAG_OVERWRITE) != 0) {
    aux.bytes = std::min(aux.bytes, aux.offset);
    aux.offset -= aux.bytes;
  }
  return aux;
}

std::optional<PerfThread> ParsePerfTraceStart(const PerfRecord& record) {
  if (!Is(record, PERF_RECORD_ITRACE_START, 8)) return std::nullopt;
  return PerfThread{At<int>(record, 0), At<int>(record, 4)};
}

std::optional<uint64_t> ParsePerfLost(const PerfRecord& record) {
  if (Is(record, PERF_RECORD_LOST, 16)) return At<uint64_t>(record, 8);
  if (IsLostSamples(record) && record.time >= 0) return At<uint64_t>(record, 0);
  return std::nullopt;
}

std::optional<uint64_t> ParsePerfLostInAll(const PerfRecord& record) {
  if (IsLostSamples(record) && record.time < 0) return At<uint64_t>(record, 0);
  return std::nullopt;
}

}  // namespace hangscope
