#include "watch/live_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace hangscope {
namespace {

using KeyKind = LiveKey::Kind;

constexpr TimeNs kNumberAge = 1500 * kMillisecond;  // a digit that comes later begins a new number
constexpr size_t kLongestNumber = 9;
constexpr size_t kLongestFilter = 200;  // bytes

void RemoveLast(std::string* text) {
  while (!text->empty() && (static_cast<unsigned char>(text->back()) & 0xc0) == 0x80)
    text->pop_back();
  if (!text->empty()) text->pop_back();
}

// vi's letters for arrows.
KeyKind WithLetters(const LiveKey& key) {
  if (key.kind != KeyKind::kCharacter) return key.kind;
  switch (key.character) {
    case 'h':
      return KeyKind::kLeft;
    case 'j':
      return KeyKind::kDown;
    case 'k':
      return KeyKind::kUp;
    case 'l':
      return KeyKind::kRight;
    default:
      return KeyKind::kCharacter;
  }
}

}  // namespace

void LiveView::Update(const LiveData& data) {
  if (!is_paused()) {
    data_ = data;
  } else {
    // A target that started again has new names.
    for (size_t i = 0; i < std::min(data.targets.size(), data_.targets.size()); ++i)
      data_.targets[i].scene.names = data.targets[i].scene.names;
  }
  Relist();
}

void LiveView::Relist() {
  items_ = ListItems(data_, filter_, worst_first_);
  if (items_.empty()) {
    picked_.reset();
    return;
  }
  if (const auto at = PickedAt())
    picked_at_ = *at;
  else
    PickAt(std::min(picked_at_, items_.size() - 1));
}

std::optional<size_t> LiveView::PickedAt() const {
  if (!picked_) return std::nullopt;
  const auto found = std::find_if(items_.begin(), items_.end(), [&](const LiveItem& item) {
    return IdentityOf(item, data_) == *picked_;
  });
  return found == items_.end() ? std::nullopt
                               : std::optional(static_cast<size_t>(found - items_.begin()));
}

void LiveView::PickAt(size_t at) {
  picked_at_ = at;
  picked_ = IdentityOf(items_[at], data_);
}

void LiveView::Move(int by) {
  if (items_.empty()) return;
  const auto last = static_cast<int64_t>(items_.size()) - 1;
  PickAt(static_cast<size_t>(std::clamp<int64_t>(static_cast<int64_t>(picked_at_) + by, 0, last)));
}

// The first one; pressed again and again each of them, round and round.
void LiveView::PickBad(bool again) {
  const auto wrong = [&](const LiveItem& item) {
    const Activity activity = SubjectOf(item, data_).activity;
    return item.found || activity == Activity::kHalted || activity == Activity::kSilent ||
           activity == Activity::kCorrupt;
  };
  const size_t begin = again ? picked_at_ + 1 : 0;
  for (size_t step = 0; step < items_.size(); ++step) {
    const size_t at = (begin + step) % items_.size();
    if (!wrong(items_[at])) continue;
    PickAt(at);
    line_ = 0;
    return;
  }
  note_ = filter_.empty() ? "nothing is wrong with any core or task"
                          : "nothing is wrong with those that the filter shows";
}

void LiveView::Open(Page page) {
  page_ = page;
  line_ = 0;
}

void LiveView::TogglePause() {
  if (is_paused()) {
    frozen_.clear();  // the next Update brings what is so now
    note_ = "the display goes on";
    return;
  }
  for (const LiveTarget& target : data_.targets) {
    frozen_.push_back(
        {*target.scene.subjects,
         target.scene.nodes == nullptr ? std::vector<NodeSample>() : *target.scene.nodes,
         target.findings == nullptr ? std::vector<ScopeFinding>() : *target.findings});
  }
  for (size_t i = 0; i < frozen_.size(); ++i) {
    data_.targets[i].scene.subjects = &frozen_[i].subjects;
    data_.targets[i].scene.nodes = &frozen_[i].nodes;
    data_.targets[i].findings = &frozen_[i].findings;
  }
}

void LiveView::NextForm() {
  form_ = static_cast<LiveForm>((static_cast<int>(form_.value_or(grid_.form)) + 1) % 4);
  constexpr const char* kNames[] = {"a line each", "wide cells", "cells", "small cells"};
  note_ = kNames[static_cast<size_t>(*form_)];
}

bool LiveView::OnFilterKey(const LiveKey& key) {
  if (!types_filter_) return false;
  switch (key.kind) {
    case KeyKind::kCharacter:
      if (key.character >= ' ' && filter_.size() < kLongestFilter)
        AppendUtf8(key.character, &filter_);
      break;
    case KeyKind::kBackspace:
      if (filter_.empty()) types_filter_ = false;
      RemoveLast(&filter_);
      break;
    case KeyKind::kEscape:
      filter_.clear();
      types_filter_ = false;
      break;
    default:  // it holds, and the key does nothing else
      types_filter_ = false;
      break;
  }
  Relist();
  return true;
}

