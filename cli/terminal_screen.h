// The terminal as the live view's screen, through ncurses.
#ifndef HANGSCOPE_CLI_TERMINAL_SCREEN_H
#define HANGSCOPE_CLI_TERMINAL_SCREEN_H

#include <termios.h>

#include <memory>

#include "watch/live_screen.h"

namespace hangscope::cli {

// Standard input and output are the terminal of this process, in its foreground, and TERM is one on
// which a cursor can be moved.
bool TerminalCanShow();

// At most one at a time. SIGTSTP, SIGCONT and SIGWINCH are blocked by then.
class TerminalScreen final : public LiveScreen {
 public:
  TerminalScreen();
  ~TerminalScreen() override;

  Status Open() override;
  void Close() override;
  void Suspend() override;
  void Continue() override;
  void Resize() override;
  bool IsOurs() override;
  bool MayShow() override;
  LiveSize size() const override;
  int Width(char32_t character) const override;
  void Show(const LiveFrame& frame) override;
  int input_fd() const override;
  std::optional<LiveKey> NextKey() override;

 private:
  struct Library;
  void Take();
  void Leave();
  int AttributesOf(LiveStyle style) const;

  std::unique_ptr<Library> library_;
  bool is_taken_ = false;
};

}  // namespace hangscope::cli

#endif
