// A pseudo terminal for a child whose output should be as on a terminal, and what
// is typed at our own terminal meanwhile.
#ifndef HANGSCOPE_PROC_PSEUDO_TERMINAL_H
#define HANGSCOPE_PROC_PSEUDO_TERMINAL_H

#include <termios.h>

#include <functional>
#include <mutex>
#include <string_view>
#include <thread>

#include "base/status.h"

namespace hangscope {

struct PseudoTerminal {
  int leader = -1;    // ours: what the child writes is read here
  int follower = -1;  // the child's

  // With the modes and the size of our own terminal, if there is one; but what the
  // child writes is not processed (OPOST), so that it is read byte for byte.
  Status Open();
};

// Gives the terminal behind `leader` the size of ours. False if we have none.
bool FollowTerminalSize(int leader);

// Carries what is typed at our terminal to the leader of another, which makes of
// it what a terminal does: echo, lines, signals. Ours passes each key on meanwhile.
// It is left alone as long as another process group is in its foreground.
class KeyRelay {
 public:
  // Owns the leader. After a key that asks a terminal to stop the program (Ctrl-Z)
  // was passed on, `suspend` is called, in another thread.
  KeyRelay(int terminal, int leader, std::function<void()> suspend);
  ~KeyRelay();  // gives the terminal's modes back
  KeyRelay(const KeyRelay&) = delete;
  KeyRelay& operator=(const KeyRelay&) = delete;

  // Gives the modes back until Resume; for the time this process is stopped.
  void Pause();
  void Resume();

 private:
  void Run();
  bool ClaimIfOurs();  // whether the keys are for the child now
  bool Forward();
  bool HasSuspendKey(std::string_view keys) const;
  void SetModes(bool raw);

  const int terminal_;
  const int leader_;
  const std::function<void()> suspend_;
  const int stop_event_;
  termios modes_{};   // the terminal's own
  std::mutex mutex_;  // guards the two below
  bool paused_ = false;
  bool raw_ = false;
  std::thread thread_;
};

}  // namespace hangscope

#endif
