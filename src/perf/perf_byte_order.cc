#include "perf/perf_byte_order.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "model/perf_format.h"

namespace hangscope {
namespace {

constexpr size_t kWordBytes = 8;
constexpr size_t kTurnedHeaderBytes = sizeof(perf_event_header);

void Reverse(std::string* bytes, size_t at, size_t size) {
  if (at > bytes->size() || size > bytes->size() - at) return;
  std::reverse(bytes->begin() + static_cast<ptrdiff_t>(at),
               bytes->begin() + static_cast<ptrdiff_t>(at + size));
}

// What the kernel's records have between header and trailer, and perf's behind the header: i and h
// are numbers of 32 and 16 bits, w of 64, W as many of 64 as there are; the rest is text or bytes.
const char* LayoutOf(uint32_t type) {
  switch (type) {
    case PERF_RECORD_MMAP:
      return "iiwww";
    case PERF_RECORD_LOST:
      return "ww";
    case PERF_RECORD_COMM:
    case PERF_RECORD_ITRACE_START:
    case PERF_RECORD_SWITCH_CPU_WIDE:
      return "ii";
    case PERF_RECORD_EXIT:
    case PERF_RECORD_FORK:
      return "iiiiw";
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
    case PERF_RECORD_AUX:
      return "www";
    case PERF_RECORD_READ:
      return "iiW";
    case PERF_RECORD_MMAP2:
      return "iiwwwiiwwii";
    case PERF_RECORD_NAMESPACES:
      return "iiW";
    case PERF_RECORD_LOST_SAMPLES:
    case PERF_RECORD_CGROUP:
    case kPerfAuxOutputHardwareId:
      return "w";
    case PERF_RECORD_KSYMBOL:
      return "wihh";
    case PERF_RECORD_BPF_EVENT:
      return "hhi";
    case PERF_RECORD_TEXT_POKE:
      return "whh";
    case kPerfHeaderTracingData:
    case kPerfHeaderBuildId:
      return "i";
    case kPerfAuxtraceInfo:
      return "iiW";
    case kPerfAuxtrace:
      return "wwwiiii";
    case kPerfAuxtraceError:
      return "iiiiiiww";
    case kPerfThreadMap:
    case kPerfHeaderFeature:
    case kPerfCompressed2:
      return "w";
    case kPerfStat:
      return "wiiwww";
    case kPerfStatRound:
    case kPerfEventUpdate:
      return "ww";
    default:
      return "";
  }
}

}  // namespace

// Turns one number after the other; behind the end nothing more.
class PerfRecordTurner::Cursor {
 public:
  Cursor(std::string* bytes, size_t at, size_t end) : bytes_(bytes), at_(at), end_(end) {}

  uint64_t Word() { return Number<uint64_t>(); }
  void Words(uint64_t count) {
    for (; count > 0 && at_ < end_; --count) Word();
  }
  template <typename Unsigned>
  Unsigned Number() {
    Unsigned number{};
    if (end_ - at_ < sizeof number) {
      at_ = end_;
      return number;
    }
    Reverse(bytes_, at_, sizeof number);
    std::memcpy(&number, bytes_->data() + at_, sizeof number);
    at_ += sizeof number;
    return number;
  }
  void Numbers(std::string_view layout) {
    for (const char kind : layout) {
      if (kind == 'w') Number<uint64_t>();
      if (kind == 'i') Number<uint32_t>();
      if (kind == 'h') Number<uint16_t>();
      if (kind == 'W') Words(rest() / kWordBytes);
    }
  }
  std::span<char> Bytes(uint64_t count) {
    const size_t here = static_cast<size_t>(std::min<uint64_t>(count, rest()));
    at_ += here;
    return {bytes_->data() + at_ - here, here};
  }
  size_t rest() const { return end_ - at_; }

