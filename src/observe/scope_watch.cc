#include "observe/scope_watch.h"

#include <utility>

namespace hangscope {
namespace {

constexpr TimeNs kInterval = 100 * kMillisecond;
// Who has none yet is asked as often as who has one at first, and then each time after twice as
// long: opening may search all of its memory.
constexpr TimeNs kSoon = kSecond;

}  // namespace

void ScopeWatch::Sample(TimeNs now) {
  if (now < next_look_) return;
  next_look_ = now + jitter_.Next(kInterval);
  if (view_ == nullptr) Open(now);
  if (view_ == nullptr) return;
  auto same = view_->IsSame();
  if (!same.ok()) return;  // it is gone; what it was last is what is known of it
  if (!*same) {
    view_.reset();
    sightings_.Forget();
    missing_since_ = 0;
    return;
  }
  if (!view_->Poll(now).ok() || view_->MayBeDump()) return;
  sightings_.Update(*view_, !view_->watcher().DrainFindings().empty(), now);
}

void ScopeWatch::Open(TimeNs now) {
  if (missing_since_ == 0) missing_since_ = now;
  WatcherOptions options;
  options.stall = stall_;
  auto view = LiveScope::Open(files_, source_, options);
  if (!view.ok()) {
    const TimeNs missing = now - missing_since_;
    if (missing >= kSoon) next_look_ = now + missing;
    return;
  }
  view_ = std::move(*view);
}

}  // namespace hangscope
