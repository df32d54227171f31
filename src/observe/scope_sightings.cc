#include "observe/scope_sightings.h"

#include <utility>

namespace hangscope {

template <typename View>
void ScopeSightings::Update(View& view, bool is_news, TimeNs now) {
  TellFindings(view, is_news, now);
  sightings_.before_that = std::exchange(sightings_.as_of, now);
  sightings_.moving = MovingIn(view.Scene(now), stall_);
  sightings_.moving_threads = view.MovingThreads(now, stall_);
  TellWaits(view, now);
}

void ScopeSightings::Forget() {
  told_ = told_victims_ = 0;
  told_waits_.clear();
  sightings_ = {};
}

// Texts of findings that stand are made once: they say how it was when they were found. Who waits
// for a core that was found faulty at first sight is known later.
template <typename View>
void ScopeSightings::TellFindings(View& view, bool is_news, TimeNs now) {
  const std::vector<ScopeFinding>& standing = view.watcher().standing();
  size_t victims = 0;
  for (const ScopeFinding& finding : standing) victims += finding.victims.size();
  if (!is_news && standing.size() == told_ && victims == told_victims_) return;
  told_ = standing.size();
  told_victims_ = victims;
  if (sightings_.findings.empty()) sightings_.found_at = now;
  sightings_.findings.clear();
  (void)view.RefreshNames().ok();
  for (const ScopeFinding& finding : standing)
    sightings_.findings.push_back(view.Tell(finding, now));
}

// Likewise: when they are others than before.
template <typename View>
void ScopeSightings::TellWaits(View& view, TimeNs now) {
  std::vector<LastingWait> waits = view.watcher().LastingWaits();
  if (waits == told_waits_) return;
  told_waits_ = std::move(waits);
  if (!told_waits_.empty()) (void)view.RefreshNames().ok();
  sightings_.waits = view.Waits(now);
}

template void ScopeSightings::Update(LiveScope& view, bool is_news, TimeNs now);
template void ScopeSightings::Update(Watchable& view, bool is_news, TimeNs now);

}  // namespace hangscope
