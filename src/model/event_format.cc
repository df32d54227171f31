#include "model/event_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "base/utf8.h"

namespace hangscope {
namespace {

constexpr int kWidest = 64;  // of a conversion

// One conversion of printf: %[flags][width][length]type.
struct Conversion {
  bool zeros = false;
  bool left = false;
  int width = 0;
  char type = '\0';
};

// `text` is behind the %, and what belongs to it is taken. Its type is 0 where it is none of ours.
Conversion ScanConversion(std::string_view* text) {
  Conversion conversion;
  size_t at = 0;
  const auto peek = [&] { return at < text->size() ? (*text)[at] : '\0'; };
  for (; peek() == '0' || peek() == '-' || peek() == '#' || peek() == '+' || peek() == ' '; ++at) {
    conversion.zeros |= peek() == '0';
    conversion.left |= peek() == '-';
  }
  for (; peek() >= '0' && peek() <= '9'; ++at)
    conversion.width = std::min(kWidest, conversion.width * 10 + (peek() - '0'));
  while (peek() == 'l' || peek() == 'h' || peek() == 'z' || peek() == 'j' || peek() == 't') ++at;
  const char type = peek();
  if (type != '\0' && std::string_view("udixXpcs%").find(type) != std::string_view::npos) {
    conversion.type = type;
    ++at;
  }
  text->remove_prefix(at);
  return conversion;
}

// Null: the value has no name.
const std::string* NameOfValue(const TraceField& field, uint64_t bits) {
  const auto at =
      std::lower_bound(field.names.begin(), field.names.end(), bits,
                       [](const auto& name, uint64_t value) { return name.first < value; });
  return at == field.names.end() || at->first != bits ? nullptr : &at->second;
}

std::string Plain(const TraceField& field, const TraceValue& value, char type) {
  if (!value.known) return "?";
  const bool negative =
      field.type == TraceFieldType::kSigned && static_cast<int64_t>(value.bits) < 0;
  // What the sign of a small number was extended to is none of its bits.
  const bool small = negative && static_cast<int64_t>(value.bits) >= INT32_MIN;
  const uint64_t own_bits = small ? value.bits & UINT32_MAX : value.bits;
  if (field.type != TraceFieldType::kText && type != 'c') {
    if (const std::string* name = NameOfValue(field, value.bits)) return Printable(*name);
  }
  switch (type) {
    case 'x':
      return fmt::format("{:x}", own_bits);
    case 'X':
      return fmt::format("{:X}", own_bits);
    case 'p':
      return fmt::format("{:#x}", value.bits);
    case 'c':
      return Printable(CharactersOf(value.bits, 1));
    case 's':
      return field.type == TraceFieldType::kText ? Printable(value.text)
                                                 : fmt::format("{}", value.bits);
    default:
      break;
  }
  if (field.type == TraceFieldType::kText) return Printable(value.text);
  if (field.type == TraceFieldType::kPointer) return fmt::format("{:#x}", value.bits);
  return negative ? fmt::format("{}", static_cast<int64_t>(value.bits))
                  : fmt::format("{}", value.bits);
}

std::string Converted(const TraceField& field, const TraceValue& value,
                      const Conversion& conversion) {
  std::string text = Plain(field, value, conversion.type);
  const auto width = static_cast<size_t>(conversion.width);
  if (text.size() >= width) return text;
  const std::string fill(width - text.size(), conversion.zeros && !conversion.left ? '0' : ' ');
  if (conversion.left) return text + fill;
  if (conversion.zeros && text.starts_with("-")) return "-" + fill + text.substr(1);
  return fill + text;
}

}  // namespace

std::string CharactersOf(uint64_t bits, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text.push_back(static_cast<char>(bits >> 8 * i));
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

std::string FieldText(const TraceField& field, const TraceValue& value) {
  if (value.known && field.type == TraceFieldType::kBool) return value.bits != 0 ? "true" : "false";
  return Plain(field, value, 'u');
}

std::string FormatFields(std::string_view format, const std::vector<TraceField>& fields,
                         const std::vector<TraceValue>& values) {
  const size_t count = std::min(fields.size(), values.size());
  size_t used = 0;
  std::string text;
  while (!format.empty()) {
    const size_t percent = std::min(format.find('%'), format.size());
    text += format.substr(0, percent);
    format.remove_prefix(percent);
    if (format.empty()) break;
    const std::string_view whole = format;
    format.remove_prefix(1);
    const Conversion conversion = ScanConversion(&format);
    if (conversion.type == '%') {
      text += '%';
    } else if (conversion.type == '\0') {
      text += whole.substr(0, whole.size() - format.size());
    } else {
      text += used < count ? Converted(fields[used], values[used], conversion) : "?";
      if (used < count) ++used;
    }
  }
  // A field without a conversion is shown all the same.
  for (; used < count; ++used)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", fields[used].name,
                        Plain(fields[used], values[used], 'u'));
  return Printable(text);
}

}  // namespace hangscope
