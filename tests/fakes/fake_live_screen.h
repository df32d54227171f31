// A screen that keeps the latest frame as text, and keys that a test presses.
#ifndef HANGSCOPE_TESTS_FAKES_FAKE_LIVE_SCREEN_H
#define HANGSCOPE_TESTS_FAKES_FAKE_LIVE_SCREEN_H

#include <deque>
#include <string>
#include <vector>

#include "watch/live_screen.h"

namespace hangscope {

class FakeLiveScreen final : public LiveScreen {
 public:
  Status Open() override {
    open = true;
    return {};
  }
  void Close() override { open = false; }
  void Suspend() override { ++suspended; }
  void Continue() override { ++continued; }
  void Resize() override { now = next; }
  bool IsOurs() override { return ours; }
  bool MayShow() override { return ours; }
  LiveSize size() const override { return now; }
  int Width(char32_t character) const override { return Columns(character); }
  void Show(const LiveFrame& frame) override {
    ++shown;
    lines = LinesOf(frame);
  }
  int input_fd() const override { return -1; }
  std::optional<LiveKey> NextKey() override {
    if (keys.empty()) return std::nullopt;
    const LiveKey key = keys.front();
    keys.pop_front();
    return key;
  }

  // As a terminal of Europe would: U+4E00 and behind are wide, combining characters are none.
  static int Columns(char32_t character) {
    return character >= 0x4e00 ? 2 : character >= 0x300 && character < 0x370 ? 0 : 1;
  }
  static std::vector<std::string> LinesOf(const LiveFrame& frame) {
    std::vector<std::string> lines;
    for (const auto& row : frame.rows) {
      std::string line;
      for (const LiveSpan& span : row) {
        if (line.size() < static_cast<size_t>(span.column))
          line.resize(static_cast<size_t>(span.column), ' ');
        line += span.text;
      }
      lines.push_back(line);
    }
    return lines;
  }

  bool open = false;
  bool ours = true;
  LiveSize now = {24, 80};
  LiveSize next = now;  // after the next Resize
  int shown = 0;
  int suspended = 0;
  int continued = 0;
  std::vector<std::string> lines;
  std::deque<LiveKey> keys;
};

}  // namespace hangscope

#endif
