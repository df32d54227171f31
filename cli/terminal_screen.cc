#include "terminal_screen.h"

#define NCURSES_NOMACROS 1
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>
#include <wchar.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <cwchar>
#include <string>

#include "options.h"

namespace hangscope::cli {
namespace {

constexpr int kEscapeDelay_ms = 25;  // between the bytes of one key
constexpr std::array<int, 5> kCrashes = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// What a signal handler gives the terminal back with: all prepared, as it may call nothing that
// allocates.
struct Rescue {
  volatile sig_atomic_t armed = 0;
  termios modes{};
  char bytes[256] = {};
  size_t size = 0;
  std::array<struct sigaction, kCrashes.size()> before{};
} rescue;

void AppendCapability(const char* name) {
  const char* const text = tigetstr(name);
  if (text == nullptr || text == reinterpret_cast<const char*>(-1)) return;
  const size_t length = std::min(strlen(text), sizeof rescue.bytes - rescue.size);
  memcpy(rescue.bytes + rescue.size, text, length);
  rescue.size += length;
}

// The crash goes its way afterwards, with whoever wanted to know of it before.
void OnCrash(int number) {
  if (rescue.armed != 0) {
    rescue.armed = 0;
    (void)!write(STDOUT_FILENO, rescue.bytes, rescue.size);
    tcsetattr(STDIN_FILENO, TCSANOW, &rescue.modes);
  }
  for (size_t i = 0; i < kCrashes.size(); ++i) {
    if (kCrashes[i] == number) sigaction(number, &rescue.before[i], nullptr);
  }
  raise(number);
}

void PrepareRescue() {
  tcgetattr(STDIN_FILENO, &rescue.modes);
  rescue.size = 0;
  for (const char* name : {"sgr0", "op", "cnorm", "rmkx", "rmcup"}) AppendCapability(name);
  struct sigaction action {};
  action.sa_handler = OnCrash;
  for (size_t i = 0; i < kCrashes.size(); ++i) sigaction(kCrashes[i], &action, &rescue.before[i]);
}

void EndRescue() {
  rescue.armed = 0;
  for (size_t i = 0; i < kCrashes.size(); ++i) sigaction(kCrashes[i], &rescue.before[i], nullptr);
}

bool HasCapability(const char* name) {
  const char* const text = tigetstr(name);
  return text != nullptr && text != reinterpret_cast<const char*>(-1);
}

bool InForeground() { return tcgetpgrp(STDIN_FILENO) == getpgrp(); }

LiveKey KeyOf(wint_t code, bool function_key) {
  using Kind = LiveKey::Kind;
  const auto is = [](Kind kind) { return LiveKey{kind, 0}; };
  if (function_key) {
    switch (code) {
      case KEY_UP:
        return is(Kind::kUp);
      case KEY_DOWN:
        return is(Kind::kDown);
      case KEY_LEFT:
        return is(Kind::kLeft);
      case KEY_RIGHT:
        return is(Kind::kRight);
      case KEY_PPAGE:
        return is(Kind::kPageUp);
      case KEY_NPAGE:
        return is(Kind::kPageDown);
      case KEY_HOME:
        return is(Kind::kHome);
      case KEY_END:
        return is(Kind::kEnd);
      case KEY_ENTER:
        return is(Kind::kEnter);
      case KEY_BACKSPACE:
        return is(Kind::kBackspace);
      default:
        return is(Kind::kOther);
    }
  }
  if (code == '\n' || code == '\r') return is(Kind::kEnter);
  if (code == 0x1b) return is(Kind::kEscape);
  if (code == 0x7f || code == 0x08) return is(Kind::kBackspace);
  return {Kind::kCharacter, static_cast<char32_t>(code)};
}

// Only what is shown becomes wide characters: the terminal's locale says which there are.
std::wstring Wide(const std::string& text) {
  std::wstring wide;
  std::mbstate_t state{};
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    wchar_t character = 0;
    const size_t length = mbrtowc(&character, at, static_cast<size_t>(end - at), &state);
    if (length == 0 || length > static_cast<size_t>(end - at)) return wide;
    wide += character;
    at += length;
  }
  return wide;
}

}  // namespace

struct TerminalScreen::Library {
  SCREEN* screen = nullptr;
  bool colours = false;
};

bool TerminalCanShow() {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0 || !InForeground()) return false;
  int error = 0;
  if (getenv("TERM") == nullptr || setupterm(nullptr, STDOUT_FILENO, &error) != OK) return false;
  return HasCapability("cup") && HasCapability("clear");
}

TerminalScreen::TerminalScreen() : library_(std::make_unique<Library>()) {}

TerminalScreen::~TerminalScreen() { Close(); }

