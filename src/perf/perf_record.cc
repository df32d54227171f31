#include "perf/perf_record.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "model/perf_format.h"

namespace hangscope {
namespace {

constexpr size_t kWord = 8;
// What a trailer may hold, in its order (sample_id_all).
// 146 years: no clock counts further, and differences of what it allows fit in a TimeNs.
constexpr uint64_t kLatestTime = uint64_t{1} << 62;

constexpr uint64_t kTrailer = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                              PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;

size_t Words(uint64_t bits) { return static_cast<size_t>(std::popcount(bits)); }

uint64_t WordAt(std::string_view bytes, size_t word) {
  uint64_t number;
  std::memcpy(&number, bytes.data() + word * kWord, sizeof number);
  return number;
}

int LowHalf(uint64_t word) { return static_cast<int>(static_cast<uint32_t>(word)); }
int HighHalf(uint64_t word) { return static_cast<int>(static_cast<uint32_t>(word >> 32)); }

// Takes a record's fields one after the other; `ok` turns false, for good, where one does not fit.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}

  uint64_t Word() {
    const std::string_view bytes = Words(1);
    return bytes.empty() ? 0 : WordAt(bytes, 0);
  }
  // A number of bytes that is no multiple of 8 is what raw data has: 32 bits of size come before
  // it.
  std::string_view SizedBytes() {
    if (rest_.size() < sizeof(uint32_t)) return Refuse();
    uint32_t size;
    std::memcpy(&size, rest_.data(), sizeof size);
    rest_.remove_prefix(sizeof size);
    return Take(size);
  }
  std::string_view Words(uint64_t count) {
    if (count > rest_.size() / kWord) return Refuse();
    return Take(count * kWord);
  }
  void SkipEach(uint64_t words, uint64_t count) {
    if (words != 0 && count > rest_.size() / kWord / words)
      (void)Refuse();
    else
      (void)Words(words * count);
  }
  bool ok() const { return ok_; }

