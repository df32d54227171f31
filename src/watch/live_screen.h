// The terminal of the live view, behind an interface so that tests need none. cli/terminal_screen.h
// has the real one.
#ifndef HANGSCOPE_WATCH_LIVE_SCREEN_H
#define HANGSCOPE_WATCH_LIVE_SCREEN_H

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace hangscope {

struct LiveSize {
  int rows = 0;
  int columns = 0;

  bool operator==(const LiveSize&) const = default;
};

// Each also differs from the others without colours, or stands beside a letter that says the same.
enum class LiveStyle { kPlain, kTitle, kGood, kBad, kPaused, kPicked };

// Printable, and no wider than the rest of its row.
struct LiveSpan {
  int column = 0;
  std::string text;
  LiveStyle style = LiveStyle::kPlain;

  bool operator==(const LiveSpan&) const = default;
};

// All of the screen. Spans of a row do not overlap, and come from left to right.
struct LiveFrame {
  LiveSize size;
  std::vector<std::vector<LiveSpan>> rows;

  bool operator==(const LiveFrame&) const = default;
};

struct LiveKey {
  enum class Kind {
    kCharacter,
    kUp,
    kDown,
    kLeft,
    kRight,
    kPageUp,
    kPageDown,
    kHome,
    kEnd,
    kEnter,
    kEscape,
    kBackspace,
    kOther
  };
  Kind kind = Kind::kOther;
  char32_t character = 0;  // of kCharacter
};

// One thread. Nothing waits, except for a terminal that takes no more.
class LiveScreen {
 public:
  virtual ~LiveScreen() = default;

  // Takes the terminal. Close gives it back as it was; so does the end of the process, however it
  // comes.
  virtual Status Open() = 0;
  virtual void Close() = 0;
  // What Ctrl-Z asks for: gives the terminal back, stops this process, and takes the terminal again
  // when it goes on.
  virtual void Suspend() = 0;
  // After SIGCONT: somebody else may have written to the terminal. Does nothing in the background.
  virtual void Continue() = 0;
  // After SIGWINCH.
  virtual void Resize() = 0;

  // The process is in the foreground of the terminal.
  virtual bool IsOurs() = 0;
  // And it takes what is written to it now.
  virtual bool MayShow() = 0;
  virtual LiveSize size() const = 0;
  // Columns that the character takes; less than 1: it cannot be shown.
  virtual int Width(char32_t character) const = 0;
  virtual void Show(const LiveFrame& frame) = 0;

  // Readable when there are keys.
  virtual int input_fd() const = 0;
  virtual std::optional<LiveKey> NextKey() = 0;
};

}  // namespace hangscope

#endif
