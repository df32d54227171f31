#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>

namespace hangscope {
namespace {

constexpr uint64_t kLargestSize = uint64_t{1} << 60;

// Splits "1.5G" into 1.5 and "G". The number has no sign and no exponent.
bool SplitNumber(std::string_view text, double* number, std::string_view* suffix) {
  const size_t digits = text.find_first_not_of("0123456789.");
  const std::string_view head = text.substr(0, digits);
  if (head.empty() || head == ".") return false;
  const auto [end, error] = std::from_chars(head.data(), head.data() + head.size(), *number);
  if (error != std::errc() || end != head.data() + head.size()) return false;
  *suffix = digits == std::string_view::npos ? std::string_view() : text.substr(digits);
  return true;
}

// The power of 1024 of a size suffix, or -1.
int SizeExponent(std::string_view suffix) {
  if (suffix.empty() || suffix == "B") return 0;
  constexpr std::string_view kLetters = "KMGT";
  const char letter = static_cast<char>(suffix[0] & ~0x20);
  const size_t at = kLetters.find(letter);
  const std::string_view rest = suffix.substr(1);
  if (at == std::string_view::npos || !(rest.empty() || rest == "B" || rest == "iB")) return -1;
  return static_cast<int>(at) + 1;
}

Status BadValue(std::string_view option, std::string_view text, std::string_view why,
                std::string_view example) {
  return Status::Usage(
      fmt::format("{} '{}': {}; for example {} {}", option, text, why, option, example));
}

}  // namespace

Result<uint64_t> ParseSize(std::string_view option, std::string_view text) {
  constexpr std::string_view kExample = "500M (suffixes K, M, G, T are powers of 1024)";
  double number = 0;
  std::string_view suffix;
  if (text.starts_with('-')) return BadValue(option, text, "a size cannot be negative", kExample);
  if (!SplitNumber(text, &number, &suffix)) return BadValue(option, text, "not a size", kExample);
  const int exponent = SizeExponent(suffix);
  if (exponent < 0) {
    return BadValue(option, text, fmt::format("unknown suffix '{}'", suffix), kExample);
  }
  const double bytes = std::ldexp(number, 10 * exponent);
  if (number == 0) return BadValue(option, text, "a ring of no bytes holds nothing", kExample);
  if (bytes < 1) return BadValue(option, text, "that is less than one byte", kExample);
  if (bytes > static_cast<double>(kLargestSize)) {
    return BadValue(option, text, "larger than any disk (the limit is 1048576T)", kExample);
  }
  return static_cast<uint64_t>(bytes);
}

Result<TimeNs> ParseDuration(std::string_view option, std::string_view text) {
  constexpr std::string_view kExample = "10 (seconds; or 500ms, 2m, 1h)";
  double number = 0;
  std::string_view suffix;
  if (text.starts_with('-')) return BadValue(option, text, "a time cannot be negative", kExample);
  if (!SplitNumber(text, &number, &suffix)) return BadValue(option, text, "not a time", kExample);
  double unit = 0;
  if (suffix.empty() || suffix == "s") unit = 1;
  if (suffix == "ms") unit = 1e-3;
  if (suffix == "m" || suffix == "min") unit = 60;
  if (suffix == "h") unit = 3600;
  if (unit == 0) return BadValue(option, text, fmt::format("unknown unit '{}'", suffix), kExample);
  const double seconds = number * unit;
  if (seconds < 0.001) return BadValue(option, text, "the least is 1ms", kExample);
  if (seconds > 30.0 * 86400) return BadValue(option, text, "the most is 30 days (720h)", kExample);
  return static_cast<TimeNs>(seconds * 1e9);
}

Result<TimeOrSize> ParseTimeOrSize(std::string_view option, std::string_view text) {
  TimeOrSize parsed;
  if (auto time = ParseDuration(option, text); time.ok()) {
    parsed.time = *time;
    return parsed;
  }
  if (auto bytes = ParseSize(option, text); bytes.ok()) {
    parsed.bytes = *bytes;
    return parsed;
  }
  return Status::Usage(
      fmt::format("{} '{}': neither a time nor a size; for example {} 2s or {} 16M", option, text,
                  option, option));
}

std::string FormatSize(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, kUnits[unit]);
}

std::string FormatRate(double bytes_per_second) {
  constexpr std::array kUnits = {"B/s", "kB/s", "MB/s", "GB/s"};
  size_t unit = 0;
  while (bytes_per_second >= 1000 && unit + 1 < kUnits.size()) {
    bytes_per_second /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes_per_second, unit == 0 || bytes_per_second >= 100 ? 0 : 1,
                     kUnits[unit]);
}

std::string FormatElapsed(TimeNs ns) {
  const double seconds = Seconds(ns);
  if (seconds < 100) return fmt::format("{:.1f} s", seconds);
  const int64_t whole = ns / kSecond;
  if (whole < 3600) return fmt::format("{} m {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} m", whole / 3600, whole / 60 % 60);
}

std::string FormatCount(uint64_t count) {
  std::string digits = std::to_string(count);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ' ');
  return digits;
}

std::string FormatWallTime(TimeNs wall) {
  const time_t seconds = wall / kSecond;
  tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     wall % kSecond / kMillisecond);
}

std::optional<TimeNs> ParseWallTime(const std::string& text) {
  tm utc{};
  int milliseconds = 0;
  char zone = 0;
  const int fields =
      std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%3d%c", &utc.tm_year, &utc.tm_mon,
                  &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &utc.tm_sec, &milliseconds, &zone);
  if (fields != 8 || zone != 'Z' || utc.tm_year < 1970 || utc.tm_year > 2200) return std::nullopt;
  utc.tm_year -= 1900;
  utc.tm_mon -= 1;
  return static_cast<TimeNs>(timegm(&utc)) * kSecond + milliseconds * kMillisecond;
}

}  // namespace hangscope
