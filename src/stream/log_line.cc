#include "stream/log_line.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/hash.h"

namespace hangscope {
namespace {

// Numbers are looked for in so much of a line; the rest counts as one value.
constexpr size_t kLongestExamined = 1024;
constexpr size_t kFewestHexDigits = 8;  // of a number without 0x

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}
constexpr bool IsHex(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
constexpr bool IsWord(char c) { return IsDigit(c) || IsLetter(c) || c == '_'; }

// Reads forward; every Take leaves it where it was if it fails.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  std::string_view rest() const { return rest_; }
  bool AtEnd() const { return rest_.empty(); }
  char Peek() const { return rest_.empty() ? '\0' : rest_[0]; }
  bool Take(char c) {
    if (Peek() != c || rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool ScanOneOf(std::string_view set) {
    if (rest_.empty() || set.find(rest_[0]) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool ScanWord(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool ScanDigits(size_t least, size_t most) {
    size_t count = 0;
    while (count < rest_.size() && IsDigit(rest_[count])) ++count;
    if (count < least || count > most) return false;
    rest_.remove_prefix(count);
    return true;
  }
  bool ScanHexDigits(size_t count) {
    const std::string_view digits = rest_.substr(0, count);
    if (digits.size() < count || !std::all_of(digits.begin(), digits.end(), IsHex)) return false;
    rest_.remove_prefix(count);
    return true;
  }
  void SkipSpaces() {
    while (ScanOneOf(" \t")) {
    }
  }

 private:
  std::string_view rest_;
};

size_t Used(std::string_view before, const Scanner& after) {
  return before.size() - after.rest().size();
}

constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
constexpr std::string_view kWeekdays = "MonTueWedThuFriSatSun";

// One of `names`, which have three letters each.
bool ScanName(Scanner* in, std::string_view names) {
  const std::string_view word = in->rest().substr(0, 3);
  const size_t at = word.size() == 3 ? names.find(word) : std::string_view::npos;
  return at != std::string_view::npos && at % 3 == 0 && in->ScanWord(word);
}

// 12:31:54, 12:31:54.518, 12:31:54,518, 00:00:01.234,567
bool ScanClock(Scanner* in) {
  Scanner at = *in;
  if (!at.ScanDigits(1, 4) || !at.Take(':') || !at.ScanDigits(2, 2) || !at.Take(':') ||
      !at.ScanDigits(2, 2)) {
    return false;
  }
  for (int i = 0; i < 2; ++i) {
    Scanner fraction = at;
    if (fraction.ScanOneOf(".,:") && fraction.ScanDigits(1, 9)) at = fraction;
  }
  *in = at;
  return true;
}

void ScanZone(Scanner* in) {
  if (in->Take('Z') || in->ScanWord(" UTC") || in->ScanWord(" GMT")) return;
  Scanner at = *in;
  at.SkipSpaces();
  if (!at.ScanOneOf("+-") || !at.ScanDigits(2, 4)) return;
  if (at.Take(':') && !at.ScanDigits(2, 2)) return;
  *in = at;
}

// 2026-11-21, with a clock and a zone or without
bool ScanDate(Scanner* in) {
  Scanner at = *in;
  if (!at.rest().starts_with("19") && !at.rest().starts_with("20")) return false;
  constexpr std::string_view kBetween = "-/.";
  if (!at.ScanDigits(4, 4) || !at.ScanOneOf(kBetween) || !at.ScanDigits(2, 2) ||
      !at.ScanOneOf(kBetween) || !at.ScanDigits(2, 2)) {
    return false;
  }
  Scanner clock = at;
  if (clock.ScanOneOf("T _-") && ScanClock(&clock)) {
    ScanZone(&clock);
    at = clock;
  }
  *in = at;
  return true;
}

// 21/Nov/2026:12:31:54 +0000
bool ScanWebDate(Scanner* in) {
  Scanner at = *in;
  if (!at.ScanDigits(2, 2) || !at.Take('/') || !ScanName(&at, kMonths) || !at.Take('/') ||
      !at.ScanDigits(4, 4) || !at.Take(':') || !ScanClock(&at)) {
    return false;
  }
  ScanZone(&at);
  *in = at;
  return true;
}

// Fri Nov 21 12:31:54 2026, Nov 21 12:31:54
bool ScanNamedDate(Scanner* in) {
  Scanner at = *in;
  if (ScanName(&at, kWeekdays)) {
    (void)at.Take(',');
    at.SkipSpaces();
  }
  if (!ScanName(&at, kMonths) || !at.Take(' ')) return false;
  at.SkipSpaces();
  if (!at.ScanDigits(1, 2) || !at.Take(' ') || !ScanClock(&at)) return false;
  Scanner year = at;
  if (year.Take(' ') && year.ScanDigits(4, 4) && !IsWord(year.Peek())) at = year;
  *in = at;
  return true;
}

bool ScanUnitOfTime(Scanner* in) {
  for (const std::string_view unit : {"ms", "us", "ns", "ps", "fs", "s"}) {
    if (in->rest().starts_with(unit) &&
        (in->rest().size() == unit.size() || !IsWord(in->rest()[unit.size()]))) {
      return in->ScanWord(unit);
    }
  }
  return false;
}

// Seconds since 1970 of our days: 1732191114, with a fraction or in milliseconds.
bool ScanEpoch(Scanner* in, bool fraction_needed) {
  Scanner at = *in;
  const std::string_view digits = at.rest();
  if (!(digits.starts_with("15") || digits.starts_with("16") || digits.starts_with("17") ||
        digits.starts_with("18") || digits.starts_with("19") || digits.starts_with("20"))) {
    return false;
  }
  const bool milliseconds = at.ScanDigits(13, 13);
  if (!milliseconds && !at.ScanDigits(10, 10)) return false;
  Scanner fraction = at;
  const bool has_fraction = fraction.Take('.') && fraction.ScanDigits(1, 9);
  if (has_fraction) at = fraction;
  if (IsWord(at.Peek()) || (fraction_needed && !has_fraction)) return false;
  *in = at;
  return true;
}

// A line as it is taken apart.
class Normalizer {
 public:
  Normalizer(std::string_view line, std::string* text) : line_(line), text_(*text) {
    text_.clear();
  }

  uint64_t values() const { return values_; }
  bool says_something() const { return says_something_; }

  void Run() {
    (void)ScanLetterPrefix();
    while (at_ < line_.size()) {
      if (ScanTime() || ScanNumber() || ScanWord()) continue;
      ScanOther();
    }
    while (text_.ends_with(' ')) text_.pop_back();
  }

 private:
  std::string_view Rest() const { return line_.substr(at_); }
  char Before() const { return at_ == 0 ? '\0' : line_[at_ - 1]; }
  // The last character before the blanks before this one.
  char BeforeBlanks() const {
    size_t at = at_;
    while (at > 0 && line_[at - 1] == ' ') --at;
    return at == 0 ? '\0' : line_[at - 1];
  }
  bool AtWordStart() const { return !IsWord(Before()); }

  bool TimeOf(size_t length) {
    text_ += "<time>";
    at_ += length;
    return true;
  }
  bool ValueOf(size_t length, std::string_view placeholder) {
    values_ = HashWord(HashBytes(Rest().substr(0, length)), values_);
    text_ += placeholder;
    at_ += length;
    says_something_ = true;
    return true;
  }

  // "I (12345) wifi: ..." of ESP-IDF, "I1121 12:31:54.518123 ..." of glog.
  bool ScanLetterPrefix() {
    Scanner in(line_);
    if (!in.ScanOneOf("EWIDVF")) return false;
    Scanner glog = in;
    if (glog.ScanDigits(4, 4) && glog.Take(' ') && ScanClock(&glog))
      return TimeOf(Used(line_, glog));
    if (!in.ScanWord(" (")) return false;
    const size_t begin = Used(line_, in);
    if (!in.ScanDigits(1, 12) || in.Peek() != ')') return false;
    text_ += line_.substr(0, begin);
    at_ = begin;
    return TimeOf(Used(line_, in) - begin);
  }

  bool ScanTime() {
    const char first = Rest()[0];
    if (!AtWordStart() || (!IsDigit(first) && !IsLetter(first))) return false;
    Scanner in(Rest());
    if (IsLetter(first)) {
      if (!in_head_ || !ScanNamedDate(&in)) return false;
    } else if (!ScanDate(&in) && !ScanWebDate(&in) && !ScanEpoch(&in, !in_head_) &&
               !ScanSimulationTime(&in) && !ScanUptime(&in) && !(in_head_ && ScanHeadTime(&in))) {
      return false;
    }
    return TimeOf(Used(Rest(), in));
  }

  // 12:31:54 or 11-21 12:31:54 before the first word
  static bool ScanHeadTime(Scanner* in) {
    if (ScanClock(in)) return true;
    Scanner at = *in;
    if (!at.ScanDigits(2, 2) || !at.Take('-') || !at.ScanDigits(2, 2) || !at.Take(' ') ||
        !ScanClock(&at))
      return false;
    *in = at;
    return true;
  }

  // "@ 12300 ns:", as simulators print it, and "12300 ns:" at the line's begin
  bool ScanSimulationTime(Scanner* in) const {
    const bool after_at = BeforeBlanks() == '@';
    if (!after_at && !in_head_) return false;
    Scanner at = *in;
    if (!at.ScanDigits(1, 19)) return false;
    Scanner fraction = at;
    if (fraction.Take('.') && fraction.ScanDigits(1, 9)) at = fraction;
    Scanner unit = at;
    (void)unit.Take(' ');
    const bool has_unit = ScanUnitOfTime(&unit);
    if (has_unit) at = unit;
    if (!has_unit && !after_at) return false;
    if (std::string_view(":])|").find(at.Peek()) == std::string_view::npos || at.AtEnd())
      return false;
    *in = at;
    return true;
  }

  // [   12.345678] anywhere; 12.345678 before the first word
  bool ScanUptime(Scanner* in) const {
    Scanner at = *in;
    if (!at.ScanDigits(1, 10) || !at.Take('.')) return false;
    const Scanner fraction = at;
    if (!at.ScanDigits(1, 9)) return false;
    const size_t decimals = Used(fraction.rest(), at);
    const char open = BeforeBlanks();
    const bool bracketed = (open == '[' && at.Peek() == ']') || (open == '(' && at.Peek() == ')');
    const bool column = in_head_ && decimals >= 3 && !IsSizeNext(at);
    if (!(bracketed && (in_head_ || decimals == 6)) && !column) return false;
    if (IsWord(at.Peek()) || at.Peek() == '.' || at.Peek() == '%') return false;
    *in = at;
    return true;
  }
  // "12.345 MB" counts what was copied.
  static bool IsSizeNext(Scanner at) {
    at.SkipSpaces();
    if (at.Peek() == '%') return true;
    (void)at.ScanOneOf("kKMGT");
    (void)at.Take('i');
    return at.ScanOneOf("Bb") && !IsLetter(at.Peek());
  }

  bool ScanNumber() {
    if (!IsHex(Rest()[0]) || IsLetter(Before())) return false;
    const std::string_view rest = Rest();
    if (const size_t length = UuidLength(rest); length > 0) return ValueOf(length, "<id>");
    Scanner in(rest);
    if (in.ScanWord("0x") || in.ScanWord("0X")) {
      size_t digits = 0;
      while (digits < in.rest().size() && IsHex(in.rest()[digits])) ++digits;
      if (digits > 0) return ValueOf(2 + digits, "<hex>");
    }
    if (const size_t length = BareHexLength(rest); length > 0) return ValueOf(length, "<hex>");
    if (!IsDigit(rest[0])) return false;
    size_t length = 0;
    while (length < rest.size() && (IsDigit(rest[length]) || IsPartOfNumber(rest, length)))
      ++length;
    return ValueOf(length, "<n>");
  }
  // A point or comma between two digits.
  static bool IsPartOfNumber(std::string_view text, size_t at) {
    return (text[at] == '.' || text[at] == ',') && at + 1 < text.size() && IsDigit(text[at + 1]);
  }
  size_t UuidLength(std::string_view text) const {
    if (!AtWordStart()) return 0;
    Scanner in(text);
    constexpr std::array<size_t, 5> kGroups = {8, 4, 4, 4, 12};
    for (size_t i = 0; i < kGroups.size(); ++i) {
      if ((i > 0 && !in.Take('-')) || !in.ScanHexDigits(kGroups[i])) return 0;
    }
    return IsWord(in.Peek()) ? 0 : Used(text, in);
  }
  // Digits and letters mixed, as in a git hash: neither a number nor a word.
  size_t BareHexLength(std::string_view text) const {
    if (!AtWordStart()) return 0;
    size_t length = 0;
    bool digit = false;
    bool letter = false;
    while (length < text.size() && IsHex(text[length]))
      (IsDigit(text[length++]) ? digit : letter) = true;
    const bool whole = length == text.size() || !IsWord(text[length]);
    return whole && digit && letter && length >= kFewestHexDigits ? length : 0;
  }

  // A word keeps the digits that follow its letters: eth0, x86.
  bool ScanWord() {
    const std::string_view rest = Rest();
    if (!IsLetter(rest[0])) return false;
    size_t length = 1;
    while (length < rest.size() && (IsLetter(rest[length]) || IsDigit(rest[length]))) ++length;
    const std::string_view word = rest.substr(0, length);
    if (!IsLevel(word)) in_head_ = false;
    text_ += word;
    at_ += length;
    says_something_ = true;
    return true;
  }
  static bool IsLevel(std::string_view word) {
    if (word.size() > 8) return false;
    char upper[8] = {};
    std::transform(word.begin(), word.end(), upper, [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    const std::string_view name(upper, word.size());
    constexpr std::string_view kLevels[] = {
        "INFO",  "INF",    "WARN",  "WARNING",  "WRN", "ERROR", "ERR", "DEBUG", "DBG",
        "TRACE", "NOTICE", "FATAL", "CRITICAL", "I",   "W",     "E",   "D"};
    return std::find(std::begin(kLevels), std::end(kLevels), name) != std::end(kLevels);
  }

  // Blanks of any number are one: columns grow.
  void ScanOther() {
    const char c = line_[at_++];
    if (c != ' ' && c != '\t') {
      text_ += c;
    } else if (!text_.empty() && !text_.ends_with(' ')) {
      text_ += ' ';
    }
  }

  const std::string_view line_;
  std::string& text_;
  size_t at_ = 0;
  uint64_t values_ = kHashSeed;
  bool in_head_ = true;  // no word yet but the names of levels
  bool says_something_ = false;
};

// The length of the escape sequence at text[0], which is ESC.
size_t EscapeLength(std::string_view text) {
  if (text.size() < 2) return text.size();
  size_t at = 2;
  if (text[1] == '[') {  // CSI ... final byte (ECMA-48, 5.4)
    while (at < text.size() && (text[at] < 0x40 || text[at] > 0x7e)) ++at;
    return std::min(at + 1, text.size());
  }
  if (text[1] == ']') {  // OSC ... BEL or ESC backslash
    while (at < text.size() && text[at] != '\a' && text[at] != '\033') ++at;
    if (at < text.size() && text[at] == '\033') ++at;
    return std::min(at + 1, text.size());
  }
  return 2;
}

bool IsPlain(std::string_view line) {
  return std::none_of(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
  });
}

}  // namespace

std::string VisibleText(std::string_view line, bool* redrawn) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  while (line.starts_with('\r')) line.remove_prefix(1);  // of a line end that is \n\r
  std::string text;
  text.reserve(line.size());
  while (!line.empty()) {
    const char c = line[0];
    if (c == '\033') {
      line.remove_prefix(EscapeLength(line));
      continue;
    }
    line.remove_prefix(1);
    if (c == '\r' && !text.empty()) {
      if (redrawn != nullptr) *redrawn = true;
      text.clear();
    } else if (c == '\t') {
      text += ' ';
    } else if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) {
      text += c;
    }
  }
  return text;
}

LogLine NormalizeLogLine(std::string_view line, std::string* text) {
  LogLine result;
  std::string visible;
  if (!IsPlain(line)) {
    visible = VisibleText(line, &result.redrawn);
    line = visible;
  }
  Normalizer normalizer(line.substr(0, kLongestExamined), text);
  normalizer.Run();
  result.has_place = normalizer.says_something();
  result.place = HashBytes(*text);
  result.values = normalizer.values();
  if (line.size() > kLongestExamined)
    result.values = HashBytes(line.substr(kLongestExamined), result.values);
  if (text->size() > kLongestPlaceText) text->resize(kLongestPlaceText);
  return result;
}

}  // namespace hangscope
