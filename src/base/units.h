// Sizes, durations and rates as people write and read them.
#ifndef HANGSCOPE_BASE_UNITS_H
#define HANGSCOPE_BASE_UNITS_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace hangscope {

// "500M", "1.5G", "64KiB", "4096": a positive number with an optional binary
// suffix K, M, G or T (then an optional B or iB). Fails, naming `option` and an
// example, on zero, negatives, fractions of a byte, overflow and anything else.
Result<uint64_t> ParseSize(std::string_view option, std::string_view text);

// "10", "2.5", "10s", "500ms", "2m": a positive duration, seconds where no unit
// is given; at most 30 days.
Result<TimeNs> ParseDuration(std::string_view option, std::string_view text);

// What is measured in one of two ways; at most one is set.
struct TimeOrSize {
  TimeNs time = 0;
  uint64_t bytes = 0;

  bool none() const { return time == 0 && bytes == 0; }
};

// "2s" or "16M".
Result<TimeOrSize> ParseTimeOrSize(std::string_view option, std::string_view text);

std::string FormatSize(uint64_t bytes);           // "1.43 GiB", "512 B"
std::string FormatRate(double bytes_per_second);  // "56.1 MB/s"
std::string FormatElapsed(TimeNs ns);             // "41.2 s", "3 m 07 s", "2 h 05 m"
std::string FormatCount(uint64_t count);          // "1 203 345"
std::string FormatWallTime(TimeNs wall);          // "2026-01-31T12:00:00.123Z"

// What FormatWallTime writes, of the years 1970 to 2200.
std::optional<TimeNs> ParseWallTime(const std::string& text);

}  // namespace hangscope

#endif
