// One line of a log that is no instruction trace, with its numbers taken out:
// what it says, and with which values.
//
//   [   12.345678] eth0: no link, retry 3      [<time>] eth0: no link, retry <n>      3
//   2026-11-21T12:31:54Z job 3f2a9c41 12.5 %   <time> job <hex> <n> %                 3f2a9c41 12.5
//
// Time stamps are no values: they change by themselves. Where it is not clear
// whether a number is one, it is a value, because a value that changes is taken
// for work.
#ifndef HANGSCOPE_STREAM_LOG_LINE_H
#define HANGSCOPE_STREAM_LOG_LINE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hangscope {

// Of a place's text; what is longer is cut.
constexpr size_t kLongestPlaceText = 240;

struct LogLine {
  bool has_place = false;  // false: a line without a word or a number, as "-----"
  uint64_t place = 0;      // hash of the text
  uint64_t values = 0;     // hash of the values
  bool redrawn = false;    // parts of it were overwritten with \r: a progress bar
};

// What a terminal shows of `line`: without colours, control characters and what
// a \r overwrites. `redrawn` (may be null) tells whether anything was overwritten.
std::string VisibleText(std::string_view line, bool* redrawn);

// `text` becomes the place's text. `line` has no newline.
LogLine NormalizeLogLine(std::string_view line, std::string* text);

}  // namespace hangscope

#endif
