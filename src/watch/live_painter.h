// Fits text into the cells of a frame. What comes from a target becomes printable here, whoever
// wrote it.
#ifndef HANGSCOPE_WATCH_LIVE_PAINTER_H
#define HANGSCOPE_WATCH_LIVE_PAINTER_H

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "watch/live_screen.h"

namespace hangscope {

// Columns of a character on the screen; less than 1: it cannot be shown.
using LiveWidth = std::function<int(char32_t)>;

// At the end of what did not fit.
constexpr char kCutSign = '~';

class LivePainter {
 public:
  LivePainter(LiveSize size, LiveWidth width);

  // Writes at most `most` columns of `text` at a cell, and says how many it took. What lies outside
  // of the frame is left out. Columns of a row are written from left to right.
  int Put(int row, int column, std::string_view text, LiveStyle style = LiveStyle::kPlain,
          int most = 1 << 20);
  // `text` in lines of the frame's width, broken between words where that is possible; those behind
  // the first begin with `indent` spaces.
  std::vector<std::string> Wrap(std::string_view text, int indent) const;
  // Columns that `text` takes.
  int Columns(std::string_view text) const;

  LiveSize size() const { return frame_.size; }
  LiveFrame Take() { return std::move(frame_); }

 private:
  struct Fitted {
    std::string text;
    int columns = 0;
  };
  struct Piece {
    std::string text;
    int columns = 0;
  };
  std::vector<Piece> Pieces(std::string_view text) const;
  Fitted Fit(std::string_view text, int most) const;

  LiveFrame frame_;
  const LiveWidth width_;
};

}  // namespace hangscope

#endif
