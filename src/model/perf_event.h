// Events as Linux's perf records them: the types between those who record, those who write and read
// perf.data files, and those who find windows in them. The bytes are perf_event_open(2)'s.
#ifndef HANGSCOPE_MODEL_PERF_EVENT_H
#define HANGSCOPE_MODEL_PERF_EVENT_H

#include <linux/perf_event.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/window.h"

namespace hangscope {

struct PerfEvent {
  std::string name;  // as perf names it: "sched:sched_switch", "cs_etm//"
  perf_event_attr attr{};
  std::vector<uint64_t> ids;  // of its records (PERF_SAMPLE_IDENTIFIER)
  std::string format = {};    // of a tracepoint: its format file in tracefs; empty: none
  std::string system = {};    // of a tracepoint: "sched"
  // of a tracepoint: the kernel records only what matches this, of everybody (cpu/task_ends.h)
  std::string filter = {};
};

// One ring of ordinary events as it was read: whole records, oldest first, each as in a perf.data
// file.
struct PerfRing {
  int cpu = 0;   // -1: of a thread, wherever it runs
  int tid = -1;  // -1: of all
  uint64_t capacity_bytes = 0;
  uint64_t head = 0;    // bytes ever written to it, 64 bits
  std::string records;  // ends at `head`, where nothing was discarded there
  // of the oldest end: the kernel wrote over them while they were copied
  uint64_t discarded_bytes = 0;
  uint64_t lost_records = 0;         // that the kernel could not write, ever; as it counts them
  bool lost_before = false;          // there was more before `records`
  TimeNs recording_since = 0;        // monotonic
  TimeNs taken = 0;                  // monotonic: when its head was read
  std::vector<TimeSpan> blind = {};  // it was off, the newest last
};

// What PERF_RECORD_AUX says: the tracer wrote until `time`, up to `end_offset`.
struct AuxSpan {
  TimeSpan time;
  uint64_t begin_offset = 0;  // counting all bytes
  uint64_t end_offset = 0;
  std::optional<int64_t> task = {};
  uint64_t flags = 0;  // PERF_AUX_FLAG_*
};

struct AuxLoss {
  TimeSpan time;  // between the record before and the one that tells of it
  GapReason reason = GapReason::kNoRoom;
};

// A task ran there, and was traced.
struct AuxRun {
  int64_t task = 0;
  TimeSpan time;
};

// One AUX ring: what a hardware tracer wrote.
struct AuxRing {
  int cpu = 0;
  int tid = -1;
  uint64_t capacity_bytes = 0;
  uint64_t head = 0;  // bytes ever written to it, 64 bits, restored over wraps
  std::string bytes;  // the newest, ending at `head`
  bool lost_before = false;
  TimeNs taken = 0;
  TimeSpan blind{};
  // of `bytes`, ascending; what none of them has is nobody's that is known
  std::vector<AuxSpan> spans = {};
  std::vector<AuxLoss> losses = {};
  std::vector<AuxRun> runs = {};  // by time, as the tracer's own records say
  TimeNs runs_known_since = 0;    // from here on all of them; 0: they are not known
};

}  // namespace hangscope

#endif
