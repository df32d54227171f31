// What perf's records say besides samples: names, forks, mappings, switches, losses, hardware
// traces. Each function takes a record of the named type, and gives nothing for another, or where
// its body is too short. Texts are as they are in the record, up to their NUL, and valid as long as
// it.
#ifndef HANGSCOPE_PERF_PERF_SIDE_BAND_H
#define HANGSCOPE_PERF_PERF_SIDE_BAND_H

#include <cstdint>
#include <optional>
#include <string_view>

#include "perf/perf_record.h"

namespace hangscope {

struct PerfComm {  // PERF_RECORD_COMM
  int pid = 0;
  int tid = 0;
  std::string_view name;
  bool by_exec = false;
};
std::optional<PerfComm> ParsePerfComm(const PerfRecord& record);

struct PerfTask {  // PERF_RECORD_FORK, PERF_RECORD_EXIT
  int pid = 0;
  int parent_pid = 0;
  int tid = 0;
  int parent_tid = 0;
  TimeNs time = 0;
};
std::optional<PerfTask> ParsePerfTask(const PerfRecord& record);

struct PerfMap {  // PERF_RECORD_MMAP, PERF_RECORD_MMAP2
  int pid = 0;    // -1: the kernel
  int tid = 0;
  uint64_t begin = 0;
  uint64_t bytes = 0;
  uint64_t file_offset = 0;
  bool executable = false;
  std::string_view build_id;  // bytes; empty: it does not say
  std::string_view path;
};
std::optional<PerfMap> ParsePerfMap(const PerfRecord& record);

struct PerfSwitch {        // PERF_RECORD_SWITCH, PERF_RECORD_SWITCH_CPU_WIDE
  bool out = false;        // the record's thread leaves the CPU; else it comes
  bool preempted = false;  // it leaves though it would go on
  int other_pid = -1;      // of CPU_WIDE: who comes when it leaves, who left when it comes
  int other_tid = -1;
};
std::optional<PerfSwitch> ParsePerfSwitch(const PerfRecord& record);

struct PerfAux {  // PERF_RECORD_AUX: the tracer wrote these bytes of its ring
  // of their begin. In overwrite mode the record has that of their end, and this is made of it
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t flags = 0;  // PERF_AUX_FLAG_*
};
std::optional<PerfAux> ParsePerfAux(const PerfRecord& record);

struct PerfThread {  // PERF_RECORD_ITRACE_START: whom the tracer traces from now on
  int pid = 0;
  int tid = 0;
};
std::optional<PerfThread> ParsePerfTraceStart(const PerfRecord& record);

// PERF_RECORD_LOST, and PERF_RECORD_LOST_SAMPLES of the kernel's, which have a time: how many
// records it had no room for since the one before.
std::optional<uint64_t> ParsePerfLost(const PerfRecord& record);
// PERF_RECORD_LOST_SAMPLES of perf's own, without a time: how many records of the event
// PerfRecord::id were lost in all, as Linux 6.0 and newer counts them.
std::optional<uint64_t> ParsePerfLostInAll(const PerfRecord& record);

}  // namespace hangscope

#endif
