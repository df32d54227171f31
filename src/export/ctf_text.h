// Names and texts in TSDL, the language that describes CTF traces. They come from targets: whatever
// they hold, what is made of them here is legal, and can still be read.
#ifndef HANGSCOPE_EXPORT_CTF_TEXT_H
#define HANGSCOPE_EXPORT_CTF_TEXT_H

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace hangscope {

// A string literal, quotes included. Control characters and what is no UTF-8 become escapes that
// people read ("\x1b").
std::string CtfLiteral(std::string_view text);

// A comment that holds `text`, which cannot end it.
std::string CtfComment(std::string_view text);

// The names of one structure's fields.
class CtfFieldNames {
 public:
  // A legal identifier that no field before has. It begins with '_', which readers take off again:
  // so the rest may be a keyword, or begin with a digit. What is no letter, digit or '_' becomes
  // '_'; without a name a field gets its number.
  std::string Add(std::string_view name, size_t number);

 private:
  std::set<std::string> taken_;
};

// `text` as the content of a string of the stream, which ends with a NUL and is UTF-8: as it is
// where it can be, else with escapes for what cannot, made in *made.
std::string_view CtfString(std::string_view text, std::string* made);

}  // namespace hangscope

#endif