 private:
  std::string* bytes_;
  size_t at_;
  size_t end_;
};

std::string TurnWords(std::string_view words) {
  std::string turned(words);
  for (size_t at = 0; at + kWordBytes <= turned.size(); at += kWordBytes)
    Reverse(&turned, at, kWordBytes);
  return turned;
}

std::string TurnPerfHeader(std::string_view header) {
  constexpr size_t kMagicBytes = 8;
  std::string turned = std::string(header.substr(0, kMagicBytes)) +
                       TurnWords(header.substr(std::min(header.size(), kMagicBytes)));
  PerfHeader read;
  if (turned.size() < sizeof read) return turned;
  std::memcpy(&read, turned.data(), sizeof read);
  if (read.Has(kPerfFeatureHost) || read.Has(kPerfFeatureArchitecture)) return turned;
  // The features are bits of the machine's own words: of one of 32 bits, in halves.
  const size_t features = offsetof(PerfHeader, features);
  for (size_t at = features; at < sizeof read; at += kWordBytes)
    std::rotate(turned.begin() + static_cast<ptrdiff_t>(at),
                turned.begin() + static_cast<ptrdiff_t>(at + kWordBytes / 2),
                turned.begin() + static_cast<ptrdiff_t>(at + kWordBytes));
  return turned;
}

// perf_event_attr of linux/perf_event.h. Its flags are bits that the other order counts from the
// other end of each byte.
std::string TurnPerfAttribute(std::string_view attribute) {
  constexpr size_t kFlagsAt = 40;
  constexpr std::pair<size_t, size_t> kNumbers[] = {
      {0, 4},  {4, 4},   {8, 8},   {16, 8},  {24, 8},  {32, 8}, {48, 4},
      {52, 4}, {56, 8},  {64, 8},  {72, 8},  {80, 8},  {88, 4}, {92, 4},
      {96, 8}, {104, 4}, {108, 2}, {110, 2}, {112, 4}, {116, 4}};
  std::string turned(attribute);
  uint32_t size = 0;
  Reverse(&turned, 4, sizeof size);
  if (turned.size() >= 8) std::memcpy(&size, turned.data() + 4, sizeof size);
  Reverse(&turned, 4, sizeof size);
  const size_t own = std::min<size_t>(size == 0 ? PERF_ATTR_SIZE_VER0 : size, turned.size());
  for (const auto& [at, bytes] : kNumbers) {
    if (at + bytes <= own) Reverse(&turned, at, bytes);
  }
  for (size_t at = 120; at + kWordBytes <= own; at += kWordBytes) Reverse(&turned, at, kWordBytes);
  for (size_t at = kFlagsAt; at < std::min(kFlagsAt + kWordBytes, own); ++at) {
    auto byte = static_cast<uint8_t>(turned[at]);
    uint8_t reversed = 0;
    for (int bit = 0; bit < 8; ++bit, byte >>= 1)
      reversed = static_cast<uint8_t>(reversed << 1 | (byte & 1));
    turned[at] = static_cast<char>(reversed);
  }
  for (size_t at = own; at + kWordBytes <= turned.size(); at += kWordBytes)
    Reverse(&turned, at, kWordBytes);
  return turned;
}

std::string TurnRecordHeader(std::string_view header) {
  std::string turned(header.substr(0, kTurnedHeaderBytes));
  Reverse(&turned, 0, 4);
  Reverse(&turned, 4, 2);
  Reverse(&turned, 6, 2);
  return turned;
}

PerfRecordTurner::PerfRecordTurner(const std::vector<PerfEvent>& events)
    : events_(events), parser_(events) {
  for (const PerfEvent& event : events)
    formats_.push_back(event.format.empty() ? std::nullopt : TracepointFormat::Parse(event.format));
}

void PerfRecordTurner::TurnSample(const perf_event_attr& attr,
                                  const std::optional<TracepointFormat>& format, Cursor* cursor) {
  constexpr std::pair<uint64_t, const char*> kFixed[] = {
      {PERF_SAMPLE_IDENTIFIER, "w"}, {PERF_SAMPLE_IP, "w"},   {PERF_SAMPLE_TID, "ii"},
      {PERF_SAMPLE_TIME, "w"},       {PERF_SAMPLE_ADDR, "w"}, {PERF_SAMPLE_ID, "w"},
      {PERF_SAMPLE_STREAM_ID, "w"},  {PERF_SAMPLE_CPU, "ii"}, {PERF_SAMPLE_PERIOD, "w"}};
  const uint64_t has = attr.sample_type;
  for (const auto& [bit, layout] : kFixed) {
    if ((has & bit) != 0) cursor->Numbers(layout);
  }
  if ((has & PERF_SAMPLE_READ) != 0)
    cursor->Words(PerfCounterWords(attr.read_format, [cursor] { return cursor->Word(); }));
  if ((has & PERF_SAMPLE_CALLCHAIN) != 0) cursor->Words(cursor->Word());
  if ((has & PERF_SAMPLE_RAW) != 0) {
    const std::span<char> raw = cursor->Bytes(cursor->Number<uint32_t>());
    if (format) format->TurnBytes(raw);
  }
  cursor->Words(cursor->rest() / kWordBytes);
}

void PerfRecordTurner::TurnTrailer(const perf_event_attr& attr, Cursor* cursor) {
  constexpr std::pair<uint64_t, const char*> kFields[] = {
      {PERF_SAMPLE_TID, "ii"},      {PERF_SAMPLE_TIME, "w"}, {PERF_SAMPLE_ID, "w"},
      {PERF_SAMPLE_STREAM_ID, "w"}, {PERF_SAMPLE_CPU, "ii"}, {PERF_SAMPLE_IDENTIFIER, "w"}};
  for (const auto& [bit, layout] : kFields) {
    if ((attr.sample_type & bit) != 0) cursor->Numbers(layout);
  }
}

void PerfRecordTurner::TurnOther(uint32_t type, uint16_t misc, Cursor* cursor) {
  constexpr uint16_t kHasBuildId = 1 << 14;  // PERF_RECORD_MISC_MMAP_BUILD_ID
  constexpr size_t kBuildIdBytes = 24;
  constexpr size_t kNameBytes = 16;  // of a thread map's entry
  if (type == PERF_RECORD_MMAP2 && (misc & kHasBuildId) != 0) {
    cursor->Numbers("iiwww");
    cursor->Bytes(kBuildIdBytes);
    return cursor->Numbers("ii");
  }
  cursor->Numbers(LayoutOf(type));
  if (type != kPerfThreadMap) return;
  while (cursor->rest() >= kWordBytes) {
    cursor->Word();
    cursor->Bytes(kNameBytes);
  }
}

// The id is found as in this machine's order: it is a word, wherever it is.
size_t PerfRecordTurner::EventOf(uint32_t type, const std::string& record) const {
  return parser_.EventOfRecord(type,
                               TurnWords(std::string_view(record).substr(kTurnedHeaderBytes)));
}

std::string_view PerfRecordTurner::Turn(std::string_view record) {
  turned_ = record;
  if (record.size() < kTurnedHeaderBytes) return turned_;
  turned_.replace(0, kTurnedHeaderBytes, TurnRecordHeader(record));
  perf_event_header header;
  std::memcpy(&header, turned_.data(), sizeof header);
  if (header.type == kPerfHeaderAttr) {
    turned_.replace(kTurnedHeaderBytes, std::string::npos,
                    TurnPerfAttribute(record.substr(kTurnedHeaderBytes)));
    return turned_;
  }
  const bool is_kernels = header.type < kPerfToolRecordsBegin;
  if (!is_kernels || events_.empty()) {
    Cursor cursor(&turned_, kTurnedHeaderBytes, turned_.size());
    TurnOther(header.type, header.misc, &cursor);
    return turned_;
  }
  const size_t event = EventOf(header.type, turned_);
  const perf_event_attr& attr = events_[event].attr;
  if (header.type == PERF_RECORD_SAMPLE) {
    Cursor cursor(&turned_, kTurnedHeaderBytes, turned_.size());
    TurnSample(attr, formats_[event], &cursor);
    return turned_;
  }
  const size_t trailer = std::min(PerfTrailerBytes(attr), turned_.size() - kTurnedHeaderBytes);
  Cursor cursor(&turned_, kTurnedHeaderBytes, turned_.size() - trailer);
  TurnOther(header.type, header.misc, &cursor);
  Cursor behind(&turned_, turned_.size() - trailer, turned_.size());
  if (trailer > 0) TurnTrailer(attr, &behind);
  return turned_;
}

}  // namespace hangscope
