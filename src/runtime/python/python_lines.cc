#include "runtime/python/python_lines.h"

#include <climits>
#include <cstddef>

namespace hangscope {
namespace {

constexpr uint8_t kFirstByte = 0x80;  // set in the first byte of an entry, and in no other
constexpr uint8_t kMoreFollows = 0x40;
constexpr uint8_t kValueBits = 0x3f;

enum EntryKind : int { kSameLineUpTo = 9, kOneLine = 10, kNoColumns = 13, kLong = 14, kNone = 15 };

// Six bits a byte, the lowest first; the lowest of all is the sign.
std::optional<int64_t> ReadSigned(std::string_view table, size_t at) {
  constexpr int kMostShift = 30;
  uint64_t value = 0;
  for (int shift = 0; shift <= kMostShift && at < table.size(); shift += 6, ++at) {
    const auto byte = static_cast<uint8_t>(table[at]);
    if ((byte & kFirstByte) != 0) break;
    value |= static_cast<uint64_t>(byte & kValueBits) << shift;
    if ((byte & kMoreFollows) != 0) continue;
    const auto size = static_cast<int64_t>(value >> 1);
    return (value & 1) != 0 ? -size : size;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int> LineOfUnit(std::string_view table, int first_line, uint64_t unit) {
  int64_t line = first_line;
  uint64_t end = 0;  // of the entry, in code units
  for (size_t at = 0; at < table.size();) {
    const auto head = static_cast<uint8_t>(table[at++]);
    if ((head & kFirstByte) == 0) return std::nullopt;
    const int kind = head >> 3 & 15;
    if (kind == kNoColumns || kind == kLong) {
      const auto change = ReadSigned(table, at);
      if (!change) return std::nullopt;
      line += *change;
    } else if (kind > kSameLineUpTo && kind < kNoColumns) {
      line += kind - kOneLine;
    }
    end += (head & 7) + 1;
    if (unit < end) {
      if (kind == kNone) return 0;
      return line > 0 && line <= INT_MAX ? std::optional<int>(static_cast<int>(line))
                                         : std::nullopt;
    }
    while (at < table.size() && (static_cast<uint8_t>(table[at]) & kFirstByte) == 0) ++at;
  }
  return std::nullopt;
}

}  // namespace hangscope
