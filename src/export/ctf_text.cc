#include "export/ctf_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/utf8.h"

namespace hangscope {
namespace {

constexpr size_t kMostOfName = 255;

bool IsLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// ASCII without a NUL. Eight bytes at once: this is asked of each text of each event.
bool IsPlain(std::string_view text) {
  constexpr uint64_t kOnes = 0x0101010101010101, kHighBits = 0x8080808080808080;
  size_t at = 0;
  for (; text.size() - at >= sizeof(uint64_t); at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, sizeof word);
    // Taking 1 from each byte turns a high bit on where one is 0, and nowhere where none is.
    if (((word | (word - kOnes)) & kHighBits) != 0) return false;
  }
  const std::string_view rest = text.substr(at);
  return std::all_of(rest.begin(), rest.end(),
                     [](char c) { return c != '\0' && static_cast<unsigned char>(c) < 0x80; });
}

bool IsUtf8WithoutNul(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = text[at] == '\0' ? 0 : Utf8Length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

}  // namespace

std::string CtfLiteral(std::string_view text) {
  std::string literal = "\"";
  for (const char c : Printable(text)) {
    if (c == '"' || c == '\\') literal.push_back('\\');
    literal.push_back(c);
  }
  return literal + "\"";
}

std::string CtfComment(std::string_view text) {
  std::string comment = "/* ";
  for (const char c : Printable(text)) {
    // Neither the end of this one nor the begin of another.
    if ((c == '/' && comment.back() == '*') || (c == '*' && comment.back() == '/'))
      comment.push_back(' ');
    comment.push_back(c);
  }
  return comment + " */";
}

std::string CtfFieldNames::Add(std::string_view name, size_t number) {
  std::string legal = "_";
  for (const char c : name.substr(0, kMostOfName)) legal.push_back(IsLetterOrDigit(c) ? c : '_');
  if (name.empty()) legal += fmt::format("field_{}", number);
  std::string unique = legal;
  // babeltrace2 compares the name as it is written with those before as it shows them.
  for (int i = 2; taken_.count(unique) != 0; ++i) unique = fmt::format("{}_{}", legal, i);
  taken_.insert(unique);
  taken_.insert(unique.substr(1));
  return unique;
}

std::string_view CtfString(std::string_view text, std::string* made) {
  if (IsPlain(text) || IsUtf8WithoutNul(text)) return text;
  *made = Printable(text);
  return *made;
}

}  // namespace hangscope
