// A tracepoint's fields, as its format file in tracefs says (Documentation/trace/events.rst of Linux).
#ifndef HANGSCOPE_DECODE_TRACEPOINT_FORMAT_H
#define HANGSCOPE_DECODE_TRACEPOINT_FORMAT_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/trace.h"

namespace hangscope {

// Numbers are in this machine's byte order. Neither the format nor the raw bytes are trusted. Any thread may ask.
class TracepointFormat {
 public:
  // Nothing where `text` has no name, no id or no field.
  static std::optional<TracepointFormat> Parse(std::string_view text);

  const std::string& name() const { return name_; }
  uint32_t id() const { return id_; }
  // Of a record's raw bytes; nothing where there is no such field, too few bytes, or it is no number of 1, 2, 4
  // or 8 bytes. Of an array "args": its first element; "args[2]": its third.
  std::optional<int64_t> Number(std::string_view raw, std::string_view field) const;
  // As it is in the record, up to its first NUL; nothing where the field is no text.
  std::optional<std::string> Text(std::string_view raw, std::string_view field) const;
  // "field=value field=value", as a person reads it, without those that all tracepoints have. Control
  // characters are escaped.
  std::string Describe(std::string_view raw) const;

  // Those that not all tracepoints have, typed; the elements of a short array one by one, a long one as text.
  std::vector<TraceField> TraceFields() const;
  // Replaces *values by one for each of these.
  void TraceValues(std::string_view raw, std::vector<TraceValue>* values) const;

 private:
  struct Field {
    std::string name;
    uint32_t offset = 0;
    uint32_t size = 0;
    uint32_t elements = 1;    // of an array; each of size / elements bytes
    bool is_signed = false;
    bool is_text = false;
    bool is_located = false;  // __data_loc, __rel_loc: where the text is
    bool is_relative = false; // __rel_loc: counted from the field's end
    bool is_common = false;   // all tracepoints have it
  };

  static std::optional<Field> ParseField(std::string_view line);
  const Field* Find(std::string_view name) const;
  static std::optional<int64_t> Element(std::string_view raw, const Field& field, uint32_t index);
  static std::optional<std::string_view> TextOf(std::string_view raw, const Field& field);
  static std::string DescribeField(std::string_view raw, const Field& field);
  static bool IsTyped(const Field& field);

  std::string name_;
  uint32_t id_ = 0;
  std::vector<Field> fields_;
};

}  // namespace hangscope

#endif
