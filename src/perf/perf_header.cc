#include "perf/perf_header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace hangscope {
namespace {

// PERF_RECORD_MISC_BUILD_ID_SIZE: the byte behind it says how long it is
constexpr uint16_t kMiscBuildIdSize = 1 << 15;
constexpr size_t kBuildIdBytes = 20;

// Takes one thing after the other; from the first that does not fit, there is nothing more.
class HeaderCursor {
 public:
  // `turn`: numbers are of the other byte order.
  explicit HeaderCursor(std::string_view bytes, bool turn = false) : rest_(bytes), turn_(turn) {}

  template <typename Number>
  Number Take() {
    Number number{};
    const std::string_view bytes = Bytes(sizeof number);
    if (!bytes.empty()) std::memcpy(&number, bytes.data(), sizeof number);
    if constexpr (std::is_integral_v<Number>) {
      auto* const begin = reinterpret_cast<char*>(&number);
      if (turn_) std::reverse(begin, begin + sizeof number);
    }
    return number;
  }
  std::string_view Bytes(uint64_t count) {
    if (count > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  perf_event_header TakeRecordHeader() {
    perf_event_header header{};
    header.type = Take<uint32_t>();
    header.misc = Take<uint16_t>();
    header.size = Take<uint16_t>();
    return header;
  }
  // Up to a NUL, which is taken, too.
  std::string_view Text() {
    const std::string_view bytes = Bytes(std::min(rest_.find('\0'), rest_.size()));
    (void)Bytes(1);
    return bytes;
  }
  // A length and so many bytes, of which the text ends at the first NUL.
  std::string_view SizedText() {
    const std::string_view bytes = Bytes(Take<uint32_t>());
    return bytes.substr(0, bytes.find('\0'));
  }
  std::string_view rest() const { return rest_; }
  bool ok() const { return ok_; }
  void SetTurn(bool turn) { turn_ = turn; }

 private:
  std::string_view rest_;
  bool turn_;
  bool ok_ = true;
};

}  // namespace

PerfMagic FindPerfMagic(std::string_view bytes) {
  if (bytes.starts_with("PERFILE2")) return PerfMagic::kThis;
  if (bytes.starts_with("2ELIFREP")) return PerfMagic::kOtherByteOrder;
  return bytes.starts_with("PERFFILE") ? PerfMagic::kOld : PerfMagic::kNone;
}

std::optional<PerfHeader> ParsePerfHeader(std::string_view bytes) {
  PerfHeader header;
  if (bytes.size() < kPerfPipeHeaderBytes) return std::nullopt;
  std::memcpy(&header, bytes.data(), std::min(bytes.size(), sizeof header));
  const bool is_whole = header.header_bytes == kPerfPipeHeaderBytes ||
                        (header.header_bytes >= sizeof header && bytes.size() >= sizeof header);
  return is_whole ? std::optional(header) : std::nullopt;
}

std::optional<PerfSection> ParsePerfSection(std::string_view bytes, bool turn) {
  HeaderCursor cursor(bytes, turn);
  PerfSection section;
  section.offset = cursor.Take<uint64_t>();
  section.bytes = cursor.Take<uint64_t>();
  return cursor.ok() ? std::optional(section) : std::nullopt;
}

std::optional<perf_event_attr> ParsePerfAttribute(std::string_view bytes) {
  if (bytes.size() < PERF_ATTR_SIZE_VER0) return std::nullopt;
  perf_event_attr attr{};
  std::memcpy(&attr, bytes.data(), PERF_ATTR_SIZE_VER0);
  const uint64_t size = attr.size == 0 ? PERF_ATTR_SIZE_VER0 : attr.size;
  if (size < PERF_ATTR_SIZE_VER0 || size > bytes.size()) return std::nullopt;
  std::memcpy(&attr, bytes.data(), std::min<uint64_t>(size, sizeof attr));
  return attr;
}

std::vector<uint64_t> ReadPerfWords(std::string_view words, bool turn) {
  HeaderCursor cursor(words, turn);
  std::vector<uint64_t> read(words.size() / sizeof(uint64_t));
  for (uint64_t& word : read) word = cursor.Take<uint64_t>();
  return read;
}

std::optional<std::string> ParsePerfText(std::string_view section, bool turn) {
  HeaderCursor cursor(section, turn);
  const std::string_view text = cursor.SizedText();
  if (!cursor.ok()) return std::nullopt;
  return std::string(text);
}

std::optional<std::string> ParsePerfTexts(std::string_view section, bool turn) {
  HeaderCursor cursor(section, turn);
  std::string all;
  const auto count = cursor.Take<uint32_t>();
  for (uint32_t i = 0; i < count && cursor.ok(); ++i) {
    if (i > 0) all += ' ';
    all += cursor.SizedText();
  }
  return cursor.ok() ? std::optional(all) : std::nullopt;
}

bool ParsePerfEventNames(std::string_view section, std::vector<PerfEventName>* names, bool turn) {
  HeaderCursor cursor(section, turn);
  const auto count = cursor.Take<uint32_t>();
  const auto attribute_bytes = cursor.Take<uint32_t>();
  for (uint32_t i = 0; i < count; ++i) {
    PerfEventName event;
    (void)cursor.Bytes(attribute_bytes);
    const auto ids = cursor.Take<uint32_t>();
    event.name = cursor.SizedText();
    const std::string_view words = cursor.Bytes(uint64_t{ids} * sizeof(uint64_t));
    if (!cursor.ok()) return false;
    event.ids = ReadPerfWords(words, turn);
    names->push_back(std::move(event));
  }
  return cursor.ok();
}

bool ParsePerfTracers(std::string_view section,
                      std::vector<std::pair<uint32_t, std::string>>* tracers, bool turn) {
  HeaderCursor cursor(section, turn);
  for (auto count = cursor.Take<uint32_t>(); count > 0 && cursor.ok(); --count) {
    const auto type = cursor.Take<uint32_t>();
    const std::string_view name = cursor.SizedText();
    if (cursor.ok()) tracers->emplace_back(type, name);
  }
  return cursor.ok();
}

std::optional<std::pair<std::string, std::string>> ParsePerfBuildId(std::string_view body,
                                                                    uint16_t misc) {
  HeaderCursor cursor(body);
  (void)cursor.Take<uint32_t>();  // the machine: of guests
  const std::string_view bytes = cursor.Bytes(kBuildIdBytes);
  const std::string_view size = cursor.Bytes(4);
  if (!cursor.ok()) return std::nullopt;
  const size_t length =
      (misc & kMiscBuildIdSize) != 0 ? static_cast<uint8_t>(size[0]) : kBuildIdBytes;
  const std::string_view path = cursor.rest().substr(0, cursor.rest().find('\0'));
  return std::pair(std::string(path), std::string(bytes.substr(0, length)));
}

bool ParsePerfBuildIds(std::string_view section,
                       std::vector<std::pair<std::string, std::string>>* build_ids, bool turn) {
  HeaderCursor cursor(section, turn);
  while (!cursor.rest().empty()) {
    const auto header = cursor.TakeRecordHeader();
    if (!cursor.ok() || header.size < sizeof header) return false;
    const auto build_id = ParsePerfBuildId(cursor.Bytes(header.size - sizeof header), header.misc);
    if (!build_id) return false;
    build_ids->push_back(*build_id);
  }
  return true;
}

// Of trace-cmd's making: magic, version, byte order, word size, page size; "header_page" and
// "header_event" with their texts; ftrace's own formats; then the systems with their tracepoints,
// and more that nobody needs here.
bool ParsePerfTracingData(std::string_view section, std::vector<PerfTracepoint>* tracepoints) {
  HeaderCursor cursor(section);
  if (cursor.Bytes(kPerfTracingMagic.size()) != kPerfTracingMagic) return false;
  (void)cursor.Text();
  constexpr bool kIsBig = std::endian::native == std::endian::big;
  cursor.SetTurn((cursor.Take<uint8_t>() != 0) != kIsBig);
  (void)cursor.Bytes(1 + sizeof(uint32_t));
  for (int file = 0; file < 2; ++file) {
    (void)cursor.Text();
    (void)cursor.Bytes(cursor.Take<uint64_t>());
  }
  for (auto count = cursor.Take<uint32_t>(); count > 0 && cursor.ok(); --count)
    (void)cursor.Bytes(cursor.Take<uint64_t>());
  for (auto systems = cursor.Take<uint32_t>(); systems > 0 && cursor.ok(); --systems) {
    const std::string system(cursor.Text());
    for (auto count = cursor.Take<uint32_t>(); count > 0 && cursor.ok(); --count) {
      const std::string_view format = cursor.Bytes(cursor.Take<uint64_t>());
      if (cursor.ok()) tracepoints->push_back({system, std::string(format)});
    }
  }
  return cursor.ok();
}

}  // namespace hangscope
