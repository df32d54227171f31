// The live view without a terminal: what is picked, which page is open, what keys do, and the frame
// that shows it.
//
//   overview   headline, counts, cores and tasks, what the picked one does
//   details    all of the picked one
//   messages   findings and notes so far, as they will be printed in the end
//   help       the keys
//
// One thread. Update comes before OnKey and Frame; what it points to is looked at until the next
// Update.
#ifndef HANGSCOPE_WATCH_LIVE_VIEW_H
#define HANGSCOPE_WATCH_LIVE_VIEW_H

#include <optional>
#include <string>
#include <vector>

#include "watch/live_details.h"
#include "watch/live_grid.h"
#include "watch/live_items.h"
#include "watch/live_painter.h"

namespace hangscope {

enum class LiveAction { kNone, kQuit, kResume, kRepaint };

class LiveView {
 public:
  // While the display is paused only names are taken from it.
  void Update(const LiveData& data);
  LiveAction OnKey(const LiveKey& key, TimeNs now);
  // `messages`: lines, the oldest first. Shows as much as there is room for, and says what there is
  // more.
  LiveFrame Frame(LiveSize size, const LiveWidth& width, const std::vector<std::string>& messages);

  // Whose details are wanted now; nothing: the page is not open, or they are not to change.
  std::optional<LiveSubject> WantsDetails() const;
  void SetDetails(const LiveSubject& subject, LiveDetails details);

  const std::optional<LiveSubject>& picked() const { return picked_; }
  bool shows_messages() const { return page_ == Page::kMessages; }
  bool is_paused() const { return !frozen_.empty(); }

 private:
  enum class Page { kOverview, kDetails, kMessages, kHelp };
  // What a paused display goes on to show of a target.
  struct Frozen {
    std::vector<SubjectState> subjects;
    std::vector<NodeSample> nodes;
    std::vector<ScopeFinding> findings;
  };

  // live_view.cc: keys.
  LiveAction OnOverviewKey(const LiveKey& key, TimeNs now);
  LiveAction OnPageKey(const LiveKey& key);
  LiveAction OnAnyKey(char32_t character);
  bool OnFilterKey(const LiveKey& key);
  void OnDigit(char32_t digit, TimeNs now);
  void PickAt(size_t at);
  void Move(int by);
  void PickBad(bool again);
  void Open(Page page);
  void TogglePause();
  void NextForm();
  void Relist();
  std::optional<size_t> PickedAt() const;
  // live_frame.cc: what is seen.
  void DrawOverview(LivePainter* painter);
  std::vector<LiveLine> HeadLines(const LivePainter& painter) const;
  void DrawPicked(LivePainter* painter, int row, int rows) const;
  void DrawMessage(LivePainter* painter, int row, const std::vector<std::string>& left_out) const;
  std::string CountsText() const;
  void ScrollToPicked();
  void DrawPage(LivePainter* painter, const std::string& title, const std::vector<LiveLine>& lines);
  std::string DetailsTitle() const;
  std::vector<LiveLine> PageDetails() const;

  LiveData data_;
  std::vector<Frozen> frozen_;  // by target; empty: the display is not paused
  std::vector<LiveItem> items_;
  std::optional<LiveSubject> picked_;
  size_t picked_at_ = 0;  // where it was last: its neighbour is picked when it is listed no more
  size_t first_ = 0;      // item on the screen
  LiveGrid grid_;
  std::optional<LiveForm> form_;
  bool worst_first_ = false;
  std::string filter_;
  bool types_filter_ = false;
  std::string number_;  // typed so far
  TimeNs number_typed_ = 0;
  bool jumps_ = false;  // the latest key was f
  std::string note_;    // about the latest key
  Page page_ = Page::kOverview;
  size_t line_ = 0;  // the first of a page's that is seen
  size_t page_lines_ = 1;
  size_t lines_ = 0;  // of the page
  std::optional<LiveSubject> details_of_;
  LiveDetails details_;
};

}  // namespace hangscope

#endif
