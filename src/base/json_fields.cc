#include "base/json_fields.h"

#include <cmath>

namespace hangscope {
namespace {

using Json = nlohmann::json;

constexpr double kLongestTime = 2e18;  // ns, 63 years; two of them can be added

std::optional<TimeNs> Bounded(double ns) {
  if (!std::isfinite(ns) || std::abs(ns) > kLongestTime) return std::nullopt;
  return static_cast<TimeNs>(ns);
}

}  // namespace

const Json* FindField(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(name);
  return at == object.end() ? nullptr : &*at;
}

const Json& ObjectField(const Json& object, const char* name) {
  static const Json kEmpty = Json::object();
  const Json* const field = FindField(object, name);
  return field != nullptr && field->is_object() ? *field : kEmpty;
}

const Json& ListField(const Json& object, const char* name) {
  static const Json kEmpty = Json::array();
  const Json* const field = FindField(object, name);
  return field != nullptr && field->is_array() ? *field : kEmpty;
}

std::string TextField(const Json& object, const char* name) {
  const Json* const field = FindField(object, name);
  return field != nullptr && field->is_string() ? CutText(field->get_ref<const std::string&>())
                                                : "";
}

bool TrueField(const Json& object, const char* name) {
  const Json* const field = FindField(object, name);
  return field != nullptr && field->is_boolean() && field->get<bool>();
}

std::optional<int64_t> IntegerField(const Json& object, const char* name) {
  const Json* const field = FindField(object, name);
  if (field == nullptr || !field->is_number_integer()) return std::nullopt;
  return field->get<int64_t>();
}

std::optional<uint64_t> CountField(const Json& object, const char* name) {
  const Json* const field = FindField(object, name);
  if (field == nullptr || !field->is_number_unsigned()) return std::nullopt;
  return field->get<uint64_t>();
}

std::optional<double> NumberField(const Json& object, const char* name) {
  const Json* const field = FindField(object, name);
  if (field == nullptr || !field->is_number()) return std::nullopt;
  const double value = field->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<TimeNs> TimeField(const Json& object, const char* name) {
  const Json* const field = FindField(object, name);
  if (field == nullptr || !field->is_number()) return std::nullopt;
  const auto bounded = Bounded(field->get<double>());
  if (!bounded || field->is_number_float()) return bounded;
  return field->get<TimeNs>();  // exact
}

std::optional<TimeNs> SecondsField(const Json& object, const char* name) {
  const auto seconds = NumberField(object, name);
  return seconds ? Bounded(std::round(*seconds * 1e9)) : std::nullopt;
}

std::vector<std::string> TextsField(const Json& object, const char* name, size_t most) {
  std::vector<std::string> texts;
  for (const Json& item : ListField(object, name)) {
    if (texts.size() == most) break;
    if (item.is_string()) texts.push_back(CutText(item.get_ref<const std::string&>()));
  }
  return texts;
}

std::string CutText(const std::string& text) {
  return text.size() <= kLongestField ? text : text.substr(0, kLongestField) + "...";
}

}  // namespace hangscope
