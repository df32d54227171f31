#include "watch/live_painter.h"

#include <algorithm>

#include "base/utf8.h"

namespace hangscope {
namespace {

constexpr char32_t Decode(std::string_view sequence) {
  const auto byte = [&](size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(sequence[i]));
  };
  switch (sequence.size()) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f);
    case 3:
      return (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    default:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 |
             (byte(3) & 0x3f);
  }
}

}  // namespace

LivePainter::LivePainter(LiveSize size, LiveWidth width) : width_(std::move(width)) {
  frame_.size = size;
  frame_.rows.resize(static_cast<size_t>(std::max(0, size.rows)));
}

// A character each. What the terminal cannot show, or would join to its neighbour, is a question
// mark.
std::vector<LivePainter::Piece> LivePainter::Pieces(std::string_view text) const {
  std::vector<Piece> pieces;
  const std::string printable = Printable(text);
  for (size_t at = 0; at < printable.size();) {
    const std::string_view sequence =
        std::string_view(printable).substr(at, std::max<size_t>(1, Utf8Length(printable, at)));
    const int columns = sequence.size() == 1 ? 1 : width_(Decode(sequence));
    pieces.push_back(columns > 0 ? Piece{std::string(sequence), columns} : Piece{"?", 1});
    at += sequence.size();
  }
  return pieces;
}

LivePainter::Fitted LivePainter::Fit(std::string_view text, int most) const {
  Fitted fitted;
  if (most <= 0) return fitted;
  const std::vector<Piece> pieces = Pieces(text);
  int all = 0;
  for (const Piece& piece : pieces) all += piece.columns;
  const int room = all <= most ? most : most - 1;
  for (const Piece& piece : pieces) {
    if (fitted.columns + piece.columns > room) break;
    fitted.text += piece.text;
    fitted.columns += piece.columns;
  }
  if (all > most) {
    fitted.text += kCutSign;
    ++fitted.columns;
  }
  return fitted;
}

int LivePainter::Put(int row, int column, std::string_view text, LiveStyle style, int most) {
  if (row < 0 || row >= frame_.size.rows || column < 0) return 0;
  Fitted fitted = Fit(text, std::min(most, frame_.size.columns - column));
  if (fitted.columns == 0) return 0;
  frame_.rows[static_cast<size_t>(row)].push_back({column, std::move(fitted.text), style});
  return fitted.columns;
}

int LivePainter::Columns(std::string_view text) const {
  int columns = 0;
  for (const Piece& piece : Pieces(text)) columns += piece.columns;
  return columns;
}

std::vector<std::string> LivePainter::Wrap(std::string_view text, int indent) const {
  const int room = std::max(1, frame_.size.columns);
  const std::string margin(static_cast<size_t>(std::clamp(indent, 0, room / 2)), ' ');
  std::vector<std::string> lines(1);
  int columns = 0;
  size_t space = std::string::npos;  // in the last line: where it may be broken
  for (const Piece& piece : Pieces(text)) {
    if (columns + piece.columns > room) {
      std::string rest;
      const bool breaks = piece.text != " " && space != std::string::npos && space > margin.size();
      if (breaks &&
          Columns(margin) + Columns(lines.back().substr(space + 1)) + piece.columns <= room) {
        rest = lines.back().substr(space + 1);
        lines.back().resize(space);
      }
      lines.push_back(margin + rest);
      columns = Columns(lines.back());
      space = std::string::npos;
      if (piece.text == " " && rest.empty()) continue;
    }
    if (piece.text == " ") space = lines.back().size();
    lines.back() += piece.text;
    columns += piece.columns;
  }
  return lines;
}

}  // namespace hangscope
