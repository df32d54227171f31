// The side band: records of names, forks, exits and mappings, by which others are understood. What
// there was before the recording is made up from /proc, as records like the kernel's.
#ifndef HANGSCOPE_CPU_SIDE_BAND_RECORDER_H
#define HANGSCOPE_CPU_SIDE_BAND_RECORDER_H

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "cpu/perf_ring.h"

namespace hangscope {

// That a thread or process was made, as the kernel tells where its maker is recorded: it is, too.
struct PerfFork {
  pid_t maker = 0;  // a thread
  TimeNs time = 0;
};
// Of side-band records, by the thread that was made.
std::map<pid_t, PerfFork> Forks(const std::string& records);

// What sample_id_all puts behind a record of ours (cpu/perf_open.h: Recorded).
struct PerfRecordEnd {
  pid_t pid = 0;
  pid_t tid = 0;
  TimeNs time = 0;
  int cpu = 0;
  uint64_t id = 0;
};
constexpr size_t kPerfRecordEndBytes = 32;
// Of a whole record that has one.
PerfRecordEnd EndOfPerfRecord(std::string_view record);
// A record as the kernel writes it; empty where it would be longer than one can be.
std::string MakePerfRecord(uint32_t type, uint16_t misc, const std::string& body,
                           const PerfRecordEnd& end);

// One thread.
class PerfSideBand {
 public:
  // Holds at most `most_bytes`; what comes later is counted.
  explicit PerfSideBand(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // Empties a ring of the kernel's.
  void Drain(const PerfPages& pages);
  // A thread's name, and of the first thread of a process its executable mappings, as /proc has
  // them now. `id`: of the event that the records are to belong to.
  void AddThread(FileSystem& files, pid_t pid, pid_t tid, TimeNs now, uint64_t id);
  // All is forgotten.
  void Clear();

  // Not in the order of time: the CPUs' one after the other.
  const std::string& records() const { return records_; }
  uint64_t lost() const { return lost_; }

 private:
  void Append(const std::string& record);

  const uint64_t most_bytes_;
  std::string records_;
  uint64_t lost_ = 0;
};

}  // namespace hangscope

#endif
