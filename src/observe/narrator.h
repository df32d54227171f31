// What a session tells its user: text or JSON Lines, one live line on a terminal.
#ifndef HANGSCOPE_OBSERVE_NARRATOR_H
#define HANGSCOPE_OBSERVE_NARRATOR_H

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "model/heartbeat.h"
#include "model/manifest.h"

namespace hangscope {

constexpr std::string_view kClearLine = "\r\033[K";  // takes the live line away

struct NarratorOptions {
  std::function<void(std::string_view)> write;  // takes whole messages
  std::function<int()> columns;                 // of the terminal, if live
  // Shows what is going on now, until anything is written; empty: the live line does, if live.
  std::function<void(const std::string&)> show_work = {};
  bool json = false;
  bool live = false;   // rewrite one line instead of adding lines
  bool quiet = false;  // no heartbeats
  bool terse = false;  // no text of what is as it should be
  bool colour = false;
  // Whether the live line stands on the screen; shared with who else writes there. Set after the
  // line is written (release), which pairs with the exchange in Drain::WriteOut (acquire).
  std::shared_ptr<std::atomic<bool>> live_line = std::make_shared<std::atomic<bool>>(false);
};

// One thread at a time.
class Narrator {
 public:
  Narrator(NarratorOptions options, TimeNs start) : options_(std::move(options)), start_(start) {}

  void Beat(const Heartbeat& beat);
  // `snapshot` is the folder taken for it, or empty; `contents` what is in it.
  void Announce(const Verdict& verdict, TimeNs wall, const std::string& snapshot,
                const std::string& contents);
  void AnnounceSnapshot(const Manifest& manifest, const std::string& path, bool with_text);
  void AnnounceLoss(const std::string& stream, uint64_t bytes, const std::string& why, TimeNs wall);
  // What is good to know, and no more.
  void Remark(const std::string& text, TimeNs wall);
  // "warning: ..." or what has happened.
  void Note(const std::string& text, TimeNs wall);
  // What is going on now and may take a while, in the place of the live line: on a terminal alone,
  // until anything else is said.
  void ShowWork(const std::string& text);
  // Takes the live line away.
  void Close();

 private:
  void Say(const std::string& text, const std::string& json);
  // In the place of the line that stands there.
  void WriteLiveLine(std::string text);
  // Of the terminal, if live.
  size_t Columns() const;

  const NarratorOptions options_;
  const TimeNs start_;
};

}  // namespace hangscope

#endif
