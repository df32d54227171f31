// The live view on a screen, while a watcher goes on polling: draws when there is something new, at
// most ten times a second, and keeps what is to be printed once the terminal is given back. One
// thread; nothing waits.
#ifndef HANGSCOPE_WATCH_LIVE_DISPLAY_H
#define HANGSCOPE_WATCH_LIVE_DISPLAY_H

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "watch/live_screen.h"
#include "watch/live_view.h"

namespace hangscope {

// What the watcher knows and does for it. Called in the calls below, never later.
struct LiveCallbacks {
  std::function<LiveData()> data;
  std::function<LiveDetails(const LiveSubject&)> details;
  std::function<void()> resume;  // all paused cores
};

class LiveDisplay {
 public:
  // All outlive this.
  LiveDisplay(LiveScreen& screen, Clock& clock, LiveCallbacks callbacks)
      : screen_(screen), clock_(clock), callbacks_(std::move(callbacks)) {}
  ~LiveDisplay() { Close(); }

  Status Open();
  void Close();

  // Whole lines, for later and the page of messages. The oldest are forgotten beyond a bound, and
  // counted.
  void Say(std::string_view text);
  // What was said, in order. After Close.
  std::string DrainSaid();

  // Something worth a look came: it is drawn as soon as the bound of ten a second allows.
  void Change() { changed_ = true; }
  // Draws if it is time to.
  void Tick();
  // When Tick wants to be called next, monotonic.
  TimeNs next_draw() const;

  int input_fd() const { return screen_.input_fd(); }
  // In the background nothing is.
  bool MayBeRead() { return screen_.IsOurs(); }
  // The input is readable.
  void OnInput();
  // SIGWINCH, SIGTSTP, SIGCONT; false: none of these.
  bool OnSignal(int number);
  // It was asked to end.
  bool quits() const { return quits_; }

 private:
  void Draw(TimeNs now);
  void ReadDetails(TimeNs now);

  LiveScreen& screen_;
  Clock& clock_;
  const LiveCallbacks callbacks_;
  LiveView view_;
  bool is_open_ = false;
  bool changed_ = true;
  bool quits_ = false;
  TimeNs drawn_ = 0;
  bool was_drawn_ = false;
  std::optional<LiveFrame> shown_;
  std::optional<LiveSubject> details_of_;
  TimeNs next_details_ = 0;
  std::deque<std::string> said_;  // lines without their ends
  size_t said_bytes_ = 0;
  uint64_t forgotten_ = 0;
};

}  // namespace hangscope

#endif
