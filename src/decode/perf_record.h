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

#include "model/perf_event.h"

namespace hangscope {

// Valid as long as the bytes that it was read from. What a record does not say is -1, 0 or empty.
struct PerfRecord {
  uint32_t type = 0;        // PERF_RECORD_*
  uint16_t misc = 0;
  size_t event = 0;         // of the events; the first where the record does not say
  TimeNs time = -1;         // of the event's clock
  int pid = -1;
  int tid = -1;
  int cpu = -1;
  uint64_t ip = 0;
  uint64_t address = 0;
  uint64_t period = 0;
  std::string_view call_chain;  // 64-bit words
  std::string_view raw;         // of a tracepoint
  std::string_view body;        // after the header: all of it
};

class PerfRecordParser {
 public:
  explicit PerfRecordParser(const std::vector<PerfEvent>& events);

  // The record at the begin of `bytes`, all of it there. Nothing where it cannot be one: sizes contradict.
  std::optional<PerfRecord> Parse(std::string_view bytes) const;
  const std::vector<PerfEvent>& events() const { return events_; }

 private:
  const std::vector<PerfEvent>& events_;
  std::unordered_map<uint64_t, size_t> event_of_id_;
};

// The size of the record at the begin of `bytes`: 0 where they are too few or it cannot be one.
size_t PerfRecordBytes(std::string_view bytes);

// A tracepoint's fields, as its format file in tracefs says.
class TracepointFormat {
 public:
  static std::optional<TracepointFormat> Parse(std::string_view text);

  const std::string& name() const { return name_; }
  uint32_t id() const { return id_; }
  // Of a record's raw bytes; nothing where there is no such field, or too few bytes.
  std::optional<int64_t> Number(std::string_view raw, std::string_view field) const;
  std::optional<std::string> Text(std::string_view raw, std::string_view field) const;
  // "field=value field=value", as a person reads it.
  std::string Describe(std::string_view raw) const;

 private:
  struct Field {
    std::string name;
    uint32_t offset = 0;
    uint32_t size = 0;
    bool is_signed = false;
    bool is_text = false;
    bool is_located = false;  // __data_loc: where the text is
  };
  std::string name_;
  uint32_t id_ = 0;
  std::vector<Field> fields_;
};

}  // namespace hangscope

#endif