 private:
  std::string_view Refuse() {
    ok_ = false;
    rest_ = {};
    return {};
  }
  std::string_view Take(uint64_t bytes) {
    if (bytes > rest_.size()) return Refuse();
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  std::string_view rest_;
  bool ok_ = true;
};

void SkipCounters(Cursor& cursor, uint64_t read_format) {
  (void)cursor.Words(PerfCounterWords(read_format, [&cursor] { return cursor.Word(); }));
}

void SkipBranches(Cursor& cursor, uint64_t branch_sample_type) {
  const uint64_t count = cursor.Word();
  if ((branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX) != 0) (void)cursor.Word();
  cursor.SkipEach(3, count);
}

void SkipRegisters(Cursor& cursor, uint64_t registers) {
  if (cursor.Word() != PERF_SAMPLE_REGS_ABI_NONE) (void)cursor.Words(Words(registers));
}

void SkipStack(Cursor& cursor) {
  const uint64_t bytes = cursor.Word();
  if (bytes == 0) return;
  (void)cursor.Words(bytes / kWord);
  (void)cursor.Word();  // how much of it is filled
}

// Behind the fields that somebody asks for: only whether they fit; and the last of all, the trace.
bool ParseRest(Cursor cursor, const perf_event_attr& attr, PerfRecord* record) {
  const uint64_t has = attr.sample_type;
  if ((has & PERF_SAMPLE_BRANCH_STACK) != 0) SkipBranches(cursor, attr.branch_sample_type);
  if ((has & PERF_SAMPLE_REGS_USER) != 0) SkipRegisters(cursor, attr.sample_regs_user);
  if ((has & PERF_SAMPLE_STACK_USER) != 0) SkipStack(cursor);
  (void)cursor.Words(Words(has & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT |
                                  PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION)));
  if ((has & PERF_SAMPLE_REGS_INTR) != 0) SkipRegisters(cursor, attr.sample_regs_intr);
  (void)cursor.Words(Words(has & (PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP |
                                  PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE)));
  if ((has & PERF_SAMPLE_AUX) != 0) record->aux = cursor.Words(cursor.Word() / kWord);
  return cursor.ok();
}

// False: the record is damaged.
bool TakeTime(uint64_t word, PerfRecord* record) {
  if (word > kLatestTime) return false;
  record->time = static_cast<TimeNs>(word);
  return true;
}

bool ParseSample(const perf_event_attr& attr, PerfRecord* record) {
  const uint64_t has = attr.sample_type;
  Cursor cursor(record->body);
  if ((has & PERF_SAMPLE_IDENTIFIER) != 0) (void)cursor.Word();
  if ((has & PERF_SAMPLE_IP) != 0) record->ip = cursor.Word();
  if ((has & PERF_SAMPLE_TID) != 0) {
    const uint64_t word = cursor.Word();
    record->pid = LowHalf(word);
    record->tid = HighHalf(word);
  }
  if ((has & PERF_SAMPLE_TIME) != 0 && !TakeTime(cursor.Word(), record)) return false;
  if ((has & PERF_SAMPLE_ADDR) != 0) record->address = cursor.Word();
  if ((has & PERF_SAMPLE_ID) != 0) (void)cursor.Word();
  if ((has & PERF_SAMPLE_STREAM_ID) != 0) (void)cursor.Word();
  if ((has & PERF_SAMPLE_CPU) != 0) record->cpu = LowHalf(cursor.Word());
  if ((has & PERF_SAMPLE_PERIOD) != 0) record->period = cursor.Word();
  if ((has & PERF_SAMPLE_READ) != 0) SkipCounters(cursor, attr.read_format);
  if ((has & PERF_SAMPLE_CALLCHAIN) != 0) record->call_chain = cursor.Words(cursor.Word());
  if ((has & PERF_SAMPLE_RAW) != 0) record->raw = cursor.SizedBytes();
  return ParseRest(cursor, attr, record);
}

bool ParseTrailer(const perf_event_attr& attr, PerfRecord* record) {
  if (attr.sample_id_all == 0) return true;
  const uint64_t has = attr.sample_type & kTrailer;
  const size_t bytes = PerfTrailerBytes(attr);
  if (record->body.size() < bytes) return false;
  Cursor cursor(record->body.substr(record->body.size() - bytes));
  const uint64_t ids = (has & PERF_SAMPLE_TID) != 0 ? cursor.Word() : 0;
  const uint64_t time = (has & PERF_SAMPLE_TIME) != 0 ? cursor.Word() : 0;
  // perf writes records of its own making (those who ran before it came) with trailers of zeros,
  // but for the id.
  if ((has & PERF_SAMPLE_TIME) != 0 && time == 0) return true;
  if ((has & PERF_SAMPLE_TID) != 0) {
    record->pid = LowHalf(ids);
    record->tid = HighHalf(ids);
  }
  if ((has & PERF_SAMPLE_TIME) != 0 && !TakeTime(time, record)) return false;
  (void)cursor.Words(Words(has & (PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID)));
  if ((has & PERF_SAMPLE_CPU) != 0) record->cpu = LowHalf(cursor.Word());
  return cursor.ok();
}

// Which word of a sample's body is the event's id. Nothing: it has none.
std::optional<size_t> IdOfSample(const perf_event_attr& attr) {
  if ((attr.sample_type & PERF_SAMPLE_IDENTIFIER) != 0) return 0;
  if ((attr.sample_type & PERF_SAMPLE_ID) == 0) return std::nullopt;
  return Words(attr.sample_type &
               (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR));
}

// The same of other records, counted from the body's end: 1 is the last word.
std::optional<size_t> IdOfTrailer(const perf_event_attr& attr) {
  if (attr.sample_id_all == 0) return std::nullopt;
  if ((attr.sample_type & PERF_SAMPLE_IDENTIFIER) != 0) return 1;
  if ((attr.sample_type & PERF_SAMPLE_ID) == 0) return std::nullopt;
  return 1 + Words(attr.sample_type & (PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU));
}

}  // namespace

size_t PerfTrailerBytes(const perf_event_attr& attr) {
  return attr.sample_id_all == 0 ? 0 : Words(attr.sample_type & kTrailer) * kWord;
}

PerfRecordParser::PerfRecordParser(const std::vector<PerfEvent>& events) : events_(events) {
  for (size_t i = 0; i < events.size(); ++i) {
    places_.push_back(PlacesOf(events[i].attr));
    for (const uint64_t id : events[i].ids) event_of_id_.push_back({id, i});
  }
  // Of several events with one id the first has it.
  std::stable_sort(event_of_id_.begin(), event_of_id_.end(),
                   [](const EventOfId& a, const EventOfId& b) { return a.id < b.id; });
  if (events.empty()) return;
  id_of_sample_ = IdOfSample(events.front().attr);
  id_of_other_ = IdOfTrailer(events.front().attr);
}

