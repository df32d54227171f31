#include "watch/live_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace hangscope {
namespace {

constexpr int kMarks = 2;  // '>' and '!'
constexpr int kWaypoint = 4;
constexpr int kSince = 4;
constexpr int kWaitsFor = 16;
constexpr int kBetween = 2;      // columns of a list
constexpr int kLeastColumn = 4;  // less tells nothing

using Column = WatchColumn;
// Which column has room first.
constexpr std::array<Column, kWatchColumns> kByImportance = {
    Column::kWho,  Column::kActivity, Column::kAt,     Column::kSince, Column::kWaitsFor,
    Column::kRole, Column::kNode,     Column::kKernel, Column::kStack};

LiveStyle StyleOf(const LiveItem& item, const LiveData& data, bool picked) {
  if (picked) return LiveStyle::kPicked;
  if (item.bad) return LiveStyle::kBad;
  switch (SubjectOf(item, data).activity) {
    case Activity::kRunning:
      return LiveStyle::kGood;
    case Activity::kHalted:
    case Activity::kSilent:
    case Activity::kCorrupt:
      return LiveStyle::kBad;
    case Activity::kPaused:
      return LiveStyle::kPaused;
    default:
      return LiveStyle::kPlain;
  }
}

int CellColumns(LiveForm form, int label) {
  const int small = kMarks + 2 + label;  // with the letter and a space behind it all
  const int cells = small + kWaypoint + kSince + 2;
  return form == LiveForm::kSmall   ? small
         : form == LiveForm::kCells ? cells
                                    : cells + kWaitsFor + 1;
}

// The list has a line of titles above it.
LiveGrid GridOf(LiveForm form, int label, LiveSize area) {
  if (form == LiveForm::kList) return {form, 1, area.columns, label, std::max(1, area.rows - 1)};
  const int columns = CellColumns(form, label);
  // the last space is none
  return {form, std::max(1, (area.columns + 1) / columns), columns, label, area.rows};
}

bool HoldsAll(const LiveGrid& grid, size_t items) {
  return static_cast<size_t>(grid.cells_in_row) * static_cast<size_t>(grid.rows) >= items;
}

std::string CellText(const LiveItem& item, const LiveData& data, const LiveGrid& grid,
                     bool picked) {
  const SubjectState& subject = SubjectOf(item, data);
  const WatchScene& scene = data.targets[item.target].scene;
  std::string text =
      fmt::format("{}{}{}{:>{}}", picked ? '>' : ' ', MarkOf(item),
                  ActivityLetter(subject.activity), LabelOf(item, data), grid.label_columns);
  if (grid.form == LiveForm::kSmall) return text;
  const std::vector<std::string> cells = WatchCells(subject, scene);
  const std::string& since = cells[static_cast<size_t>(Column::kSince)];
  text += fmt::format(" {:<{}} {:>{}}", cells[static_cast<size_t>(Column::kAt)], kWaypoint,
                      since.empty() ? "" : ShortElapsed(scene.now - subject.since), kSince);
  if (grid.form == LiveForm::kWide) text += " " + cells[static_cast<size_t>(Column::kWaitsFor)];
  return text;
}

// A list's columns that have room, and where they begin.
struct ListPlan {
  std::array<int, kWatchColumns> widths{};  // 0: left out
  std::vector<std::string> left_out;
};

std::string Title(Column column) {
  return column == Column::kWho ? "core, task" : WatchColumnTitle(column);
}

ListPlan PlanList(const std::vector<std::vector<std::string>>& lines, int columns,
                  const LivePainter& painter) {
  ListPlan plan;
  int room = columns - kMarks - 1;
  for (const Column column : kByImportance) {
    const auto at = static_cast<size_t>(column);
    int width = 0;
    for (const auto& cells : lines) width = std::max(width, painter.Columns(cells[at]));
    if (width == 0) continue;
    width = std::max(width, painter.Columns(column == Column::kWho ? "core" : Title(column)));
    const bool can_be_cut = column == Column::kWho || column == Column::kWaitsFor;
    const int least = can_be_cut ? std::min(width, kLeastColumn) : width;
    if (least > room) {
      plan.left_out.push_back(Title(column));
      continue;
    }
    plan.widths[at] = std::min(width, room);
    room -= plan.widths[at] + kBetween;
  }
  return plan;
}

void PutCells(const std::vector<std::string>& cells, const ListPlan& plan, int row, int column,
              LiveStyle style, LivePainter* painter) {
  for (size_t i = 0; i < kWatchColumns; ++i) {
    if (plan.widths[i] == 0) continue;
    painter->Put(row, column, cells[i].empty() ? "-" : cells[i], style, plan.widths[i]);
    column += plan.widths[i] + kBetween;
  }
}

std::vector<std::string> DrawList(const std::vector<LiveItem>& items, const LiveData& data,
                                  const LiveGrid& grid, size_t first, std::optional<size_t> picked,
                                  int top, LivePainter* painter) {
  const size_t end = std::min(items.size(), first + static_cast<size_t>(grid.rows));
  std::vector<std::vector<std::string>> lines;
  for (size_t i = first; i < end; ++i) {
    lines.push_back(WatchCells(SubjectOf(items[i], data), data.targets[items[i].target].scene));
    std::string& who = lines.back()[static_cast<size_t>(Column::kWho)];
    if (data.targets.size() > 1) who = fmt::format("{}:{}", items[i].target + 1, who);
  }
  const ListPlan plan = PlanList(lines, painter->size().columns, *painter);
  std::vector<std::string> titles;
  for (size_t i = 0; i < kWatchColumns; ++i)
    titles.push_back(i == 0 ? "core" : Title(static_cast<Column>(i)));
  PutCells(titles, plan, top, kMarks + 1, LiveStyle::kTitle, painter);
  for (size_t i = first; i < end; ++i) {
    const int row = top + 1 + static_cast<int>(i - first);
    const bool is_picked = picked == i;
    const LiveStyle style = StyleOf(items[i], data, is_picked);
    painter->Put(row, 0, fmt::format("{}{}", is_picked ? '>' : ' ', MarkOf(items[i])), style);
    PutCells(lines[i - first], plan, row, kMarks + 1, style, painter);
  }
  return plan.left_out;
}

}  // namespace

