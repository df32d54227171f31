// Text that somebody else wrote: not to be trusted on a terminal or in a file.
#ifndef HANGSCOPE_BASE_UTF8_H
#define HANGSCOPE_BASE_UTF8_H

#include <cstddef>
#include <string>
#include <string_view>

namespace hangscope {

// The length of the UTF-8 sequence at `at`, 0 if it is none (RFC 3629, without
// the finer points of overlong forms beyond two bytes).
size_t Utf8Length(std::string_view text, size_t at);

// `c` is at most U+10FFFF.
void AppendUtf8(char32_t c, std::string* text);

// `text` with \n, \t, \x1b ... for control characters (those of Latin-1, too) and
// for bytes that are no UTF-8. With `most`, what follows that many bytes is
// replaced by "...".
std::string Printable(std::string_view text, size_t most = std::string_view::npos);

// The same of each line; the ends of lines stay.
std::string PrintableLines(std::string_view text);

// `text` with U+FFFD for each byte that is no part of UTF-8 as RFC 3629 has it, strictly: formats
// that must be UTF-8 are refused as a whole where one byte is not.
std::string ValidUtf8(std::string_view text);

}  // namespace hangscope

#endif
