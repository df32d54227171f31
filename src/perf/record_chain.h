// Where the next record of a damaged perf.data begins: a record has no mark, so it is found by
// those behind it, each of which must begin where the one before it ends.
#ifndef HANGSCOPE_PERF_RECORD_CHAIN_H
#define HANGSCOPE_PERF_RECORD_CHAIN_H

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>

#include "code/file_window.h"
#include "perf/perf_byte_order.h"
#include "perf/perf_record.h"

namespace hangscope {

// How far a record reaches.
struct PerfExtent {
  uint64_t bytes = 0;      // its header and body
  uint64_t following = 0;  // bytes that belong to it and stand behind it
};

// Whether `header`, of 8 bytes, can begin a record: of a type that there is or may come to be, and
// of a size that this type can have.
bool IsPlausiblePerfHeader(std::string_view header);

// Whether `header`, likewise, is of a record of the kernel's that is neither odd nor has anything
// behind it, whatever the events are.
bool IsPlainPerfHeader(std::string_view header);

// It has bits that no record has had, or is longer than a record of its type comes to be, of one of
// these events: perhaps it is none, or its size is wrong.
bool IsOddPerfRecord(std::string_view record, const std::vector<PerfEvent>& events);

// Of a record that is there as a whole. simpleperf keeps the upper half of a long record's size in
// its type.
PerfExtent PerfExtentOf(std::string_view record);

// One thread.
class RecordChain {
 public:
  // `events` are those that are known when something is looked for; both outlive it.
  RecordChain(File& file, const std::vector<PerfEvent>& events)
      : file_(file), scan_(file, kWindowBytes), probe_(file, kProbeBytes), events_(events) {}

  // The records are of the other byte order.
  void SetTurn() { turn_ = true; }
  bool IsPlausible(std::string_view header) const {
    if (!turn_) return IsPlausiblePerfHeader(header);
    return header.size() >= sizeof(perf_event_header) &&
           IsPlausiblePerfHeader(TurnRecordHeader(header));
  }
  // Whether a record may begin at `at`, as far as its header tells.
  Result<bool> IsPlausibleAt(uint64_t at, uint64_t end);
  // The first offset from `from` on at which several whole records stand one behind the other, or
  // fewer up to `end` itself, and in the first of which there are no others; `end` where there is
  // none.
  Result<uint64_t> Find(uint64_t from, uint64_t end);
  // The same where the first begins behind the header of the record at `at`, of `bytes`, and in it.
  Result<uint64_t> FindInside(uint64_t at, uint64_t bytes, uint64_t end) {
    return FindFirst(at + sizeof(perf_event_header), end, std::min(end, at + bytes));
  }

 private:
  static constexpr size_t kWindowBytes = 256 << 10;
  static constexpr size_t kProbeBytes = 64 << 10;

  Result<bool> IsChain(uint64_t at, uint64_t end);
  Result<uint64_t> FindFirst(uint64_t from, uint64_t end, uint64_t limit);

  File& file_;
  FileWindow scan_;
  FileWindow probe_;
  const std::vector<PerfEvent>& events_;
  bool turn_ = false;
  std::unique_ptr<PerfRecordParser> parser_;  // of so many events:
  std::unique_ptr<PerfRecordTurner> turner_;
  size_t parsed_events_ = 0;
};

}  // namespace hangscope

#endif
