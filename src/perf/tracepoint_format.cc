#include "perf/tracepoint_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/numbers.h"
#include "base/utf8.h"

namespace hangscope {
namespace {

constexpr size_t kMostFields = 1000;    // a tracepoint has a few dozen at most
constexpr uint32_t kMostElements = 64;  // of an array, when it is described
constexpr uint32_t kMostTyped = 16;     // of an array, that are fields of their own

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::optional<uint32_t> ParseNumber(std::string_view text) {
  return ParseWhole<uint32_t>(Trim(text));
}

// The value of "key:value;" in a line of a format file.
std::optional<std::string_view> Value(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  line.remove_prefix(at + key.size());
  const size_t end = line.find(';');
  if (end == std::string_view::npos) return std::nullopt;
  return Trim(line.substr(0, end));
}

}  // namespace

//   field:__data_loc char[] filename;	offset:8;	size:4;	signed:0;
std::optional<TracepointFormat::Field> TracepointFormat::ParseField(std::string_view line) {
  const auto declaration = Value(line, "field:");
  const auto offset = Value(line, "\toffset:");
  const auto size = Value(line, "\tsize:");
  if (!declaration || !offset || !size) return std::nullopt;
  const auto offset_bytes = ParseNumber(*offset);
  const auto size_bytes = ParseNumber(*size);
  if (!offset_bytes || !size_bytes) return std::nullopt;
  Field field;
  field.offset = *offset_bytes;
  field.size = *size_bytes;
  field.is_signed = Value(line, "\tsigned:") == "1";
  field.is_relative = declaration->starts_with("__rel_loc ");
  field.is_located = field.is_relative || declaration->starts_with("__data_loc ");
  std::string_view rest = *declaration;
  bool is_array = field.is_located;
  if (rest.ends_with(']')) {
    const size_t bracket = rest.rfind('[');
    if (bracket == std::string_view::npos) return std::nullopt;
    is_array = true;
    const auto elements = ParseNumber(rest.substr(bracket + 1, rest.size() - bracket - 2));
    field.elements = elements.value_or(1);
    rest = Trim(rest.substr(0, bracket));
  }
  const size_t space = rest.find_last_of(" \t*");
  if (space == std::string_view::npos || space + 1 == rest.size()) return std::nullopt;
  field.name = rest.substr(space + 1);
  const std::string_view type = rest.substr(0, space);
  field.is_text = is_array && (" " + std::string(type)).find(" char") != std::string::npos &&
                  type.find("unsigned") == std::string_view::npos;
  // Of an array whose length is a name or makes no sense, only its bytes are known.
  if (field.elements == 0 || field.size % field.elements != 0) field.elements = 1;
  return field;
}

std::optional<TracepointFormat> TracepointFormat::Parse(std::string_view text) {
  TracepointFormat format;
  bool has_id = false;
  bool is_common = true;  // up to the first empty line in the fields
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with("name:")) format.name_ = Trim(line.substr(5));
    if (line.starts_with("ID:")) {
      const auto id = ParseNumber(line.substr(3));
      has_id = id.has_value();
      format.id_ = id.value_or(0);
    }
    if (line.starts_with("print fmt:")) break;
    if (Trim(line).empty()) is_common = format.fields_.empty();
    auto field = ParseField(line);
    if (!field || format.fields_.size() == kMostFields) continue;
    field->is_common = is_common;
    format.fields_.push_back(std::move(*field));
  }
  if (format.name_.empty() || !has_id || format.fields_.empty()) return std::nullopt;
  format.ListValues();
  return format;
}

