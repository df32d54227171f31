// Whole numbers that a person or another program wrote.
#ifndef HANGSCOPE_BASE_NUMBERS_H
#define HANGSCOPE_BASE_NUMBERS_H

#include <charconv>
#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace hangscope {

// The number that `text` is from its first character to its last, if it is from `least` to `most`.
// '-' stands only before a number of a signed type; '+' and blanks are refused.
template <std::integral Number>
std::optional<Number> ParseWhole(std::string_view text,
                                 Number least = std::numeric_limits<Number>::min(),
                                 Number most = std::numeric_limits<Number>::max(), int base = 10) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number, base);
  if (parsed.ec != std::errc() || parsed.ptr != end || number < least || number > most)
    return std::nullopt;
  return number;
}

inline bool HasHexPrefix(std::string_view text) {
  return text.starts_with("0x") || text.starts_with("0X");
}

// "1f" and "0x1f".
template <std::unsigned_integral Number>
std::optional<Number> ParseHex(std::string_view text) {
  return ParseWhole<Number>(text.substr(HasHexPrefix(text) ? 2 : 0), 0,
                            std::numeric_limits<Number>::max(), 16);
}

// "31" and "0x1f".
template <std::unsigned_integral Number>
std::optional<Number> ParseDecimalOrHex(std::string_view text) {
  return HasHexPrefix(text) ? ParseHex<Number>(text) : ParseWhole<Number>(text);
}

// "3" is from 3 to 3, "0-7" from 0 to 7. The first may be the greater one.
template <std::integral Number>
std::optional<std::pair<Number, Number>> ParseRange(std::string_view text) {
  const size_t dash = text.find('-');
  const auto first = ParseWhole<Number>(text.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? first : ParseWhole<Number>(text.substr(dash + 1));
  if (!first || !last) return std::nullopt;
  return std::pair(*first, *last);
}

}  // namespace hangscope

#endif
