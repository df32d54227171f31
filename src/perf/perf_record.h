// The records of perf: from the bytes of a ring or of a perf.data file to fields.
// Source of the format: perf_event_open(2) and linux/perf_event.h.
#ifndef HANGSCOPE_PERF_PERF_RECORD_H
#define HANGSCOPE_PERF_PERF_RECORD_H

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/perf_event.h"
#include "perf/tracepoint_format.h"

namespace hangscope {

// Valid as long as the bytes that it was read from. What a record does not say is -1, 0 or empty.
struct PerfRecord {
  static constexpr size_t kNoTrace = SIZE_MAX;

  uint32_t type = 0;  // PERF_RECORD_*
  uint16_t misc = 0;
  size_t event = 0;  // of the events; the first where the record does not say
  uint64_t id = 0;   // of PerfEvent::ids
  TimeNs time = -1;  // of the event's clock
  int pid = -1;      // who ran when it was recorded: not always the one that it is about
  int tid = -1;
  int cpu = -1;
  uint64_t ip = 0;
  uint64_t address = 0;
  uint64_t period = 0;
  std::string_view call_chain;  // 64-bit words
  std::string_view raw;         // of a tracepoint
  std::string_view aux;         // of a hardware tracer's area, which a sample may have
  size_t aux_trace = kNoTrace;  // of PerfFile::aux(): where these bytes are
  std::string_view body;        // after the header: all of it
};

// Any thread may ask.
class PerfRecordParser {
 public:
  // `events` must outlive it, and not change.
  explicit PerfRecordParser(const std::vector<PerfEvent>& events);

  // The record at the begin of `bytes`, all of it there. Nothing where it cannot be one: sizes
  // contradict.
  std::optional<PerfRecord> Parse(std::string_view bytes) const {
    PerfRecord record;
    return Parse(bytes, &record) ? std::optional(record) : std::nullopt;
  }
  // The same into *record; false, and it means nothing: it cannot be one.
  bool Parse(std::string_view bytes, PerfRecord* record) const;
  const std::vector<PerfEvent>& events() const { return events_; }
  // Which event a record with this body is of; the first where it does not say.
  size_t EventOfRecord(uint32_t type, std::string_view body) const {
    return EventOf(IdOf(type, body));
  }

 private:
  // Where the samples of an event have what, if none of it stands behind something whose size they
  // tell themselves.
  struct Places {
    static constexpr uint8_t kNone = 0xff;

    bool fixed = false;
    // words of the body
    uint8_t ip = kNone, ids = kNone, time = kNone, address = kNone, cpu = kNone, period = kNone;
    uint8_t words = 0;     // of all these
    bool has_raw = false;  // behind them
  };
  struct EventOfId {
    uint64_t id = 0;
    size_t event = 0;
  };

  static Places PlacesOf(const perf_event_attr& attr);
  static bool ParseSampleAt(const Places& places, PerfRecord* record);
  uint64_t IdOf(uint32_t type, std::string_view body) const;
  size_t EventOf(uint64_t id) const;

  const std::vector<PerfEvent>& events_;
  std::vector<Places> places_;          // of each of them
  std::optional<size_t> id_of_sample_;  // which word of its body; nothing: none is
  std::optional<size_t> id_of_other_;   // which word from the body's end, 1 is the last
  std::vector<EventOfId> event_of_id_;  // ascending
};

// Of an event's records that are no samples: how many bytes of ids and times they end with.
size_t PerfTrailerBytes(const perf_event_attr& attr);

// How many words follow of the counters that a sample has; `next` gives the first of them, where
// that says how many counters there are.
template <typename Next>
uint64_t PerfCounterWords(uint64_t read_format, const Next& next) {
  const auto words = [read_format](uint64_t bits) {
    return static_cast<uint64_t>(std::popcount(read_format & bits));
  };
  const uint64_t each = 1 + words(PERF_FORMAT_ID | PERF_FORMAT_LOST);
  const uint64_t count = (read_format & PERF_FORMAT_GROUP) != 0 ? next() : 1;
  const uint64_t times = words(PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
  return count > UINT16_MAX ? UINT64_MAX : times + each * count;
}

}  // namespace hangscope

#endif
