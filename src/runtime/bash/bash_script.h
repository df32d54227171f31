// What a script of a shell redirects, from its text. Quotes and comments are understood, expansions
// are not: of "$folder/replies" the last part is known, of "$name" nothing.
#ifndef HANGSCOPE_RUNTIME_BASH_BASH_SCRIPT_H
#define HANGSCOPE_RUNTIME_BASH_BASH_SCRIPT_H

#include <string>
#include <string_view>
#include <vector>

namespace hangscope {

struct Redirection {
  std::string name;  // the last part of the path
  bool reads = false, writes = false;
  bool operator==(const Redirection&) const = default;
};

// Of one line; duplicated descriptors, here documents and processes (<(...)) are none.
std::vector<Redirection> RedirectionsOf(std::string_view line);

// Those that come after line `line` (from 1) in the function that is there, or in what is outside
// of all functions where `function` is "main"; and those of that line behind the one of a file
// called `at`, or none of that line where `at` is empty.
std::vector<Redirection> RedirectionsAfter(std::string_view script, int line,
                                           std::string_view function, std::string_view at);

}  // namespace hangscope

#endif