LiveGrid PlanGrid(std::optional<LiveForm> wanted, const std::vector<LiveItem>& items,
                  const LiveData& data, LiveSize area) {
  size_t label = 1;
  for (const LiveItem& item : items) label = std::max(label, LabelOf(item, data).size());
  if (wanted) return GridOf(*wanted, static_cast<int>(label), area);
  for (const LiveForm form :
       {LiveForm::kList, LiveForm::kWide, LiveForm::kCells, LiveForm::kSmall}) {
    const LiveGrid grid = GridOf(form, static_cast<int>(label), area);
    if (HoldsAll(grid, items.size())) return grid;
  }
  return GridOf(LiveForm::kCells, static_cast<int>(label), area);
}

std::vector<std::string> DrawGrid(const LiveGrid& grid, const std::vector<LiveItem>& items,
                                  const LiveData& data, size_t first, std::optional<size_t> picked,
                                  int top, LivePainter* painter) {
  if (grid.form == LiveForm::kList) return DrawList(items, data, grid, first, picked, top, painter);
  const size_t in_row = static_cast<size_t>(grid.cells_in_row);
  const size_t end = std::min(items.size(), first + in_row * static_cast<size_t>(grid.rows));
  for (size_t i = first; i < end; ++i) {
    const auto place = i - first;
    const bool is_picked = picked == i;
    painter->Put(top + static_cast<int>(place / in_row),
                 static_cast<int>(place % in_row) * grid.cell_columns,
                 CellText(items[i], data, grid, is_picked), StyleOf(items[i], data, is_picked),
                 grid.cell_columns - 1);
  }
  return {};
}

}  // namespace hangscope
