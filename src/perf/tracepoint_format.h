// A tracepoint's fields, as its format file in tracefs says (Documentation/trace/events.rst of
// Linux).
#ifndef HANGSCOPE_PERF_TRACEPOINT_FORMAT_H
#define HANGSCOPE_PERF_TRACEPOINT_FORMAT_H

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/trace.h"

namespace hangscope {

// Numbers are in this machine's byte order. Neither the format nor the raw bytes are trusted. Any
// thread may ask.
class TracepointFormat {
 public:
  // Nothing where `text` has no name, no id or no field.
  static std::optional<TracepointFormat> Parse(std::string_view text);

  const std::string& name() const { return name_; }
  uint32_t id() const { return id_; }
  // Of a record's raw bytes; nothing where there is no such field, too few bytes, or it is no
  // number of 1, 2, 4 or 8 bytes. Of an array "args": its first element; "args[2]": its third.
  std::optional<int64_t> Number(std::string_view raw, std::string_view field) const;
  // As it is in the record, up to its first NUL; nothing where the field is no text.
  std::optional<std::string> Text(std::string_view raw, std::string_view field) const;

  // Where a field is, for those who ask for it in each record: looked up once.
  class Place {
   public:
    // As TracepointFormat::Number and Text; views are into `raw`.
    std::optional<int64_t> Number(std::string_view raw) const;
    std::optional<std::string_view> Text(std::string_view raw) const;

   private:
    friend class TracepointFormat;
    uint64_t offset_ = 0;
    uint32_t size_ = 0;  // of a number, of a text with its NUL; 0: there is none
    bool is_signed_ = false;
    bool is_text_ = false;
    bool is_located_ = false;   // __data_loc, __rel_loc: where the text is
    bool is_relative_ = false;  // __rel_loc: counted from the field's end
  };
  // As Number() and Text() find it; one that is not there has neither in any record.
  Place PlaceOf(std::string_view field) const;
  // "field=value field=value", as a person reads it, without those that all tracepoints have.
  // Control characters are escaped.
  std::string Describe(std::string_view raw) const;

  // Those that not all tracepoints have, typed; the elements of a short array one by one, a long
  // one as text.
  std::vector<TraceField> TraceFields() const;
  // Of a machine of the other byte order: turns each number in `raw` around.
  void TurnBytes(std::span<char> raw) const;
  // Replaces *values by one for each of these.
  void TraceValues(std::string_view raw, std::vector<TraceValue>* values) const;

 private:
  struct Field {
    std::string name;
    uint32_t offset = 0;
    uint32_t size = 0;
    uint32_t elements = 1;  // of an array; each of size / elements bytes
    bool is_signed = false;
    bool is_text = false;
    bool is_located = false;   // __data_loc, __rel_loc: where the text is
    bool is_relative = false;  // __rel_loc: counted from the field's end
    bool is_common = false;    // all tracepoints have it
  };

  // A value of TraceValues.
  struct ValuePlace {
    Place place;
    size_t field = 0;  // of fields_
    bool is_number = false;
  };

  static std::optional<Field> ParseField(std::string_view line);
  static Place PlaceOf(const Field& field, uint32_t index);
  void ListValues();
  const Field* Find(std::string_view name) const;
  static std::string DescribeField(std::string_view raw, const Field& field);
  static bool IsTyped(const Field& field);

  std::string name_;
  uint32_t id_ = 0;
  std::vector<Field> fields_;
  std::vector<ValuePlace> values_;
};

inline std::optional<int64_t> TracepointFormat::Place::Number(std::string_view raw) const {
  if (is_text_ || offset_ + size_ > raw.size()) return std::nullopt;
  const char* const bytes = raw.data() + offset_;
  const auto load = [bytes]<typename Unsigned>(Unsigned number) {
    std::memcpy(&number, bytes, sizeof number);
    return number;
  };
  switch (size_) {
    case 1:
      return is_signed_ ? int64_t{load(int8_t{})} : int64_t{load(uint8_t{})};
    case 2:
      return is_signed_ ? int64_t{load(int16_t{})} : int64_t{load(uint16_t{})};
    case 4:
      return is_signed_ ? int64_t{load(int32_t{})} : int64_t{load(uint32_t{})};
    case 8:
      return load(int64_t{});
    default:
      return std::nullopt;
  }
}

}  // namespace hangscope

#endif
