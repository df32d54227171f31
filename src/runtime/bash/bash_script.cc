#include "runtime/bash/bash_script.h"

#include <algorithm>

namespace hangscope {
namespace {

constexpr std::string_view kBlanks = " \t";
constexpr std::string_view kEndsWord = " \t;|&()<>";

bool IsAt(std::string_view text, size_t at, char c) { return at < text.size() && text[at] == c; }

// Behind the quote that begins at `at`.
size_t BehindQuote(std::string_view line, size_t at) {
  const char quote = line[at];
  for (++at; at < line.size() && line[at] != quote; ++at) {
    if (quote == '"' && line[at] == '\\') ++at;
  }
  return at + 1;
}

// The last part of the path that begins at *at, without its quotes; empty: it is not known.
std::string NameAt(std::string_view line, size_t* at) {
  *at = std::min(line.find_first_not_of(kBlanks, *at), line.size());
  std::string word;
  while (*at < line.size() && kEndsWord.find(line[*at]) == std::string_view::npos) {
    if (line[*at] != '"' && line[*at] != '\'') {
      word += line[(*at)++];
      continue;
    }
    const size_t end = std::min(BehindQuote(line, *at), line.size());
    word += line.substr(*at + 1, end - *at - 2);
    *at = end;
  }
  word.erase(0, word.rfind('/') + 1);
  return word.find_first_of("$`*?[\\{}") == std::string::npos ? word : "";
}

std::string_view WithoutBlanks(std::string_view line) {
  const size_t begin = line.find_first_not_of(kBlanks);
  return begin == std::string_view::npos ? std::string_view() : line.substr(begin);
}

// "serve() {", "function serve {", and no "}" behind it.
bool BeginsFunction(std::string_view line) {
  const bool is_one = line.find("()") != std::string_view::npos || line.starts_with("function ");
  return is_one && line.find('}') == std::string_view::npos;
}

}  // namespace

std::vector<Redirection> RedirectionsOf(std::string_view line) {
  std::vector<Redirection> all;
  for (size_t at = 0; at < line.size();) {
    const char c = line[at];
    if (c == '\\') {
      at += 2;
    } else if (c == '"' || c == '\'') {
      at = BehindQuote(line, at);
    } else if (c == '#' && (at == 0 || kEndsWord.find(line[at - 1]) != std::string_view::npos)) {
      break;
    } else if (c == '<' || c == '>') {
      Redirection redirection;
      redirection.reads = c == '<';
      redirection.writes = c == '>';
      ++at;
      if (c == '<' && IsAt(line, at, '>')) redirection.writes = true, ++at;
      const bool is_other =
          IsAt(line, at, '(') || IsAt(line, at, '&') || (c == '<' && IsAt(line, at, '<'));
      if (c == '>' && (IsAt(line, at, '>') || IsAt(line, at, '|'))) ++at;
      while (IsAt(line, at, '<') || IsAt(line, at, '&')) ++at;
      redirection.name = NameAt(line, &at);
      if (!is_other && !redirection.name.empty()) all.push_back(std::move(redirection));
      if (IsAt(line, at, '(')) ++at;
    } else {
      ++at;
    }
  }
  return all;
}

std::vector<Redirection> RedirectionsAfter(std::string_view script, int line,
                                           std::string_view function, std::string_view at) {
  std::vector<Redirection> after;
  const bool is_inside = function != "main" && function != "source";
  bool is_in_other = false;
  int number = 0;
  while (!script.empty()) {
    const size_t end = std::min(script.find('\n'), script.size());
    const std::string_view text = script.substr(0, end);
    script.remove_prefix(std::min(end + 1, script.size()));
    if (++number < line) continue;
    std::vector<Redirection> here = RedirectionsOf(text);
    if (number == line) {
      const auto waited = std::find_if(here.begin(), here.end(),
                                       [&](const Redirection& each) { return each.name == at; });
      here.erase(here.begin(), waited == here.end() ? waited : waited + 1);
    } else if (is_inside) {
      if (text.starts_with('}')) break;
    } else {
      // What begins there is run when it is called, and what ends there another shell runs.
      if (WithoutBlanks(text).starts_with(')')) break;
      is_in_other = is_in_other ? !text.starts_with('}') : BeginsFunction(text);
      if (is_in_other) continue;
    }
    after.insert(after.end(), here.begin(), here.end());
  }
  return after;
}

}  // namespace hangscope
