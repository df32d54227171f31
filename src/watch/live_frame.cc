// What the live view shows (live_view.h).
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "watch/live_view.h"

namespace hangscope {
namespace {

constexpr LiveSize kLeast = {5, 20};
// From so many rows on there is room for what is merely pleasant.
constexpr int kRowsForTwoLines = 10;
constexpr int kRowsForKeys = 9;
constexpr int kRowsForMessage = 7;
constexpr int kRowsForTitle = 16;
constexpr const char* kKeys =
    "q quit  ? help  ENTER open  f first bad  s sort  / filter  r resume  m messages";
constexpr const char* kHelp[] = {
    "arrows, hjkl, PgUp PgDn, Home End   pick a core or task",
    "0-9        pick the core or task with this number",
    "ENTER      details of the picked one; so does the right arrow in a list",
    "ESC, q     back; q on the first page ends the watching, ESC there ends a filter",
    "f          the next one that something is wrong with",
    "s          what is wrong first, or by number",
    "v          a line each, wide cells, cells, small cells",
    "/          only those whose name, activity or waypoint has what you type",
    "p          the display stands still, or goes on; the watching goes on",
    "r          lets all paused cores go on",
    "m          what will be printed in the end: findings, notes",
    "Ctrl-L     paints all anew",
    "",
    "R running  I idle  W waiting  P paused  H halted by a fault",
    "S silent: stands still, waits for nothing  E ended  C corrupt  X unread",
    "! a bad finding is about it  + another finding  * waits for one of these",
    "> picked   ~ cut off here   since >2 s: so from the first look",
};

std::string StateText(const LiveTarget& target) {
  switch (target.state) {
    case LiveTarget::State::kWatched:
      return "";
    case LiveTarget::State::kAway:
      return " (away)";
    case LiveTarget::State::kOver:
      return " (ended)";
  }
  return "";
}

// "1024 cores", "1 core, 3 tasks".
std::string CountText(const std::vector<LiveItem>& items, const LiveData& data) {
  const auto cores =
      static_cast<size_t>(std::count_if(items.begin(), items.end(), [&](const LiveItem& item) {
        return SubjectOf(item, data).subject.kind == SubjectId::Kind::kCore;
      }));
  const size_t tasks = items.size() - cores;
  std::string text = fmt::format("{} core{}", cores, cores == 1 ? "" : "s");
  if (tasks > 0) text += fmt::format(", {} task{}", tasks, tasks == 1 ? "" : "s");
  return text;
}

size_t RowsOfHeadline(LiveSize size) { return size.rows >= kRowsForTwoLines ? 2 : 1; }

// What is behind the last line is joined to it: it is cut off there, which is seen.
std::vector<std::string> AtMost(std::vector<std::string> lines, size_t most) {
  for (size_t i = most; i < lines.size(); ++i) lines[most - 1] += lines[i];
  lines.resize(std::min(lines.size(), most));
  return lines;
}

}  // namespace

std::string LiveView::CountsText() const {
  std::string text;
  const size_t seen =
      std::min(items_.size() - std::min(first_, items_.size()),
               static_cast<size_t>(grid_.cells_in_row) * static_cast<size_t>(grid_.rows));
  if (items_.empty())
    text = filter_.empty() ? "no core or task has said anything yet"
                           : "no core or task passes the filter";
  else if (seen < items_.size())
    text = fmt::format("{}-{} of {}", first_ + 1, first_ + seen, items_.size());
  else
    text = CountText(items_, data_);
  if (!filter_.empty() && !items_.empty()) text += fmt::format(" with '{}'", filter_);
  const auto counts = CountActivities(items_, data_);
  for (size_t i = 1; i < counts.size(); ++i) {
    const auto activity = static_cast<Activity>(i);
    if (counts[i] > 0)
      text +=
          fmt::format("  {} {} {}", ActivityLetter(activity), counts[i], ActivityName(activity));
  }
  return text;
}

// A row each. How many there are does not depend on the grid.
std::vector<LiveLine> LiveView::HeadLines(const LivePainter& painter) const {
  const LiveSize size = painter.size();
  std::vector<LiveLine> head;
  if (size.rows >= kRowsForTitle) {
    std::string names;
    for (size_t i = 0; i < data_.targets.size(); ++i) {
      const std::string number = data_.targets.size() > 1 ? fmt::format("{}: ", i + 1) : "";
      names += fmt::format("{}{}{}{}", i == 0 ? "" : ", ", number, data_.targets[i].scene.target,
                           StateText(data_.targets[i]));
    }
    head.push_back({fmt::format("hangscope watch, {}, {}", FormatElapsed(data_.elapsed), names),
                    LiveStyle::kTitle});
  }
  std::string headline = data_.headline.empty() ? "no hang found so far" : data_.headline;
  if (!data_.headline.empty() && !data_.headline_holds)
    headline = "it was, and is over: " + headline;
  if (data_.bad_findings > 1)
    headline += fmt::format("; {} bad findings so far (m)", data_.bad_findings);
  const LiveStyle style = data_.headline.empty()                          ? LiveStyle::kGood
                          : data_.headline_is_bad && data_.headline_holds ? LiveStyle::kBad
                                                                          : LiveStyle::kTitle;
  for (std::string& line : AtMost(painter.Wrap(headline, 2), RowsOfHeadline(size)))
    head.push_back({std::move(line), style});
  head.push_back({CountsText()});
  return head;
}

void LiveView::DrawPicked(LivePainter* painter, int row, int rows) const {
  const auto at = PickedAt();
  if (!at) return;
  const LiveItem& item = items_[*at];
  const SubjectState& subject = SubjectOf(item, data_);
  const WatchScene& scene = data_.targets[item.target].scene;
  const std::string place = SubjectPlace(subject.subject, scene);
  const std::string text =
      fmt::format("> {}: {}{}{}", SubjectName(subject.subject, scene), SubjectDoing(subject, scene),
                  place.empty() ? "" : ", ", place);
  for (const std::string& line : AtMost(painter->Wrap(text, 4), static_cast<size_t>(rows)))
    painter->Put(row++, 0, line, LiveStyle::kTitle);
}

void LiveView::DrawMessage(LivePainter* painter, int row,
                           const std::vector<std::string>& left_out) const {
  if (types_filter_) {
    painter->Put(row, 0, fmt::format("/{}_   ENTER shows these, ESC all", filter_),
                 LiveStyle::kTitle);
    return;
  }
  const size_t paused = CountActivities(items_, data_)[static_cast<size_t>(Activity::kPaused)];
  if (is_paused())
    painter->Put(row, 0, "DISPLAY PAUSED, the watching goes on; p shows what is so now",
                 LiveStyle::kPaused);
  else if (!note_.empty())
    painter->Put(row, 0, note_, LiveStyle::kTitle);
  else if (paused > 0)
    painter->Put(row, 0,
                 fmt::format("{} paused: r lets {} go on", paused, paused == 1 ? "it" : "them"),
                 LiveStyle::kPaused);
  else if (!left_out.empty())
    painter->Put(row, 0, fmt::format("no room for: {}", fmt::join(left_out, ", ")));
}

// So little as is needed to see the picked one.
void LiveView::ScrollToPicked() {
  const auto in_row = static_cast<size_t>(grid_.cells_in_row);
  const auto rows = static_cast<size_t>(grid_.rows);
  const size_t all = (items_.size() + in_row - 1) / in_row;
  size_t top = first_ / in_row;
  const size_t at = picked_at_ / in_row;
  if (at < top) top = at;
  if (at >= top + rows) top = at - rows + 1;
  top = std::min(top, all > rows ? all - rows : 0);  // no room is left empty
  first_ = top * in_row;
}

void LiveView::DrawOverview(LivePainter* painter) {
  const LiveSize size = painter->size();
  const int keys = size.rows >= kRowsForKeys ? 1 : 0;
  const int message = size.rows >= kRowsForMessage ? 1 : 0;
  const int picked = size.rows >= kRowsForTitle ? 2 : 1;
  const int head = static_cast<int>(HeadLines(*painter).size());
  const int rows = std::max(1, size.rows - head - picked - message - keys);
  grid_ = PlanGrid(form_, items_, data_, {rows, size.columns});
  ScrollToPicked();
  int row = 0;
  for (const LiveLine& line : HeadLines(*painter)) painter->Put(row++, 0, line.text, line.style);
  const auto at = PickedAt();
  const std::vector<std::string> left_out =
      DrawGrid(grid_, items_, data_, first_, at, head, painter);
  const bool asks = types_filter_ || is_paused() || !note_.empty();
  if (message == 1) {
    DrawPicked(painter, head + rows, picked);
    DrawMessage(painter, head + rows + picked, left_out);
  } else if (asks) {
    DrawMessage(painter, head + rows, left_out);
  } else {
    DrawPicked(painter, head + rows, picked);
  }
  if (keys == 1) painter->Put(size.rows - 1, 0, kKeys);
}

// Title, lines, and which of them these are.
void LiveView::DrawPage(LivePainter* painter, const std::string& title,
                        const std::vector<LiveLine>& lines) {
  const LiveSize size = painter->size();
  std::vector<LiveLine> wrapped;
  for (const LiveLine& line : lines) {
    for (std::string& part : painter->Wrap(line.text, 4))
      wrapped.push_back({std::move(part), line.style});
  }
  page_lines_ = static_cast<size_t>(std::max(1, size.rows - 2));
  lines_ = wrapped.size();
  line_ = std::min(line_, lines_ > page_lines_ ? lines_ - page_lines_ : 0);
  painter->Put(0, 0, title, LiveStyle::kTitle);
  const size_t end = std::min(lines_, line_ + page_lines_);
  for (size_t i = line_; i < end; ++i)
    painter->Put(1 + static_cast<int>(i - line_), 0, wrapped[i].text, wrapped[i].style);
  const bool all = lines_ <= page_lines_;
  std::string foot =
      all ? "ESC back"
          : fmt::format("ESC back  {}-{} of {} lines, arrows scroll", line_ + 1, end, lines_);
  if (is_paused()) foot += "  DISPLAY PAUSED (p)";
  if (!note_.empty()) foot += "  " + note_;
  painter->Put(size.rows - 1, 0, foot);
}

std::string LiveView::DetailsTitle() const {
  const auto at = PickedAt();
  if (!at) return "nothing is picked";
  const WatchScene& scene = data_.targets[items_[*at].target].scene;
  return fmt::format("{} of {}{}", SubjectName(picked_->subject, scene), scene.target,
                     StateText(data_.targets[items_[*at].target]));
}

std::vector<LiveLine> LiveView::PageDetails() const {
  const auto at = PickedAt();
  if (!at) return {{"no core or task is there any more"}};
  if (details_of_ != picked_) return {{"being read ..."}};
  return DetailLines(SubjectOf(items_[*at], data_), data_.targets[items_[*at].target], details_);
}

LiveFrame LiveView::Frame(LiveSize size, const LiveWidth& width,
                          const std::vector<std::string>& messages) {
  LivePainter painter(size, width);
  if (size.rows < kLeast.rows || size.columns < kLeast.columns) {
    painter.Put(0, 0,
                fmt::format("{}x{} is too small, {}x{} will do", size.columns, size.rows,
                            kLeast.columns, kLeast.rows));
    return painter.Take();
  }
  std::vector<LiveLine> lines;
  switch (page_) {
    case Page::kOverview:
      DrawOverview(&painter);
      break;
    case Page::kDetails:
      DrawPage(&painter, DetailsTitle(), PageDetails());
      break;
    case Page::kMessages:
      for (const std::string& line : messages) lines.push_back({line});
      DrawPage(&painter, "what will be printed in the end", lines);
      break;
    case Page::kHelp:
      for (const char* line : kHelp) lines.push_back({line});
      DrawPage(&painter, "keys", lines);
      break;
  }
  return painter.Take();
}

}  // namespace hangscope
