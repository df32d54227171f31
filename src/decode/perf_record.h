// The records of perf: from the bytes of a ring or of a perf.data file to fields.
// Source of the format: perf_event_open(2) and linux/perf_event.h.
#ifndef HANGSCOPE_DECODE_PERF_RECORD_H
#define HANGSCOPE_DECODE_PERF_RECORD_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "decode/tracepoint_format.h"
#include "model/perf_event.h"

namespace hangscope {

// Valid as long as the bytes that it was read from. What a record does not say is -1, 0 or empty.
struct PerfRecord {
  uint32_t type = 0;        // PERF_RECORD_*
  uint16_t misc = 0;
  size_t event = 0;         // of the events; the first where the record does not say
  TimeNs time = -1;         // of the event's clock
  int pid = -1;             // who ran when it was recorded: not always the one that it is about
  int tid = -1;
  int cpu = -1;
  uint64_t ip = 0;
  uint64_t address = 0;
  uint64_t period = 0;
  std::string_view call_chain;  // 64-bit words
  std::string_view raw;         // of a tracepoint
  std::string_view body;        // after the header: all of it
};

// Any thread may ask.
class PerfRecordParser {
 public:
  // `events` must outlive it, and not change.
  explicit PerfRecordParser(const std::vector<PerfEvent>& events);

  // The record at the begin of `bytes`, all of it there. Nothing where it cannot be one: sizes contradict.
  std::optional<PerfRecord> Parse(std::string_view bytes) const;
  const std::vector<PerfEvent>& events() const { return events_; }

 private:
  size_t EventOf(uint32_t type, std::string_view body) const;

  const std::vector<PerfEvent>& events_;
  std::unordered_map<uint64_t, size_t> event_of_id_;
};

// The size of the record at the begin of `bytes`: 0 where they are too few or it cannot be one.
size_t PerfRecordBytes(std::string_view bytes);

}  // namespace hangscope

#endif
