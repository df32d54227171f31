// JSON of ours as text, and JSON that anybody may have written as values.
#ifndef HANGSCOPE_BASE_JSON_TEXT_H
#define HANGSCOPE_BASE_JSON_TEXT_H

#include <fmt/format.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace hangscope {

// U+0080 to U+009F, which some terminals obey as they do ESC, as \u0080 to \u009f. They stand in
// texts only, and c2 begins nothing else there.
inline std::string EscapeC1(std::string text) {
  constexpr char kLead = '\xc2';
  size_t at = text.find(kLead);
  if (at == std::string::npos) return text;
  std::string escaped;
  for (size_t done = 0;; at = text.find(kLead, done)) {
    escaped.append(text, done, at - done);
    if (at == std::string::npos) return escaped;
    const auto last = static_cast<unsigned char>(text[at + 1]);
    escaped += last < 0xa0 ? fmt::format("\\u{:04x}", last) : text.substr(at, 2);
    done = at + 2;
  }
}

// In one line, or with `indent` of that many spaces. Bytes that are no UTF-8 are replaced.
template <typename Json = nlohmann::ordered_json>
std::string JsonText(const Json& json, int indent = -1) {
  return EscapeC1(json.dump(indent, ' ', false, Json::error_handler_t::replace));
}
template <typename Json = nlohmann::ordered_json>
std::string JsonLine(const Json& json) {
  return JsonText(json) + "\n";
}

// "0a1f"
inline std::string HexText(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

// Deeper, copying and destroying it would take more stack than there is.
constexpr size_t kDeepestJson = 64;

// How deep lists and objects lie in one another, of what may be no JSON at all.
inline size_t JsonDepth(std::string_view text) {
  size_t depth = 0;
  size_t deepest = 0;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text && c == '\\')
      ++i;
    else if (c == '"')
      in_text = !in_text;
    else if (!in_text && (c == '[' || c == '{'))
      deepest = ++depth > deepest ? depth : deepest;
    else if (!in_text && (c == ']' || c == '}') && depth > 0)
      --depth;
  }
  return deepest;
}

// Discarded (is_discarded()) where it is no JSON, or lies deeper. With Json an ordered_json it
// takes quadratic time where an object has many members.
template <typename Json = nlohmann::json>
Json ParseForeignJson(std::string_view text) {
  if (JsonDepth(text) > kDeepestJson) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

}  // namespace hangscope

#endif