Status TerminalScreen::Open() {
  setlocale(LC_CTYPE, "");
  set_escdelay(kEscapeDelay_ms);
  PrepareRescue();
  library_->screen = newterm(nullptr, stdout, stdin);
  if (library_->screen == nullptr) {
    EndRescue();
    return Status::Io("this terminal cannot be drawn on");
  }
  library_->colours = WantsColour(STDOUT_FILENO) && has_colors();
  if (library_->colours) {
    start_color();
    use_default_colors();
    init_pair(1, COLOR_GREEN, -1);
    init_pair(2, COLOR_RED, -1);
    init_pair(3, COLOR_MAGENTA, -1);
  }
  cbreak();
  noecho();
  nonl();
  nodelay(stdscr, true);
  keypad(stdscr, true);
  curs_set(0);
  Take();
  return {};
}

// Ctrl-S would hold up the drawing, and with it the polls.
void TerminalScreen::Take() {
  termios modes{};
  if (tcgetattr(STDIN_FILENO, &modes) == 0) {
    modes.c_iflag &= ~static_cast<tcflag_t>(IXON);
    tcsetattr(STDIN_FILENO, TCSANOW, &modes);
  }
  def_prog_mode();
  rescue.armed = 1;
  is_taken_ = true;
}

void TerminalScreen::Leave() {
  if (!is_taken_) return;
  is_taken_ = false;
  endwin();
  rescue.armed = 0;
}

void TerminalScreen::Close() {
  if (library_->screen == nullptr) return;
  if (is_taken_ && IsOurs()) Leave();
  delscreen(library_->screen);
  library_->screen = nullptr;
  EndRescue();
}

// The signal is blocked, and would have stopped this process: now it does.
void TerminalScreen::Suspend() {
  Leave();
  struct sigaction stop {};
  stop.sa_handler = SIG_DFL;
  sigaction(SIGTSTP, &stop, nullptr);
  sigset_t signals;
  sigset_t before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTSTP);
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &signals, &before);  // here it stops, and goes on
  sigprocmask(SIG_SETMASK, &before, nullptr);
  Continue();
}

void TerminalScreen::Continue() {
  if (!IsOurs()) {
    is_taken_ = false;  // whoever has the terminal now has set it up for himself
    rescue.armed = 0;
    return;
  }
  reset_prog_mode();
  rescue.armed = 1;
  is_taken_ = true;
  Resize();
}

void TerminalScreen::Resize() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
    resizeterm(size.ws_row, size.ws_col);
  clearok(curscr, true);
}

bool TerminalScreen::IsOurs() { return InForeground(); }

bool TerminalScreen::MayShow() {
  if (!IsOurs()) {
    is_taken_ = false;
    rescue.armed = 0;
    return false;
  }
  if (!is_taken_) Continue();  // brought to the foreground without having been stopped
  pollfd writable{STDOUT_FILENO, POLLOUT, 0};
  return poll(&writable, 1, 0) == 1 && (writable.revents & POLLOUT) != 0;
}

LiveSize TerminalScreen::size() const { return {getmaxy(stdscr), getmaxx(stdscr)}; }

int TerminalScreen::Width(char32_t character) const {
  char bytes[MB_LEN_MAX];
  std::mbstate_t state{};
  const auto wide = static_cast<wchar_t>(character);
  if (wcrtomb(bytes, wide, &state) == static_cast<size_t>(-1)) return -1;
  return wcwidth(wide);
}

int TerminalScreen::AttributesOf(LiveStyle style) const {
  const auto colour = [&](short pair) {
    return library_->colours ? static_cast<int>(COLOR_PAIR(pair)) : 0;
  };
  switch (style) {
    case LiveStyle::kPlain:
      return static_cast<int>(A_NORMAL);
    case LiveStyle::kTitle:
      return static_cast<int>(A_BOLD);
    case LiveStyle::kGood:
      return colour(1);
    case LiveStyle::kBad:
      return colour(2) | static_cast<int>(A_BOLD);
    case LiveStyle::kPaused:
      return colour(3);
    case LiveStyle::kPicked:
      return static_cast<int>(A_REVERSE);
  }
  return 0;
}

void TerminalScreen::Show(const LiveFrame& frame) {
  erase();
  for (size_t row = 0; row < frame.rows.size(); ++row) {
    for (const LiveSpan& span : frame.rows[row]) {
      attrset(AttributesOf(span.style));
      const std::wstring text = Wide(span.text);
      mvaddnwstr(static_cast<int>(row), span.column, text.c_str(), static_cast<int>(text.size()));
    }
  }
  attrset(static_cast<int>(A_NORMAL));
  refresh();
}

int TerminalScreen::input_fd() const { return STDIN_FILENO; }

std::optional<LiveKey> TerminalScreen::NextKey() {
  wint_t code = 0;
  const int got = get_wch(&code);
  if (got == ERR) return std::nullopt;
  return KeyOf(code, got == KEY_CODE_YES);
}

}  // namespace hangscope::cli
