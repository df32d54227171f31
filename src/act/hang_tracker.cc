#include "act/hang_tracker.h"

#include <utility>

#include "verdict/judge_picture.h"

namespace hangscope {

HangTracker::News HangTracker::Follow(const Verdict& verdict) {
  const bool was_on = std::exchange(is_on_, IsReported(verdict));
  if (!is_on_) {
    acted_ = false;
    return was_on ? News::kOver : News::kNone;
  }
  if (!was_on) {
    last_ = verdict;
    return News::kHang;
  }
  if (!Supersedes(verdict, *last_)) return News::kNone;
  const Verdict before = std::exchange(*last_, verdict);
  last_->evidence.insert(last_->evidence.begin(), "instead of: " + before.summary);
  last_->last_output = before.last_output;
  return News::kBetter;
}

bool HangTracker::IsToBeActedOn() {
  const bool is_due = IsActionPending();
  acted_ = acted_ || is_due;
  return is_due;
}

}  // namespace hangscope
