#include "observe/scope_watch.h"

#include <utility>

namespace hangscope {
namespace {

constexpr TimeNs kInterval = 100 * kMillisecond;
// Its scope is there already: what has no mailboxes then will have none. Opening may search all of
// its memory.
constexpr int kMostTries = 10;

}  // namespace

void ScopeWatch::Sample(TimeNs now) {
  if (now < next_look_) return;
  next_look_ = now + jitter_.Next(kInterval);
  if (view_ == nullptr) Open();
  if (view_ == nullptr) return;
  auto same = view_->IsSame();
  if (!same.ok()) return;  // it is gone; what it was last is what is known of it
  if (!*same) {
    view_.reset();
    sightings_.Forget();
    tries_ = 0;
    return;
  }
  if (!view_->Poll(now).ok() || view_->MayBeDump()) return;
  sightings_.Update(*view_, !view_->watcher().DrainFindings().empty(), now);
}

void ScopeWatch::Open() {
  if (tries_ == kMostTries) return;
  ++tries_;
  WatcherOptions options;
  options.stall = stall_;
  auto view = LiveScope::Open(files_, source_, options);
  if (!view.ok()) return;
  view_ = std::move(*view);
}

}  // namespace hangscope
