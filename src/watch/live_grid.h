// The cores and tasks of the live view in rows of cells, or a line each.
#ifndef HANGSCOPE_WATCH_LIVE_GRID_H
#define HANGSCOPE_WATCH_LIVE_GRID_H

#include <optional>
#include <string>
#include <vector>

#include "watch/live_items.h"
#include "watch/live_painter.h"

namespace hangscope {

// From the most telling to the smallest.
enum class LiveForm {
  kList,   // a line each, with all columns that there is room for
  kWide,   // mark, letter, number, waypoint, since, what it waits for
  kCells,  // without that
  kSmall,  // mark, letter, number
};

struct LiveGrid {
  LiveForm form = LiveForm::kList;
  int cells_in_row = 1;
  int cell_columns = 0;   // with the space behind it
  int label_columns = 1;  // of its number
  int rows = 1;           // of cells that can be seen
};

// `wanted`: none is the most telling form in which all are seen at once, or cells that scroll.
// `area`: at least 1 by 1.
LiveGrid PlanGrid(std::optional<LiveForm> wanted, const std::vector<LiveItem>& items,
                  const LiveData& data, LiveSize area);

// Draws from row `top` of the screen on, beginning with the item `first`; returns the titles of
// columns that have something to say and no room.
std::vector<std::string> DrawGrid(const LiveGrid& grid, const std::vector<LiveItem>& items,
                                  const LiveData& data, size_t first, std::optional<size_t> picked,
                                  int top, LivePainter* painter);

}  // namespace hangscope

#endif