const TracepointFormat::Field* TracepointFormat::Find(std::string_view name) const {
  for (const Field& field : fields_) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

// Of an array the element `index`; of a text all of it.
TracepointFormat::Place TracepointFormat::PlaceOf(const Field& field, uint32_t index) {
  Place place;
  if (index >= field.elements) return place;
  place.size_ = field.is_text ? field.size : field.is_located ? 0 : field.size / field.elements;
  place.offset_ = uint64_t{field.offset} + uint64_t{index} * place.size_;
  place.is_signed_ = field.is_signed;
  place.is_text_ = field.is_text;
  place.is_located_ = field.is_located;
  place.is_relative_ = field.is_relative;
  return place;
}

TracepointFormat::Place TracepointFormat::PlaceOf(std::string_view field) const {
  if (const Field* whole = Find(field)) return PlaceOf(*whole, 0);
  const size_t bracket = field.find('[');
  if (bracket == std::string_view::npos || !field.ends_with(']')) return {};
  const Field* array = Find(field.substr(0, bracket));
  const auto index = ParseNumber(field.substr(bracket + 1, field.size() - bracket - 2));
  if (array == nullptr || array->is_text || !index) return {};
  return PlaceOf(*array, *index);
}

std::optional<std::string_view> TracepointFormat::Place::Text(std::string_view raw) const {
  if (!is_text_) return std::nullopt;
  uint64_t at = offset_;
  uint64_t size = size_;
  if (is_located_) {  // a word: how long in the upper half, where in the lower
    if (size != 4 || at + size > raw.size()) return std::nullopt;
    uint32_t location;
    std::memcpy(&location, raw.data() + at, sizeof location);
    at = (is_relative_ ? at + size : 0) + (location & 0xffff);
    size = location >> 16;
  }
  if (at + size > raw.size()) return std::nullopt;
  const std::string_view bytes = raw.substr(at, size);
  return bytes.substr(0, bytes.find('\0'));
}

std::optional<int64_t> TracepointFormat::Number(std::string_view raw,
                                                std::string_view field) const {
  return PlaceOf(field).Number(raw);
}

std::optional<std::string> TracepointFormat::Text(std::string_view raw,
                                                  std::string_view field) const {
  const auto text = PlaceOf(field).Text(raw);
  if (!text) return std::nullopt;
  return std::string(*text);
}

std::string TracepointFormat::DescribeField(std::string_view raw, const Field& field) {
  if (const auto text = PlaceOf(field, 0).Text(raw)) return Printable(*text);
  std::string numbers;
  for (uint32_t i = 0; i < std::min(field.elements, kMostElements); ++i) {
    const auto number = PlaceOf(field, i).Number(raw);
    if (!number) return "?";
    if (i > 0) numbers += ',';
    const bool address = !field.is_signed && field.size / field.elements == 8;
    numbers +=
        address ? fmt::format("{:#x}", static_cast<uint64_t>(*number)) : fmt::format("{}", *number);
  }
  return field.elements > kMostElements ? numbers + ",..." : numbers;
}

std::string TracepointFormat::Describe(std::string_view raw) const {
  std::string text;
  for (const Field& field : fields_) {
    if (field.is_common) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", Printable(field.name),
                        DescribeField(raw, field));
  }
  return text;
}

// Numbers of a size that there is.
bool TracepointFormat::IsTyped(const Field& field) {
  const uint32_t size = field.size / field.elements;
  return !field.is_located && !field.is_text && field.elements <= kMostTyped &&
         (size == 1 || size == 2 || size == 4 || size == 8);
}

std::vector<TraceField> TracepointFormat::TraceFields() const {
  std::vector<TraceField> fields;
  for (const Field& field : fields_) {
    if (field.is_common) continue;
    if (!IsTyped(field)) {
      fields.push_back({field.name, TraceFieldType::kText, 0});
      continue;
    }
    const int bits = static_cast<int>(field.size / field.elements * 8);
    const TraceFieldType type = field.is_signed ? TraceFieldType::kSigned
                                : bits == 64    ? TraceFieldType::kPointer
                                                : TraceFieldType::kUnsigned;
    for (uint32_t i = 0; i < field.elements; ++i) {
      fields.push_back(
          {field.elements == 1 ? field.name : fmt::format("{}[{}]", field.name, i), type, bits});
    }
  }
  return fields;
}

// One for each of TraceFields().
void TracepointFormat::ListValues() {
  for (size_t number = 0; number < fields_.size(); ++number) {
    const Field& field = fields_[number];
    if (field.is_common) continue;
    const bool is_typed = IsTyped(field);
    for (uint32_t i = 0; i < (is_typed ? field.elements : 1); ++i)
      values_.push_back({PlaceOf(field, i), number, is_typed});
  }
}

void TracepointFormat::TraceValues(std::string_view raw, std::vector<TraceValue>* values) const {
  values->resize(values_.size());
  for (size_t i = 0; i < values_.size(); ++i) {
    const ValuePlace& from = values_[i];
    TraceValue& value = (*values)[i];
    if (from.is_number) {
      const auto number = from.place.Number(raw);
      value.bits = static_cast<uint64_t>(number.value_or(0));
      value.text.clear();
      value.known = number.has_value();
      continue;
    }
    const Field& field = fields_[from.field];
    const auto text = from.place.Text(raw);
    value.bits = 0;
    if (text)
      value.text.assign(*text);
    else
      value.text = field.is_text ? "" : DescribeField(raw, field);
    value.known = text.has_value() || !field.is_text;
  }
}

void TracepointFormat::TurnBytes(std::span<char> raw) const {
  for (const Field& field : fields_) {
    const bool is_number = field.is_located || !field.is_text;
    const size_t each = field.is_located ? field.size : field.size / field.elements;
    if (!is_number || (each != 2 && each != 4 && each != 8)) continue;
    const size_t end = std::min<size_t>(size_t{field.offset} + field.size, raw.size());
    for (size_t at = field.offset; at + each <= end; at += each)
      std::reverse(raw.begin() + static_cast<ptrdiff_t>(at),
                   raw.begin() + static_cast<ptrdiff_t>(at + each));
  }
}

}  // namespace hangscope
