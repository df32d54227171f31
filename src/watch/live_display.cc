#include "watch/live_display.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

namespace hangscope {
namespace {

constexpr TimeNs kLeastBetweenDraws = 100 * kMillisecond;
constexpr TimeNs kBetweenDraws = 250 * kMillisecond;  // where merely time passes
constexpr TimeNs kBetweenDetails = 500 * kMillisecond;
constexpr int kDetailsShare = 20;  // reading details takes no more than such a part of the time
constexpr size_t kMostSaidBytes = 4u << 20;

}  // namespace

Status LiveDisplay::Open() {
  if (Status status = screen_.Open(); !status.ok()) return status;
  is_open_ = true;
  return {};
}

void LiveDisplay::Close() {
  if (is_open_) screen_.Close();
  is_open_ = false;
}

void LiveDisplay::Say(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    said_.emplace_back(text.substr(0, end));
    said_bytes_ += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  for (; said_bytes_ > kMostSaidBytes; ++forgotten_) {
    said_bytes_ -= said_.front().size();
    said_.pop_front();
  }
  Change();
}

std::string LiveDisplay::DrainSaid() {
  std::string text;
  if (forgotten_ > 0)
    text = fmt::format("hangscope: {} older lines are left out here; --log FILE keeps them\n",
                       forgotten_);
  for (const std::string& line : said_) text += line + "\n";
  said_.clear();
  said_bytes_ = 0;
  forgotten_ = 0;
  return text;
}

TimeNs LiveDisplay::next_draw() const {
  return was_drawn_ ? drawn_ + (changed_ ? kLeastBetweenDraws : kBetweenDraws) : 0;
}

void LiveDisplay::Tick() {
  const TimeNs now = clock_.Monotonic();
  if (is_open_ && now >= next_draw()) Draw(now);
}

void LiveDisplay::Draw(TimeNs now) {
  drawn_ = now;
  was_drawn_ = true;
  // somebody else has the terminal, or it takes no more; then all of it is drawn anew
  if (!screen_.MayShow()) {
    shown_.reset();
    return;
  }
  changed_ = false;
  view_.Update(callbacks_.data());
  ReadDetails(now);
  std::vector<std::string> messages;
  if (view_.shows_messages()) messages.assign(said_.begin(), said_.end());
  LiveFrame frame = view_.Frame(
      screen_.size(), [this](char32_t c) { return screen_.Width(c); }, messages);
  if (shown_ == frame) return;
  screen_.Show(frame);
  shown_ = std::move(frame);
}

// A ring may be large: the longer reading it takes, the more seldom that is.
void LiveDisplay::ReadDetails(TimeNs now) {
  const auto wanted = view_.WantsDetails();
  if (!wanted || (wanted == details_of_ && now < next_details_)) return;
  view_.SetDetails(*wanted, callbacks_.details(*wanted));
  details_of_ = wanted;
  next_details_ = now + std::max(kBetweenDetails, kDetailsShare * (clock_.Monotonic() - now));
}

void LiveDisplay::OnInput() {
  while (const auto key = screen_.NextKey()) {
    view_.Update(callbacks_.data());
    switch (view_.OnKey(*key, clock_.Monotonic())) {
      case LiveAction::kNone:
        break;
      case LiveAction::kQuit:
        quits_ = true;
        break;
      case LiveAction::kResume:
        callbacks_.resume();
        break;
      case LiveAction::kRepaint:
        screen_.Continue();
        shown_.reset();
        break;
    }
    Change();
  }
}

bool LiveDisplay::OnSignal(int number) {
  switch (number) {
    case SIGWINCH:
      screen_.Resize();
      break;
    case SIGTSTP:
      screen_.Suspend();
      break;
    case SIGCONT:
      screen_.Continue();
      break;
    default:
      return false;
  }
  shown_.reset();
  was_drawn_ = false;  // at once
  Tick();
  return true;
}

}  // namespace hangscope
