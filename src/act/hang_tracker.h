// Which hang is on, of one verdict after the other: what is news of it, and when --on-hang is due.
//
// Pure. One thread.
#ifndef HANGSCOPE_ACT_HANG_TRACKER_H
#define HANGSCOPE_ACT_HANG_TRACKER_H

#include <optional>
#include <utility>
#include <vector>

#include "model/verdict.h"

namespace hangscope {

class HangTracker {
 public:
  enum class News {
    kNone,
    kHang,    // one began
    kBetter,  // a surer or better cause of the one that is on
    kOver,
  };

  explicit HangTracker(const ActOn& act_on) : act_on_(act_on) {}

  // Whether `verdict` is to be reported as a hang. One that was reported lasts while it is looked
  // at again.
  bool IsReported(const Verdict& verdict) const {
    return (!verdict.undecided || is_on_) && (verdict.IsHang() || act_on_.Covers(verdict));
  }
  News Follow(const Verdict& verdict);
  // What led up to the hang that is on: `told` is last(), and says more.
  void Complete(Verdict told) { last_ = std::move(told); }
  // What was printed last when the hang that is on was reported: a better cause of it keeps that.
  void NoteLastOutput(std::vector<LastOutput> output) { last_->last_output = std::move(output); }
  // True once for each hang, when --act-on covers what is known of it.
  bool IsToBeActedOn();
  // It is due, and nobody has asked yet.
  bool IsActionPending() const { return is_on_ && !acted_ && act_on_.Covers(*last_); }

  bool is_on() const { return is_on_; }
  // The hang that was reported last, as it is known best; null: there was none.
  const Verdict* last() const { return last_ ? &*last_ : nullptr; }

 private:
  const ActOn act_on_;
  bool is_on_ = false;
  bool acted_ = false;  // on the hang that is on
  std::optional<Verdict> last_;
};

}  // namespace hangscope

#endif
