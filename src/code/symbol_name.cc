#include "code/symbol_name.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <vector>

#include "code/rust_names.h"

namespace hangscope {
namespace {

constexpr size_t kMostMangled = 16384;  // bytes; what is longer stays as it is
constexpr size_t kMostReadable = 64;    // from here on arguments are left out
constexpr std::string_view kLambda = "<lambda>";
constexpr std::string_view kCallOperator = "::operator()";

bool IsOfName(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// ".isra.0", ".part.3.cold": gcc's and clang's copies of a function.
std::string_view WithoutCopyMarks(std::string_view name) {
  for (size_t at = name.find('.'); at != std::string_view::npos; at = name.find('.', at + 1)) {
    const std::string_view rest = name.substr(at + 1);
    for (const std::string_view mark :
         {"isra", "part", "constprop", "cold", "lto_priv", "llvm", "localalias", "clone"}) {
      if (at != 0 && rest.starts_with(mark) &&
          (rest.size() == mark.size() || rest[mark.size()] == '.'))
        return name.substr(0, at);
    }
  }
  return name;
}

std::string Demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && plain != nullptr ? plain.get() : name;
}

// Behind the bracket that closes the one at `at`; npos: none does.
size_t BehindClosing(std::string_view text, size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '(' || c == '{' || c == '[') ++depth;
    if (c == ')' || c == '}' || c == ']') --depth;
    if (depth == 0) return at + 1;
  }
  return std::string_view::npos;
}

// Behind the '>' of the '<' at `at`; npos: none closes it.
size_t BehindArguments(std::string_view text, size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '(') {
      const size_t behind = BehindClosing(text, at);
      if (behind == std::string_view::npos) return behind;
      at = behind - 1;
    } else if (text[at] == '<') {
      ++depth;
    } else if (text[at] == '>' && text[at - 1] != '-' && --depth == 0) {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

// "{lambda(int)#1}" of gcc and "$_0" of clang.
void NameLambdas(std::string* text) {
  for (size_t at = 0; (at = text->find("{lambda(", at)) != std::string::npos; ++at) {
    const size_t behind = BehindClosing(*text, at);
    if (behind == std::string_view::npos) break;
    text->replace(at, behind - at, kLambda);
  }
  for (size_t at = 0; (at = text->find("$_", at)) != std::string::npos; ++at) {
    size_t behind = at + 2;
    while (behind < text->size() && std::isdigit(static_cast<unsigned char>((*text)[behind])) != 0)
      ++behind;
    if (behind != at + 2) text->replace(at, behind - at, kLambda);
  }
  // What a lambda does is all in the one operator.
  const std::string call = std::string(kLambda) + std::string(kCallOperator);
  for (size_t at = 0; (at = text->find(call, at)) != std::string::npos; ++at) {
    const size_t begin = at + kLambda.size();
    size_t behind = at + call.size();
    if (behind < text->size() && (*text)[behind] == '<') behind = BehindArguments(*text, behind);
    if (behind < text->size() && (*text)[behind] == '(') behind = BehindClosing(*text, behind);
    if (behind == std::string::npos) break;
    if (std::string_view(*text).substr(behind).starts_with(" const")) behind += 6;
    text->erase(begin, behind - begin);
  }
}

// "void Wait<int>(int)" -> "Wait<int>(int)". The type stands in front of the last space that is in
// no bracket; an operator's name may have one itself.
void DropReturnType(std::string* text) {
  if (text->find('(') == std::string::npos && text->find(kLambda) == std::string::npos) return;
  size_t name = 0;
  int depth = 0;
  for (size_t i = 0; i < text->size(); ++i) {
    const char c = (*text)[i];
    const bool begins = i == 0 || !IsOfName((*text)[i - 1]);
    if (begins && depth == 0 && std::string_view(*text).substr(i).starts_with("operator") &&
        (i + 8 == text->size() || !IsOfName((*text)[i + 8])))
      break;
    if (c == '<' || c == '(' || c == '{' || c == '[') ++depth;
    if (c == '>' || c == ')' || c == '}' || c == ']') --depth;
    if (c != ' ' || depth != 0) continue;
    // What follows the parameters is of the function.
    const std::string_view rest = std::string_view(*text).substr(i + 1);
    if (rest.starts_with("const") || rest.starts_with('&') || rest.starts_with("volatile") ||
        rest.starts_with("noexcept") || rest.starts_with("[clone"))
      break;
    name = i + 1;
  }
  text->erase(0, name);
}

struct ArgumentList {
  size_t begin = 0;  // behind the '<'
  size_t end = 0;    // its '>'
  int depth = 0;
};

// Those that may be left out. "<lambda>" is none, nor is Rust's "<Queue as Drop>"; nothing where
// the brackets do not match, as of operators.
std::vector<ArgumentList> ArgumentLists(std::string_view text) {
  std::vector<ArgumentList> lists;
  std::vector<ArgumentList> open;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with(kLambda)) {
      i += kLambda.size() - 1;
    } else if (text[i] == '<') {
      open.push_back({i + 1, 0, static_cast<int>(open.size())});
    } else if (text[i] == '>' && (i == 0 || text[i - 1] != '-')) {
      if (open.empty()) return {};
      ArgumentList list = open.back();
      open.pop_back();
      list.end = i;
      const char before = list.begin < 2 ? ' ' : text[list.begin - 2];
      if (IsOfName(before) || before == ':') lists.push_back(list);
    }
  }
  return open.empty() ? lists : std::vector<ArgumentList>();
}

