#include "base/ini_text.h"

#include <algorithm>

namespace hangscope {
namespace {

std::string_view Trimmed(std::string_view text, std::string_view what = " \t\r") {
  const size_t begin = text.find_first_not_of(what);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(what) - begin + 1);
}

char Lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20) : letter;
}

// False: it is neither.
bool AddLine(std::string_view line, IniText* ini) {
  if (line.front() == '[') {
    const size_t end = line.find(']');
    if (end == std::string_view::npos) return false;
    ini->sections.push_back({Trimmed(line.substr(1, end - 1)), {}});
    return true;
  }
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos || ini->sections.empty()) return false;
  ini->sections.back().values.emplace_back(Trimmed(line.substr(0, equals)),
                                           Trimmed(line.substr(equals + 1), " \t\r\"'"));
  return true;
}

}  // namespace

bool IsSameWord(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char one, char other) { return Lower(one) == Lower(other); });
}

std::string_view IniSection::Find(std::string_view key) const {
  for (const auto& [known, value] : values) {
    if (IsSameWord(known, key)) return value;
  }
  return {};
}

const IniSection* IniText::Find(std::string_view name) const {
  const auto found = std::find_if(sections.begin(), sections.end(), [&](const IniSection& section) {
    return IsSameWord(section.name, name);
  });
  return found == sections.end() ? nullptr : &*found;
}

IniText ParseIni(std::string_view text) {
  IniText ini;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    line = Trimmed(line.substr(0, line.find_first_of(";#")));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty()) ini.odd_lines += !AddLine(line, &ini);
  }
  return ini;
}

std::vector<std::string_view> SplitList(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    if (const std::string_view word = Trimmed(text.substr(0, end)); !word.empty())
      words.push_back(word);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace hangscope
