// Settings as other programs write them: sections "[name]" of lines "key=value"; what stands behind
// ';' or '#' is a comment. Nothing in it is trusted.
#ifndef HANGSCOPE_BASE_INI_TEXT_H
#define HANGSCOPE_BASE_INI_TEXT_H

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace hangscope {

// All of it points into the text.
struct IniSection {
  std::string_view name;
  // in their order; a key may stand there twice
  std::vector<std::pair<std::string_view, std::string_view>> values;

  // The first of this key, whatever its letters' case; empty: there is none.
  std::string_view Find(std::string_view key) const;
};

struct IniText {
  std::vector<IniSection> sections;  // in their order; a name may stand there twice
  size_t odd_lines = 0;              // neither a section nor a value of one

  // The first of this name, whatever its letters' case; null: there is none.
  const IniSection* Find(std::string_view name) const;
};

// Quotes around a value are no part of it.
IniText ParseIni(std::string_view text);

// Letters of ASCII count the same in both cases.
bool IsSameWord(std::string_view a, std::string_view b);

// What stands between commas, without blanks around it; empty ones are left out.
std::vector<std::string_view> SplitList(std::string_view text);

}  // namespace hangscope

#endif