PerfRecordParser::Places PerfRecordParser::PlacesOf(const perf_event_attr& attr) {
  constexpr uint64_t kFixed = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                              PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
                              PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
  Places places;
  places.fixed = (attr.sample_type & ~(kFixed | PERF_SAMPLE_RAW)) == 0;
  places.has_raw = (attr.sample_type & PERF_SAMPLE_RAW) != 0;
  uint8_t unused = 0;
  const std::pair<uint64_t, uint8_t*> in_order[] = {
      {PERF_SAMPLE_IDENTIFIER, &unused},   {PERF_SAMPLE_IP, &places.ip},
      {PERF_SAMPLE_TID, &places.ids},      {PERF_SAMPLE_TIME, &places.time},
      {PERF_SAMPLE_ADDR, &places.address}, {PERF_SAMPLE_ID, &unused},
      {PERF_SAMPLE_STREAM_ID, &unused},    {PERF_SAMPLE_CPU, &places.cpu},
      {PERF_SAMPLE_PERIOD, &places.period}};
  for (const auto& [bit, place] : in_order) {
    if ((attr.sample_type & bit) != 0) *place = places.words++;
  }
  return places;
}

// As ParseSample.
bool PerfRecordParser::ParseSampleAt(const Places& places, PerfRecord* record) {
  const std::string_view body = record->body;
  const size_t fixed_bytes = places.words * kWord;
  if (body.size() < fixed_bytes) return false;
  if (places.ip != Places::kNone) record->ip = WordAt(body, places.ip);
  if (places.ids != Places::kNone) {
    const uint64_t word = WordAt(body, places.ids);
    record->pid = LowHalf(word);
    record->tid = HighHalf(word);
  }
  if (places.time != Places::kNone && !TakeTime(WordAt(body, places.time), record)) return false;
  if (places.address != Places::kNone) record->address = WordAt(body, places.address);
  if (places.cpu != Places::kNone) record->cpu = LowHalf(WordAt(body, places.cpu));
  if (places.period != Places::kNone) record->period = WordAt(body, places.period);
  if (!places.has_raw) return true;
  uint32_t raw_bytes;
  if (body.size() - fixed_bytes < sizeof raw_bytes) return false;
  std::memcpy(&raw_bytes, body.data() + fixed_bytes, sizeof raw_bytes);
  if (raw_bytes > body.size() - fixed_bytes - sizeof raw_bytes) return false;
  record->raw = body.substr(fixed_bytes + sizeof raw_bytes, raw_bytes);
  return true;
}

// Where the id is depends on the event, which only the id tells: so all events of a file have it at
// the same place, and one that has it elsewhere is not found there.
uint64_t PerfRecordParser::IdOf(uint32_t type, std::string_view body) const {
  const bool is_sample = type == PERF_RECORD_SAMPLE;
  const auto& word = is_sample ? id_of_sample_ : id_of_other_;
  const size_t words = body.size() / kWord;
  if (!word || (is_sample ? words <= *word : words < *word)) return 0;
  return WordAt(body, is_sample ? *word : words - *word);
}

size_t PerfRecordParser::EventOf(uint64_t id) const {
  if (events_.size() < 2) return 0;
  // Halves of what is left, without a branch that would be guessed wrong every other time.
  const EventOfId* at = event_of_id_.data();
  size_t left = event_of_id_.size();
  while (left > 1) {
    const size_t half = left / 2;
    at += at[half - 1].id < id ? half : 0;
    left -= half;
  }
  return left == 1 && at->id == id ? at->event : 0;
}

bool PerfRecordParser::Parse(std::string_view bytes, PerfRecord* record) const {
  const size_t size = PerfRecordBytes(bytes);
  if (size == 0 || size > bytes.size()) return false;
  perf_event_header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  // One that is made here is written field by field and then read in larger pieces, for which the
  // processor waits: a fifth of all the time that a file took.
  static constexpr PerfRecord kNothing;
  *record = kNothing;
  record->type = header.type;
  record->misc = header.misc;
  record->body = {bytes.data() + sizeof header, size - sizeof header};
  if (header.type >= kPerfToolRecordsBegin) return true;
  if (size % kWord != 0) return false;
  if (events_.empty()) return header.type != PERF_RECORD_SAMPLE;
  record->id = IdOf(header.type, record->body);
  record->event = EventOf(record->id);
  const perf_event_attr& attr = events_[record->event].attr;
  if (header.type != PERF_RECORD_SAMPLE) return ParseTrailer(attr, record);
  const Places& places = places_[record->event];
  return places.fixed ? ParseSampleAt(places, record) : ParseSample(attr, record);
}

}  // namespace hangscope
