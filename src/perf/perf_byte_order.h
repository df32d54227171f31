// Recordings of machines of the other byte order: each part is turned to this machine's when it is
// read, so that nothing behind that need know. Texts and the bytes of hardware traces stay.
#ifndef HANGSCOPE_PERF_PERF_BYTE_ORDER_H
#define HANGSCOPE_PERF_PERF_BYTE_ORDER_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perf/perf_record.h"
#include "perf/tracepoint_format.h"

namespace hangscope {

// A file's header, an attribute with what is behind it in its section (words), and words alone.
std::string TurnPerfHeader(std::string_view header);
std::string TurnPerfAttribute(std::string_view attribute);
std::string TurnWords(std::string_view words);
// The 8 bytes before a record's body.
std::string TurnRecordHeader(std::string_view header);

// One thread.
class PerfRecordTurner {
 public:
  // `events` must outlive it, and not change.
  explicit PerfRecordTurner(const std::vector<PerfEvent>& events);

  // A whole record. The result is valid until the next call. What does not fit its own sizes is
  // turned as far as it does.
  std::string_view Turn(std::string_view record);

 private:
  class Cursor;
  size_t EventOf(uint32_t type, const std::string& words) const;
  void TurnSample(const perf_event_attr& attr, const std::optional<TracepointFormat>& format,
                  Cursor* cursor);
  void TurnOther(uint32_t type, uint16_t misc, Cursor* cursor);
  static void TurnTrailer(const perf_event_attr& attr, Cursor* cursor);

  const std::vector<PerfEvent>& events_;
  PerfRecordParser parser_;
  std::vector<std::optional<TracepointFormat>> formats_;  // of each event
  std::string turned_;
};

}  // namespace hangscope

#endif