// Each digit picks the core with the number so far. Of several targets, or memories of a device, it
// is one of the picked core's.
void LiveView::OnDigit(char32_t digit, TimeNs now) {
  if (now - number_typed_ > kNumberAge || number_.size() >= kLongestNumber) number_.clear();
  number_ += static_cast<char>(digit);
  number_typed_ = now;
  const auto number = static_cast<uint32_t>(std::stoul(number_));
  const size_t target = picked_ ? picked_->target : 0;
  const auto has_number = [&](const LiveItem& item, SubjectId::Kind kind) {
    const SubjectState& subject = SubjectOf(item, data_);
    const WatchScene& scene = data_.targets[item.target].scene;
    if (item.target != target || subject.subject.kind != kind || scene.NumberOf(subject) != number)
      return false;
    const SubjectHome* const home = scene.HomeOf(subject.subject);
    const SubjectHome* const picked = picked_ ? scene.HomeOf(picked_->subject) : nullptr;
    return home == nullptr || picked == nullptr || home->memory == picked->memory;
  };
  for (const auto kind : {SubjectId::Kind::kCore, SubjectId::Kind::kTask}) {
    const auto found = std::find_if(items_.begin(), items_.end(),
                                    [&](const LiveItem& item) { return has_number(item, kind); });
    if (found == items_.end()) continue;
    note_ = fmt::format("{} {}", kind == SubjectId::Kind::kCore ? "core" : "task", number);
    return PickAt(static_cast<size_t>(found - items_.begin()));
  }
  note_ = fmt::format("no core or task {} is shown", number);
}

LiveAction LiveView::OnKey(const LiveKey& key, TimeNs now) {
  note_.clear();
  if (OnFilterKey(key)) return LiveAction::kNone;
  const bool digit =
      key.kind == KeyKind::kCharacter && key.character >= '0' && key.character <= '9';
  if (!digit) number_.clear();
  if (key.kind != KeyKind::kCharacter || key.character != 'f') jumps_ = false;
  if (page_ == Page::kOverview && digit) {
    OnDigit(key.character, now);
    return LiveAction::kNone;
  }
  return page_ == Page::kOverview ? OnOverviewKey(key, now) : OnPageKey(key);
}

LiveAction LiveView::OnOverviewKey(const LiveKey& key, TimeNs) {
  const bool list = grid_.form == LiveForm::kList;
  const int in_row = grid_.cells_in_row;
  switch (WithLetters(key)) {
    case KeyKind::kUp:
      Move(-in_row);
      break;
    case KeyKind::kDown:
      Move(in_row);
      break;
    case KeyKind::kLeft:
      Move(list ? 0 : -1);
      break;
    case KeyKind::kRight:
      if (list && picked_)
        Open(Page::kDetails);
      else if (!list)
        Move(1);
      break;
    case KeyKind::kPageUp:
      Move(-in_row * grid_.rows);
      break;
    case KeyKind::kPageDown:
      Move(in_row * grid_.rows);
      break;
    case KeyKind::kHome:
      Move(-static_cast<int>(items_.size()));
      break;
    case KeyKind::kEnd:
      Move(static_cast<int>(items_.size()));
      break;
    case KeyKind::kEnter:
      if (picked_) Open(Page::kDetails);
      break;
    case KeyKind::kEscape:
      filter_.clear();
      Relist();
      break;
    case KeyKind::kCharacter:
      if (key.character == 'q') return LiveAction::kQuit;
      return OnAnyKey(key.character);
    default:
      break;
  }
  return LiveAction::kNone;
}

LiveAction LiveView::OnPageKey(const LiveKey& key) {
  const size_t last = lines_ > page_lines_ ? lines_ - page_lines_ : 0;
  const auto scroll = [&](int64_t by) {
    line_ = static_cast<size_t>(
        std::clamp<int64_t>(static_cast<int64_t>(line_) + by, 0, static_cast<int64_t>(last)));
  };
  switch (WithLetters(key)) {
    case KeyKind::kUp:
      scroll(-1);
      break;
    case KeyKind::kDown:
      scroll(1);
      break;
    case KeyKind::kPageUp:
      scroll(-static_cast<int64_t>(page_lines_));
      break;
    case KeyKind::kPageDown:
      scroll(static_cast<int64_t>(page_lines_));
      break;
    case KeyKind::kHome:
      line_ = 0;
      break;
    case KeyKind::kEnd:
      line_ = last;
      break;
    case KeyKind::kLeft:
    case KeyKind::kBackspace:
    case KeyKind::kEscape:
      Open(Page::kOverview);
      break;
    case KeyKind::kCharacter:
      if (key.character != 'q') return OnAnyKey(key.character);
      Open(Page::kOverview);
      break;
    default:
      break;
  }
  return LiveAction::kNone;
}

LiveAction LiveView::OnAnyKey(char32_t character) {
  switch (character) {
    case 'r':
      return LiveAction::kResume;
    case 'L' & 0x1f:
      return LiveAction::kRepaint;
    case 'p':
      TogglePause();
      break;
    case 'f':
      PickBad(std::exchange(jumps_, true));
      break;
    case 'm':
      Open(Page::kMessages);
      break;
    case '?':
      Open(Page::kHelp);
      break;
    case 's':
      worst_first_ = !worst_first_;
      note_ = worst_first_ ? "sorted: what is wrong first" : "sorted: by number";
      Relist();
      break;
    case 'v':
      if (page_ == Page::kOverview) NextForm();
      break;
    case '/':
      if (page_ == Page::kOverview) types_filter_ = true;
      break;
    default:
      note_ = "? shows the keys";
      break;
  }
  return LiveAction::kNone;
}

std::optional<LiveSubject> LiveView::WantsDetails() const {
  if (page_ != Page::kDetails || !picked_) return std::nullopt;
  if (is_paused() && details_of_ == picked_) return std::nullopt;
  return picked_;
}

void LiveView::SetDetails(const LiveSubject& subject, LiveDetails details) {
  details_of_ = subject;
  details_ = std::move(details);
}

}  // namespace hangscope
