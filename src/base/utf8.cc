#include "base/utf8.h"

#include <fmt/format.h>

namespace hangscope {
namespace {

// C0, DEL, C1 (c2 80 to c2 9f in UTF-8), and what changes the direction of writing
// (U+202A to U+202E, U+2066 to U+2069).
bool IsControl(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7f;
  const auto last = static_cast<unsigned char>(sequence.back());
  if (sequence.starts_with("\xe2\x80")) return last >= 0xaa && last <= 0xae;
  if (sequence.starts_with("\xe2\x81")) return last >= 0xa6 && last <= 0xa9;
  return first == 0xc2 && last < 0xa0;
}

std::string Escaped(std::string_view bytes) {
  if (bytes == "\n") return "\\n";
  if (bytes == "\t") return "\\t";
  if (bytes == "\r") return "\\r";
  std::string text;
  for (const char byte : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return text;
}

// Neither overlong, nor half of a pair of UTF-16, nor beyond the last character.
bool IsStrict(std::string_view sequence) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(sequence[i]); };
  if (sequence.size() == 3)
    return !(byte(0) == 0xe0 && byte(1) < 0xa0) && !(byte(0) == 0xed && byte(1) >= 0xa0);
  if (sequence.size() == 4)
    return !(byte(0) == 0xf0 && byte(1) < 0x90) && !(byte(0) == 0xf4 && byte(1) >= 0x90);
  return !sequence.empty();
}

}  // namespace

void AppendUtf8(char32_t c, std::string* text) {
  const auto byte = [&](char32_t value) { text->push_back(static_cast<char>(value)); };
  if (c < 0x80) return byte(c);
  if (c < 0x800) {
    byte(0xc0 | c >> 6);
  } else if (c < 0x10000) {
    byte(0xe0 | c >> 12);
    byte(0x80 | (c >> 6 & 0x3f));
  } else {
    byte(0xf0 | c >> 18);
    byte(0x80 | (c >> 12 & 0x3f));
    byte(0x80 | (c >> 6 & 0x3f));
  }
  byte(0x80 | (c & 0x3f));
}

size_t Utf8Length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(at);
  const size_t length = first < 0x80                    ? 1
                        : first >= 0xc2 && first < 0xe0 ? 2
                        : (first & 0xf0) == 0xe0        ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

std::string Printable(std::string_view text, size_t most) {
  std::string printable;
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8Length(text, at);
    const std::string_view sequence = text.substr(at, length == 0 ? 1 : length);
    const bool escape = length == 0 || IsControl(sequence);
    const std::string piece = escape ? Escaped(sequence) : std::string(sequence);
    if (printable.size() + piece.size() > most) return printable + "...";
    printable += piece;
    at += sequence.size();
  }
  return printable;
}

std::string PrintableLines(std::string_view text) {
  std::string printable;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    printable += Printable(text.substr(at, end - at));
    if (end < text.size()) printable += '\n';
    at = end + 1;
  }
  return printable;
}

std::string ValidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const std::string_view sequence = text.substr(at, Utf8Length(text, at));
    const bool good = IsStrict(sequence);
    valid += good ? sequence : "\xef\xbf\xbd";
    at += good ? sequence.size() : 1;
  }
  return valid;
}

}  // namespace hangscope