void ShortenArguments(std::string* text) {
  while (text->size() > kMostReadable) {
    const std::vector<ArgumentList> lists = ArgumentLists(*text);
    const auto inner =
        std::max_element(lists.begin(), lists.end(), [&](const auto& a, const auto& b) {
          const bool a_said = std::string_view(*text).substr(a.begin, a.end - a.begin) == "...";
          const bool b_said = std::string_view(*text).substr(b.begin, b.end - b.begin) == "...";
          return a_said != b_said ? a_said : a.depth < b.depth;
        });
    if (inner == lists.end() ||
        std::string_view(*text).substr(inner->begin, inner->end - inner->begin) == "...")
      break;
    text->replace(inner->begin, inner->end - inner->begin, "...");
  }
  if (text->size() <= kMostReadable) return;
  // Whose function it is, of Rust: "<... as core::ops::function::FnOnce<...>>::call_once".
  if (const size_t as = text->find(" as "); text->starts_with('<') && as != std::string::npos) {
    text->replace(1, as - 1, "...");
    return;
  }
  // The parameters, from the first '(' behind the name on: "(anonymous namespace)" is none.
  for (size_t at = 1; (at = text->find('(', at)) != std::string::npos; ++at) {
    if (!IsOfName((*text)[at - 1]) && (*text)[at - 1] != '>') continue;
    const size_t behind = BehindClosing(*text, at);
    if (behind == std::string::npos) return;
    if (behind - at > 5) text->replace(at, behind - at, "(...)");
  }
}

}  // namespace

std::string ReadableName(std::string_view name) {
  name = name.substr(0, name.find('@'));
  if (name.size() > kMostMangled) return std::string(name);
  const std::string_view bare = WithoutCopyMarks(name);
  std::string text(bare);
  if (auto rust = DemangleRust(bare)) {
    text = std::move(*rust);
  } else if (bare.starts_with("_Z")) {  // the demangler takes "f" for float
    text = Demangled(text);
    if (text == bare) return std::string(bare);
    for (const std::string_view thunk : {"non-virtual thunk to ", "virtual thunk to "}) {
      if (text.starts_with(thunk)) text.erase(0, thunk.size());
    }
    NameLambdas(&text);
    DropReturnType(&text);
  }
  ShortenArguments(&text);
  return text;
}

}  // namespace hangscope
