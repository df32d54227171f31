// Fields of JSON that anybody may have written: what is absent, of another type or out of range is
// nothing.
#ifndef HANGSCOPE_BASE_JSON_FIELDS_H
#define HANGSCOPE_BASE_JSON_FIELDS_H

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace hangscope {

constexpr size_t kLongestField = 4096;  // of a text; what is longer is cut

// Null: there is none.
const nlohmann::json* FindField(const nlohmann::json& object, const char* name);
// The field where it is an object or a list, else an empty one.
const nlohmann::json& ObjectField(const nlohmann::json& object, const char* name);
const nlohmann::json& ListField(const nlohmann::json& object, const char* name);

std::string TextField(const nlohmann::json& object, const char* name);
bool TrueField(const nlohmann::json& object, const char* name);
std::optional<int64_t> IntegerField(const nlohmann::json& object, const char* name);
std::optional<uint64_t> CountField(const nlohmann::json& object, const char* name);
std::optional<double> NumberField(const nlohmann::json& object, const char* name);
// Nanoseconds that can be added and subtracted without leaving their type.
std::optional<TimeNs> TimeField(const nlohmann::json& object, const char* name);
// The same of a field that counts seconds.
std::optional<TimeNs> SecondsField(const nlohmann::json& object, const char* name);
// Those of a list that are texts.
std::vector<std::string> TextsField(const nlohmann::json& object, const char* name, size_t most);
// The one of 0 to `last` that `name` calls so; `otherwise` where none is.
template <typename Value, typename Name>
Value ByName(const std::string& text, Value last, Name name, Value otherwise) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (name(static_cast<Value>(i)) == text) return static_cast<Value>(i);
  }
  return otherwise;
}
// What such a field has of `text`.
std::string CutText(const std::string& text);

}  // namespace hangscope

#endif
